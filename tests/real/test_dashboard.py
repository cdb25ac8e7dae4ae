"""The dashboard of ``steersman run`` beside a real API server: behind its authorization, read with list and watch alone."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.harness.child_process import until
from tests.harness.envtest import MANAGER, RealPlane

NAMESPACE = "dashboard"
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dashboard-viewer}
rules:
- {nonResourceURLs: ["/ui/api/*", "/debug/rounds"], verbs: [get]}
- {apiGroups: ["", apps], resources: [pods, replicasets, deployments, events], verbs: [get, list]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: dashboard}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""


class Site:
    """The site of a manager, asked with a token or without."""

    def __init__(self, port: int) -> None:
        self._port = port

    @contextmanager
    def request(self, path: str, token: str = "") -> Iterator[http.client.HTTPResponse]:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=context, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            yield connection.getresponse()
        finally:
            connection.close()

    def get(self, path: str, token: str = "") -> tuple[int, Any]:
        with self.request(path, token) as answer:
            return answer.status, json.loads(answer.read())

    def synced(self, token: str) -> list[dict[str, Any]]:
        """The messages of a stream until it has told all objects."""
        told: list[dict[str, Any]] = []
        with self.request("/ui/api/stream", token) as answer:
            assert answer.status == 200
            while not told or told[-1]["type"] != "synced":
                told.append(json.loads(answer.readline()))
        return told


@pytest.fixture
def site(plane: RealPlane) -> Iterator[Site]:
    port, manager = plane.free_port(), str(plane.kubeconfig(MANAGER))
    child = plane.manager(
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        "--controllers=deployment-controller,replicaset-controller",
        f"--authentication-kubeconfig={manager}",
        f"--authorization-kubeconfig={manager}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        env={"KUBERNETES_SERVICE_HOST": ""},
    )
    site = Site(port)

    def serves() -> bool:
        try:
            with site.request("/healthz") as answer:
                return answer.status == 200
        except OSError:
            return False

    until(serves, child, 30, "the manager serves", step=0.05)
    yield site
    child.stop()


def test_a_manager_shows_what_the_api_server_allows_and_reads_with_list_and_watch_alone(
    plane: RealPlane, site: Site
) -> None:
    plane.kubectl("create", "namespace", NAMESPACE)
    tokens = {}
    for name in ("viewer", "stranger"):
        plane.kubectl("-n", NAMESPACE, "create", "serviceaccount", name)
        tokens[name] = plane.kubectl("-n", NAMESPACE, "create", "token", name).strip()
    plane.kubectl("apply", "-f", "-", stdin=ROLE)
    plane.kubectl(
        *("create", "clusterrolebinding", "dashboard-viewer"),
        *("--clusterrole=dashboard-viewer", f"--serviceaccount={NAMESPACE}:viewer"),
    )
    plane.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    observed = "--for=jsonpath={.status.observedGeneration}=1"
    plane.kubectl("-n", NAMESPACE, "wait", observed, "deployment/web", "--timeout=30s")
    since = plane.mark()
    with site.request("/ui/") as page:
        assert page.status == 200, "the page itself holds no data"
        assert "default-src 'none'" in str(page.getheader("Content-Security-Policy"))
    for path in ("plane", "stream", "object?kind=Pod&name=x", "controllers"):
        assert site.get(f"/ui/api/{path}")[0] == 401
        assert site.get(f"/ui/api/{path}", "wrong")[0] == 401
        status, refused = site.get(f"/ui/api/{path}", tokens["stranger"])
        assert status == 403
        assert "cannot get path" in refused["message"]
    viewer = tokens["viewer"]
    status, told = site.get("/ui/api/plane", viewer)
    assert (status, told["program"], told["clock"]) == (200, "run", None)
    messages = site.synced(viewer)
    objects = {
        (each["object"]["kind"], each["object"]["name"]) for each in messages if each["type"] == "object"
    }
    assert ("Deployment", "web") in objects
    assert {kind for kind, _ in objects} <= {"Deployment", "ReplicaSet", "Pod"}
    unread = {each["kind"]: each["why"] for each in messages if each["type"] == "unread"}
    assert 'cannot list resource "nodes"' in unread["Node"]
    status, page = site.get(f"/ui/api/object?kind=Deployment&namespace={NAMESPACE}&name=web", viewer)
    assert status == 200, page
    assert page["summary"]["status"] == "0/2 ready"
    assert {each["kind"] for each in page["graph"]["nodes"]} >= {"Deployment", "ReplicaSet"}
    assert "decision" in {each["kind"] for each in page["timeline"]}, "the manager's own trace"
    assert site.get(f"/ui/api/object?kind=Secret&namespace={NAMESPACE}&name=x", viewer)[0] == 403
    verbs = {
        entry.verb for entry in plane.audit(since) if entry.agent.endswith("/dashboard") and entry.resource
    }
    assert verbs == {"list", "watch"}
