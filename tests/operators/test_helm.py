"""Helm installs, upgrades, rolls back and uninstalls charts of the usual shapes, and waits each time.

Helm 3 patches as a client and has its own rules of what is ready; Helm 4 applies on the server and waits by kstatus.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.harness.operators import Document, Plane, directory, has_condition, needs, plane

PROGRAMS = ("helm", "helm4")

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec:
      containers:
        - name: web
          image: "web:{{ .Values.tag }}"
          ports: [{name: http, containerPort: 8080}]
          envFrom: [{configMapRef: {name: "{{ .Release.Name }}"}}]
          resources: {requests: {cpu: 10m}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {tag: "{{ .Values.tag }}"}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {app: "{{ .Release.Name }}"}
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: "{{ .Release.Name }}"}
spec:
  rules:
    - host: web.example
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: "{{ .Release.Name }}", port: {name: http}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: "{{ .Release.Name }}"}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}"}
  minReplicas: {{ .Values.least }}
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ .Release.Name }}"}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
"""

STORE = """
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {clusterIP: None, selector: {app: "{{ .Release.Name }}"}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}"}
spec:
  serviceName: "{{ .Release.Name }}"
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec:
      containers:
        - {name: store, image: "store:{{ .Values.tag }}", volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {storageClassName: csi-sim, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""

GAMES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.shapes.example}
spec:
  group: shapes.example
  scope: Namespaced
  names: {kind: Game, plural: games, singular: game}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {players: {type: integer, maximum: 8}}
              x-kubernetes-validations: [{rule: self.players > 1, message: it takes two}]
"""

