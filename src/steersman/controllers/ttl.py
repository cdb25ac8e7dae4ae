"""ttl-controller (a decision): tells kubelets by an annotation of their node how long to cache Secrets and ConfigMaps.

The larger the cluster, the longer. The sizes at which the time changes differ for growing and shrinking clusters, so that
it does not change back and forth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api.errors import NotFound
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Key
from steersman.intent.actions import Patch, PatchType
from steersman.intent.controller import Caches, Change, Controller, Watch, memory_of
from steersman.intent.verdict import Rest, Verdict

ANNOTATION = "node.alpha.kubernetes.io/ttl"
WORKERS = 5
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


class Boundary(msgspec.Struct, frozen=True):
    """A range of cluster sizes, in nodes, and the TTL of their nodes in seconds."""

    smallest: int
    largest: int | None
    """None: any number of nodes."""
    seconds: int


BOUNDARIES = (
    Boundary(0, 100, 0),
    Boundary(90, 500, 15),
    Boundary(450, 1000, 30),
    Boundary(900, 2000, 60),
    Boundary(1800, None, 300),
)


def next_step(step: int, nodes: int) -> int:
    """The index of the boundary for a number of nodes, next to or the same as the index of the last one."""
    boundary = BOUNDARIES[step]
    if boundary.largest is not None and nodes > boundary.largest:
        return step + 1
    return step - 1 if nodes < boundary.smallest else step


class ClusterSize:
    """The number of nodes, and the index of their boundary. As upstream, a restarted process counts from zero."""

    def __init__(self, nodes: int = 0, step: int = 0) -> None:
        self.nodes = nodes
        self.step = step

    @property
    def seconds(self) -> int:
        """The TTL of all nodes."""
        return BOUNDARIES[self.step].seconds

    def count(self, change: Change[Node]) -> bool:
        """Counts a node that was added or deleted; True where that changes the TTL."""
        before = self.step
        self.nodes += (change.old is None) - (change.new is None)
        self.step = next_step(before, self.nodes)
        return self.step != before


class Observation(msgspec.Struct, frozen=True):
    """A node and the TTL it should have, in seconds."""

    node: Node
    seconds: int


def observe(caches: Caches, key: Key) -> Observation | None:
    node = caches[NODES].get(key)
    return Observation(node, memory_of(caches, ClusterSize).seconds) if node is not None else None


def has_ttl(node: Node, seconds: int) -> bool:
    """Whether the annotation of a node has this value, as an integer."""
    value = node.metadata.annotations.get(ANNOTATION)
    return value is not None and _INTEGER.fullmatch(value) is not None and int(value) == seconds


async def decide(seen: Observation, now: datetime) -> Verdict:
    node, seconds = seen.node, seen.seconds
    if has_ttl(node, seconds):
        return Rest(f"TTL is {seconds} s")
    try:
        await Patch(node, {"metadata": {"annotations": {ANNOTATION: str(seconds)}}}, PatchType.STRATEGIC)
    except NotFound:
        return Rest("node is gone")
    return Rest(f"TTL set to {seconds} s")


def _changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """The node, where its TTL differs; every such node, where the TTL of all changes.

    differs: upstream waits for the next heartbeat of each node.
    """
    size = memory_of(caches, ClusterSize)
    moved = size.count(change)
    changed = (change.new,) if change.new is not None else ()
    nodes = caches[NODES].list() if moved else changed
    return [node.key for node in nodes if not has_ttl(node, size.seconds)]


controller = Controller(
    name="ttl-controller",
    aliases=("ttl",),
    watches=(Watch(NODES, to=_changed),),
    workers=WORKERS,
    observe=observe,
    decide=decide,
    memory=ClusterSize,
)
