"""EndpointSlices on a real API server: steersman and kube-controller-manager write the same.

The names of slices are generated and the order of endpoints is random in the reference manager, so slices are compared by
their Service, IP family and ports, and endpoints by their addresses. Pods have no kubelet: the story says what they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.services import ENDPOINTSLICES, SERVICES

Document = dict[str, Any]
PATIENCE = 75.0
SERVICE = "kubernetes.io/service-name"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
LIMIT = 5
"""The most endpoints of a slice."""
NAMESPACE = "slices"


def ready(value: bool, at: int) -> Document:
    status = "True" if value else "False"
    return {"type": "Ready", "status": status, "lastTransitionTime": f"2026-01-01T00:00:{at:02d}Z"}


class Pods:
    """Pods with addresses in the order in which they are made."""

    def __init__(self, stage: Any) -> None:
        self._stage = stage
        self._count = 0

    async def make(self, app: str, *nodes: str, unready: bool = False, port: int = 8080, **spec: Any) -> None:
        for node_name in nodes:
            self._count += 1
            name = f"{app}-{self._count}"
            ports = [{"name": "http", "containerPort": port}]
            container = {"name": "main", "image": "example/app:1", "ports": ports}
            body = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": app}},
                "spec": {"nodeName": node_name, "containers": [container], **spec},
            }
            await self._stage.create(PODS, body)
            ips = [{"ip": f"10.1.0.{self._count}"}, {"ip": f"fd00:1::{self._count:x}"}]
            status = {
                "phase": "Running",
                "podIP": ips[0]["ip"],
                "podIPs": ips,
                "conditions": [ready(not unready, self._count)],
            }
            await self._stage.patch(PODS, name, {"status": status}, subresource="status")


def service(name: str, app: str = "", annotations: Document | None = None, **spec: Any) -> Document:
    meta = {"name": name, "labels": {"team": name}, "annotations": annotations or {}}
    ports = spec.pop("ports", [{"port": 80, "targetPort": 8080}])
    selector = {"selector": {"app": app}} if app else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"ports": ports, **selector, **spec},
    }


AUTO = {"service.kubernetes.io/topology-mode": "Auto"}
MANY_PORTS = [
    {"name": "http", "port": 80, "targetPort": "http", "appProtocol": "kubernetes.io/h2c"},
    {"name": "metrics", "port": 9090, "targetPort": 9090},
    {"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"},
    {"name": "absent", "port": 81, "targetPort": "no-such"},
]
SERVICES_OF_THE_STORY = (
    service("ports", "web", ports=MANY_PORTS),
    service("headless", "web", clusterIP="None"),
    service("portless", "web", clusterIP="None", ports=[]),
    service("published", "unready", publishNotReadyAddresses=True),
    service("unready", "unready"),
    service("external", "web", type="ExternalName", externalName="example.com"),
    service("manual"),
    service("nobody", "nobody"),
    service("dual", "web", ipFamilyPolicy="RequireDualStack"),
    service("close", "web", trafficDistribution="PreferClose"),
    service("zone", "web", trafficDistribution="PreferSameZone"),
    service("node", "web", trafficDistribution="PreferSameNode"),
    service("auto", "zoned", AUTO),
    service("forgotten", "zoned", AUTO),
    service("few", "lonely", AUTO),
    service("mixed", "mixed", ports=MANY_PORTS[:1]),
    service("packed", "packed"),
    service("repaired", "web"),
    service("removed", "web"),
    service("relabelled", "web"),
    service("deleted", "web"),
)


async def before(stage: Any) -> None:
    """Nodes in two zones, and pods."""
    for name, zone, cpu in (("a1", "a", "2"), ("a2", "a", "1"), ("b1", "b", "3"), ("bare", "", "")):
        meta = {"name": name, "labels": {"topology.kubernetes.io/zone": zone} if zone else {}}
        await stage.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        # The bare node does not count for zones: it is not ready.
        condition = {"type": "Ready", "status": "True" if zone else "False"}
        status = {
            "conditions": [condition],
            "capacity": {"cpu": cpu or "1"},
            "allocatable": {"cpu": cpu or "1"},
        }
        await stage.patch(NODES, name, {"status": status}, subresource="status")
    pods = Pods(stage)
    await pods.make("web", "a1")
    await pods.make("web", "b1", hostname="second", subdomain="headless")
    await pods.make("web", "bare", unready=True)
    await pods.make("unready", "a1", "b1", unready=True)
    await pods.make("zoned", "a1", "a1", "a2", "a2", "a1", "b1", "b1", "b1")
    await pods.make("lonely", "a1")
    await pods.make("mixed", "a1", "b1", port=8080)
    await pods.make("mixed", "a1", port=8081)
    await pods.make("packed", *("a1", "b1") * 3, "a1")
    await pods.make("lost", "a1", "no-such")


async def slices_of(stage: Any, name: str = "") -> list[Document]:
    page = await stage.api.list(ENDPOINTSLICES.untyped, stage.namespace)
    return [one for one in page.items if not name or one["metadata"]["labels"].get(SERVICE) == name]


async def until(stage: Any, name: str, met: Callable[[Sequence[Document]], bool]) -> None:
    """Waits until the slices of a Service are as wanted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            page = await stage.api.list(ENDPOINTSLICES.untyped, stage.namespace)
            if met(await slices_of(stage, name)):
                return
            watch = stage.api.watch(
                ENDPOINTSLICES.untyped, stage.namespace, resource_version=page.resource_version
            )
            async for _event in watch:
                if met(await slices_of(stage, name)):
                    return


