"""node-ipam-controller: rows of upstream's tables, and that no two nodes ever hold overlapping CIDRs."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_network
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from steersman.api.errors import Conflict, NotFound, ServerError
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node, NodeSpec
from steersman.api.scheme import Key
from steersman.controllers.nodeipam import controller
from steersman.controllers.nodeipam.range_allocator import ALLOCATIONS, MAX, RELEASES, TRIES, USAGE
from steersman.intent.actions import Action, Emit, Patch, PatchType
from steersman.intent.controller import Change, Controller
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import InvalidSpec, Verdict
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import Answers, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NONE_LEFT = "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"


def configured(cluster: str, services: str = "", **flags: int) -> Controller[Any]:
    values: dict[str, Any] = {f"node-cidr-{name.replace('_', '-')}": size for name, size in flags.items()}
    values |= {"cluster-cidr": cluster, "service-cluster-ip-range": services, "allocate-node-cidrs": True}
    found = controller.configured(Settings(values))
    assert found is not None
    return found


def node(name: str = "node0", *cidrs: str, uid: str = "", terminating: bool = False) -> Node:
    meta = ObjectMeta(name=name, uid=uid or name, deletionTimestamp=NOW if terminating else None)
    return Node(metadata=meta, spec=NodeSpec(podCIDR=cidrs[0] if cidrs else "", podCIDRs=cidrs))


class Rounds:
    """The controller's rounds on caches that are changed by hand; what is written shows up in them at once."""

    def __init__(self, of: Controller[Any], *nodes: Node) -> None:
        self.of = of
        self.actions: list[Action[Any]] = []
        self.measures: list[Measure] = []
        self.answers: Answers | None = None
        self.waiting: dict[Key, None] = {}
        """The keys of rounds that have failed."""
        self.verdicts: dict[Key, Verdict] = {}
        self.caches = StaticCaches(of)
        self.put(*nodes)

    def put(self, *nodes: Node) -> None:
        """Shows nodes, all of them before the first round."""
        keys: dict[Key, None] = {}
        for new in nodes:
            old = self.caches[self.kind].get(new.key)
            self.caches.put(new)
            keys |= dict.fromkeys(self._changed(Change(old, new)))
        for key in keys:
            self.round(key)

    def remove(self, name: str) -> None:
        gone = self[name]
        self.caches.remove(gone)
        for key in self._changed(Change(gone, None)):
            self.round(key)

    def round(self, key: Key) -> None:
        seen = self.of.see(self.caches, key)
        self.waiting.pop(key, None)
        if seen is None:
            return
        made: list[Action[Any]] = []
        try:
            _, self.verdicts[key] = walk(self.of.decide(seen, NOW), self.answers, recorded=made)
        except (InvalidSpec, ServerError, Conflict):
            self.waiting[key] = None
            raise
        finally:
            self.actions += [each for each in made if not isinstance(each, Measure)]
            self.measures += [each for each in made if isinstance(each, Measure)]
        for each in made:
            if isinstance(each, Patch):
                body: Any = each.body
                self.put(node(key.name, *body["spec"]["podCIDRs"], uid=body["metadata"]["uid"]))

    def __getitem__(self, name: str) -> Node:
        found = self.caches[self.kind].get(Key("", name))
        assert isinstance(found, Node)
        return found

    @property
    def kind(self) -> Any:
        return self.of.watches[0].kind

    def cidrs(self, name: str = "node0") -> tuple[str, ...]:
        return self[name].spec.podCIDRs

    def _changed(self, change: Change[Node]) -> list[Key]:
        keys = [key for watch in self.of.watches for key in watch.to(self.caches, change)]
        for watch in self.of.watches:
            if watch.measures is not None:
                self.measures += watch.measures(self.caches, change)
        return keys


# -- nodes that have CIDRs ------------------------------------------------------------------------

BOTH = "10.10.0.0/16,ace:cab:deca::/8"


