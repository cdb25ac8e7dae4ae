"""Nodes in one line: one request for each thing that happens to a pod, whatever happens to requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from steersman.api.errors import BadRequest, Conflict, ServiceUnavailable
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import PODS
from steersman.api.scheme import Kind
from steersman.client.api import Page
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.kubelet.behaviour import NEVER_READY
from steersman.sim.kubelet.node import STATE, Shape, is_simulated, node, taken_over
from steersman.sim.nodes import Nodes
from steersman.sim.world import START, World

NODES = load("", "v1", "Node")


class Counted(LocalApi):
    """Counts what is asked, and can be made to refuse it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server, User("nodes"))
        self.asked: Counter[str] = Counter()
        self.refuse: list[Exception] = []
        self.active = 0
        self.most = 0

    async def _ask(self, what: str) -> None:
        self.asked[what] += 1
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await asyncio.sleep(0.001)
        finally:
            self.active -= 1
        if self.refuse:
            raise self.refuse.pop()

    async def subresource(
        self, kind: Kind[Any], namespace: str, name: str, *args: Any, **options: Any
    ) -> Any:
        await self._ask("bind")
        return await super().subresource(kind, namespace, name, *args, **options)

    async def update_status(self, kind: Kind[Any], namespace: str, name: str, body: object) -> Any:
        if kind.plural == "pods":
            await self._ask("status")
        return await super().update_status(kind, namespace, name, body)

    async def delete(self, kind: Kind[Any], namespace: str, name: str, **options: Any) -> None:
        await self._ask("delete")
        await super().delete(kind, namespace, name, **options)


class Lists(Counted):
    """A server that cannot stream a list."""

    def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> AsyncIterator[Any]:
        if options.get("send_initial_events"):
            return self._refused()
        return super().watch(kind, namespace, **options)

    async def _refused(self) -> AsyncIterator[Any]:
        raise BadRequest("sendInitialEvents is forbidden")
        yield

    async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Page[Any]:
        self.asked[f"list {kind.plural}"] += 1
        return await super().list(kind, namespace, **{**options, "limit": 3})


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=9) as world:
        yield world