def endpoints(slices: Sequence[Document]) -> list[Document]:
    return [endpoint for slice in slices for endpoint in slice.get("endpoints") or ()]


async def change_slices(stage: Any) -> None:
    """Another client changes slices."""
    (repaired,) = await slices_of(stage, "repaired")
    name = repaired["metadata"]["name"]
    stray = {"addresses": ["10.9.9.9"], "conditions": {"ready": True}}
    body = {"metadata": {"labels": {"team": None, "other": "x"}}, "endpoints": [stray]}
    await stage.patch(ENDPOINTSLICES, name, body)
    (removed,) = await slices_of(stage, "removed")
    await stage.api.delete(ENDPOINTSLICES, stage.namespace, removed["metadata"]["name"])

    def is_repaired(slices: Sequence[Document]) -> bool:
        return len(endpoints(slices)) == 3 and "other" not in slices[0]["metadata"]["labels"]

    await until(stage, "repaired", is_repaired)
    await until(stage, "removed", lambda slices: len(endpoints(slices)) == 3)


async def change_services(stage: Any) -> None:
    """The Services change: labels, ports, IP families, hints."""
    await stage.patch(
        SERVICES, "relabelled", {"metadata": {"labels": {"team": "other", SERVICE: "hijacked"}}}
    )
    await stage.patch(SERVICES, "packed", {"spec": {"ports": [{"port": 80, "targetPort": 9999}]}})
    dual = await stage.api.get(SERVICES.untyped, stage.namespace, "dual")
    cluster_ips = dual["spec"]["clusterIPs"][:1]
    single = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], "clusterIPs": cluster_ips}
    await stage.patch(SERVICES, "dual", {"spec": single})
    await stage.patch(SERVICES, "forgotten", {"metadata": {"annotations": {next(iter(AUTO)): None}}})
    await stage.patch(SERVICES, "close", {"spec": {"trafficDistribution": None}})
    await stage.api.delete(SERVICES, stage.namespace, "deleted")
    await until(stage, "relabelled", lambda found: found[0]["metadata"]["labels"]["team"] == "other")
    await until(stage, "packed", lambda found: all(one["ports"][0]["port"] == 9999 for one in found))
    await until(stage, "dual", lambda found: [one["addressType"] for one in found] == ["IPv4"])
    for name in ("forgotten", "close"):
        await until(stage, name, lambda found: not any("hints" in one for one in endpoints(found)))


OF_WEB = (
    "ports",
    "headless",
    "portless",
    "dual",
    "close",
    "zone",
    "node",
    "repaired",
    "removed",
    "relabelled",
)
"""The Services of the pods of web."""


