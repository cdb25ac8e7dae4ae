"""The scheduler in a world: binding, refusing, trying again, making room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.generated import load
from steersman.api.kinds import PODS
from steersman.runtime.events import SERIES_EVENTS
from steersman.sim.kubelet import Kubelets, KubeletSettings, Shape
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import World

NODES = load("", "v1", "Node")


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=3) as world:
        yield world


def start(world: World, *names: str, cpu: str = "2", scheduler: bool = True, **settings: Any) -> None:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    kubelets = Kubelets(
        world.api("kubelets"),
        world,
        names or ("a", "b"),
        shape=Shape(capacity=capacity),
        settings=KubeletSettings(**settings),
    )
    world.spawn(kubelets.run(), name="kubelets")
    if scheduler:
        world.spawn(Scheduler(world.api("scheduler"), world, scheduled_events=True).run(), name="scheduler")
    world.run(world.settle())


def make(world: World, name: str, cpu: str = "1", **spec: Any) -> None:
    main = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    body = {"metadata": {"name": name}, "spec": {"containers": [main], **spec}}
    world.run(world.api().create(PODS, "default", body))
    world.run(world.loop.idle())


def homes(world: World) -> dict[str, str]:
    found: list[Any] = list(world.run(world.api().list(PODS, "default")).items)
    return {each.metadata.name: each.spec.nodeName for each in found}


def get(world: World, name: str) -> Any:
    return world.run(world.api().get(PODS, "default", name))


def test_pods_are_spread_over_the_nodes_and_run(world: World) -> None:
    start(world)
    for name in ("p", "q", "r", "s"):
        make(world, name)
    assert homes(world) == {"p": "a", "q": "b", "r": "a", "s": "b"}
    assert get(world, "p").status.phase == "Running"


def test_a_pod_without_a_place_is_told_why_and_placed_once_there_is_one(world: World) -> None:
    start(world, "a")
    make(world, "p", "2")
    make(world, "q", "1")
    world.run(world.settle())
    condition = next(each for each in get(world, "q").status.conditions if each.type == "PodScheduled")
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )
    assert (condition.status, condition.reason, condition.message) == ("False", "Unschedulable", message)
    events: list[Any] = list(world.run(world.api().list(SERIES_EVENTS, "default")).items)
    notes = [(each.reason, each.regarding.name, each.note) for each in events]
    assert ("FailedScheduling", "q", message) in notes
    assert ("Scheduled", "p", "Successfully assigned default/p to a") in notes
    world.run(world.api().delete(PODS, "default", "p"))
    world.run(world.advance(2))
    assert homes(world) == {"q": "a"}
    condition = next(each for each in get(world, "q").status.conditions if each.type == "PodScheduled")
    assert (condition.status, condition.reason) == ("True", "")


def test_a_pod_without_a_place_is_left_in_peace_while_nothing_changes(world: World) -> None:
    start(world, "a", lease_interval=0.0)
    make(world, "p", "3")
    world.run(world.settle())
    before = world.server.store.revision
    world.run(world.advance(3600))
    assert world.server.store.revision == before


def test_the_pods_of_a_job_that_ended_make_room(world: World) -> None:
    start(world, "a")
    make(world, "p", "2", restartPolicy="Never")
    make(world, "q", "2")
    done = {"metadata": {"annotations": {"sim.steersman.dev/runs": "5"}}}
    world.run(world.api().patch(PODS, "default", "p", done))
    world.run(world.advance(20))
    assert get(world, "p").status.phase == "Succeeded"
    assert get(world, "q").status.phase == "Running"


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned(world: World) -> None:
    start(world, "a")
    world.run(world.api().patch(NODES, "", "a", {"spec": {"unschedulable": True}}))
    make(world, "p")
    assert homes(world) == {"p": ""}
    world.run(world.api().patch(NODES, "", "a", {"spec": {"unschedulable": None}}))
    world.run(world.advance(2))
    assert homes(world) == {"p": "a"}


def test_gated_pods_and_pods_of_other_schedulers_wait(world: World) -> None:
    start(world)
    make(world, "gated", schedulingGates=[{"name": "g"}])
    make(world, "other", schedulerName="other")
    assert homes(world) == {"gated": "", "other": ""}
    world.run(world.api().patch(PODS, "default", "gated", {"spec": {"schedulingGates": None}}))
    world.run(world.loop.idle())
    assert homes(world) == {"gated": "a", "other": ""}


def test_the_more_important_pod_goes_first(world: World) -> None:
    start(world, "a", scheduler=False)
    make(world, "low", "2")
    classes = load("scheduling.k8s.io", "v1", "PriorityClass")
    high = {"metadata": {"name": "high"}, "value": 1000}
    world.run(world.api().create(classes, "", high))
    make(world, "high", "2", priorityClassName="high")
    world.spawn(Scheduler(world.api("scheduler"), world).run(), name="scheduler")
    world.run(world.settle())
    assert homes(world) == {"high": "a", "low": ""}


def test_the_less_important_pod_makes_room(world: World) -> None:
    start(world, "a", shutdown=3.0)
    make(world, "low", "2")
    classes = load("scheduling.k8s.io", "v1", "PriorityClass")
    world.run(world.api().create(classes, "", {"metadata": {"name": "high"}, "value": 1000}))
    make(world, "high", "2", priorityClassName="high")
    world.run(world.loop.idle())
    terminating = get(world, "low")
    assert terminating.metadata.deletionTimestamp is not None
    reasons = {each.type: each.reason for each in terminating.status.conditions}
    assert reasons["DisruptionTarget"] == "PreemptionByScheduler"
    assert get(world, "high").status.nominatedNodeName == "a"
    world.run(world.advance(10))
    assert homes(world) == {"high": "a"}


def history(seed: int) -> list[str]:
    with World(seed=seed, journal=True, shuffle=True) as world:
        start(world, "a", "b", "c", start_delay=0.5, shutdown=1.0)
        for i in range(12):
            make(world, f"p{i}", "400m")
        world.run(world.settle())
        world.run(world.api().delete(PODS, "default", "p3"))
        world.run(world.settle())
        return world.journal


def test_the_same_seed_gives_the_same_history() -> None:
    first = history(4)
    assert len(first) > 50
    assert history(4) == first
