"""ttl-controller: rows, and a cluster that grows and shrinks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steersman.api.errors import NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node
from steersman.api.scheme import Key
from steersman.controllers.ttl import (
    ANNOTATION,
    BOUNDARIES,
    ClusterSize,
    Observation,
    controller,
    decide,
    next_step,
)
from steersman.intent.actions import Patch, PatchType
from steersman.intent.controller import Change, memory_of
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def node(name: str = "name", **annotations: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, annotations=annotations))


def with_ttl(value: str, **annotations: str) -> Node:
    return node(**{ANNOTATION: value, **annotations})


@pytest.mark.parametrize(
    ("found", "seconds", "written"),
    [
        (node(), 0, "0"),
        (node(), 15, "15"),
        (node(), 30, "30"),
        (with_ttl("0"), 10, "10"),
        (with_ttl("0", a="b"), 10, "10"),
        (with_ttl("10", a="b"), 10, None),
        (with_ttl("0"), 60, "60"),
        (with_ttl("60"), 60, None),
        (with_ttl("60"), 30, "30"),
        (with_ttl("+60"), 60, None),
        (with_ttl("060"), 60, None),
        (with_ttl(" 60"), 60, "60"),
        (with_ttl("6_0"), 60, "60"),
        (with_ttl("a minute"), 60, "60"),
        (with_ttl("9" * 5000), 60, "60"),
    ],
)
def test_a_node_gets_the_ttl_that_it_lacks(found: Node, seconds: int, written: str | None) -> None:
    actions, _ = walk(decide(Observation(found, seconds), NOW))
    body = {"metadata": {"annotations": {ANNOTATION: written}}}
    assert actions == ([] if written is None else [Patch(found, body, PatchType.STRATEGIC)])


def test_a_node_that_is_gone_needs_nothing() -> None:
    _, verdict = walk(decide(Observation(node(), 15), NOW), {Patch: NotFound("gone")})
    assert verdict.because == "node is gone"


@pytest.mark.parametrize(
    ("nodes", "added", "step", "seconds"),
    [
        (0, True, 0, 0),
        (99, True, 0, 0),
        (100, True, 0, 15),
        (101, False, 1, 15),
        (91, False, 1, 15),
        (91, True, 1, 15),
        (90, False, 1, 0),
        (1800, False, 4, 60),
        (10000, False, 4, 300),
        (500, True, 1, 30),
        (1000, True, 2, 60),
        (2000, True, 3, 300),
        (450, False, 2, 15),
        (900, False, 3, 30),
    ],
)
def test_the_ttl_follows_the_number_of_nodes(nodes: int, added: bool, step: int, seconds: int) -> None:
    size = ClusterSize(nodes, step)
    size.count(Change(None, node()) if added else Change(node(), None))
    assert size.seconds == seconds


def test_each_size_has_a_boundary_whichever_way_it_is_reached() -> None:
    up = down = 0
    for nodes in range(3000):
        up = next_step(up, nodes)
        assert BOUNDARIES[up].smallest <= nodes
    assert up == len(BOUNDARIES) - 1
    down = up
    for nodes in reversed(range(3000)):
        down = next_step(down, nodes)
        largest = BOUNDARIES[down].largest
        assert largest is None or nodes <= largest
    assert down == 0


def test_all_nodes_are_looked_at_when_the_ttl_changes() -> None:
    caches = StaticCaches(controller)
    (watch,) = controller.watches
    for number in range(100):
        one = node(f"n{number}", **{ANNOTATION: "0"})
        caches.put(one)
        assert watch.to(caches, Change(None, one)) == []
    last = node("last")
    caches.put(last)
    assert len(list(watch.to(caches, Change(None, last)))) == 101
    assert memory_of(caches, ClusterSize).seconds == 15
    beat = node("n5", **{ANNOTATION: "15"})
    assert watch.to(caches, Change(beat, beat)) == []
    assert memory_of(caches, ClusterSize).nodes == 101
    assert watch.to(caches, Change(beat, node("n5"))) == [Key("", "n5")]


def ttls(cluster: Cluster) -> set[str | None]:
    return {each.metadata.annotations.get(ANNOTATION) for each in cluster.list("nodes")}


def made(number: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"more-{number}"}}


def test_in_a_cluster_the_ttl_grows_with_it_and_shrinks_later() -> None:
    with Cluster(seed=5, nodes=1, controllers=["ttl-controller"]) as cluster:
        assert ttls(cluster) == {"0"}
        for number in range(99):
            cluster.create(made(number))
        cluster.settle()
        assert ttls(cluster) == {"0"}
        cluster.create(made(99))
        cluster.settle()
        assert ttls(cluster) == {"15"}
        for number in range(11):
            cluster.delete("Node", f"more-{number}")
        cluster.settle()
        assert ttls(cluster) == {"15"}, "90 nodes are not less than 90"
        cluster.delete("Node", "more-11")
        cluster.settle()
        assert ttls(cluster) == {"0"}


def test_in_a_cluster_an_annotation_that_is_changed_is_put_right() -> None:
    with Cluster(seed=6, nodes=2, controllers=["ttl-controller"]) as cluster:
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {ANNOTATION: "soon"}}})
        cluster.settle()
        assert ttls(cluster) == {"0"}