@pytest.mark.parametrize(
    ("clusters", "cidrs", "problem"),
    [
        ("10.10.0.0/16", ("10.10.0.1/24",), ""),
        (BOTH, ("10.10.0.1/24", "a00::/86"), ""),
        (
            "10.10.0.0/16",
            ("172.10.0.1/24",),
            "failed to mark cidr[172.10.0.0/24] at idx [0] as occupied for node: node0: "
            "cidr 172.10.0.0/24 is out the range of cluster cidr 10.10.0.0/16",
        ),
        (
            "10.10.0.0/16",
            ("10.10.0.1/24", "a00::/86"),
            "node:node0 has an allocated cidr: a00::/86 at index:1 that does not exist in cluster cidrs configuration",
        ),
        (BOTH, ("172.10.0.1/24", "a00::/86"), "failed to mark cidr[172.10.0.0/24] at idx [0] as occupied"),
        (BOTH, ("10.10.0.1/24", "cdd::/86"), "failed to mark cidr[cdd::/86] at idx [1] as occupied"),
        ("10.10.0.0/16", ("nonsense",), "failed to parse node node0, CIDR nonsense"),
    ],
)
def test_the_cidrs_of_existing_nodes_are_occupied(
    clusters: str, cidrs: tuple[str, ...], problem: str
) -> None:
    of = configured(clusters, mask_size_ipv4=24, mask_size_ipv6=24)
    if not problem:
        assert Rounds(of, node("node0", *cidrs)).actions == []
        return
    rounds = Rounds(of)
    with pytest.raises(InvalidSpec) as found:
        rounds.put(node("node0", *cidrs))
    assert str(found.value).startswith(problem)
    rounds.put(node("another"))
    assert rounds.cidrs("another"), "no other node is held up"
    if cidrs[0].startswith("10.10.0."):
        assert rounds.cidrs("another")[0] == "10.10.1.0/24", "what could be occupied is"


# -- nodes that have none -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "services", "sizes", "others", "cidrs"),
    [
        ("127.123.234.0/24", "", {"mask_size": 30}, (), ("127.123.234.0/30",)),
        ("127.123.234.0/24", "127.123.234.0/26", {"mask_size": 30}, (), ("127.123.234.64/30",)),
        (
            "127.123.234.0/24",
            "127.123.234.0/26",
            {"mask_size": 30},
            ("127.123.234.64/30", "127.123.234.68/30", "127.123.234.72/30", "127.123.234.80/30"),
            ("127.123.234.76/30",),
        ),
        (
            "127.123.234.0/8,ace:cab:deca::/84",
            "127.123.234.0/26",
            {"mask_size_ipv4": 24, "mask_size_ipv6": 98},
            (),
            ("127.0.0.0/24", "ace:cab:deca::/98"),
        ),
        (
            "ace:cab:deca::/84,127.123.234.0/8",
            "127.123.234.0/26",
            {"mask_size_ipv4": 24, "mask_size_ipv6": 98},
            (),
            ("ace:cab:deca::/98", "127.0.0.0/24"),
        ),
        ("10.10.0.0/22", "", {}, ("10.10.0.0/24", "10.10.2.0/24"), ("10.10.1.0/24",)),
        ("fd00::/48", "fd00::/64", {}, (), ("fd00:0:0:1::/64",)),
        ("10.0.0.0/16", "10.0.0.0/24,fd00::/112", {}, (), ("10.0.1.0/24",)),
    ],
    ids=[
        "the first",
        "behind the Services",
        "the first that is free",
        "both families",
        "both families, IPv6 first",
        "between two nodes",
        "IPv6",
        "Services of both families",
    ],
)
def test_a_node_gets_the_first_free_cidr(
    cluster: str, services: str, sizes: dict[str, int], others: tuple[str, ...], cidrs: tuple[str, ...]
) -> None:
    occupied = [node(f"other{number}", cidr) for number, cidr in enumerate(others)]
    rounds = Rounds(configured(cluster, services, **sizes), *occupied, node())
    assert rounds.cidrs() == cidrs
    (patch,) = rounds.actions
    assert patch == Patch(
        node(),
        {"metadata": {"uid": "node0"}, "spec": {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)}},
        PatchType.STRATEGIC,
    )


FULL = ("127.123.234.0/30", "127.123.234.4/30", "127.123.234.8/30", "127.123.234.12/30")


def full() -> Rounds:
    nodes = [node(f"full{number}", cidr) for number, cidr in enumerate(FULL)]
    return Rounds(configured("127.123.234.0/28", mask_size=30), *nodes)


def test_a_node_for_which_there_is_no_cidr_is_told_so_and_waits() -> None:
    rounds = full()
    with pytest.raises(InvalidSpec, match="at idx:0") as found:
        rounds.put(node())
    assert str(found.value) == f"failed to allocate cidr from cluster cidr at idx:0: {NONE_LEFT}"
    message = "Node node0 status is now: CIDRNotAvailable"
    assert rounds.actions == [Emit(node(), "Normal", "CIDRNotAvailable", message)]
    rounds.remove("full1")
    assert rounds.cidrs() == ("127.123.234.4/30",), "it gets the first that is released"


def test_a_cidr_of_one_family_is_not_used_up_where_the_other_has_none_left() -> None:
    of = configured("10.0.0.0/16,fd00::/64")
    rounds = Rounds(of, node("first"))
    with pytest.raises(InvalidSpec, match="at idx:1"):
        rounds.put(node("second"))
    rounds.remove("first")
    assert rounds.cidrs("second") == ("10.0.1.0/24", "fd00::/64")


