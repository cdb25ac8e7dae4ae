"""Endpoints of Services on a real API server: steersman and kube-controller-manager write the same.

The story writes the status of the pods itself: their addresses and readiness are the same for both managers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS
from steersman.api.kinds.services import ENDPOINTS, SERVICES, Endpoints

Document = dict[str, Any]


def pod(name: str, app: str, *ports: Document, **spec: Any) -> Document:
    container = {"name": "main", "image": "example/app:1", "ports": list(ports)}
    spec = {"nodeName": "node-9", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    metadata = {"name": name, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(name: str, app: str, *ports: Document, labels: Document | None = None, **spec: Any) -> Document:
    metadata = {"name": name, "labels": labels or {}}
    spec = {"selector": {"app": app}, "ports": list(ports), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def port(name: str, number: int, target: int | str, protocol: str = "TCP", **more: Any) -> Document:
    return {"name": name, "port": number, "targetPort": target, "protocol": protocol, **more}


WEB = {"name": "web", "containerPort": 8080}
ADMIN = {"name": "admin", "containerPort": 9090}
PODS_OF_THE_STORY = (
    pod("a-0", "a", WEB, ADMIN),
    pod("a-1", "a", WEB),
    pod("a-2", "a", WEB),
    pod("a-3", "a", WEB, hostname="host-3", subdomain="named"),
    pod("ended", "a", WEB, restartPolicy="Never"),
    pod("addressless", "a", WEB),
    pod("b-0", "b", ADMIN),
)
IPS = {"a-0": "10.9.0.1", "a-1": "10.9.0.2", "a-2": "10.9.0.3", "a-3": "10.9.0.10", "ended": "10.9.0.5"}
IPS |= {"b-0": "10.9.0.6"}
SERVICES_OF_THE_STORY = (
    service("plain", "a", port("http", 80, 8080), labels={"team": "blue"}),
    service("named", "a", port("http", 80, "web", appProtocol="http"), port("admin", 81, "admin")),
    service("protocols", "a", port("tcp", 53, 53), port("udp", 53, 53, "UDP"), port("sctp", 54, 54, "SCTP")),
    service("headless", "a", clusterIP="None"),
    service("eager", "a", port("http", 80, 8080), publishNotReadyAddresses=True, clusterIP="None"),
    service("empty", "nothing", port("http", 80, 8080)),
    service("other", "b", port("admin", 80, "admin")),
    service("moved", "b", port("admin", 80, "admin")),
    service("short-lived", "b", port("admin", 80, "admin")),
    {**service("outside", "a"), "spec": {"type": "ExternalName", "externalName": "example.com"}},
    {**service("manual", "a"), "spec": {"ports": [port("http", 80, 8080)]}},
)
LEFTOVER = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "leftover"}}
LOCK = {
    "apiVersion": "v1",
    "kind": "Endpoints",
    "metadata": {"name": "lock", "annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
}
MANUAL = {
    "apiVersion": "v1",
    "kind": "Endpoints",
    "metadata": {"name": "manual"},
    "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"name": "http", "port": 1}]}],
}
FOREIGN = {
    "apiVersion": "v1",
    "kind": "Endpoints",
    "metadata": {
        "name": "plain",
        "labels": {"team": "red"},
        "annotations": {"kept": "yes", "endpoints.kubernetes.io/over-capacity": "warning"},
    },
    "subsets": [{"addresses": [{"ip": "10.9.9.8"}], "ports": [{"name": "http", "port": 1}]}],
}


async def report(stage: Any, name: str, *, ready: bool, phase: str = "Running") -> None:
    """Write the status of a pod as its kubelet would."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": phase, "conditions": [condition], "podIP": IPS[name], "podIPs": [{"ip": IPS[name]}]}
    await stage.patch(PODS, name, {"status": status}, subresource="status")


async def before(stage: Any) -> None:
    await stage.create(PODS, *PODS_OF_THE_STORY)
    for name in ("a-0", "a-1", "a-3", "b-0"):
        await report(stage, name, ready=True)
    await report(stage, "a-2", ready=False)
    await report(stage, "ended", ready=False, phase="Succeeded")
    await stage.create(ENDPOINTS, LEFTOVER, LOCK, MANUAL, FOREIGN)
    await stage.create(SERVICES, *SERVICES_OF_THE_STORY)


