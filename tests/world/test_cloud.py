"""Load balancers, routes and nodes in a world with a cloud: crashes leak nothing, and a bad provider holds up nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.api.cloud import CloudError, ClusterObjects
from steersman.runtime.action_table.cloud import LENDING, TIMEOUT
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite
from steersman.testing.cluster import Cluster
from tests.harness.cloud import Cloud, hang

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
EXCLUDE = "node.kubernetes.io/exclude-from-external-load-balancers"
BALANCERS = ("service-lb-controller",)


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], **spec},
    }


def hosts(cluster: Cluster, name: str = "web") -> list[str]:
    return [one.hostname for one in cluster.get("Service", name).status.loadBalancer.ingress]


def reasons(cluster: Cluster) -> list[str]:
    return sorted({event.reason for event in cluster.list("Event")})


def events(cluster: Cluster, reason: str) -> list[str]:
    return [event.message for event in cluster.list("Event") if event.reason == reason]


def test_a_load_balancer_from_its_creation_to_its_end() -> None:
    cloud = Cloud()
    with Cluster(seed=1, cloud=cloud, controllers=BALANCERS) as cluster:
        cluster.apply(service())
        cluster.settle()
        made = cluster.get("Service", "web").metadata
        assert made.finalizers == (FINALIZER,)
        assert hosts(cluster) == [f"{made.uid}.lb.example"]
        assert cloud.load_balancers.made == {made.uid: ("node-1", "node-2", "node-3")}
        cluster.patch("Node", "node-1", {"metadata": {"labels": {EXCLUDE: "true"}}})
        cluster.settle()
        assert cloud.load_balancers.made == {made.uid: ("node-2", "node-3")}
        assert [call for call, _ in cloud.calls] == ["ensure", "update"]
        cluster.delete("Service", "web")
        cluster.settle()
        assert cloud.load_balancers.made == {}
        assert [one.metadata.name for one in cluster.list("Service")] == ["kubernetes"]
        assert reasons(cluster) == [
            "DeletedLoadBalancer",
            "DeletingLoadBalancer",
            "EnsuredLoadBalancer",
            "EnsuringLoadBalancer",
            "UpdatedLoadBalancer",
        ]


def test_an_idle_month_costs_no_call() -> None:
    cloud = Cloud()
    with Cluster(seed=1, cloud=cloud, controllers=BALANCERS) as cluster:
        cluster.apply(service())
        cluster.settle()
        before = len(cloud.calls)
        cluster.advance(days=30)
        assert len(cloud.calls) == before


def test_every_cluster_gives_load_balancers_addresses() -> None:
    with Cluster(seed=1) as cluster:
        cluster.apply(service("a"))
        cluster.settle()
        cluster.apply(service("b"))
        cluster.settle()
        found = [
            [one.ip for one in cluster.get("Service", name).status.loadBalancer.ingress] for name in "ab"
        ]
        assert found == [["198.18.0.1"], ["198.18.0.2"]]
        version = cluster.get("Service", "a").metadata.resourceVersion
        cluster.restart_manager()
        cluster.settle()
        assert cluster.get("Service", "a").metadata.resourceVersion == version, "nothing to write again"
        cluster.apply(service("c"))
        cluster.settle()
        assert cluster.get("Service", "c").status.loadBalancer.ingress[0].ip == "198.18.0.3"
        assert cluster.get("Service", "a").status.loadBalancer.ingress[0].ip == "198.18.0.1"


@pytest.mark.parametrize(
    ("fault", "write"),
    [
        *((CrashBeforeWrite, write) for write in range(1, 8)),
        # The sixth is refused: the Service whose status it clears went with its finalizer.
        *((CrashAfterWrite, write) for write in range(1, 8) if write != 6),
    ],
)
def test_a_crash_at_any_write_leaks_no_load_balancer_and_frees_none_in_use(
    fault: Callable[[int], Any], write: int
) -> None:
    cloud = Cloud()
    with Cluster(seed=5, cloud=cloud, controllers=BALANCERS, faults=(fault(write),)) as cluster:
        for name in ("web", "keep"):
            cluster.apply(service(name))
        cluster.settle(horizon=30)
        uids = {name: cluster.get("Service", name).metadata.uid for name in ("web", "keep")}
        assert sorted(cloud.load_balancers.made) == sorted(uids.values())
        assert [hosts(cluster, name) for name in uids] == [[f"{uid}.lb.example"] for uid in uids.values()]
        cluster.delete("Service", "web")
        # Until the Service is gone, its finalizer stands for the load balancer.
        cluster.wait_until(lambda: len(cluster.list("Service")) == 2)
        assert list(cloud.load_balancers.made) == [uids["keep"]]
        cluster.patch("Service", "keep", {"spec": {"type": "ClusterIP"}})
        cluster.settle(horizon=30)
        assert cloud.load_balancers.made == {}
        assert cluster.get("Service", "keep").metadata.finalizers == ()


def test_a_service_that_is_deleted_while_no_manager_runs_waits_for_one() -> None:
    cloud = Cloud()
    with Cluster(seed=5, cloud=cloud, controllers=BALANCERS) as cluster:
        cluster.apply(service())
        cluster.settle()
        cluster.crash_manager()
        cluster.delete("Service", "web")
        cluster.advance(hours=1)
        assert len(cloud.load_balancers.made) == 1
        assert cluster.get("Service", "web").metadata.deletionTimestamp is not None
        cluster.start_manager()
        cluster.settle()
        assert cloud.load_balancers.made == {}


# -- a provider that hangs, raises or lies --------------------------------------------------------


def test_a_call_that_hangs_is_ended_and_retried_and_holds_up_no_other_service() -> None:
    cloud = Cloud()
    cloud.trouble = lambda call, about: hang() if about.metadata.name == "stuck" else None
    with Cluster(seed=2, cloud=cloud, controllers=BALANCERS) as cluster:
        cluster.apply(service("stuck"))
        cluster.advance(seconds=1)
        for name in ("a", "b", "c"):
            cluster.apply(service(name))
        cluster.advance(seconds=LENDING + 1)
        assert all(hosts(cluster, name) for name in ("a", "b", "c")), "one worker, and a call that hangs"
        cluster.advance(seconds=TIMEOUT)
        (message,) = events(cluster, "SyncLoadBalancerFailed")
        assert message == (
            "Error syncing load balancer: failed to ensure load balancer: cloud provider fake: ensure load balancer "
            "of service default/stuck with 3 nodes: no answer within 300 s"
        )
        cloud.trouble = lambda call, about: None
        cluster.advance(minutes=10)
        assert hosts(cluster, "stuck")


def test_after_a_slow_call_there_are_as_many_workers_as_before() -> None:
    cloud = Cloud()
    running = most = 0

    async def slow(seconds: float) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(seconds)
        running -= 1

    with Cluster(seed=2, cloud=cloud, controllers=BALANCERS) as cluster:
        cloud.trouble = lambda call, about: slow(60.0)
        for number in range(4):
            cluster.apply(service(f"slow-{number}"))
        cluster.advance(minutes=10)
        assert most > 1, "a worker that waits lends its place"
        most = 0
        cloud.trouble = lambda call, about: slow(LENDING / 2)
        for number in range(6):
            cluster.apply(service(f"quick-{number}"))
        cluster.advance(minutes=10)
        assert most <= 2
        most = 0
        for number in range(6):
            cluster.apply(service(f"again-{number}"))
        cluster.advance(minutes=10)
        assert most == 1, "--concurrent-service-syncs is 1"


async def _raise(error: Exception) -> Any:
    raise error


async def _answer(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (lambda: _raise(CloudError("quota exceeded")), "quota exceeded"),
        (
            lambda: _raise(ZeroDivisionError("division by zero")),
            "cloud provider fake: ensure load balancer of service default/web with 3 nodes: "
            "ZeroDivisionError: division by zero",
        ),
        (
            lambda: _answer("an address"),
            "cloud provider fake: ensure load balancer of service default/web with 3 nodes: "
            "the provider returned a str",
        ),
    ],
    ids=["an error", "an exception", "a lie"],
)
def test_a_call_that_fails_is_one_event_and_backs_off(
    trouble: Callable[[], Awaitable[Any]], message: str
) -> None:
    cloud = Cloud()
    cloud.trouble = lambda call, about: trouble() if about.metadata.name == "web" else None
    with Cluster(seed=2, cloud=cloud, controllers=BALANCERS) as cluster:
        cluster.apply(service())
        cluster.apply(service("fine"))
        cluster.advance(seconds=4)
        assert cloud.calls.count(("ensure", "web")) == 1
        assert hosts(cluster, "fine")
        said = events(cluster, "SyncLoadBalancerFailed")
        assert said == [f"Error syncing load balancer: failed to ensure load balancer: {message}"]
        cluster.advance(hours=1)
        # 5 s, 10 s, 20 s ... 160 s, and then every 300 s.
        assert 15 <= cloud.calls.count(("ensure", "web")) <= 19
        cloud.trouble = lambda call, about: None
        cluster.advance(seconds=301)
        assert hosts(cluster)


def test_an_answer_that_is_no_boolean_deletes_no_node() -> None:
    cloud = Cloud()
    cloud.trouble = lambda call, about: _answer(0) if call == "exists" else None
    with Cluster(seed=2, cloud=cloud, controllers=("cloud-node-lifecycle-controller",)) as cluster:
        cluster.node("node-1").fail()
        condition = {"type": "Ready", "status": "Unknown", "reason": "Test"}
        cluster.patch("Node", "node-1", {"status": {"conditions": [condition]}}, subresource="status")
        cluster.advance(minutes=5)
        assert len(cluster.list("Node")) == 3
        assert cloud.count("exists") > 10


class Unwell(Cloud):
    """A provider that cannot be initialized."""

    def initialize(self, cluster: ClusterObjects) -> None:
        raise RuntimeError("no credentials")


def test_a_provider_that_cannot_be_initialized_stops_its_own_controllers_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = Unwell()
    with Cluster(seed=2, cloud=cloud) as cluster:
        cluster.apply(service(selector={"app": "web"}))
        cluster.settle()
        assert cluster.list("Endpoints"), "the others work"
        assert cloud.calls == []
        (line,) = {each.getMessage() for each in caplog.records if each.levelname == "ERROR"}
        assert line == (
            "cloud provider fake cannot be initialized, so its controllers do not run: RuntimeError: no credentials"
        )


# -- routes -----------------------------------------------------------------------------------------

FLAGS = {"allocate-node-cidrs": True, "cluster-cidr": "10.244.0.0/16"}


def test_each_node_with_a_cidr_has_a_route_and_says_so() -> None:
    cloud = Cloud()
    with Cluster(seed=4, cloud=cloud, controllers=("node-route-controller",), flags=FLAGS) as cluster:
        for number in (1, 2):
            cidr = f"10.244.{number}.0/24"
            cluster.patch("Node", f"node-{number}", {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}})
        cluster.advance(seconds=11)
        made = cloud.routes.made
        assert sorted((one.target_node, one.destination_cidr) for one in made.values()) == [
            ("node-1", "10.244.1.0/24"),
            ("node-2", "10.244.2.0/24"),
        ]
        told = {
            node.metadata.name: [
                (one.status, one.reason) for one in node.status.conditions if one.type == "NetworkUnavailable"
            ]
            for node in cluster.list("Node")
        }
        assert told == {
            "node-1": [("False", "RouteCreated")],
            "node-2": [("False", "RouteCreated")],
            "node-3": [],
        }
        cluster.delete("Node", "node-2")
        cluster.advance(seconds=11)
        assert [one.target_node for one in made.values()] == ["node-1"]


def test_routes_that_cannot_be_listed_are_looked_at_again_and_nothing_is_deleted() -> None:
    cloud = Cloud()
    with Cluster(seed=4, cloud=cloud, controllers=("node-route-controller",), flags=FLAGS) as cluster:
        cluster.patch("Node", "node-1", {"spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"]}})
        cluster.advance(seconds=11)
        cloud.trouble = lambda call, about: _answer("nonsense") if call == "list" else None
        cluster.advance(minutes=5)
        assert len(cloud.routes.made) == 1
        assert cloud.count("delete") == 0
        assert 25 <= cloud.count("list") <= 35, "every ten seconds"
