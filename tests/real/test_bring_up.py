"""A cluster brought up from nothing on a real kube-apiserver, by kube-scheduler and this manager alone.

Nodes join and are given CIDRs, pods are scheduled, a Service gets its endpoints; then a node dies, and its pods are evicted and
replaced. The nodes are simulated kubelets; every controller runs with its own credentials and no rights but the bootstrap ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from itertools import pairwise
from pathlib import Path

import pytest

from steersman.api.clock import RealClock
from steersman.api.conditions import is_condition_true
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.services import ENDPOINTS, ENDPOINTSLICES, SERVICES, Endpoints, EndpointSlice
from steersman.client.api import Api, EventType
from steersman.sim.kubelet import Kubelets, KubeletSettings
from tests.harness.audit import AuditEntry
from tests.harness.child_process import Child, tail
from tests.harness.envtest import ASSETS, SCHEDULER, RealPlane
from tests.harness.follow import beside, follow, until
from tests.harness.services import deployment, service

SPACE = "bring-up"
NAMES = ("node-1", "node-2", "node-3")
REPLICAS = 6
CLUSTER_CIDR = "10.244.0.0/16"
TOLERATION = 2
"""Seconds that pods tolerate a node that is not ready or unreachable."""
APISERVER = (
    f"--default-not-ready-toleration-seconds={TOLERATION}",
    f"--default-unreachable-toleration-seconds={TOLERATION}",
)
FLAGS = (
    "--use-service-account-credentials=true",
    "--allocate-node-cidrs=true",
    f"--cluster-cidr={CLUSTER_CIDR}",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=10s",
)
PATIENCE = 120.0

pytestmark = pytest.mark.skipif(
    not os.access(Path(os.environ.get(ASSETS, ""), SCHEDULER), os.X_OK), reason=f"needs {SCHEDULER}"
)


@dataclass
class History:
    """Everything that a watch of nodes and pods has shown, and what was found at the steps of the story."""

    nodes: dict[str, list[Node]] = field(default_factory=dict)
    """The versions of each node, oldest first."""
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    """The versions of each pod by uid, oldest first."""
    slices: list[EndpointSlice] = field(default_factory=list)
    """When all pods had become ready."""
    endpoints: Endpoints | None = None
    ready: list[Pod] = field(default_factory=list)
    dead: str = ""
    """The node whose kubelet stopped."""
    slices_after: list[EndpointSlice] = field(default_factory=list)
    """When the pods of the dead node had been replaced."""
    ready_after: list[Pod] = field(default_factory=list)
    requests: list[AuditEntry] = field(default_factory=list)

    async def follow_nodes(self, api: Api) -> None:
        async for _, node in follow(api, NODES):
            self.nodes.setdefault(node.metadata.name, []).append(node)

    async def follow_pods(self, api: Api) -> None:
        async for event, pod in follow(api, PODS, SPACE):
            if event is not EventType.DELETED:
                self.pods.setdefault(pod.metadata.uid, []).append(pod)


def taints(node: Node) -> list[str]:
    return sorted(f"{each.key}:{each.effect}" for each in node.spec.taints)


def joined(node: Node) -> bool:
    return not node.spec.taints and bool(node.spec.podCIDR)


def is_ready(pod: Pod) -> bool:
    return pod.metadata.deletionTimestamp is None and is_condition_true(pod.status.conditions, "Ready")


def serves(pods: list[Pod]) -> Callable[[Endpoints], bool]:
    """Whether Endpoints have exactly the addresses of these pods."""
    wanted = sorted(pod.status.podIP for pod in pods)
    return lambda found: sorted(each.ip for subset in found.subsets for each in subset.addresses) == wanted


def addresses(slices: list[EndpointSlice]) -> list[str]:
    """The addresses of the ready endpoints of slices, each with the node it is on."""
    return sorted(
        f"{address} {endpoint.nodeName}"
        for one in slices
        for endpoint in one.endpoints or ()
        if endpoint.conditions.ready
        for address in endpoint.addresses
    )


async def ready_pods(api: Api, without: str = "") -> list[Pod]:
    """The ready pods, once all replicas are ready on other nodes than this one."""
    known: dict[str, Pod] = {}
    async for event, pod in follow(api, PODS, SPACE):
        if event is EventType.DELETED:
            known.pop(pod.metadata.uid, None)
        else:
            known[pod.metadata.uid] = pod
        ready = [each for each in known.values() if is_ready(each)]
        if len(ready) == REPLICAS and without not in {each.spec.nodeName for each in ready}:
            return ready
    raise AssertionError("following has no end")


async def sliced(api: Api, pods: list[Pod]) -> list[EndpointSlice]:
    """The slices of the Service, once they have these pods as ready endpoints and no others."""
    wanted = sorted(f"{pod.status.podIP} {pod.spec.nodeName}" for pod in pods)
    known: dict[str, EndpointSlice] = {}
    async for event, one in follow(api, ENDPOINTSLICES, SPACE):
        if event is EventType.DELETED:
            known.pop(one.metadata.name, None)
        else:
            known[one.metadata.name] = one
        if addresses(list(known.values())) == wanted:
            return list(known.values())
    raise AssertionError("following has no end")


async def tell(plane: RealPlane, history: History) -> None:
    """Bring the cluster up, and let a node die."""
    async with plane.connect() as api, managed(plane):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await api.create(NAMESPACES, "", body)
        settings = KubeletSettings(lease_interval=1.0, status_interval=10.0)
        kubelets = Kubelets(api, RealClock(), NAMES, settings=settings)
        async with beside(history.follow_nodes(api), history.follow_pods(api), kubelets.run()):
            for name in NAMES:
                await until(api, NODES, "", name, joined)
            await api.create(SERVICES.untyped, SPACE, service("web"))
            await api.create(DEPLOYMENTS.untyped, SPACE, deployment(REPLICAS))
            history.ready = await ready_pods(api)
            history.slices = await sliced(api, history.ready)
            history.endpoints = await until(api, ENDPOINTS, SPACE, "web", serves(history.ready))
            history.dead = min(pod.spec.nodeName for pod in history.ready)
            kubelets.fail(history.dead)
            history.ready_after = await ready_pods(api, without=history.dead)
            history.slices_after = await sliced(api, history.ready_after)
            await until(api, ENDPOINTS, SPACE, "web", serves(history.ready_after))
    history.requests = plane.audit()


@asynccontextmanager
async def managed(plane: RealPlane) -> AsyncIterator[None]:
    """kube-scheduler and the manager, while they are needed."""
    manager = plane.manager(
        *FLAGS,
        f"--service-account-private-key-file={plane.service_account_key}",
        f"--root-ca-file={plane.ca}",
    )
    running = (manager, plane.scheduler())
    try:
        async with asyncio.timeout(PATIENCE), beside(*map(_alive, running)):
            yield
    except TimeoutError:
        logs = "\n".join(f"{child.name}: {tail(child)}" for child in running)
        raise AssertionError(f"not brought up in {PATIENCE:g} s\n{logs}") from None
    for child in running:
        child.stop()
    assert "Traceback" not in manager.log()


async def _alive(child: Child) -> None:
    await child.exited()
    raise AssertionError(f"{child.name} ended with code {child.code}:\n{tail(child)}")


@pytest.fixture(scope="module")
def history() -> Iterator[History]:
    found = History()
    with RealPlane.start(apiserver=APISERVER) as plane:
        asyncio.run(tell(plane, found))
        yield found


def test_nodes_start_with_the_taint_of_admission_and_lose_it(history: History) -> None:
    for name in NAMES:
        versions = history.nodes[name]
        assert taints(versions[0]) == ["node.kubernetes.io/not-ready:NoSchedule"]
        if name != history.dead:
            changes = [taints(old) for old, new in pairwise(versions) if taints(old) != taints(new)]
            assert changes[-1], "the last change takes the last taint away"
            assert taints(versions[-1]) == []


def test_each_node_has_a_cidr_of_its_own(history: History) -> None:
    cidrs = [ip_network(history.nodes[name][-1].spec.podCIDR) for name in NAMES]
    assert all(each.subnet_of(ip_network(CLUSTER_CIDR)) for each in cidrs)  # type: ignore[arg-type]
    assert not any(one.overlaps(other) for one in cidrs for other in cidrs if one is not other)
    for name in NAMES:
        given = {node.spec.podCIDR for node in history.nodes[name]}
        assert len(given - {""}) == 1, "a CIDR never changes"


def test_pods_are_bound_by_the_scheduler_and_get_addresses_of_their_nodes(history: History) -> None:
    assert len(history.ready) == REPLICAS
    bindings = [one for one in history.requests if one.target == "pods/binding" and one.code == 201]
    assert {one.user for one in bindings} == {f"system:{SCHEDULER}"}
    assert {pod.metadata.name for pod in history.ready} <= {one.name for one in bindings}
    cidrs = {name: ip_network(history.nodes[name][-1].spec.podCIDR) for name in NAMES}
    for pod in history.ready:
        assert ip_address(pod.status.podIP) in cidrs[pod.spec.nodeName]


def test_the_service_has_slices_and_endpoints_of_the_ready_pods(history: History) -> None:
    assert {one.metadata.labels["kubernetes.io/service-name"] for one in history.slices} == {"web"}
    assert [port.port for one in history.slices for port in one.ports or ()] == [8080]
    assert history.endpoints is not None
    assert [port.port for subset in history.endpoints.subsets for port in subset.ports] == [8080]


def test_the_pods_of_a_dead_node_are_evicted_and_replaced(history: History) -> None:
    unreachable = [f"node.kubernetes.io/unreachable:{effect}" for effect in ("NoExecute", "NoSchedule")]
    assert taints(history.nodes[history.dead][-1]) == unreachable
    evicted = [versions[-1] for versions in history.pods.values() if versions[-1].metadata.deletionTimestamp]
    assert {pod.metadata.uid for pod in evicted} == {
        pod.metadata.uid for pod in history.ready if pod.spec.nodeName == history.dead
    }
    for pod in evicted:
        assert is_condition_true(pod.status.conditions, "DisruptionTarget")
    assert len(history.ready_after) == REPLICAS
    assert history.dead not in {pod.spec.nodeName for pod in history.ready_after}


def test_no_pod_of_a_living_node_is_deleted(history: History) -> None:
    stayed = {pod.metadata.uid for pod in history.ready if pod.spec.nodeName != history.dead}
    assert stayed <= {pod.metadata.uid for pod in history.ready_after}
    for name in NAMES:
        if name != history.dead:
            effects = {taint.effect for node in history.nodes[name] for taint in node.spec.taints}
            assert effects == {"NoSchedule"}


def test_the_endpoints_of_evicted_pods_give_way_to_those_of_new_ones(history: History) -> None:
    assert not any(line.endswith(f" {history.dead}") for line in addresses(history.slices_after))
    assert len(addresses(history.slices_after)) == REPLICAS


def test_no_request_of_the_manager_or_the_scheduler_was_forbidden(history: History) -> None:
    own = [
        one for one in history.requests if one.user.startswith("system:") and one.user != "system:apiserver"
    ]
    assert {"system:serviceaccount:kube-system:node-controller", f"system:{SCHEDULER}"} <= {
        one.user for one in own
    }
    refused = [one for one in own if one.code == 403]
    assert refused == []