def pod(name: str, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": image}, {"name": "side", "image": "side:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def start(world: World, api: LocalApi, *names: str, **options: Any) -> None:
    world.spawn(Nodes(api, world, names or ("n1", "n2"), **options).run(), name="nodes")


def make(world: World, *bodies: dict[str, Any]) -> None:
    for body in bodies:
        world.run(world.api().create(PODS, "default", body))


def pods(world: World) -> list[Any]:
    return list(world.run(world.api().list(PODS, "default")).items)


def test_a_pod_is_bound_and_runs_with_one_request_for_each(world: World) -> None:
    api = Counted(world)
    start(world, api)
    make(world, pod("a"), pod("b"), pod("c"))
    world.run(world.settle())
    assert api.asked == {"bind": 3, "status": 3}
    assert sorted(p.spec.nodeName for p in pods(world)) == ["n1", "n1", "n2"]
    status = pods(world)[0].status
    assert status.phase == "Running"
    assert {c.type: c.status for c in status.conditions} == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    assert all(c.lastTransitionTime is not None for c in status.conditions)
    assert [(c.name, c.image, c.ready, c.started) for c in status.containerStatuses] == [
        ("main", "app:1", True, True),
        ("side", "side:1", True, True),
    ]
    assert status.startTime is not None
    assert len({p.status.podIP for p in pods(world)}) == 3
    assert status.qosClass == "BestEffort"


def test_a_pod_that_has_its_node_is_not_bound(world: World) -> None:
    api = Counted(world)
    start(world, api)
    make(world, pod("a", nodeName="n2"))
    world.run(world.settle())
    assert api.asked == {"status": 1}
    assert pods(world)[0].status.phase == "Running"


def test_pods_of_other_nodes_and_gated_pods_are_left_alone(world: World) -> None:
    api = Counted(world)
    start(world, api)
    make(world, pod("other", nodeName="elsewhere"), pod("gated", schedulingGates=[{"name": "g"}]))
    world.run(world.settle())
    assert not api.asked


def test_a_pod_takes_its_time_to_start(world: World) -> None:
    start(world, world.api(), start_delay=5.0)
    make(world, pod("a"))
    world.run(world.advance(4.9))
    assert pods(world)[0].status.phase == "Pending"
    world.run(world.advance(0.2))
    assert pods(world)[0].status.phase == "Running"


@pytest.mark.parametrize("bad", ["image", "annotation"])
def test_a_pod_whose_image_cannot_be_pulled_never_gets_ready(world: World, bad: str) -> None:
    api = Counted(world)
    start(world, api, pull_error=0.0)
    body = pod("a", "bad:1" if bad == "image" else "app:1")
    if bad == "annotation":
        body["metadata"]["annotations"] = {NEVER_READY: "true"}
    make(world, body)
    world.run(world.settle())
    status = pods(world)[0].status
    assert status.phase == "Pending"
    assert status.containerStatuses[0].state.waiting.reason == "ImagePullBackOff"
    assert {c.type: c.status for c in status.conditions}["Ready"] == "False"
    assert api.asked["status"] == 1
    assert dict(pods(world)[0].metadata.annotations) == dict(body["metadata"].get("annotations", {}))


def test_nodes_that_are_not_ready_run_pods_that_are_not(world: World) -> None:
    start(world, world.api(), ready=False)
    make(world, pod("a"))
    world.run(world.settle())
    status = pods(world)[0].status
    assert status.phase == "Running"
    assert {c.type: c.status for c in status.conditions}["Ready"] == "False"


def test_a_pod_that_is_asked_to_go_is_let_go_with_one_request(world: World) -> None:
    api = Counted(world)
    start(world, api)
    make(world, pod("a"))
    world.run(world.settle())
    world.run(world.api().delete(PODS, "default", "a"))
    world.run(world.settle())
    assert pods(world) == []
    assert api.asked == {"bind": 1, "status": 1, "delete": 1}


def test_a_pod_of_the_same_name_is_another_pod(world: World) -> None:
    start(world, world.api())
    for _ in range(3):
        make(world, pod("a"))
        world.run(world.settle())
        assert pods(world)[0].status.phase == "Running"
        world.run(world.api().delete(PODS, "default", "a"))
        world.run(world.settle())


def test_a_request_that_failed_is_made_again_later(world: World) -> None:
    api = Counted(world)
    api.refuse = [ServiceUnavailable("not now"), ServiceUnavailable("not now")]
    start(world, api)
    make(world, pod("a"))
    world.run(world.settle())
    assert pods(world)[0].status.phase == "Running"
    assert 3 <= world.monotonic() < 4


def test_a_conflict_is_answered_by_the_next_state(world: World) -> None:
    api = Counted(world)
    start(world, api)
    make(world, pod("a", nodeName="n1"))

    async def interfere() -> None:
        # The status request is on its way and bears the version before this change.
        await asyncio.sleep(0.0005)
        await world.api().patch(PODS, "default", "a", {"metadata": {"labels": {"x": "y"}}})

    world.run(interfere())
    world.run(world.settle())
    assert api.asked == {"status": 2}
    assert pods(world)[0].status.phase == "Running"
    assert dict(pods(world)[0].metadata.labels) == {"x": "y"}


def test_a_pod_that_could_not_be_bound_is_placed_again(world: World) -> None:
    api = Counted(world)
    api.refuse = [Conflict("bound by another")]
    start(world, api)
    make(world, pod("a"))
    world.run(world.settle())
    assert api.asked == {"bind": 2, "status": 1}


def test_no_more_requests_are_under_way_than_allowed(world: World) -> None:
    api = Counted(world)
    start(world, api, parallel=4)
    make(world, *(pod(f"p{i}") for i in range(30)))
    world.run(world.settle())
    assert api.most == 8, "four of the kubelets, four of the scheduler"
    assert {p.status.phase for p in pods(world)} == {"Running"}


def test_pods_that_were_there_before_are_seen_to_and_a_cut_watch_is_resumed(world: World) -> None:
    api = Counted(world)
    make(world, pod("before"))
    start(world, api)
    world.run(world.settle())
    for group in tuple(world.server.store.table("pods").watchers._scopes.values()):
        for subscription in tuple(group):
            subscription.close()
    make(world, pod("after"))
    world.run(world.settle())
    assert {p.metadata.name: p.status.phase for p in pods(world)} == {"before": "Running", "after": "Running"}
    assert api.asked == {"bind": 2, "status": 2}


def test_a_server_that_cannot_stream_a_list_is_asked_for_one(world: World) -> None:
    api = Lists(world)
    make(world, *(pod(f"p{i}") for i in range(7)))
    start(world, api)
    world.run(world.settle())
    assert {p.status.phase for p in pods(world)} == {"Running"}
    assert api.asked["list pods"] == 2 * 3, "the kubelets and the scheduler, three pages each"


def test_nodes_are_registered(world: World) -> None:
    start(world, world.api(), "a", "b")
    world.run(world.settle())
    found: list[Any] = list(world.run(world.api().list(NODES)).items)
    assert [(n.metadata.name, n.status.conditions[-1].type) for n in found] == [
        ("a", "Ready"),
        ("b", "Ready"),
    ]


def test_there_must_be_a_node(world: World) -> None:
    with pytest.raises(ValueError, match="at least one node"):
        Nodes(world.api(), world, ())


def test_a_node_of_a_snapshot_is_simulated_once_it_is_taken_over() -> None:
    real = v1.Node(metadata=ObjectMeta(name="a"), spec=v1.NodeSpec(providerID="aws:///eu-1a/i-1"))
    assert not is_simulated(real)
    assert is_simulated(taken_over(real))
    assert taken_over(real).metadata.annotations[STATE] == "failed"
    assert STATE not in taken_over(node("b", 1, Shape(), START)).metadata.annotations
    assert is_simulated(node("b", 1, Shape(), START))
