"""The cloud controllers on a real kube-apiserver, with RBAC, credentials of their own and the provider ``local``.

kube-controller-manager 1.36 has no provider of its own, so what they leave is not compared but stated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.api.conditions import find_condition
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.services import SERVICES, Service
from steersman.client.api import Api
from tests.harness import child_process
from tests.harness.envtest import RealPlane
from tests.harness.follow import gone, until
from tests.real.both import EVENTS, FLAGS, PATIENCE

pytestmark = pytest.mark.real

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
SPACE = "default"
NAMES = "service-lb-controller,node-route-controller,cloud-node-lifecycle-controller"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], **spec},
    }


def addresses(one: Service) -> list[str]:
    return [ingress.ip for ingress in one.status.loadBalancer.ingress]


def has(address: str) -> Callable[[Service], bool]:
    return lambda one: addresses(one) == [address]


def routed(node: Node) -> bool:
    condition = find_condition(node.status.conditions, "NetworkUnavailable")
    return condition is not None and (condition.status, condition.reason) == ("False", "RouteCreated")


@pytest.fixture(scope="module")
def own_plane() -> Iterator[RealPlane]:
    """A plane without the nodes and Services of other tests."""
    with RealPlane.start() as plane:
        yield plane


@asynccontextmanager
async def managed(plane: RealPlane, config: Path) -> AsyncIterator[Api]:
    config.write_text("pools: [192.0.2.10-192.0.2.12]\n")
    async with plane.connect() as api:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "spec": {"podCIDR": "10.244.7.0/24", "podCIDRs": ["10.244.7.0/24"]},
        }
        await api.create(NODES.untyped, "", node)
        mark = plane.mark()
        manager = plane.manager(
            f"--controllers={NAMES}",
            *FLAGS,
            "--cloud-provider=local",
            f"--cloud-config={config}",
            "--allocate-node-cidrs",
            "--cluster-cidr=10.244.0.0/16",
        )
        yield api
        manager.stop()
        refused = [entry for entry in plane.audit(mark) if entry.code == 403 and "kube-system" in entry.user]
        assert refused == [], "each controller has just its bootstrap rights"
        assert "Traceback" not in manager.log()


async def test_load_balancers_routes_and_nodes_with_the_rights_that_are_granted(
    own_plane: RealPlane, tmp_path: Path
) -> None:
    async with asyncio.timeout(PATIENCE), managed(own_plane, tmp_path / "cloud.yaml") as api:
        for name in ("a", "b"):
            await api.create(SERVICES.untyped, SPACE, service(name))
            await until(api, SERVICES, SPACE, name, lambda one: bool(addresses(one)))
        other = service("other", loadBalancerClass="example.com/other")
        await api.create(SERVICES.untyped, SPACE, other)
        first = await until(api, SERVICES, SPACE, "a", has("192.0.2.10"))
        assert first.metadata.finalizers == (FINALIZER,)
        await until(api, SERVICES, SPACE, "b", has("192.0.2.11"))
        await until(api, NODES, "", "n", routed)
        # One changes its type, and the next one gets its address.
        await api.patch(SERVICES.untyped, SPACE, "a", {"spec": {"type": "ClusterIP"}})
        plain = await until(api, SERVICES, SPACE, "a", lambda one: not one.metadata.finalizers)
        assert addresses(plain) == []
        await api.create(SERVICES.untyped, SPACE, service("c"))
        await until(api, SERVICES, SPACE, "c", has("192.0.2.10"))
        await api.create(SERVICES.untyped, SPACE, service("d"))
        await until(api, SERVICES, SPACE, "d", has("192.0.2.12"))
        await api.create(SERVICES.untyped, SPACE, service("e"))
        await until(api, SERVICES, SPACE, "e", lambda one: FINALIZER in one.metadata.finalizers)
        # The finalizer lets a deleted Service go; the one that was waiting gets its address with the next retry.
        await api.delete(SERVICES, SPACE, "b")
        await gone(api, SERVICES, SPACE, "b")
        await until(api, SERVICES, SPACE, "e", has("192.0.2.11"))
        untouched = await api.get(SERVICES, SPACE, "other")
        assert (untouched.metadata.finalizers, addresses(untouched)) == ((), [])
        page = await api.list(EVENTS, SPACE)
        told = {
            (each["involvedObject"]["name"], each["reason"], each["source"]["component"])
            for each in page.items
            if each["source"]  # those of the API server itself have none
        }
        assert {
            ("a", "EnsuringLoadBalancer", "service-controller"),
            ("a", "EnsuredLoadBalancer", "service-controller"),
            ("a", "DeletedLoadBalancer", "service-controller"),
            ("e", "SyncLoadBalancerFailed", "service-controller"),
        } <= told
        assert not [name for name, _, _ in told if name == "other"]
        # Its instance exists, as far as this provider knows.
        assert await api.get(NODES, "", "n")


def test_without_a_provider_none_of_them_runs(own_plane: RealPlane) -> None:
    manager = own_plane.manager(f"--controllers={NAMES}", *FLAGS, "--cloud-provider=external")
    child_process.until(lambda: ": no controllers" in manager.log(), manager, 60, "it starts")
    assert manager.stop() == 0


def test_a_pool_that_is_none_ends_it_at_once(own_plane: RealPlane, tmp_path: Path) -> None:
    config = tmp_path / "cloud.yaml"
    config.write_text("pools: [nonsense]")
    manager = own_plane.manager("--cloud-provider=local", f"--cloud-config={config}", *FLAGS)
    assert manager.wait(60) == 1
    assert "Error: cloud provider \"local\": 'nonsense' is neither a CIDR nor a range" in manager.log()