def test_a_released_cidr_is_used_again_as_late_as_possible() -> None:
    rounds = Rounds(configured("127.123.234.0/28", mask_size=30), node("a"), node("b"))
    rounds.remove("a")
    rounds.put(node("c"), node("d"), node("e"))
    assert [rounds.cidrs(name) for name in "bcde"] == [(FULL[1],), (FULL[2],), (FULL[3],), (FULL[0],)]


@pytest.mark.parametrize("terminating", [False, True])
def test_a_node_keeps_its_cidr_until_it_is_gone(terminating: bool) -> None:
    rounds = full()
    rounds.put(replace(node("full0", FULL[0], terminating=terminating)))
    with pytest.raises(InvalidSpec):
        rounds.put(node())
    rounds.remove("full0")
    assert rounds.cidrs() == (FULL[0],)


def test_a_terminating_node_gets_no_cidr() -> None:
    rounds = Rounds(configured("10.0.0.0/16"), node("going", terminating=True))
    assert rounds.actions == []


def test_what_two_nodes_and_services_hold_is_free_when_the_last_is_gone() -> None:
    of = configured("10.0.0.0/22", "10.0.0.0/24")
    rounds = Rounds(of, node("a", "10.0.0.0/23"), node("b", "10.0.1.0/24"))
    rounds.remove("a")
    rounds.put(node("c"), node("d"))
    assert (rounds.cidrs("c"), rounds.cidrs("d")) == (("10.0.2.0/24",), ("10.0.3.0/24",))
    with pytest.raises(InvalidSpec):
        rounds.put(node("e"))
    rounds.remove("b")
    assert rounds.cidrs("e") == ("10.0.1.0/24",)


# -- failures -------------------------------------------------------------------------------------


def test_a_failed_write_is_tried_three_times_told_and_tried_again_with_the_same_cidr() -> None:
    rounds = Rounds(configured("10.0.0.0/16"))
    rounds.answers = {Patch: ServerError("busy")}
    with pytest.raises(ServerError):
        rounds.put(node())
    message = "Node node0 status is now: CIDRAssignmentFailed"
    assert [type(each) for each in rounds.actions] == [Patch, Patch, Patch, Emit]
    assert rounds.actions[-1] == Emit(node(), "Normal", "CIDRAssignmentFailed", message)
    rounds.answers = None
    rounds.put(node("another"))
    rounds.round(Key("", "node0"))
    assert (rounds.cidrs(), rounds.cidrs("another")) == (("10.0.0.0/24",), ("10.0.1.0/24",))


def test_a_write_that_fails_once_is_not_told() -> None:
    rounds = Rounds(configured("10.0.0.0/16"))
    rounds.answers = {Patch: [ServerError("busy")]}
    rounds.put(node())
    assert [type(each) for each in rounds.actions] == [Patch, Patch]


def test_a_node_created_again_under_its_name_gets_a_cidr_of_its_own() -> None:
    rounds = Rounds(configured("10.0.0.0/16"))
    rounds.answers = {Patch: Conflict("another uid")}
    with pytest.raises(Conflict):
        rounds.put(node())
    assert [type(each) for each in rounds.actions] == [Patch]
    rounds.answers = None
    rounds.put(node(uid="second"))
    assert rounds.cidrs() == ("10.0.1.0/24",)
    rounds.put(node("another"))
    assert rounds.cidrs("another") == ("10.0.2.0/24",)


def test_a_node_that_is_gone_needs_no_cidr() -> None:
    rounds = Rounds(configured("10.0.0.0/16"))
    rounds.answers = {Patch: NotFound("gone")}
    rounds.put(node())
    assert [type(each) for each in rounds.actions] == [Patch] * 1


def test_cidrs_that_another_writer_has_set_replace_the_reserved_ones() -> None:
    rounds = Rounds(configured("127.123.234.0/28", mask_size=30))
    rounds.answers = {Patch: ServerError("busy")}
    with pytest.raises(ServerError):
        rounds.put(node())
    rounds.answers = None
    rounds.put(node("node0", FULL[2]))
    rounds.put(node("a"), node("b"), node("c"))
    assert {rounds.cidrs(name)[0] for name in ("node0", "a", "b", "c")} == set(FULL)


# -- metrics --------------------------------------------------------------------------------------


def test_metrics_count_what_is_allocated_and_released() -> None:
    rounds = Rounds(configured("10.0.0.0/16", "10.0.0.0/17"))
    label = ("10.0.0.0/16",)
    rounds.put(node())
    assert rounds.measures == [
        Measure(MAX, 256.0, label),
        Measure(ALLOCATIONS, 128.0, label),
        Measure(USAGE, 0.5, label),
        Measure(TRIES, 128.0, label),
        Measure(ALLOCATIONS, 1.0, label),
        Measure(USAGE, 129 / 256, label),
    ]
    rounds.measures.clear()
    rounds.remove("node0")
    assert rounds.measures == [Measure(RELEASES, 1.0, label), Measure(USAGE, 0.5, label)]


