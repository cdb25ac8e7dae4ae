"""Zones: the rows of upstream's TestMonitorNodeHealth and TestSwapLimiter, and the rates of taints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steersman.api.errors import Forbidden, NotFound, ServerError
from steersman.api.kinds.nodes import Node
from steersman.controllers.nodelifecycle.metrics import EVICTIONS, UNHEALTHY_NODES, ZONE_HEALTH, ZONE_SIZE
from steersman.controllers.nodelifecycle.zones import (
    Count,
    RateLimiter,
    Rates,
    Zones,
    ZoneState,
    count_zones,
    is_excluded,
    tainting_rate,
    waiting_nodes,
    zone_name,
    zone_of,
    zone_state,
)
from steersman.intent.actions import Action, Patch
from steersman.intent.metrics import Measure
from steersman.intent.verdict import Rest, Wake
from steersman.testing.decision_driver import USUAL
from tests.harness.node_rounds import FAST, LONG_AGO, NOW, Rounds, keys_of, node

NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL_DISRUPTION, ZoneState.FULL_DISRUPTION
RATES = Rates(normal=0.1, reduced=0.01, large_zone=50, unhealthy_threshold=0.55)
EXCLUDE = {"node.kubernetes.io/exclude-disruption": ""}
ONE, TWO = "region1:\0:zone1", "region1:\0:zone2"


def recent(name: str, ready: str | None, zone: str = "", **fields: Any) -> Node:
    return node(name, ready, created=NOW, zone=zone, **fields)


@pytest.mark.parametrize(
    ("nodes", "statuses", "before", "after"),
    [
        pytest.param(
            [recent("node0", "True")], ["True"], {"": NORMAL}, {"": NORMAL}, id="no zones, all well"
        ),
        pytest.param(
            [recent("node0", "Unknown", "zone1"), recent("node1", "Unknown", "zone2")],
            ["Unknown", "True"],
            {ONE: FULL, TWO: FULL},
            {ONE: FULL, TWO: NORMAL},
            id="both zones down, one comes back",
        ),
        pytest.param(
            [recent(f"node{n}", None, "zone1") for n in range(4)],
            ["Unknown", "Unknown", "Unknown", "True"],
            {ONE: FULL},
            {ONE: PARTIAL},
            id="new nodes without a status",
        ),
        pytest.param(
            [recent(f"node{n}", "Unknown" if n < 2 else "True", "zone1") for n in range(5)],
            ["Unknown", "Unknown", "Unknown", "True", "True"],
            {ONE: NORMAL},
            {ONE: PARTIAL},
            id="one more fails, and the threshold is reached",
        ),
        pytest.param(
            [recent(f"node{n}", "Unknown" if n < 2 else "True", "zone1") for n in range(3)],
            ["Unknown", "Unknown", "Unknown"],
            {ONE: NORMAL},
            {ONE: FULL},
            id="the last ready node fails",
        ),
        pytest.param(
            [recent("node0", "Unknown", "zone1"), recent("node1", "True", "zone2")],
            ["Unknown", "True"],
            {ONE: FULL, TWO: NORMAL},
            {ONE: FULL, TWO: NORMAL},
            id="one of two zones down",
        ),
        pytest.param(
            [recent("node0", "Unknown", "zone1"), recent("node1", "Unknown", "zone2", region="region2")],
            ["Unknown", "Unknown"],
            {ONE: FULL, "region2:\0:zone2": FULL},
            {ONE: FULL, "region2:\0:zone2": FULL},
            id="both zones down",
        ),
        pytest.param(
            [recent("node0", "True", "zone1")], [None], {ONE: NORMAL}, {ONE: FULL}, id="condition removed"
        ),
        pytest.param(
            [recent("node0", "Unknown", "zone1"), recent("node-master", "True", "zone1", labels=EXCLUDE)],
            ["Unknown", "True"],
            {ONE: FULL},
            {ONE: FULL},
            id="the only ready node is excluded",
        ),
    ],
)
def test_the_states_of_zones_follow_their_nodes(
    nodes: list[Node],
    statuses: list[str | None],
    before: dict[str, ZoneState],
    after: dict[str, ZoneState],
) -> None:
    rounds = Rounds(*nodes, **FAST)
    rounds.monitor()
    assert rounds.memory.zones.states == before
    rounds.later(3600)
    for each, status in zip(nodes, statuses, strict=True):
        rounds.status(each.metadata.name, status)
    rounds.monitor()
    assert rounds.memory.zones.states == after


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (1, 0, NORMAL),
        (0, 1, FULL),
        (0, 3, FULL),
        (1, 2, NORMAL),
        (1, 3, PARTIAL),
        (2, 3, PARTIAL),
        (3, 3, NORMAL),
        (9, 11, PARTIAL),
        (10, 11, NORMAL),
        (45, 55, PARTIAL),
        (46, 54, NORMAL),
        (0, 0, NORMAL),
    ],
)
def test_a_zone_is_disrupted_from_a_share_of_its_nodes(ready: int, not_ready: int, state: ZoneState) -> None:
    assert zone_state(Count(ready, not_ready), 0.55) is state


@pytest.mark.parametrize(
    ("labels", "zone", "name"),
    [
        ({}, "", "the only zone"),
        ({"topology.kubernetes.io/zone": "a"}, ":\0:a", "zone a"),
        ({"topology.kubernetes.io/region": "r"}, "r:\0:", "zone r"),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "a"}, "r:\0:a", "zone r/a"),
        (
            {"failure-domain.beta.kubernetes.io/zone": "old", "topology.kubernetes.io/zone": "new"},
            ":\0:old",
            "zone old",
        ),
        (
            {"failure-domain.beta.kubernetes.io/region": "", "topology.kubernetes.io/region": "r"},
            "",
            "the only zone",
        ),
    ],
)
def test_the_zone_of_a_node_is_its_region_and_zone(labels: dict[str, str], zone: str, name: str) -> None:
    found = node(labels=labels)
    assert zone_of(found) == zone
    assert zone_name(zone) == name


@pytest.mark.parametrize(
    ("labels", "excluded"), [({}, False), (EXCLUDE, True), ({**EXCLUDE, "a": "b"}, True), ({"a": "b"}, False)]
)
def test_a_label_excludes_a_node_from_the_count(labels: dict[str, str], excluded: bool) -> None:
    found = node(labels=labels)
    assert is_excluded(found) is excluded
    assert count_zones([found]) == ({} if excluded else {"": Count(1, 0)})


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        (NORMAL, 1, 0.1),
        (NORMAL, 1000, 0.1),
        (FULL, 1, 0.1),
        (FULL, 1000, 0.1),
        (PARTIAL, 50, 0.0),
        (PARTIAL, 51, 0.01),
    ],
)
def test_the_rate_of_a_zone(state: ZoneState, size: int, rate: float) -> None:
    assert tainting_rate(state, size, RATES) == rate


# -- the limiter of a zone ------------------------------------------------------------------------


def test_the_first_node_is_tainted_at_once_and_the_next_when_the_rate_allows_it() -> None:
    limiter = RateLimiter(0.1)
    assert limiter.wait(0.0) == 0.0
    limiter.take(0.0)
    assert limiter.wait(0.0) == pytest.approx(10.0)
    assert limiter.wait(4.0) == pytest.approx(6.0)
    assert limiter.wait(10.0) == pytest.approx(0.0)
    assert limiter.wait(1000.0) == 0.0, "no more than one is saved up"
    limiter.take(1000.0)
    assert limiter.wait(1000.0) == pytest.approx(10.0)


@pytest.mark.parametrize("began", [0.0, 0.1, 1 / 3, 1e6 + 0.7, 12345.678901234])
def test_a_wait_that_is_over_is_over_whatever_the_clock_rounds_to(began: float) -> None:
    limiter = RateLimiter(0.3)
    at = began
    for _ in range(50):
        assert limiter.wait(at) == 0.0
        limiter.take(at)
        wait = limiter.wait(at)
        assert wait is not None
        assert wait == pytest.approx(1 / 0.3, abs=0.002)
        at += timedelta(seconds=wait).total_seconds()


@pytest.mark.parametrize(
    ("rate", "taken", "new", "wait"),
    [
        (0.1, False, 0.0, None),
        (0.1, True, 0.0, None),
        (0.0, False, 0.1, 10.0),
        (0.1, False, 0.01, 0.0),
        (0.1, True, 0.01, 100.0),
        (0.01, True, 0.1, 10.0),
        (0.1, True, 0.1, 10.0),
        (0.1, False, 0.1, 0.0),
    ],
)
def test_another_rate_keeps_waiting_nodes_waiting(
    rate: float, taken: bool, new: float, wait: float | None
) -> None:
    limiter = RateLimiter(rate)
    if taken:
        limiter.take(0.0)
    limiter.change(new, 0.0)
    assert limiter.wait(0.0) == (wait if wait is None else pytest.approx(wait))
    assert limiter.rate == new


# -- transitions ----------------------------------------------------------------------------------


def test_no_zone_with_a_ready_node_stops_all_taints_and_the_first_ready_one_ends_that() -> None:
    zones = Zones()
    assert not zones.update({"a": Count(1, 0), "b": Count(0, 1)}, RATES, 0.0)
    assert not zones.is_master_disruption
    assert not zones.update({"a": Count(0, 1), "b": Count(0, 1)}, RATES, 1.0)
    assert zones.is_master_disruption
    assert [zones.limiter(zone, RATES).rate for zone in "ab"] == [0.0, 0.0]
    assert not zones.update({"a": Count(0, 1), "b": Count(0, 1)}, RATES, 2.0)
    assert zones.update({"a": Count(1, 0), "b": Count(0, 1)}, RATES, 3.0), "the disruption has ended"
    assert zones.limiter("b", RATES).rate == 0.1
    assert zones.limiter("b", RATES).wait(3.0) == pytest.approx(10.0)
    assert not zones.update({"a": Count(1, 0), "b": Count(0, 1)}, RATES, 4.0)


def test_a_new_zone_does_not_end_a_master_disruption_of_the_others() -> None:
    zones = Zones()
    zones.update({"a": Count(0, 1)}, RATES, 0.0)
    assert zones.is_master_disruption
    assert not zones.update({"a": Count(0, 1), "b": Count(1, 0)}, RATES, 1.0)
    assert not zones.is_master_disruption
    assert zones.states == {"a": FULL, "b": NORMAL}


def test_a_zone_without_nodes_is_forgotten() -> None:
    zones = Zones()
    zones.update({"a": Count(1, 0), "b": Count(0, 1)}, RATES, 0.0)
    zones.limiter("b", RATES).take(0.0)
    zones.update({"a": Count(1, 0)}, RATES, 1.0)
    assert zones.states == {"a": NORMAL}
    assert zones.limiter("b", RATES).wait(1.0) == 0.0
    assert not Zones().update({}, RATES, 0.0)
    assert not Zones().is_master_disruption


# -- tainting -------------------------------------------------------------------------------------


def test_nodes_wait_in_the_order_in_which_they_became_not_ready() -> None:
    nodes = [
        node("c", "Unknown", heartbeat=NOW),
        node("b", "False", heartbeat=LONG_AGO),
        node("a", "Unknown", heartbeat=LONG_AGO),
        node("z", "Unknown", zone="z"),
        node("ready"),
    ]
    found = waiting_nodes(nodes)
    assert {zone: [each.metadata.name for each in waiting] for zone, waiting in found.items()} == {
        "": ["a", "b", "c"],
        "region1:\0:z": ["z"],
    }


def taints(rounds: Rounds, *names: str) -> list[list[str]]:
    return [
        [each for each in keys_of(rounds.node(name).spec.taints) if "NoExecute" in each] for name in names
    ]


def test_nodes_of_a_zone_are_tainted_one_by_one() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b", "False"), node("c"), node("d"), node("e"))
    assert rounds.zones() == Wake(
        timedelta(seconds=10), "no zone is disrupted; nodes wait for their NoExecute taint"
    )
    assert taints(rounds, "a", "b") == [["unreachable:NoExecute"], []]
    rounds.later(5)
    assert isinstance(rounds.zones(), Wake)
    assert taints(rounds, "b") == [[]]
    rounds.later(5)
    assert rounds.zones() == Rest("no zone is disrupted")
    assert taints(rounds, "a", "b", "c") == [["unreachable:NoExecute"], ["not-ready:NoExecute"], []]


def test_zones_do_not_wait_for_each_other() -> None:
    rounds = Rounds(
        node("a", "Unknown", zone="a"),
        node("b", "Unknown", zone="b"),
        node("c", zone="a"),
        node("d", zone="b"),
    )
    rounds.zones()
    assert taints(rounds, "a", "b") == [["unreachable:NoExecute"]] * 2


def test_a_small_zone_that_is_partially_disrupted_is_not_tainted() -> None:
    rounds = Rounds(*(node(f"n{n}", "Unknown") for n in range(3)), node("ready"))
    assert rounds.zones() == Rest("the only zone is in PartialDisruption")
    assert rounds.patches() == []


def test_a_large_zone_that_is_partially_disrupted_is_tainted_slowly() -> None:
    rounds = Rounds(*(node(f"n{n:02}", "Unknown") for n in range(40)), *(node(f"r{n}") for n in range(20)))
    verdict = rounds.zones()
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=100)
    assert len(rounds.patches()) == 1


def test_no_ready_node_anywhere_removes_no_execute_taints() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b"), node("c"))
    rounds.zones()
    assert taints(rounds, "a") == [["unreachable:NoExecute"]]
    rounds.status("b", "False")
    rounds.status("c", "Unknown")
    assert rounds.zones() == Rest("no zone has a ready node: no node is tainted")
    assert taints(rounds, "a", "b", "c") == [[], [], []]


def test_the_end_of_a_master_disruption_begins_all_grace_periods_anew() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b", "Unknown"))
    rounds.monitor()
    rounds.later(1000)
    rounds.status("a", "True")
    rounds.monitor()
    assert {name: health.probed for name, health in rounds.memory.healths.items()} == {
        "a": 1000.0,
        "b": 1000.0,
    }
    assert rounds.zones() == Wake(
        timedelta(seconds=10), "no zone is disrupted; nodes wait for their NoExecute taint"
    )


def test_a_node_that_cannot_be_tainted_does_not_hold_up_its_zone() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b", "Unknown"), node("c"), node("d"))

    def refuse(action: Action[Any]) -> Any:
        return Forbidden("no") if isinstance(action, Patch) and action.target.metadata.name == "a" else USUAL

    with pytest.raises(Forbidden):
        rounds.zones(refuse)
    assert [patch.target.metadata.name for patch in rounds.patches()] == ["a", "b"]


def test_a_node_that_is_gone_is_passed_over() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b", "Unknown"), node("c"), node("d"))
    rounds.zones([USUAL] * 4 + [NotFound("gone")])
    assert [patch.target.metadata.name for patch in rounds.patches()] == ["a", "b"]


def test_a_taint_that_was_not_written_does_not_use_up_the_rate() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b"))
    with pytest.raises(ServerError):
        rounds.zones({Patch: ServerError("away")})
    rounds.zones()
    assert taints(rounds, "a") == [["unreachable:NoExecute"]]


def test_a_node_that_another_round_writes_to_is_tainted_a_little_later() -> None:
    rounds = Rounds(node("a", "Unknown"), node("b"))
    with rounds.memory.write(("a",)):
        assert rounds.zones() == Wake(
            timedelta(seconds=0.1), "no zone is disrupted; nodes wait for their NoExecute taint"
        )
    rounds.zones()
    assert taints(rounds, "a") == [["unreachable:NoExecute"]]
    rounds.status("b", "Unknown")
    with rounds.memory.write(("a",)):
        assert isinstance(rounds.zones(), Wake)
    assert isinstance(rounds.zones(), Rest)
    assert taints(rounds, "a") == [[]]


def test_metrics_say_how_zones_are() -> None:
    rounds = Rounds(*(node(f"n{n}", "Unknown" if n else "True", zone="a") for n in range(4)))
    rounds.zones()
    zone = ("region1:\0:a",)
    found = [action for action in rounds.actions if isinstance(action, Measure)]
    for measure in (
        Measure(ZONE_SIZE, 4, zone),
        Measure(ZONE_HEALTH, 25.0, zone),
        Measure(UNHEALTHY_NODES, 3, zone),
        Measure(EVICTIONS, 0.0, zone),
    ):
        assert measure in found
    for each in range(4):
        rounds.caches.remove(rounds.node(f"n{each}"))
    rounds.actions.clear()
    rounds.zones()
    assert Measure(ZONE_HEALTH, 100.0, zone) in rounds.actions
    assert Measure(ZONE_SIZE, 0, zone) in rounds.actions