async def change_pods(stage: Any) -> None:
    """One pod becomes ready, one is deleted and still runs, one ends.

    Each change is waited for, because the trigger time is that of all changes since the last sync.
    """

    def has(condition: str, count: int) -> Callable[[Sequence[Document]], bool]:
        return lambda found: sum(one["conditions"][condition] for one in endpoints(found)) == count

    await stage.patch(PODS, "web-3", {"status": {"conditions": [ready(True, 59)]}}, subresource="status")
    for name in OF_WEB:
        await until(stage, name, has("serving", 3))
    await stage.api.delete(PODS, stage.namespace, "web-1", grace=600)
    for name in OF_WEB:
        await until(stage, name, has("terminating", 1))
    ended = {"phase": "Succeeded", "conditions": [ready(True, 58)]}
    await stage.patch(PODS, "unready-4", {"status": ended}, subresource="status")
    for name in ("unready", "published"):
        await until(stage, name, lambda found: len(endpoints(found)) == 1)


async def tell(stage: Any) -> Document:
    await stage.create(SERVICES, service("first", "lonely"))
    await until(stage, "first", lambda found: len(endpoints(found)) == 1)
    await stage.create(SERVICES, *SERVICES_OF_THE_STORY)
    await until(stage, "deleted", lambda found: len(endpoints(found)) == 3)
    await stage.quiet()
    times = await created(stage)
    at_first = normal(await slices_of(stage), times)
    await change_slices(stage)
    await change_services(stage)
    await stage.quiet()
    await change_pods(stage)
    await stage.create(SERVICES, service("lost", "lost"))
    await stage.told("FailedToUpdateEndpointSlices", "lost")
    await until(stage, "lost", lambda found: len(endpoints(found)) == 1)
    await stage.quiet()
    return {"at_first": at_first, "at_last": normal(await slices_of(stage), times | await created(stage))}


async def created(stage: Any) -> dict[str, str]:
    page = await stage.api.list(SERVICES.untyped, stage.namespace)
    return {one["metadata"]["name"]: one["metadata"]["creationTimestamp"] for one in page.items}


def normal(slices: Sequence[Document], times: dict[str, str]) -> dict[str, list[Any]]:
    """Slices by Service and IP family, without what differs between any two runs."""
    result: dict[str, list[Any]] = {}
    for one in slices:
        meta = one["metadata"]
        name = meta["labels"][SERVICE]
        annotations = dict(meta.get("annotations") or {})
        if annotations.get(TRIGGER) == times.get(name, ""):
            annotations[TRIGGER] = "creation"
        found = [_endpoint(endpoint) for endpoint in one.get("endpoints") or ()]
        comparable: Document = {
            "generateName": meta["generateName"],
            "labels": meta["labels"],
            "annotations": annotations,
            "owners": [{**owner, "uid": ""} for owner in meta["ownerReferences"]],
            "ports": one["ports"],
            "endpoints": sorted(found, key=repr),
        }
        if name in ("packed", "auto", "forgotten"):
            # Which endpoints share a slice is random in the reference manager.
            hints = [(endpoint.get("zone"), repr(endpoint.get("hints"))) for endpoint in found]
            result.setdefault(f"{name} hints", []).extend(hints)
            comparable["endpoints"] = len(found)
        result.setdefault(f"{name} {one['addressType']}", []).append(comparable)
    return {key: sorted(found, key=repr) for key, found in sorted(result.items())}


def _endpoint(endpoint: Document) -> Document:
    target = {key: value for key, value in endpoint.get("targetRef", {}).items() if key != "uid"}
    return {**endpoint, "targetRef": target}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        NAMESPACE,
        before=before,
        controllers=("endpointslice-controller",),
        kinds=(),
        flags=(f"--max-endpoints-per-slice={LIMIT}",),
        nodes=("no-kubelet",),
        apiserver=("--service-cluster-ip-range=10.0.0.0/24,fd00:2::/112",),
    )
    for end in found.values():
        end["events"] = [event for event in end["events"] if event["source"] == "endpoint-slice-controller"]
    return found


@pytest.mark.parametrize("what", ["at_first", "at_last", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    def gauges(end: dict[str, Any]) -> dict[str, float]:
        wanted = (
            "endpoints_desired",
            "num_endpoint_slices",
            "desired_endpoint_slices",
            "traffic_distribution",
        )
        return {
            name: value
            for name, value in end["counters"].items()
            if name.startswith("endpoint_slice_controller_") and any(word in name for word in wanted)
        }

    alike(ends, gauges)