def ready(*ips: str, at: int = -1) -> Callable[[Endpoints], bool]:
    """Whether Endpoints have just these ready addresses, at any port, or at one of this number."""

    def met(found: Endpoints) -> bool:
        subsets = [one for one in found.subsets if at < 0 or any(port.port == at for port in one.ports)]
        return sorted({a.ip for one in subsets for a in one.addresses}) == sorted(ips)

    return met


def not_ready(*ips: str) -> Callable[[Endpoints], bool]:
    def met(found: Endpoints) -> bool:
        return sorted({a.ip for one in found.subsets for a in one.notReadyAddresses}) == sorted(ips)

    return met


async def tell(stage: Any) -> None:
    everything = ("10.9.0.1", "10.9.0.2", "10.9.0.10")
    for name in ("plain", "named", "protocols", "headless"):
        await stage.until(ENDPOINTS, name, ready(*everything))
    await stage.until(ENDPOINTS, "eager", ready(*everything, "10.9.0.3"))
    await stage.until(ENDPOINTS, "empty", bool)
    await stage.gone(ENDPOINTS, "leftover")
    for name in ("other", "moved", "short-lived"):
        await stage.until(ENDPOINTS, name, ready("10.9.0.6"))
    # Readiness, labels and ports change; pods and Services go.
    await report(stage, "a-2", ready=True)
    await report(stage, "a-1", ready=False)
    await stage.until(ENDPOINTS, "plain", not_ready("10.9.0.2"))
    await stage.patch(SERVICES, "plain", {"metadata": {"labels": {"team": "green", "tier": "front"}}})
    await stage.until(ENDPOINTS, "plain", lambda found: found.metadata.labels.get("tier") == "front")
    await stage.patch(
        SERVICES, "moved", {"spec": {"selector": {"app": "a"}, "ports": [port("w", 80, "web")]}}
    )
    await stage.until(ENDPOINTS, "moved", ready("10.9.0.1", "10.9.0.3", "10.9.0.10"))
    await stage.api.delete(SERVICES, stage.namespace, "short-lived")
    await stage.gone(ENDPOINTS, "short-lived")
    await stage.patch(PODS, "b-0", {"metadata": {"labels": {"app": "a"}}})
    await stage.until(ENDPOINTS, "other", ready())
    await stage.until(ENDPOINTS, "protocols", ready("10.9.0.1", "10.9.0.3", "10.9.0.6", "10.9.0.10"))
    await stage.api.delete(ENDPOINTS, stage.namespace, "empty")
    await stage.until(ENDPOINTS, "empty", bool)
    await stage.api.delete(PODS, stage.namespace, "a-3")
    for name in ("plain", "named", "protocols", "headless"):
        await stage.until(ENDPOINTS, name, ready("10.9.0.1", "10.9.0.3", "10.9.0.6"))
    await stage.until(ENDPOINTS, "moved", ready("10.9.0.1", "10.9.0.3"))
    # A terminating pod is an endpoint of a Service that publishes all addresses.
    await stage.until(ENDPOINTS, "eager", ready(*everything, "10.9.0.3", "10.9.0.6"))
    await stage.quiet()


def unordered(end: dict[str, Any]) -> dict[str, Any]:
    """The order of subsets is that of a hash of uids, among other things."""
    for each in end["endpoints"].values():
        each.get("subsets", []).sort(key=repr)
    return end


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found = both(
        tell,
        "endpoints",
        before=before,
        controllers=("endpoints-controller",),
        kinds=(ENDPOINTS,),
    )
    return {binary: unordered(end) for binary, end in found.items()}


def test_endpoints_follow_the_pods_of_their_services(ends: dict[str, dict[str, Any]]) -> None:
    found = ends["steersman"]["endpoints"]
    assert "leftover" not in found
    assert {"lock", "manual", "plain", "other"} <= found.keys()
    assert "outside" not in found
    assert found["plain"]["metadata"]["labels"] == {
        "team": "green",
        "tier": "front",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    assert found["plain"]["metadata"]["annotations"] == {"kept": "yes"}
    assert found["manual"]["subsets"][0]["addresses"] == [{"ip": "10.9.9.9"}]


def test_both_managers_leave_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, "endpoints")


def test_neither_manager_has_events(ends: dict[str, dict[str, Any]]) -> None:
    for end in ends.values():
        # The API server has events of its own.
        assert [one for one in end["events"] if one["source"] == "endpoint-controller"] == []
