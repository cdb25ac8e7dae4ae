"""An unmodified kubectl against ``steersman up``: what a user does, and what they read.

One plane in a process of its own serves all tests here; each keeps to its own namespace. The cluster's clock
runs faster than the wall's, so nobody waits for simulated containers to start.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.api.kinds import NAMESPACES, SERVICEACCOUNTS
from steersman.client.http import HttpApi
from steersman.client.kubeconfig import load as load_config
from tests.harness import follow
from tests.harness.assets import ASSETS
from tests.harness.child_process import Child, until

PATIENCE = 60.0
"""Seconds one command may take, on a busy machine."""
_numbers = itertools.count(1)


def found() -> str | None:
    """The kubectl to try: that of the assets, or the one on the path."""
    assets = os.environ.get(ASSETS, "")
    return (shutil.which("kubectl", path=assets) if assets else None) or shutil.which("kubectl")


pytestmark = [
    pytest.mark.xdist_group("kubectl"),
    pytest.mark.skipif(found() is None, reason=f"needs kubectl on the path, or in {ASSETS}"),
]


@dataclass(frozen=True)
class Said:
    """What a command said."""

    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """A table as words, without its head."""
        return [line.split() for line in self.out.splitlines()[1:]]

    @property
    def head(self) -> list[str]:
        return self.out.splitlines()[0].split()


@dataclass(frozen=True)
class Kubectl:
    """kubectl in a namespace."""

    binary: str
    kubeconfig: Path
    home: Path
    namespace: str = "default"

    def command(self, *words: str) -> list[str]:
        cut = words.index("--") if "--" in words else len(words)
        where = ("-n", self.namespace)
        return [self.binary, *words[:cut], *where, *words[cut:]]

    def env(self, **more: str) -> dict[str, str]:
        ours = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "TMPDIR": str(self.home)}
        # It does not live long enough for its rubbish to be worth collecting.
        return {**os.environ, **ours, "GOGC": "off", **more}

    def __call__(self, *words: str, code: int = 0, stdin: str = "", **env: str) -> Said:
        """Run it to its end, which must be this exit code."""
        done = subprocess.run(
            self.command(*words),
            env=self.env(**env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        told = f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
        assert done.returncode == code, told
        return Said(done.stdout, done.stderr)

    def refused(self, *words: str, stdin: str = "", **env: str) -> str:
        """Run what must be refused; answers with why."""
        return self(*words, code=1, stdin=stdin, **env).err

    def json(self, *words: str) -> Any:
        return json.loads(self("get", *words, "-o", "json").out)

    def path(self, what: str, path: str) -> str:
        """What is at a path of an object."""
        return self("get", what, "-o", f"jsonpath={{{path}}}").out

    def put(self, *documents: dict[str, Any], how: str = "apply", code: int = 0) -> Said:
        """Apply documents, or create or replace them."""
        return self(how, "-f", "-", stdin=yaml.safe_dump_all(documents), code=code)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A plane that is up, and kubectl for it."""
    home = tmp_path_factory.mktemp("kubectl")
    kubeconfig = home / "config"
    argv = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", "--speed=10"]
    child = Child([*argv, f"--kubeconfig={kubeconfig}"], home / "up.log")
    try:
        until(lambda: "steersman is up" in child.log(), child, PATIENCE, "the plane")
        binary = found()
        assert binary is not None
        yield Kubectl(binary, kubeconfig, home)
        log = child.log()
        assert child.code is None, log
        assert "Traceback" not in log, log
        assert " is forbidden: " not in log, f"a loop lacks a right:\n{log}"
    finally:
        child.kill()
        child.wait(PATIENCE)


@pytest.fixture
def kubectl(cluster: Kubectl) -> Kubectl:
    """kubectl in a namespace nobody else uses, in which pods can be created."""
    name = f"test-{next(_numbers)}"

    async def prepare() -> None:
        async with asyncio.timeout(PATIENCE), HttpApi(load_config(str(cluster.kubeconfig)), qps=0) as api:
            await api.create(NAMESPACES.untyped, "", {"metadata": {"name": name}})
            await follow.until(api, SERVICEACCOUNTS, name, "default", lambda account: True)

    asyncio.run(prepare())
    return replace(cluster, namespace=name)


def deployment(name: str = "web", image: str = "app:1", replicas: int = 2, **more: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "image": image, **more}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def rolled_out(kubectl: Kubectl, what: str = "deployment/web") -> None:
    said = kubectl("rollout", "status", what, f"--timeout={PATIENCE:g}s").out
    assert said.splitlines()[-1] == f'deployment "{what.partition("/")[2]}" successfully rolled out'


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """With a Deployment of two that is ready."""
    kubectl.put(deployment())
    rolled_out(kubectl)
    return kubectl


# -- creating ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "what", "path", "value"),
    [
        ("deployment web --image=app:1 --replicas=2", "deploy/web", ".spec.replicas", "2"),
        ("job once --image=app:1 -- true", "job/once", ".spec.template.spec.restartPolicy", "Never"),
        (
            "cronjob nightly --image=app:1 --schedule=@daily",
            "cronjob/nightly",
            ".spec.concurrencyPolicy",
            "Allow",
        ),
        ("configmap settings --from-literal=a=b", "cm/settings", ".data.a", "b"),
        ("secret generic pass --from-literal=user=me", "secret/pass", ".data.user", "bWU="),
        ("quota most --hard=pods=5,cpu=2", "quota/most", ".spec.hard.pods", "5"),
        ("role reader --verb=get,list --resource=pods", "role/reader", ".rules[0].verbs", '["get","list"]'),
        (
            "rolebinding read --role=reader --serviceaccount=x:y",
            "rolebinding/read",
            ".subjects[0].namespace",
            "x",
        ),
        ("serviceaccount robot", "sa/robot", ".metadata.name", "robot"),
        ("service clusterip s --tcp=80:8080", "svc/s", ".spec.ports[0].targetPort", "8080"),
        ("service nodeport n --tcp=80 --node-port=30123", "svc/n", ".spec.ports[0].nodePort", "30123"),
        ("ingress i --rule=a.dev/=s:80", "ingress/i", ".spec.rules[0].host", "a.dev"),
        ("pdb budget --selector=app=web --min-available=1", "pdb/budget", ".spec.minAvailable", "1"),
    ],
)
def test_create_makes(kubectl: Kubectl, words: str, what: str, path: str, value: str) -> None:
    said = kubectl("create", *words.split()).out
    assert said.endswith(" created\n")
    assert kubectl.path(what, path) == value