# -- no overlaps, whatever happens ----------------------------------------------------------------

STEPS = some.lists(
    some.tuples(
        some.sampled_from(["create", "lose", "show", "delete", "recreate", "crash"]), some.integers(0, 4)
    ),
    max_size=40,
)
SERVICES = "10.0.0.0/32"


class Server:
    """What the server has: the nodes that the caches show, and writes that they do not show yet."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.unseen: dict[str, Node] = {}

    def nodes(self) -> dict[str, Node]:
        return {
            each.metadata.name: each for each in self.rounds.caches[self.rounds.kind].list()
        } | self.unseen

    def create(self, new: Node, *, answered: bool) -> None:
        self.rounds.answers = None if answered else {Patch: ServerError("no answer")}
        before = len(self.rounds.actions)
        try:
            self.rounds.put(new)
        finally:
            self.rounds.answers = None
            made = [each for each in self.rounds.actions[before:] if isinstance(each, Patch)]
            if made and not answered:
                body: Any = made[-1].body
                name = new.metadata.name
                self.unseen[name] = node(name, *body["spec"]["podCIDRs"], uid=new.metadata.uid)

    def show(self) -> None:
        unseen, self.unseen = self.unseen, {}
        self.rounds.put(*unseen.values())

    def delete(self, name: str) -> None:
        self.unseen.pop(name, None)
        self.rounds.remove(name)

    def crash(self) -> None:
        found, self.unseen = self.nodes(), {}
        self.rounds = Rounds(self.rounds.of)
        self.rounds.put(*found.values())


@given(STEPS)
def test_no_two_nodes_hold_overlapping_cidrs_at_any_crash_point(steps: list[tuple[str, int]]) -> None:
    """``lose``: the write arrives, and neither its answer nor, until ``show``, the change; ``crash``: another process goes
    on with what the server has."""
    server = Server(Rounds(configured("10.0.0.0/30", SERVICES, mask_size=32)))
    for serial, (step, number) in enumerate(steps):
        name = f"node{number}"
        present = name in server.nodes()
        try:
            match step:
                case "create" | "lose" if not present:
                    server.create(node(name, uid=f"uid{serial}"), answered=step == "create")
                case "delete" if present:
                    server.delete(name)
                case "recreate" if present:
                    server.unseen.pop(name, None)
                    server.create(node(name, uid=f"uid{serial}"), answered=True)
                case "show":
                    server.show()
                case "crash":
                    server.crash()
        except (InvalidSpec, ServerError):
            pass
        cidrs = [ip_network(cidr) for each in server.nodes().values() for cidr in each.spec.podCIDRs]
        assert not any(one.overlaps(other) for one, other in combinations(cidrs, 2))
        assert not any(one.overlaps(ip_network(SERVICES)) for one in cidrs)


# -- clusters -------------------------------------------------------------------------------------


def held(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    return {each.metadata.name: each.spec.podCIDRs for each in cluster.list("nodes")}


def made(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def test_in_a_cluster_nodes_have_cidrs_and_new_ones_get_theirs() -> None:
    with Cluster(seed=1, nodes=2) as cluster:
        cluster.create(made("more"))
        cluster.settle()
        assert held(cluster) == {
            "more": ("10.128.4.0/23",),
            "node-1": ("10.128.0.0/23",),
            "node-2": ("10.128.2.0/23",),
        }


def test_in_a_cluster_a_restarted_manager_knows_the_cidrs_of_all_nodes() -> None:
    flags = {"cluster-cidr": "10.128.0.0/22,fd00:0:0:8::/62", "node-cidr-mask-size-ipv4": 24}
    with Cluster(seed=2, nodes=2, flags=flags) as cluster:
        before = held(cluster)
        cluster.restart_manager()
        cluster.create(made("third"))
        cluster.create(made("fourth"))
        cluster.create(made("fifth"))
        cluster.advance(seconds=5)
        after = held(cluster)
        assert before.items() <= after.items()
        assert [len(set(each)) for each in zip(*filter(None, after.values()), strict=True)] == [4, 4]
        (waits,) = [name for name, cidrs in after.items() if not cidrs]
        told = [each for each in cluster.list("events", "default") if each.reason == "CIDRNotAvailable"]
        assert [(each.involvedObject.name, each.source.component) for each in told] == [
            (waits, "cidrAllocator")
        ]
        cluster.delete("Node", "node-1")
        cluster.advance(seconds=1)
        assert held(cluster)[waits] == before["node-1"]


def test_in_a_cluster_without_the_flag_no_node_gets_a_cidr() -> None:
    with Cluster(seed=3, nodes=1, flags={"allocate-node-cidrs": False}) as cluster:
        assert held(cluster) == {"node-1": ()}