OPERATOR = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Release.Name }}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Name }}"}
rules: [{apiGroups: [shapes.example], resources: [games], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{{ .Release.Name }}"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{ .Release.Name }}"}
subjects: [{kind: ServiceAccount, name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec:
      serviceAccountName: "{{ .Release.Name }}"
      containers: [{name: operator, image: "operator:{{ .Values.tag }}"}]
---
apiVersion: shapes.example/v1
kind: Game
metadata: {name: chess}
spec: {players: {{ .Values.players }}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-migrate"
  annotations: {helm.sh/hook: "pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation"}
spec:
  template:
    metadata: {annotations: {sim.steersman.dev/runs: "1"}}
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: "operator:{{ .Values.tag }}"}]
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}"}
spec:
  template:
    metadata:
      annotations: {sim.steersman.dev/exit-code: "{{ .Values.code }}", sim.steersman.dev/runs: "1"}
    spec:
      restartPolicy: Never
      containers: [{name: work, image: work}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data:
  system: "{{ dig "metadata" "uid" "unknown" (lookup "v1" "Namespace" "" "kube-system") }}"
"""

SPEC = {"selector": {"app": "other"}, "ports": [{"port": 80}]}


@dataclass(frozen=True)
class Helm:
    """Helm on a plane, and charts in a directory of the test."""

    plane: Plane
    home: Path
    program: str

    def run(self, *arguments: str, fails: bool = False) -> str:
        """What it prints."""
        return self.plane.helm(*arguments, fails=fails, program=self.program)

    def waits(self, verb: str, *arguments: str, timeout: str = "60s", fails: bool = False) -> str:
        """What it prints when all of a release is ready, or gone."""
        return self.run(verb, *arguments, "--wait", f"--timeout={timeout}", fails=fails)

    def chart(self, name: str, values: Document, templates: str, definitions: str = "") -> str:
        """Writes a chart; its path."""
        root = self.home / name
        (root / "templates").mkdir(parents=True)
        (root / "Chart.yaml").write_text(
            yaml.safe_dump({"apiVersion": "v2", "name": name, "version": "1.0.0"})
        )
        (root / "values.yaml").write_text(yaml.safe_dump(values))
        (root / "templates/all.yaml").write_text(templates)
        if definitions:
            (root / "crds").mkdir()
            (root / "crds/all.yaml").write_text(definitions)
        return str(root)

    def statuses(self, release: str) -> list[str]:
        """Of each revision."""
        return [each["status"] for each in json.loads(self.run("history", release, "--output=json"))]


@pytest.fixture(scope="module", params=[pytest.param(each, marks=needs(f"bin/{each}")) for each in PROGRAMS])
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    program: str = request.param
    where = tmp_path_factory.mktemp(program)
    with plane(where, "--csi") as running:
        yield Helm(running, where, program)


def image(found: Document) -> str:
    named: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return named


def test_a_web_application_with_ingress_autoscaler_and_budget(helm: Helm) -> None:
    def deployment() -> Document:
        return helm.plane.get("apps/v1", "Deployment", "web")

    chart = helm.chart("web", {"tag": "1", "least": 2}, WEB)
    helm.waits("install", "web", chart)
    assert has_condition(deployment(), "Available")
    helm.plane.until(
        lambda: deployment()["status"].get("readyReplicas") == 2, "the autoscaler has its least number"
    )
    helm.waits("upgrade", "web", chart, "--set=tag=2,least=3")
    assert image(deployment()) == "web:2"
    assert helm.plane.get("v1", "ConfigMap", "web")["data"] == {"tag": "2"}
    helm.plane.until(lambda: deployment()["status"].get("readyReplicas") == 3, "it follows the upgrade")
    helm.waits("rollback", "web", "1")
    assert image(deployment()) == "web:1"
    autoscaler = helm.plane.get("autoscaling/v2", "HorizontalPodAutoscaler", "web")
    assert autoscaler["spec"]["minReplicas"] == 2
    # An image that cannot be pulled is never ready: Helm goes back by itself.
    said = helm.waits("upgrade", "web", chart, "--set=tag=bad", "--atomic", timeout="3s", fails=True)
    assert re.search("has been rolled back due to (atomic|rollback-on-failure) being set", said)
    assert image(deployment()) == "web:1"
    assert helm.statuses("web") == ["superseded", "superseded", "superseded", "failed", "deployed"]
    helm.waits("uninstall", "web")
    for version, kind in (
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy/v1", "PodDisruptionBudget"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ):
        assert helm.plane.get(version, kind, "web") == {}, kind


def test_a_statefulset_keeps_its_claims(helm: Helm) -> None:
    def store() -> Document:
        return helm.plane.get("apps/v1", "StatefulSet", "store")

    chart = helm.chart("store", {"tag": "1", "replicas": 2}, STORE)
    helm.waits("install", "store", chart)
    assert store()["status"]["readyReplicas"] == 2
    helm.waits("upgrade", "store", chart, "--set=tag=2,replicas=3")
    assert (image(store()), store()["status"]["updatedReplicas"]) == ("store:2", 3)
    helm.waits("rollback", "store", "1")
    assert (image(store()), store()["spec"]["replicas"]) == ("store:1", 2)
    helm.waits("uninstall", "store")
    assert store() == {}
    claims = {
        each["metadata"]["name"]: each["status"]["phase"]
        for each in helm.plane.list("v1", "PersistentVolumeClaim")
    }
    assert claims == {f"data-store-{number}": "Bound" for number in range(3)}


def test_an_operator_with_its_definitions_and_an_object_of_them(helm: Helm) -> None:
    def game() -> Document:
        return helm.plane.get("shapes.example/v1", "Game", "chess")

    chart = helm.chart("games", {"tag": "1", "players": 2}, OPERATOR, GAMES)
    helm.waits("install", "games", chart)
    assert has_condition(helm.plane.get("apps/v1", "Deployment", "games"), "Available")
    assert game()["spec"] == {"players": 2}
    helm.waits("upgrade", "games", chart, "--set=tag=2,players=4")
    assert has_condition(helm.plane.get("batch/v1", "Job", "games-migrate"), "Complete")
    assert game()["spec"] == {"players": 4}
    assert "it takes two" in helm.waits("upgrade", "games", chart, "--set=players=1", fails=True)
    helm.waits("rollback", "games", "1")
    assert game()["spec"] == {"players": 2}
    helm.waits("uninstall", "games")
    assert game() == {}
    definition = helm.plane.get(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "games.shapes.example", None
    )
    assert has_condition(definition, "Established"), "Helm leaves definitions where they are"


def test_the_chart_that_helm_create_writes_is_installed_and_tested(helm: Helm) -> None:
    chart = str(helm.home / "starter")
    helm.run("create", chart)
    helm.waits("install", "starter", chart)
    tested = helm.run("test", "starter", "--logs", "--timeout=60s")
    assert re.search(r"starter-test-connection\n(.*\n)*Phase: +Succeeded", tested)
    assert "container wget exited with code 0" in tested
    if helm.program == "helm":  # Helm 4 has no such flag
        shown = helm.run("status", "starter", "--show-resources")
        assert re.search(r"==> v1/Deployment\nNAME +READY .*\nstarter +1/1 ", shown)
    first = helm.plane.get("v1", "Pod", "starter-test-connection")["metadata"]["uid"]
    helm.run("test", "starter", "--timeout=60s")
    assert helm.plane.get("v1", "Pod", "starter-test-connection")["metadata"]["uid"] != first
    helm.waits("uninstall", "starter")


def test_a_release_that_fails_leaves_nothing_and_what_belongs_to_another_is_left_alone(helm: Helm) -> None:
    chart = helm.chart("atomic", {"tag": "1", "least": 1}, WEB)
    failing = ("upgrade", "--install", "atomic", chart, "--set=tag=bad", "--atomic")
    said = helm.waits(*failing, timeout="3s", fails=True)
    assert re.search("has been uninstalled due to (atomic|rollback-on-failure) being set", said)
    assert helm.plane.get("apps/v1", "Deployment", "atomic") == {}
    assert "atomic" not in helm.run("list", "--failed", "--short")
    helm.plane.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "atomic"}, "spec": SPEC})
    said = helm.waits("install", "atomic", chart, fails=True)
    assert 'Service "atomic" in namespace "default" exists and cannot be imported' in said
    forced = ("--force-conflicts",) if helm.program == "helm4" else ()
    helm.waits("install", "atomic", chart, "--take-ownership", *forced)
    owner = helm.plane.get("v1", "Service", "atomic")["metadata"]["annotations"]
    assert owner["meta.helm.sh/release-name"] == "atomic"
    helm.waits("uninstall", "atomic")


def test_jobs_are_waited_for_and_templates_see_the_server(helm: Helm) -> None:
    chart = helm.chart("jobs", {"code": 0}, JOB)
    shown = helm.run("install", "jobs", chart, "--dry-run=server")
    system = helm.plane.get("v1", "Namespace", "kube-system", None)["metadata"]["uid"]
    assert system in shown, "a dry run on the server looks things up there"
    assert system not in helm.run("template", "jobs", chart)
    assert helm.plane.get("batch/v1", "Job", "jobs") == {}
    helm.waits("install", "jobs", chart, "--wait-for-jobs")
    assert has_condition(helm.plane.get("batch/v1", "Job", "jobs"), "Complete")
    said = helm.run("upgrade", "jobs", chart, "--set=code=1", fails=True)
    assert "field is immutable" in said
    helm.waits("uninstall", "jobs", "--cascade=foreground", "--keep-history")
    assert helm.statuses("jobs") == ["superseded", "uninstalled"]
    helm.waits("rollback", "jobs", "1", "--wait-for-jobs")
    assert has_condition(helm.plane.get("batch/v1", "Job", "jobs"), "Complete")


def test_a_field_that_another_wrote_is_overwritten_by_helm_3_and_a_conflict_for_helm_4(helm: Helm) -> None:
    chart = helm.chart("shared", {"tag": "1", "replicas": 1}, STORE)
    helm.waits("install", "shared", chart)

    def replicas() -> int:
        found: int = helm.plane.get("apps/v1", "StatefulSet", "shared")["spec"]["replicas"]
        return found

    helm.plane.scale("apps/v1", "StatefulSet", "shared", 3)
    upgrade = ["upgrade", "shared", chart, "--set=tag=2"]
    if helm.program == "helm4":
        said = helm.waits(*upgrade, fails=True)
        assert re.search(r'conflict with .*" with subresource "scale" using apps/v1: \.spec\.replicas', said)
        upgrade.append("--force-conflicts")
    helm.waits(*upgrade)
    assert replicas() == 1
    helm.waits("uninstall", "shared")


@needs(*(f"bin/{each}" for each in PROGRAMS))
def test_a_release_of_helm_3_is_taken_over_by_helm_4(tmp_path: Path) -> None:
    def writers() -> list[tuple[str, str]]:
        found = old.plane.get("v1", "ConfigMap", "web")["metadata"]["managedFields"]
        return [(each["manager"], each["operation"]) for each in found]

    with plane(tmp_path) as running:
        old, new = (Helm(running, tmp_path, program) for program in PROGRAMS)
        chart = old.chart("web", {"tag": "1", "least": 1}, WEB)
        old.waits("install", "web", chart)
        new.waits("upgrade", "web", chart, "--set=tag=2")
        assert writers() == [("helm", "Update")], "it goes on as the release began"
        new.waits("upgrade", "web", chart, "--set=tag=3", "--server-side=true")
        assert writers() == [("helm", "Apply")]
        assert running.get("v1", "ConfigMap", "web")["data"] == {"tag": "3"}
        new.waits("rollback", "web", "1")
        assert image(running.get("apps/v1", "Deployment", "web")) == "web:1"


@needs("jobset/charts/jobset")
def test_a_public_chart_unmodified(helm: Helm) -> None:
    chart = str(directory() / "jobset/charts/jobset")
    where = ("--namespace=jobset-system",)
    helm.waits("install", "jobset", chart, *where, "--create-namespace")
    (found,) = helm.plane.list("apps/v1", "Deployment", "jobset-system")
    assert has_condition(found, "Available")
    helm.waits("upgrade", "jobset", chart, *where, "--set=controller.replicas=2")
    helm.waits("rollback", "jobset", "1", *where)
    helm.waits("uninstall", "jobset", *where)
    assert helm.plane.list("apps/v1", "Deployment", "jobset-system") == []