def test_what_is_there_already_or_makes_no_sense_is_refused_with_the_reason(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "one")
    assert kubectl.refused("create", "configmap", "one") == (
        'error: failed to create configmap: configmaps "one" already exists\n'
    )
    wrong = deployment()
    wrong["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    wrong["spec"]["sellector"] = {}
    said = kubectl.put(wrong, how="create", code=1).err
    assert 'unknown field "spec.sellector"' in said
    del wrong["spec"]["sellector"]
    said = kubectl.put(wrong, how="create", code=1).err
    assert 'The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value' in said
    assert "`selector` does not match template `labels`" in said


def test_a_quota_that_is_used_up_is_told_of(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "none", "--hard=services=0")
    # Nobody but the controller of quotas fills this in; where it runs it says the same.
    status = '{"status":{"hard":{"services":"0"},"used":{"services":"0"}}}'
    kubectl("patch", "quota", "none", "--subresource=status", "--type=merge", "-p", status)
    said = kubectl.refused("create", "service", "clusterip", "s", "--tcp=80")
    assert "exceeded quota: none, requested: services=1, used: services=0, limited: services=0" in said


def test_a_token_of_an_account_lets_it_in_with_its_own_rights(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=list", "--resource=pods")
    kubectl("create", "rolebinding", "read", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    token = kubectl("create", "token", "robot", "--duration=1h").out.strip()
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == f"system:serviceaccount:{kubectl.namespace}:robot"
    assert claims["exp"] - claims["iat"] == 3600
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = kubectl.home / f"{kubectl.namespace}.config"
    path.write_text(yaml.safe_dump(config))
    robot = replace(kubectl, kubeconfig=path)
    assert robot("get", "pods").err == f"No resources found in {kubectl.namespace} namespace.\n"
    assert "cannot list resource" in robot.refused("get", "secrets")
    assert robot("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").out == claims["sub"]


# -- applying ---------------------------------------------------------------------------------


def test_apply_creates_configures_prunes_fields_and_leaves_unchanged(kubectl: Kubectl) -> None:
    first = deployment(env=[{"name": "A", "value": "1"}])
    assert kubectl.put(first).out == "deployment.apps/web created\n"
    assert kubectl.put(first).out == "deployment.apps/web unchanged\n"
    kubectl("scale", "deployment/web", "--replicas=3")
    second = deployment(image="app:2")
    del second["spec"]["replicas"]
    assert kubectl.put(second).out == "deployment.apps/web configured\n"
    found = kubectl.json("deployment/web")["spec"]
    container = found["template"]["spec"]["containers"][0]
    assert (container["image"], "env" in container) == ("app:2", False)
    assert found["replicas"] == 1, "what is applied no longer goes back to its default"
    shown = yaml.safe_load(kubectl("apply", "view-last-applied", "deployment/web").out)
    assert shown["spec"]["template"]["spec"]["containers"] == [{"name": "app", "image": "app:2"}]


def test_apply_prunes_what_is_no_longer_given(kubectl: Kubectl) -> None:
    def config(name: str) -> dict[str, Any]:
        meta = {"name": name, "labels": {"set": "s"}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    kubectl.put(config("a"), config("b"))
    prune = ("--prune", "-l", "set=s", "--prune-allowlist=core/v1/ConfigMap")
    said = kubectl("apply", "-f", "-", *prune, stdin=yaml.safe_dump(config("a"))).out
    assert said.splitlines() == ["configmap/a unchanged", "configmap/b pruned"]


def test_a_list_of_objects_is_checked_and_applied(kubectl: Kubectl) -> None:
    meta: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    both = [{**meta, "metadata": {"name": name}} for name in ("a", "b")]
    kubectl.put({"apiVersion": "v1", "kind": "List", "items": both})
    listed = yaml.safe_load(kubectl("get", "cm", "a", "b", "-o", "yaml").out)
    assert listed["kind"] == "List"
    listed["items"][0]["data"] = {"size": "large"}
    assert kubectl.put(listed).out.splitlines() == ["configmap/a configured", "configmap/b configured"]
    assert kubectl.path("cm/a", ".data.size") == "large"
    wrong = deployment()
    wrong["spec"]["sellector"] = {}
    said = kubectl.put({"apiVersion": "v1", "kind": "List", "items": [*both, wrong]}, code=1).err
    assert 'unknown field "sellector" in io.k8s.api.apps.v1.DeploymentSpec' in said


def test_diff_shows_what_apply_would_do_and_does_nothing(kubectl: Kubectl) -> None:
    kubectl.put(deployment())
    same = kubectl("diff", "-f", "-", stdin=yaml.safe_dump(deployment()))
    assert same.out == ""
    said = kubectl("diff", "-f", "-", stdin=yaml.safe_dump(deployment(image="app:2")), code=1).out
    changed = [line.strip() for line in said.splitlines() if line[:1] in "+-" and "image" in line]
    assert changed == ["-      - image: app:1", "+      - image: app:2"]
    assert kubectl.path("deployment/web", ".spec.template.spec.containers[0].image") == "app:1"
    new = kubectl("diff", "-f", "-", stdin=yaml.safe_dump(deployment("new")), code=1).out
    assert "+  name: new" in new
    assert 'deployments.apps "new" not found' in kubectl.refused("get", "deployment/new")


def test_server_side_apply_names_who_it_conflicts_with_until_it_is_forced(kubectl: Kubectl) -> None:
    def apply(replicas: int, *more: str, code: int = 0) -> Said:
        body = yaml.safe_dump(deployment(replicas=replicas))
        return kubectl("apply", "--server-side", *more, "-f", "-", stdin=body, code=code)

    assert apply(2).out == "deployment.apps/web serverside-applied\n"
    said = apply(3, "--field-manager=other", code=1).err
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in said
    assert "--force-conflicts" in said
    apply(3, "--field-manager=other", "--force-conflicts")
    managers = kubectl("get", "deployment/web", "--show-managed-fields", "-o", "json")
    entries = json.loads(managers.out)["metadata"]["managedFields"]
    owner = [each["manager"] for each in entries if "f:replicas" in each["fieldsV1"].get("f:spec", {})]
    assert owner == ["other"]
    assert kubectl("get", "deployment/web", "-o", "json").out.find("managedFields") == -1


def test_a_dry_run_on_the_server_fills_in_defaults_and_keeps_nothing(kubectl: Kubectl) -> None:
    body = yaml.safe_dump(deployment())
    said = kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=body).out
    assert json.loads(said)["spec"]["revisionHistoryLimit"] == 10
    assert kubectl("get", "deployments").err.startswith("No resources found")


# -- getting ----------------------------------------------------------------------------------


def test_get_shows_tables_wide_ones_and_labels(web: Kubectl) -> None:
    said = web("get", "deployment")
    assert said.head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert said.rows[0][:4] == ["web", "2/2", "2", "2"]
    wide = web("get", "pods", "-o", "wide", "--show-labels")
    assert wide.head[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    for row in wide.rows:
        assert row[1:4] == ["1/1", "Running", "0"]
        assert row[6].startswith("node-")
        assert row[-1].startswith("app=web,pod-template-hash=")
    both = web("get", "deploy,rs", "--no-headers").out.split()
    assert both[0] == "deployment.apps/web"
    everywhere = web("get", "deployments", "-A")
    assert [web.namespace, "web"] in [row[:2] for row in everywhere.rows]


def test_get_shows_objects_as_yaml_json_names_paths_and_columns(web: Kubectl) -> None:
    as_yaml = yaml.safe_load(web("get", "deploy", "web", "-o", "yaml").out)
    assert as_yaml == web.json("deploy", "web")
    assert (as_yaml["apiVersion"], as_yaml["kind"]) == ("apps/v1", "Deployment")
    names = web("get", "pods", "-o", "name").out.split()
    assert len(names) == 2
    listed = web("get", "pods", "-o", "jsonpath={range .items[*]}pod/{.metadata.name} {end}").out.split()
    assert listed == names
    columns = web("get", "pods", "-o", "custom-columns=POD:.metadata.name,IMAGE:.spec.containers[*].image")
    assert columns.head == ["POD", "IMAGE"]
    assert [f"pod/{row[0]} {row[1]}" for row in columns.rows] == [f"{name} app:1" for name in names]
    template = "go-template={{range .items}}{{.status.phase}} {{end}}"
    assert web("get", "pods", "-o", template).out == "Running Running "


def test_get_selects_by_labels_and_fields_and_sorts(kubectl: Kubectl) -> None:
    for name, size, tier in (("b", "2", "front"), ("a", "3", "back"), ("c", "1", "front")):
        kubectl("create", "configmap", name, f"--from-literal=size={size}")
        kubectl("label", "configmap", name, f"tier={tier}")

    def names(*words: str) -> list[str]:
        listed = kubectl("get", "cm", *words, "-o", "name").out.split()
        return [name.removeprefix("configmap/") for name in listed if "kube-root-ca" not in name]

    assert names("-l", "tier=front") == ["b", "c"]
    assert names("-l", "tier in (back)") == ["a"]
    assert names("-l", "tier,tier!=back") == ["b", "c"]
    assert names("--field-selector", "metadata.name=c") == ["c"]
    rows = kubectl("get", "cm", "-l", "tier", "--sort-by=.data.size").rows
    assert [row[0] for row in rows] == ["c", "b", "a"]
    shown = kubectl("get", "cm", "-l", "tier", "-L", "tier").rows
    assert [row[-1] for row in shown] == ["back", "front", "front"]
    assert "unable to parse requirement" in kubectl.refused("get", "cm", "-l", "tier in")
    assert "field label not supported: nosuch" in kubectl.refused(
        "get", "pods", "--field-selector", "nosuch=x"
    )


def test_get_says_what_is_not_there(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods").err == f"No resources found in {kubectl.namespace} namespace.\n"
    assert kubectl.refused("get", "pod", "p") == 'Error from server (NotFound): pods "p" not found\n'
    assert 'the server doesn\'t have a resource type "gizmos"' in kubectl.refused("get", "gizmos")


def watched(kubectl: Kubectl, *words: str) -> Iterator[list[str]]:
    """The lines of a watch as they come, as words."""
    process = subprocess.Popen(
        kubectl.command("get", *words, "--watch"),
        env=kubectl.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    assert process.stdout is not None
    try:
        for line in process.stdout:
            yield line.split()
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_watch_shows_each_change_as_it_happens(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "there")
    lines = watched(kubectl, "configmaps", "--field-selector=metadata.name!=kube-root-ca.crt")
    assert next(lines)[:2] == ["NAME", "DATA"]
    assert next(lines)[:2] == ["there", "0"]
    kubectl("create", "configmap", "new", "--from-literal=a=b")
    assert next(lines)[:2] == ["new", "1"]
    kubectl("patch", "configmap", "there", "-p", '{"data":{"x":"1","y":"2"}}')
    assert next(lines)[:2] == ["there", "2"]
    lines.close()  # type: ignore[attr-defined]


def test_a_pod_is_followed_from_its_gate_to_running(kubectl: Kubectl) -> None:
    gate = json.dumps({"spec": {"schedulingGates": [{"name": "demo.dev/wait"}]}})
    kubectl("run", "solo", "--image=app:1", f"--overrides={gate}")
    seen: list[str] = []
    for line in watched(kubectl, "pods"):
        if line[0] != "solo":
            continue
        if not seen:
            assert line[2] == "SchedulingGated"
            opened = '[{"op":"remove","path":"/spec/schedulingGates"}]'
            kubectl("patch", "pod", "solo", "--type=json", "-p", opened)
        seen.append(line[2])
        if line[2] == "Running":
            break
    assert list(dict.fromkeys(seen)) == ["SchedulingGated", "Pending", "ContainerCreating", "Running"]


# -- describing and explaining ----------------------------------------------------------------


def test_describe_tells_the_story_of_a_deployment_its_pods_and_their_node(web: Kubectl) -> None:
    said = web("describe", "deployment", "web").out
    assert "Replicas:               2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in said
    assert "Available      True    MinimumReplicasAvailable" in said
    assert "ScalingReplicaSet" in said
    assert "deployment-controller" in said
    name = web("get", "pods", "-o", "name").out.split()[0]
    said = web("describe", name).out
    assert "Controlled By:  ReplicaSet/web-" in said
    assert "default-scheduler  Successfully assigned" in said
    assert "kube-api-access-" in said
    node = web.path(name, ".spec.nodeName")
    said = web("describe", "node", node).out
    assert name.removeprefix("pod/") in said
    assert "KubeletReady" in said
    assert f"HolderIdentity:  {node}" in said


@pytest.mark.parametrize(
    ("create", "what", "lines"),
    [
        ("service clusterip s --tcp=80:8080", "svc/s", ["TargetPort:               8080/TCP", "app=s"]),
        ("quota most --hard=pods=5", "quota/most", ["Resource", "Used  Hard"]),
        (
            "job once --image=app:1 -- true",
            "job/once",
            ["Completions:      1", "Backoff Limit:    6", "Command:\n      true"],
        ),
        (
            "cronjob c --image=app:1 --schedule=@daily",
            "cronjob/c",
            ["Schedule:                      @daily", "Concurrency Policy:            Allow"],
        ),
        ("configmap m --from-literal=a=b", "cm/m", ["Data\n====\na:\n----\nb\n"]),
        ("secret generic s --from-literal=pass=word", "secret/s", ["pass:  4 bytes", "Type:  Opaque"]),
        (
            "role r --verb=get --resource=pods",
            "role/r",
            ["pods       []                 []              [get]"],
        ),
        ("pdb b --selector=app=x --min-available=1", "pdb/b", ["Min available:  1", "app=x"]),
        ("ingress i --rule=a.dev/*=s:80", "ingress/i", ["a.dev", "s:80"]),
    ],
)
def test_describe_knows(kubectl: Kubectl, create: str, what: str, lines: list[str]) -> None:
    kubectl("create", *create.split())
    said = kubectl("describe", what).out
    for line in lines:
        assert line in said


def test_describe_knows_autoscalers_claims_and_namespaces(kubectl: Kubectl) -> None:
    kubectl.put(deployment(replicas=1))
    kubectl("autoscale", "deployment/web", "--min=1", "--max=5", "--cpu-percent=70")
    said = kubectl("describe", "hpa", "web").out
    assert "Deployment/web" in said
    assert "/ 70%" in said
    assert kubectl("get", "hpa", "web").rows[0][:2] == ["web", "Deployment/web"]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kubectl.put(claim)
    said = kubectl("describe", "pvc", "data").out
    assert "Status:        Pending" in said
    assert "kubernetes.io/pvc-protection" in said
    kubectl("create", "quota", "q", "--hard=pods=3")
    said = kubectl("describe", "namespace", kubectl.namespace).out
    assert "Status:       Active" in said
    assert "Resource Quotas" in said


def test_explain_knows_fields_their_types_and_all_below_them(cluster: Kubectl) -> None:
    said = cluster("explain", "deployment.spec.strategy").out
    assert "FIELD: strategy <DeploymentStrategy>" in said
    assert "rollingUpdate\t<RollingUpdateDeployment>" in said
    assert "enum: Recreate, RollingUpdate" in said
    said = cluster("explain", "pod.spec.containers", "--recursive").out
    assert "image\t<string>" in said
    assert "configMapKeyRef\t<ConfigMapKeySelector>" in said
    assert 'field "nosuch" does not exist' in cluster.refused("explain", "pod.nosuch")
    said = cluster("explain", "hpa", "--api-version=autoscaling/v1", "--recursive").out
    assert "targetCPUUtilizationPercentage\t<integer>" in said


# -- changing ---------------------------------------------------------------------------------


def test_edit_saves_what_the_editor_leaves(kubectl: Kubectl) -> None:
    kubectl.put(deployment(replicas=0))
    said = kubectl("edit", "deployment/web", KUBE_EDITOR="sed -i s/app:1/app:2/")
    assert said.out == "deployment.apps/web edited\n"
    assert kubectl.path("deployment/web", ".spec.template.spec.containers[0].image") == "app:2"
    said = kubectl("edit", "deployment/web", KUBE_EDITOR="true")
    assert "Edit cancelled, no changes made." in said.out + said.err
    wrong = "sed -i 's/replicas: 0/replicas: -7/'"
    said = kubectl("edit", "deployment/web", code=1, KUBE_EDITOR=wrong)
    assert 'deployments.apps "web" is invalid' in said.err
    left = next(line for line in said.err.splitlines() if "has been stored to" in line).split('"')[1]
    assert "must be greater than or equal to 0" in Path(left).read_text(), "the reason is where it is mended"
    kubectl("edit", "deployment/web", "--subresource=status", KUBE_EDITOR="sed -i s/app:2/app:3/")
    assert kubectl.path("deployment/web", ".spec.template.spec.containers[0].image") == "app:2"


def test_labels_and_annotations_are_set_overwritten_and_taken_away(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "m")
    kubectl("label", "cm/m", "tier=front")
    assert "already has a value (front)" in kubectl.refused("label", "cm/m", "tier=back")
    kubectl("label", "cm/m", "tier=back", "--overwrite")
    assert kubectl.path("cm/m", ".metadata.labels") == '{"tier":"back"}'
    kubectl("label", "cm/m", "tier-")
    assert kubectl.path("cm/m", ".metadata.labels") == ""
    kubectl("annotate", "cm/m", "note=two words")
    assert kubectl.path("cm/m", ".metadata.annotations.note") == "two words"
    assert "a valid label must be" in kubectl.refused("label", "cm/m", "tier=two words")


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:1"}]}}}}'),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"x"}]}}}}'),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"y"}]'),
    ],
)
def test_patch_does_what_its_type_says(kubectl: Kubectl, type_: str, patch: str) -> None:
    kubectl.put(deployment(replicas=0))
    assert kubectl("patch", "deployment/web", f"--type={type_}", "-p", patch).out.endswith(" patched\n")
    images = kubectl.path("deployment/web", ".spec.template.spec.containers[*].image")
    assert sorted(images.split()) == {"strategic": ["app:1", "s:1"], "merge": ["x"], "json": ["y"]}[type_]


def test_replace_needs_what_is_there_and_can_begin_anew(kubectl: Kubectl) -> None:
    said = kubectl.put(deployment(replicas=0), how="replace", code=1).err
    assert 'deployments.apps "web" not found' in said
    kubectl.put(deployment(replicas=0))
    uid = kubectl.path("deployment/web", ".metadata.uid")
    kubectl.put(deployment(image="app:2", replicas=0), how="replace")
    assert kubectl.path("deployment/web", ".metadata.uid") == uid
    old = {**deployment(), "metadata": {"name": "web", "resourceVersion": "1"}}
    assert "the object has been modified" in kubectl.put(old, how="replace", code=1).err
    kubectl("replace", "--force", "-f", "-", stdin=yaml.safe_dump(deployment(replicas=0)))
    assert kubectl.path("deployment/web", ".metadata.uid") != uid


def test_scale_takes_note_of_what_it_expects(kubectl: Kubectl) -> None:
    kubectl.put(deployment(replicas=0))
    kubectl("scale", "deployment/web", "--replicas=3", "--current-replicas=0")
    assert kubectl.path("deployment/web", ".spec.replicas") == "3"
    assert "Expected replicas to be 7, was 3" in kubectl.refused(
        "scale", "deployment/web", "--replicas=1", "--current-replicas=7"
    )
    shown = kubectl("get", "deployment/web", "--subresource=scale")
    assert (shown.head[:3], shown.rows[0][:2]) == (["NAME", "DESIRED", "AVAILABLE"], ["web", "3"])
    kubectl("patch", "deployment/web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    assert kubectl.path("deployment/web", ".spec.replicas") == "2"


def test_set_changes_images_environments_resources_and_accounts(kubectl: Kubectl) -> None:
    kubectl.put(deployment(replicas=0))
    kubectl("set", "image", "deployment/web", "app=app:2")
    kubectl("set", "env", "deployment/web", "A=1", "B=2")
    kubectl("set", "env", "deployment/web", "B-")
    kubectl("set", "resources", "deployment/web", "--limits=cpu=200m", "--requests=cpu=100m,memory=8Mi")
    kubectl("set", "serviceaccount", "deployment/web", "robot")
    spec = kubectl.json("deployment/web")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert container["image"] == "app:2"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"] == {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m", "memory": "8Mi"}}
    assert spec["serviceAccountName"] == "robot"
    assert "A=1" in kubectl("set", "env", "deployment/web", "--list").out


# -- rolling out ------------------------------------------------------------------------------


def test_a_rollout_is_followed_undone_restarted_paused_and_resumed(web: Kubectl) -> None:
    image = ".spec.template.spec.containers[0].image"
    web("set", "image", "deployment/web", "app=app:2")
    rolled_out(web)
    web("annotate", "deployment/web", "kubernetes.io/change-cause=second thoughts")
    web("set", "image", "deployment/web", "app=app:3")
    rolled_out(web)
    history = [
        row for row in web("rollout", "history", "deployment/web").out.split("\n") if row[:1].isdigit()
    ]
    assert [row.split()[0] for row in history] == ["1", "2", "3"]
    assert history[2].split(maxsplit=1)[1] == "second thoughts"
    assert "Image:\tapp:2" in web("rollout", "history", "deployment/web", "--revision=2").out
    web("rollout", "undo", "deployment/web")
    assert web.path("deployment/web", image) == "app:2"
    rolled_out(web)
    web("rollout", "undo", "deployment/web", "--to-revision=1")
    assert web.path("deployment/web", image) == "app:1"
    assert "unable to find specified revision" in web.refused(
        "rollout", "undo", "deployment/web", "--to-revision=99"
    )
    web("rollout", "pause", "deployment/web")
    assert "already paused" in web.refused("rollout", "pause", "deployment/web")
    web("rollout", "restart", "deployment/web", code=1)
    web("set", "image", "deployment/web", "app=app:4")
    web("rollout", "resume", "deployment/web")
    rolled_out(web)
    pods = web("get", "pods", "-o", "name", "--field-selector=status.phase=Running").out.split()
    web("rollout", "restart", "deployment/web")
    rolled_out(web)
    web("wait", "--for=delete", *pods, f"--timeout={PATIENCE:g}s")
    assert web.path("pods", ".items[*].spec.containers[0].image") == "app:4 app:4"


def test_a_rollout_that_cannot_end_is_not_said_to_have_ended(kubectl: Kubectl) -> None:
    kubectl.put(deployment(image="app:bad", replicas=1))
    updated = "--for=jsonpath={.status.updatedReplicas}=1"
    kubectl("wait", updated, "deployment/web", f"--timeout={PATIENCE:g}s")
    said = kubectl("rollout", "status", "deployment/web", "--timeout=1s", code=1)
    assert "0 of 1 updated replicas are available" in said.out
    assert "timed out" in said.err
    pod = kubectl("get", "pods", "-o", "name").out.strip()
    reason = ".status.containerStatuses[0].state.waiting.reason"
    kubectl("wait", f"--for=jsonpath={{{reason}}}=ImagePullBackOff", pod, "--timeout=30s")
    assert kubectl("get", pod).rows[0][2] == "ImagePullBackOff"


def test_expose_run_and_autoscale_make_what_they_say(web: Kubectl) -> None:
    web("expose", "deployment/web", "--port=80", "--target-port=8080")
    service = web.json("service/web")["spec"]
    assert service["selector"] == {"app": "web"}
    assert service["clusterIP"].startswith("10.0.")
    web("run", "solo", "--image=app:1", "--labels=a=b", "--env=X=1", "--restart=Never", "--", "sleep", "1")
    web("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/solo", f"--timeout={PATIENCE:g}s")
    assert web("get", "pods", "-l", "a=b").rows[0][:3] == ["solo", "0/1", "Completed"]
    # A pod has come and gone since the Service was made, and its endpoints are there.
    described = web("describe", "service/web").out.splitlines()
    (endpoints,) = [line.split()[1] for line in described if line.startswith("Endpoints:")]
    assert [address.rpartition(":")[2] for address in endpoints.split(",")] == ["8080", "8080"]
    (slice,) = web("get", "endpointslices", "-l", "kubernetes.io/service-name=web").rows
    assert sorted(f"{address}:8080" for address in slice[3].split(",")) == sorted(endpoints.split(","))
    web("autoscale", "deployment/web", "--name=scaler", "--min=2", "--max=4", "--cpu-percent=50")
    assert web.path("hpa/scaler", ".spec.maxReplicas") == "4"
    assert web("get", "hpa.v1.autoscaling", "scaler", "-o", "jsonpath={.spec}").out.count("50") == 1


# -- waiting and deleting ---------------------------------------------------------------------


def test_wait_ends_with_a_condition_a_value_a_deletion_or_in_time(kubectl: Kubectl) -> None:
    kubectl("run", "solo", "--image=app:1")
    said = kubectl("wait", "--for=condition=Ready", "pod/solo", f"--timeout={PATIENCE:g}s").out
    assert said == "pod/solo condition met\n"
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/solo", f"--timeout={PATIENCE:g}s")
    said = kubectl.refused("wait", "--for=condition=Sleepy", "pod/solo", "--timeout=1s")
    assert said == "error: timed out waiting for the condition on pods/solo\n"
    kubectl("delete", "pod", "solo", "--wait=false")
    kubectl("wait", "--for=delete", "pod/solo", f"--timeout={PATIENCE:g}s")
    assert "not found" in kubectl.refused("get", "pod", "solo")


def test_delete_waits_takes_all_of_a_label_and_minds_what_is_not_there(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        kubectl("create", "configmap", name)
    kubectl("label", "cm", "a", "b", "go=yes")
    assert kubectl("delete", "cm", "-l", "go=yes").out.count(" deleted") == 2
    assert 'configmaps "a" not found' in kubectl.refused("delete", "cm", "a")
    kubectl("delete", "cm", "a", "--ignore-not-found")
    assert 'configmap "c" deleted' in kubectl("delete", "cm", "--all").out
    kubectl("create", "configmap", "z")
    kubectl("delete", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps/z")
    assert "not found" in kubectl.refused("get", "cm", "z")


def test_an_orphaned_set_of_pods_lives_on_without_its_deployment(web: Kubectl) -> None:
    name = web("get", "rs", "-o", "name").out.strip()
    web("delete", "deployment", "web", "--cascade=orphan", f"--timeout={PATIENCE:g}s")
    assert web.path(name, ".metadata.ownerReferences") == ""
    assert web(*("get", "pods", "-o", "name")).out.count("pod/web-") == 2


def test_a_cascade_in_the_background_takes_all_that_was_owned(web: Kubectl) -> None:
    web("delete", "deployment", "web", "--cascade=background")
    web("wait", "--for=delete", "rs,pods", "-l", "app=web", f"--timeout={PATIENCE:g}s")
    assert web("get", "rs,pods").err.startswith("No resources found")


def test_a_cascade_in_the_foreground_waits_for_what_is_held(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "owner")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": kubectl.path("cm/owner", ".metadata.uid"),
        "blockOwnerDeletion": True,
    }
    meta = {"name": "child", "finalizers": ["demo.dev/hold"], "ownerReferences": [reference]}
    kubectl.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    kubectl("delete", "cm", "owner", "--cascade=foreground", "--wait=false")
    owner = kubectl.json("cm/owner")["metadata"]
    assert owner["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in owner
    kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "cm/child", f"--timeout={PATIENCE:g}s")
    assert kubectl.path("cm/owner", ".metadata.finalizers") == '["foregroundDeletion"]'
    kubectl("patch", "cm", "child", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", "cm/owner", "cm/child", f"--timeout={PATIENCE:g}s")


def test_a_pod_is_deleted_with_grace_or_at_once(kubectl: Kubectl) -> None:
    slow = "--annotations=sim.steersman.dev/shutdown=1h"
    kubectl("run", "slow", "--image=app:1", slow)
    kubectl("wait", "--for=condition=Ready", "pod/slow", f"--timeout={PATIENCE:g}s")
    kubectl("delete", "pod", "slow", "--grace-period=3000", "--wait=false")
    meta = kubectl.json("pod/slow")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 3000
    assert kubectl("get", "pod", "slow").rows[0][2] == "Terminating"
    said = kubectl("delete", "pod", "slow", "--grace-period=0", "--force")
    assert "Immediate deletion does not wait for confirmation" in said.err
    assert "not found" in kubectl.refused("get", "pod", "slow")


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "m")
    kubectl("run", "solo", "--image=app:1")
    kubectl("delete", "namespace", kubectl.namespace, f"--timeout={PATIENCE:g}s")
    assert "not found" in kubectl.refused("get", "namespace", kubectl.namespace)
    assert kubectl("get", "pods,cm").err.startswith("No resources found")


# -- nodes ------------------------------------------------------------------------------------


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """A node that may be cordoned and tainted: it is put right in the end."""
    yield "node-3"
    kubectl("uncordon", "node-3")
    kubectl("taint", "nodes", "node-3", "demo.dev/t:NoSchedule-", code=_either(kubectl))


def _either(kubectl: Kubectl) -> int:
    return 0 if "demo.dev/t" in kubectl.path("node/node-3", ".spec.taints") else 1


def test_a_cordoned_or_tainted_node_is_given_no_pods(kubectl: Kubectl, node: str) -> None:
    said = kubectl("get", "nodes")
    assert said.head == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[0] for row in said.rows] == ["node-1", "node-2", "node-3"]
    assert kubectl("cordon", node).out == f"node/{node} cordoned\n"
    assert kubectl("get", "node", node).rows[0][1] == "Ready,SchedulingDisabled"
    pinned = json.dumps({"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}})
    kubectl("run", "pinned", "--image=app:1", f"--overrides={pinned}")
    kubectl("wait", "--for=condition=PodScheduled=false", "pod/pinned", f"--timeout={PATIENCE:g}s")
    message = ".status.conditions[?(@.type=='PodScheduled')].message"
    assert "1 node(s) were unschedulable" in kubectl.path("pod/pinned", message)
    assert "FailedScheduling" in kubectl("describe", "pod", "pinned").out
    kubectl("taint", "nodes", node, "demo.dev/t=v:NoSchedule")
    assert kubectl("uncordon", node).out == f"node/{node} uncordoned\n"
    kubectl("wait", f"--for=jsonpath={{{message}}}", "pod/pinned", f"--timeout={PATIENCE:g}s")
    kubectl("taint", "nodes", node, "demo.dev/t-")
    kubectl("wait", "--for=condition=Ready", "pod/pinned", f"--timeout={PATIENCE:g}s")


def test_drain_evicts_as_far_as_budgets_allow(kubectl: Kubectl, node: str) -> None:
    mine = f"app={kubectl.namespace}"
    body = deployment(kubectl.namespace)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    kubectl.put(body)
    rolled_out(kubectl, f"deployment/{kubectl.namespace}")
    kubectl("create", "pdb", "all", f"--selector={mine}", "--min-available=2")
    # What the disruption controller makes of it; where that runs it says the same.
    counted = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    status = json.dumps({"status": {**counted, "disruptionsAllowed": 0}})
    kubectl("patch", "pdb", "all", "--subresource=status", "--type=merge", "-p", status)
    only = f"--pod-selector={mine}"
    said = kubectl("drain", node, only, "--timeout=4s", code=1)
    assert f"node/{node} cordoned" in said.out
    assert "Cannot evict pod as it would violate the pod's disruption budget." in said.err
    assert len(kubectl("get", "pods").rows) == 2, "nobody had to go"
    kubectl("delete", "pdb", "all")
    said = kubectl("drain", node, only, f"--timeout={PATIENCE:g}s")
    assert said.out.count(" evicted") == 2
    assert said.out.endswith(f"node/{node} drained\n")
    phases = kubectl.path("pods", ".items[*].status.phase")
    assert phases == "Pending Pending", "their successors have nowhere to go"


def test_drain_asks_before_it_takes_what_nobody_would_bring_back(kubectl: Kubectl, node: str) -> None:
    pinned = json.dumps({"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}})
    kubectl("run", "solo", "--image=app:1", f"--overrides={pinned}", f"--labels=mine={kubectl.namespace}")
    kubectl("wait", "--for=condition=Ready", "pod/solo", f"--timeout={PATIENCE:g}s")
    only = f"--pod-selector=mine={kubectl.namespace}"
    assert "cannot delete Pods that declare no controller" in kubectl.refused("drain", node, only)
    kubectl("drain", node, only, "--force", f"--timeout={PATIENCE:g}s")
    assert "not found" in kubectl.refused("get", "pod", "solo")


def test_top_tells_what_nodes_and_pods_use(kubectl: Kubectl) -> None:
    notes = (f"--annotations=sim.steersman.dev/{used}" for used in ("cpu=250m", "memory=64Mi"))
    kubectl("run", "busy", "--image=app:1", *notes)
    kubectl("run", "idle", "--image=app:1", "--labels=a=b")
    kubectl("wait", "--for=condition=Ready", "pod", "--all", f"--timeout={PATIENCE:g}s")
    said = kubectl("top", "pods", "--sort-by=cpu")
    assert said.head == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert said.rows == [["busy", "250m", "64Mi"], ["idle", "1m", "16Mi"]]
    assert kubectl("top", "pods", "-l", "a=b").rows == [["idle", "1m", "16Mi"]]
    assert kubectl("top", "pod", "busy", "--containers").rows == [["busy", "busy", "250m", "64Mi"]]
    nodes = kubectl("top", "nodes")
    assert [row[0] for row in nodes.rows] == ["node-1", "node-2", "node-3"]
    assert sum(int(row[1].removesuffix("m")) for row in nodes.rows) >= 251
    assert kubectl("get", "podmetrics").head == ["NAME", "CPU", "MEMORY", "WINDOW"]


# -- rights -----------------------------------------------------------------------------------


def test_auth_says_who_one_is_and_what_one_may_do(kubectl: Kubectl) -> None:
    assert ["Username", "steersman-admin"] in kubectl("auth", "whoami").rows
    assert kubectl("auth", "can-i", "delete", "nodes").out.endswith("yes\n")
    robot = f"--as=system:serviceaccount:{kubectl.namespace}:robot"
    assert kubectl("auth", "can-i", "get", "pods", robot, code=1).out == "no\n"
    kubectl("create", "role", "reader", "--verb=get", "--verb=list", "--resource=pods,pods/log")
    kubectl("create", "rolebinding", "r", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    assert kubectl("auth", "can-i", "get", "pods", robot).out == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods", "--subresource=log", robot).out == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods", robot, "-A", code=1).out == "no\n"
    listed = kubectl("auth", "can-i", "--list", robot).out
    assert next(line for line in listed.splitlines() if line.startswith("pods ")).endswith("[get list]")
    assert kubectl("get", "pods", robot).err.startswith("No resources found")
    said = kubectl.refused("delete", "pod", "p", robot)
    assert f'User "system:serviceaccount:{kubectl.namespace}:robot" cannot delete resource "pods"' in said


def test_nobody_who_may_only_bind_grants_more_than_they_have(kubectl: Kubectl) -> None:
    kubectl("create", "role", "maker", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
    kubectl("create", "rolebinding", "maker", "--role=maker", "--user=somebody")
    said = kubectl.refused("create", "role", "more", "--verb=get", "--resource=secrets", "--as=somebody")
    assert "attempting to grant RBAC permissions not currently held" in said
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in said


def request(name: str, signer: str) -> dict[str, Any]:
    """A certificate request."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    pem = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "signerName": signer,
            "request": base64.b64encode(pem).decode(),
            "usages": ["digital signature", "client auth"],
        },
    }


def test_certificates_are_approved_and_signed_or_denied(kubectl: Kubectl) -> None:
    wanted, unwanted = f"{kubectl.namespace}-jane", f"{kubectl.namespace}-joe"
    kubectl.put(request(wanted, "kubernetes.io/kube-apiserver-client"), how="create")
    kubectl.put(request(unwanted, "demo.dev/nobody"), how="create")
    assert kubectl("get", "csr", wanted).rows[0][-1] == "Pending"
    kubectl("certificate", "approve", wanted)
    kubectl("certificate", "deny", unwanted)
    assert kubectl("get", "csr", unwanted).rows[0][-1] == "Denied"
    kubectl("wait", "--for=jsonpath={.status.certificate}", f"csr/{wanted}", f"--timeout={PATIENCE:g}s")
    pem = base64.b64decode(kubectl.path(f"csr/{wanted}", ".status.certificate"))
    certificate = x509.load_pem_x509_certificate(pem)
    assert certificate.subject.rfc4514_string() == f"CN={wanted}"
    assert kubectl("get", "csr", wanted).rows[0][-1] == "Approved,Issued"


# -- what is there ----------------------------------------------------------------------------


def test_the_server_says_what_it_is_and_what_it_serves(cluster: Kubectl) -> None:
    # Not by `kubectl version`, which fails where kubectl was built without a version of its own.
    said = json.loads(cluster("get", "--raw", "/version").out)
    assert said["gitVersion"].startswith("v1.36.4")
    server = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    assert server in cluster("cluster-info").out
    versions = cluster("api-versions").out.split()
    assert {"v1", "apps/v1", "batch/v1", "metrics.k8s.io/v1beta1"} <= set(versions)
    rows = cluster("api-resources", "--no-headers").out.splitlines()
    assert len(rows) > 55
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in [row.split() for row in rows]
    names = cluster("api-resources", "--namespaced=false", "--verbs=list", "-o", "name").out.split()
    assert "nodes" in names
    assert "pods" not in names


def test_raw_paths_are_answered(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz").out == "ok"
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods?limit=1"
    assert json.loads(kubectl("get", "--raw", path).out)["kind"] == "PodList"
    assert "apiserver_request_total{" in kubectl("get", "--raw", "/metrics").out
    assert "NotFound" in kubectl.refused("get", "--raw", "/apis/demo.dev/v1/things")


def test_events_are_listed_by_object_and_by_type(web: Kubectl) -> None:
    said = web("events", "--for=deployment/web")
    assert said.rows[0][2:4] == ["ScalingReplicaSet", "Deployment/web"]
    reasons = {row[2] for row in web("get", "events").rows}
    assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= reasons
    only = web("get", "events", "--field-selector=reason=SuccessfulCreate,type=Normal").rows
    assert [row[2] for row in only] == ["SuccessfulCreate"] * 2
    assert "Scheduled" in web("get", "events.events.k8s.io").out


# -- custom resources -------------------------------------------------------------------------

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.demo.dev"},
    "spec": {
        "group": "demo.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A widget is a thing of a size.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {
                                        "type": "integer",
                                        "minimum": 1,
                                        "description": "How large it is.",
                                    },
                                    "replicas": {"type": "integer"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def test_custom_resources_are_used_like_any_other(kubectl: Kubectl) -> None:
    kubectl.put(WIDGETS)
    kubectl("wait", "--for=condition=Established", "crd/widgets.demo.dev", f"--timeout={PATIENCE:g}s")
    widget = {
        "apiVersion": "demo.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "one"},
        "spec": {"size": 3, "replicas": 2},
    }
    assert kubectl.put(widget).out == "widget.demo.dev/one created\n"
    shown = kubectl("get", "wd")
    assert (shown.head, shown.rows) == (["NAME", "SIZE"], [["one", "3"]])
    kubectl("scale", "widget/one", "--replicas=4")
    assert kubectl.path("widget/one", ".spec.replicas") == "4"
    said = kubectl.refused("patch", "widget/one", "--type=merge", "-p", '{"spec":{"size":0}}')
    assert "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1" in said
    status = '{"spec":{"size":9},"status":{"replicas":4}}'
    kubectl("patch", "widget/one", "--subresource=status", "--type=merge", "-p", status)
    assert kubectl.path("widget/one", ".status.replicas") == "4"
    assert kubectl.path("widget/one", ".spec.size") == "3"
    assert "Size:      3" in kubectl("describe", "widget", "one").out
    assert "A widget is a thing of a size." in kubectl("explain", "widget").out
    assert "How large it is." in kubectl("explain", "widget.spec.size").out
    assert "size\t<integer> -required-" in kubectl("explain", "widget", "--recursive").out
    said = kubectl("diff", "-f", "-", stdin=yaml.safe_dump({**widget, "spec": {"size": 4}}), code=1).out
    assert "+  size: 4" in said
    kubectl("delete", "crd", "widgets.demo.dev", f"--timeout={PATIENCE:g}s")
    assert "(NotFound)" in kubectl.refused("get", "widgets.v1.demo.dev")


# -- what is not there ------------------------------------------------------------------------


def test_what_would_run_on_this_machine_is_refused_with_the_way_to_allow_it(kubectl: Kubectl) -> None:
    kubectl("run", "solo", "--image=app:1")
    kubectl("wait", "--for=condition=Ready", "pod/solo", f"--timeout={PATIENCE:g}s")
    local = kubectl.home / "copied"
    for words in (
        ("exec", "solo", "--", "ls"),
        ("attach", "solo", "-i"),
        ("cp", "solo:/etc/passwd", str(local)),
        ("port-forward", "pod/solo", "0:80"),
    ):
        said = kubectl.refused(*words)
        assert "start `steersman up` with --allow-exec" in said, words
    assert not local.exists()
