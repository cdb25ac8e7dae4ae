"""Nodes that fail under virtual time. The outcomes are the table of docs/guides/nodes.md, row by row."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.controllers.nodelifecycle import controller
from steersman.runtime.controller_group import ControllerGroup
from steersman.sim.kubelet import Kubelets, Shape
from steersman.sim.world import World
from steersman.testing.cluster import Cluster
from tests.harness.away import Away

NODES: Kind[Any] = load("", "v1", "Node")
DOCS = Path(__file__).parents[3] / "docs" / "guides" / "nodes.md"
DAY = 86_400.0


class WrongClock:
    """A wall clock that can be set, beside a monotonic one that cannot."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.random: random.Random = world.random
        self.offset = timedelta()

    def now(self) -> datetime:
        return self._world.now() + self.offset

    def monotonic(self) -> float:
        return self._world.monotonic()


@dataclass
class Plane:
    """Nodes, the controller alone, and what it has done, in seconds since the nodes have been there for a while."""

    nodes: int = 3
    zones: tuple[str, ...] = ()
    world: World = field(default_factory=lambda: World(seed=5))
    unknown: dict[str, float] = field(default_factory=dict)
    tainted: dict[tuple[float, str], None] = field(default_factory=dict)
    apis: tuple[Away, Away] | None = None
    """The servers of the kubelets and of the manager, where they can go away."""

    def __post_init__(self) -> None:
        self.names = [f"node-{n}" for n in range(1, self.nodes + 1)]
        self.clock = WrongClock(self.world)
        kubelet, manager = self.apis or (self.world.api("kubelets"), self.world.api("manager"))
        self.kubelets = Kubelets(kubelet, self.world, self.names, shape=Shape(zones=self.zones))
        self.world.spawn(self.kubelets.run(), name="kubelets")
        self.group = ControllerGroup((controller,), manager, self.clock)
        self.world.spawn(self.group.run(), name="manager")
        self.world.run(self.world.advance(100.0))
        self._begun = self.world.now()

    @property
    def elapsed(self) -> float:
        return self._seconds(self.world.now())

    def _seconds(self, at: datetime) -> float:
        return (at - self._begun).total_seconds()

    def found(self) -> list[Any]:
        return list(self.world.run(self.world.api().list(NODES)).items)

    def fail(self, *names: str) -> None:
        for name in names:
            self.kubelets.fail(name)

    def recover(self, *names: str) -> None:
        for name in names:
            self.kubelets.recover(name)

    def advance(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass, and look at the nodes after each step."""
        for _ in range(round(seconds / step)):
            self.world.run(self.world.advance(step))
            for each in self.found():
                name = each.metadata.name
                for one in each.status.conditions:
                    if one.type == "Ready" and one.status == "Unknown":
                        self.unknown.setdefault(name, self._seconds(one.lastTransitionTime))
                for taint in each.spec.taints:
                    if taint.effect == "NoExecute":
                        self.tainted[self._seconds(taint.timeAdded), name] = None

    def clean(self) -> bool:
        """Whether all nodes are ready and none has a taint."""
        return all(
            not each.spec.taints
            and any(one.type == "Ready" and one.status == "True" for one in each.status.conditions)
            for each in self.found()
        )


def one_dies() -> Plane:
    plane = Plane()
    plane.fail("node-1")
    plane.advance(120)
    plane.recover("node-1")
    plane.advance(1)
    return plane


def zone_dies() -> Plane:
    plane = Plane(6, ("a", "b"))
    lost = plane.names[::2]
    plane.fail(*lost)
    plane.advance(120)
    plane.recover(*lost)
    plane.advance(1)
    return plane


def part_of_zone_dies(nodes: int) -> Callable[[], Plane]:
    def story() -> Plane:
        plane = Plane(nodes)
        lost = plane.names[: -(-nodes * 55 // 100)]
        plane.fail(*lost)
        plane.advance(300)
        plane.recover(*lost)
        plane.advance(1)
        return plane

    return story


def all_die() -> Plane:
    plane = Plane()
    plane.fail(*plane.names)
    plane.advance(600)
    plane.recover(*plane.names)
    plane.advance(120)
    return plane


def server_away(*, from_kubelets: bool) -> Callable[[], Plane]:
    def story() -> Plane:
        world = World(seed=5)
        kubelet, manager = Away(world.api("kubelets")), Away(world.api("manager"))
        plane = Plane(world=world, apis=(kubelet, manager))
        gone = (kubelet, manager) if from_kubelets else (manager,)
        for each in gone:
            each.leave()
        plane.advance(600)
        for each in gone:
            each.come_back()
        plane.advance(300)
        return plane

    return story


def clock_jumps() -> Plane:
    plane = Plane()
    for hours in (1, -1, 24, 0):
        plane.clock.offset = timedelta(hours=hours)
        plane.advance(120)
    return plane


def flaps(seconds: float, day: float = DAY) -> Callable[[], Plane]:
    def story() -> Plane:
        plane = Plane()
        while plane.elapsed < day:
            plane.fail("node-1")
            plane.advance(seconds, seconds)
            plane.recover("node-1")
            plane.advance(seconds, seconds)
        return plane

    return story


ROWS: list[tuple[str, Callable[[], Plane]]] = [
    ("One of 3 nodes dies for 2 minutes", one_dies),
    ("One of two zones dies, 3 nodes of 6", zone_dies),
    ("55% of a zone of 20 nodes die", part_of_zone_dies(20)),
    ("55% of a zone of 60 nodes die", part_of_zone_dies(60)),
    ("All 3 nodes die at once and return after 10 minutes", all_die),
    ("The API server is away for 10 minutes", server_away(from_kubelets=True)),
    ("The API server is away for 10 minutes, for the manager alone", server_away(from_kubelets=False)),
    ("The manager's clock jumps by an hour and back, and by a day", clock_jumps),
    ("A kubelet stops for 30 s every minute, for a day", flaps(30.0)),
    ("A kubelet stops for 90 s every 3 minutes, for an hour", flaps(90.0, 3600.0)),
]


def row(title: str, plane: Plane) -> str:
    """A row of the table: how many nodes became Unknown and were tainted, and when."""
    unknown = f"{len(plane.unknown)} after {min(plane.unknown.values()):.0f} s" if plane.unknown else "none"
    return f"| {title} | {unknown} | {_times([at for at, _ in plane.tainted])} |"


def _times(found: Iterable[float]) -> str:
    times = [f"{at:.0f}" for at in found]
    if not times:
        return "none"
    shown = ", ".join(times[:4])
    return f"{len(times)}, after {shown} s" if len(times) <= 4 else f"{len(times)}, after {shown} … s"


@pytest.mark.parametrize(("title", "story"), ROWS, ids=[title for title, _ in ROWS])
def test_what_happens_is_what_the_table_says(title: str, story: Callable[[], Plane]) -> None:
    plane = story()
    try:
        assert row(title, plane) in DOCS.read_text().splitlines()
        assert plane.clean(), "all nodes are back, and ready"
    finally:
        plane.world.close()


def test_the_table_has_no_other_rows() -> None:
    lines = DOCS.read_text().splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("| What happens"))
    titles = [line.split(" | ")[0].removeprefix("| ") for line in lines[begin + 2 :] if line.startswith("| ")]
    assert titles[: len(ROWS)] == [title for title, _ in ROWS]


def test_a_test_that_waits_for_a_silent_node_is_told_in_time() -> None:
    with Cluster(seed=1) as cluster:
        cluster.node("node-2").fail()
        begun = cluster.now

        def is_unknown() -> bool:
            conditions = cluster.get("Node", "node-2").status.conditions
            return any(each.type == "Ready" and each.status == "Unknown" for each in conditions)

        cluster.wait_until(is_unknown)
        assert 40 <= (cluster.now - begun).total_seconds() <= 55


def test_nodes_of_a_test_cluster_begin_without_taints_and_with_the_plugin_that_adds_them() -> None:
    with Cluster(seed=1) as cluster:
        assert all(not each.spec.taints for each in cluster.list("nodes"))
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new"}})
        assert [taint.key for taint in cluster.get("Node", "new").spec.taints] == [
            "node.kubernetes.io/not-ready"
        ]
