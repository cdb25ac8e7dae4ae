"""Topology-aware hints in rows: the shares of zones, allocations, and which zones give to which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import EndpointHints, EndpointSlice
from steersman.api.scheme import Key
from steersman.controllers.endpointslice import topology
from steersman.controllers.endpointslice.memory import HintedServices
from steersman.controllers.endpointslice.reconciler import SliceChanges
from steersman.controllers.endpointslice.topology import (
    Allocation,
    add_hints,
    allocate,
    cpu_ratios,
    giving_and_receiving,
    hints_by_zone,
    redistribute,
)
from tests.harness.endpoint_slices import a_node, an_endpoint, slice_of

CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def node(zone: str, cpu: str = "1000m", **more: Any) -> Node:
    return a_node("n", zone and f"zone-{zone}", cpu, **more)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([], None, id="no nodes"),
        pytest.param([node("a")], None, id="one node"),
        pytest.param([node("a"), node("a")], None, id="one zone"),
        pytest.param([node("a"), node("b")], {"a": 0.5, "b": 0.5}, id="two zones"),
        pytest.param([node("a", ready=False), node("b")], None, id="one zone is not ready"),
        pytest.param([node("a"), node("b", **CONTROL_PLANE)], None, id="one zone has the control plane only"),
        pytest.param(
            [node("a"), node("b"), node("b", ready=False)],
            {"a": 0.5, "b": 0.5},
            id="a node that is not ready",
        ),
        pytest.param(
            [node("a"), node("b"), node("b", **CONTROL_PLANE)],
            {"a": 0.5, "b": 0.5},
            id="a control plane node",
        ),
        pytest.param([node("a"), node("b"), node("")], None, id="a node without a zone"),
        pytest.param([node("a"), node("b"), node("b", "")], None, id="a node without CPUs"),
        pytest.param([node("a"), node("b"), node("b", "nonsense")], None, id="CPUs that are no number"),
        pytest.param(
            [node("a"), node("b"), node("", ready=False)], {"a": 0.5, "b": 0.5}, id="neither, not ready"
        ),
        pytest.param(
            [
                *(node("a"), node("a"), node("a"), node("a", "2000m")),
                *(node("b", "3000m"), node("b", "1500m"), node("c", "500m")),
            ],
            {"a": 0.5, "b": 0.45, "c": 0.05},
            id="three zones",
        ),
    ],
)
def test_the_share_of_a_zone_is_that_of_its_cpus(
    nodes: list[Node], expected: dict[str, float] | None
) -> None:
    assert cpu_ratios(nodes) == (
        None if expected is None else {f"zone-{zone}": ratio for zone, ratio in expected.items()}
    )


@pytest.mark.parametrize(
    ("zones", "nodes", "expected"),
    [
        pytest.param({}, [], False, id="no hints"),
        pytest.param(
            {"a": 1, "b": 2, "c": 3},
            [node("a", "100m"), node("b", "1000m"), node("c", "2000m")],
            True,
            id="lopsided",
        ),
        pytest.param(
            {"a": 1, "b": 2, "c": 3},
            [node("a", "100m", ready=False), node("b"), node("c", "2000m")],
            True,
            id="lopsided, one not ready",
        ),
        pytest.param(
            {"b": 5, "c": 4}, [node("b"), node("b"), node("c"), node("c")], False, id="within the threshold"
        ),
        pytest.param({"b": 5, "c": 4}, [node("b"), node(""), node("c")], True, id="a node without a zone"),
        pytest.param({"b": 5, "c": 4}, [node("b"), node("b", ""), node("c")], True, id="a node without CPUs"),
        pytest.param(
            {"b": 6, "c": 4}, [node("b"), node("b"), node("c"), node("c")], True, id="beyond the threshold"
        ),
        pytest.param(
            {"a": 20, "b": 10, "c": 1},
            [node("a", "2000m"), node("b"), node("c", "100m")],
            False,
            id="three uneven zones that match",
        ),
        pytest.param(
            {"a": 20, "b": 10, "c": 0},
            [node("a", "2000m"), node("b"), node("c", "100m")],
            True,
            id="three uneven zones, one without endpoints",
        ),
        pytest.param({"a": 5}, [node("a"), node("b")], True, id="a zone without hints"),
    ],
)
def test_a_service_is_looked_at_again_when_nodes_overload_a_zone(
    zones: Mapping[str, int], nodes: list[Node], expected: bool
) -> None:
    hinted, key = HintedServices(), Key("ns", "svc")
    if zones:
        hinted.set(key, "IPv4", {f"zone-{zone}": number for zone, number in zones.items()})
    assert hinted.nodes_changed(lambda: nodes) == ([key] if expected else [])


READY_A, READY_B, READY_C = (an_endpoint(zone=f"zone-{zone}") for zone in "abc")
UNREADY_B, UNKNOWN_B = an_endpoint(zone="zone-b", ready=False), an_endpoint(zone="zone-b", ready=None)
HALVES = {"zone-a": 0.45, "zone-b": 0.55}


def zones_of(slice: EndpointSlice) -> str:
    """The zone each endpoint is hinted for, by its letter; a dash for none."""
    return "".join(
        one.hints.forZones[0].name[-1] if one.hints is not None and one.hints.forZones else "-"
        for one in slice.endpoints or ()
    )


@pytest.mark.parametrize(
    ("ratios", "changes", "problem", "zones", "created", "updated"),
    [
        pytest.param(None, SliceChanges(), topology.INSUFFICIENT_NODES, {}, [], [], id="empty"),
        pytest.param(
            None,
            SliceChanges(create=(slice_of(READY_A),)),
            topology.INSUFFICIENT_NODES,
            {},
            ["-"],
            [],
            id="no shares",
        ),
        pytest.param(
            {}, SliceChanges(create=(slice_of(READY_A),)), topology.ONE_ZONE, {}, ["-"], [], id="one zone"
        ),
        pytest.param(
            {"zone-a": 0.3, "zone-b": 0.4, "zone-c": 0.3},
            SliceChanges(create=(slice_of(READY_A, READY_B),)),
            "Insufficient number of endpoints (2 endpoints, 3 zones)",
            {},
            ["--"],
            [],
            id="two endpoints for three zones",
        ),
        pytest.param(
            HALVES,
            SliceChanges(create=(slice_of(READY_A, READY_B),)),
            "",
            {"zone-a": 1, "zone-b": 1},
            ["ab"],
            [],
            id="two endpoints for two zones",
        ),
        pytest.param(
            HALVES,
            SliceChanges(create=(slice_of(READY_A, READY_B, UNREADY_B, UNKNOWN_B),)),
            "",
            {"zone-a": 1, "zone-b": 1},
            ["ab--"],
            [],
            id="endpoints that are not ready",
        ),
        pytest.param(
            {"zone-a": 0.35, "zone-b": 0.35, "zone-c": 0.30},
            SliceChanges(
                create=(slice_of(READY_A, READY_B), slice_of(READY_C, READY_C, READY_A)),
                update=(slice_of(READY_A, READY_A), slice_of(READY_B, READY_C, READY_A)),
            ),
            "",
            {"zone-a": 4, "zone-b": 3, "zone-c": 3},
            ["bb", "cca"],
            ["aa", "bca"],
            id="one endpoint is given to another zone",
        ),
        pytest.param(
            HALVES,
            SliceChanges(create=(slice_of(READY_A, an_endpoint()),)),
            topology.NO_ZONE,
            {},
            ["--"],
            [],
            id="an endpoint without a zone",
        ),
        pytest.param(
            {"zone-a": 1 / 3, "zone-b": 1 / 3, "zone-c": 1 / 3},
            SliceChanges(update=(slice_of(READY_A, READY_A, READY_C, READY_C),)),
            f"{topology.OVERLOAD} (4 endpoints, 3 zones)",
            {},
            [],
            ["----"],
            id="the least of all zones is too much",
        ),
    ],
)
def test_hints_follow_the_shares_of_the_zones(
    ratios: Mapping[str, float] | None,
    changes: SliceChanges,
    problem: str,
    zones: Mapping[str, int],
    created: list[str],
    updated: list[str],
) -> None:
    result = add_hints(changes, ratios)
    assert (result.problem, result.zones) == (problem, zones)
    assert [zones_of(slice) for slice in result.changes.create] == created
    assert [zones_of(slice) for slice in result.changes.update] == updated


def test_unchanged_slices_are_updated_where_their_hints_are_invalid() -> None:
    right = slice_of(
        an_endpoint("1", "zone-a", hint="zone-a"), an_endpoint("2", "zone-b", hint="zone-b"), name="1"
    )
    bare = slice_of(READY_A, READY_B, name="2")
    result = add_hints(SliceChanges(unchanged=(right, bare)), HALVES)
    assert result.changes.unchanged == (right,)
    assert [zones_of(slice) for slice in result.changes.update] == ["ab"]
    assert result.zones == {"zone-a": 2, "zone-b": 2}


def test_hints_are_removed_from_unchanged_slices_where_they_cannot_be_allocated() -> None:
    hinted = slice_of(an_endpoint("1", "zone-a", hint="zone-a"), name="1")
    result = add_hints(SliceChanges(unchanged=(hinted, slice_of(READY_A, name="2"))), None)
    assert [slice.metadata.name for slice in result.changes.update] == ["1"]
    assert [slice.metadata.name for slice in result.changes.unchanged] == ["2"]


def test_ready_endpoints_of_all_slices_count() -> None:
    def many(ready: int, unready: int) -> EndpointSlice:
        return slice_of(*[READY_A] * ready, *[UNREADY_B] * unready)

    changes = SliceChanges(
        create=(many(15, 3), many(5, 4)), update=(many(3, 8),), unchanged=(many(98, 2), many(90, 6))
    )
    ratios = {f"zone-{number}": 1 / 300 for number in range(300)}
    assert add_hints(changes, ratios).problem == "Insufficient number of endpoints (211 endpoints, 300 zones)"


def test_the_spare_endpoints_are_those_beyond_the_least_of_all_zones() -> None:
    assert allocate({"a": 0.5, "b": 0.3, "c": 0.2}, 10) == {
        "a": Allocation(5, 5, 5.0),
        "b": Allocation(3, 3, 3.0),
        "c": Allocation(2, 2, 2.0),
    }
    assert allocate({"a": 0.5, "b": 0.5}, 13) == {"a": Allocation(6, 7, 6.5), "b": Allocation(6, 7, 6.5)}


def desired(*numbers: float) -> dict[str, Allocation]:
    return {f"zone-{zone}": Allocation(0, 0, number) for zone, number in zip("abc", numbers, strict=False)}


def by_zone(**numbers: int) -> dict[str, int]:
    return {f"zone-{zone}": number for zone, number in numbers.items()}


@pytest.mark.parametrize(
    ("allocations", "allocated", "giving", "receiving"),
    [
        pytest.param({}, {}, {}, {}, id="empty"),
        pytest.param(desired(1.2, 1.1, 1.0), by_zone(a=1, b=1, c=1), {}, {}, id="balanced"),
        pytest.param(
            desired(5.1, 5.1, 5.8),
            by_zone(a=16),
            by_zone(a=10),
            by_zone(c=5, b=5),
            id="the own zone is preferred to a slightly better balance",
        ),
        pytest.param(
            desired(5.0, 5.6, 5.4),
            by_zone(a=16),
            by_zone(a=11),
            by_zone(b=6, c=5),
            id="where it is needed most",
        ),
        pytest.param(
            desired(5.0, 5.6, 5.4), by_zone(b=8, c=8), by_zone(c=3, b=2), by_zone(a=5), id="from the most"
        ),
        pytest.param(desired(5.0, 5.0, 5.0), by_zone(a=6, b=6, c=6), {}, {}, id="more than all"),
        pytest.param(desired(-5.0, -5.0, -5.0), by_zone(a=6, b=6, c=6), {}, {}, id="negative shares"),
        pytest.param(desired(5.0, 5.0, 5.0), by_zone(a=-4, b=-3, c=-2), {}, {}, id="negative numbers"),
        pytest.param(
            desired(5.0, 5.0, 5.0),
            by_zone(a=-40, b=20, c=20),
            by_zone(b=15, c=15),
            by_zone(a=30),
            id="one negative number",
        ),
    ],
)
def test_zones_with_more_than_their_share_give_to_those_with_less(
    allocations: Mapping[str, Allocation],
    allocated: Mapping[str, int],
    giving: Mapping[str, int],
    receiving: Mapping[str, int],
) -> None:
    assert giving_and_receiving(allocations, allocated) == (giving, receiving)


@pytest.mark.parametrize(
    ("endpoints", "giving", "receiving", "expected"),
    [
        ([], {}, {}, {}),
        ([READY_A], by_zone(a=1), by_zone(b=1), by_zone(a=-1, b=1)),
        ([READY_A] * 3, by_zone(a=2), by_zone(b=1, c=1), by_zone(a=-2, b=1, c=1)),
        ([UNREADY_B, READY_A], by_zone(b=1), by_zone(a=1), {}),
    ],
)
def test_endpoints_are_redistributed(
    endpoints: list[Any], giving: Mapping[str, int], receiving: Mapping[str, int], expected: Mapping[str, int]
) -> None:
    _, changed = redistribute([slice_of(*endpoints)], giving, receiving)
    assert changed == expected


def at_most(**numbers: int) -> dict[str, Allocation]:
    return {f"zone-{zone}": Allocation(0, number, 0.0) for zone, number in numbers.items()}


FOR_A, FOR_B = an_endpoint(zone="zone-a", hint="zone-a"), an_endpoint(zone="zone-a", hint="zone-b")


@pytest.mark.parametrize(
    ("slice", "allocated", "allocations", "expected"),
    [
        pytest.param(slice_of(), {}, {}, {}, id="empty"),
        pytest.param(slice_of(FOR_A), by_zone(a=1), at_most(a=3), by_zone(a=1), id="one zone"),
        pytest.param(
            slice_of(FOR_A, an_endpoint(ready=False, hint="zone-a"), an_endpoint(ready=None, hint="zone-a")),
            by_zone(a=1),
            at_most(a=3),
            by_zone(a=1),
            id="endpoints that are not ready do not count",
        ),
        pytest.param(
            slice_of(FOR_A, FOR_B, FOR_B),
            by_zone(a=1, b=1, c=1),
            at_most(a=3, b=3, c=3),
            by_zone(a=1, b=2),
            id="several zones",
        ),
        pytest.param(
            slice_of(an_endpoint(hint="gone")), by_zone(a=1), at_most(a=3), None, id="a zone that is gone"
        ),
        pytest.param(slice_of(READY_A), {}, at_most(a=3), None, id="no hints"),
        pytest.param(
            slice_of(replace(READY_A, hints=EndpointHints())),
            {},
            at_most(a=3),
            None,
            id="hints that name nothing",
        ),
        pytest.param(slice_of(FOR_A, FOR_A), by_zone(a=1), at_most(a=2), None, id="more than the most"),
    ],
)
def test_the_hints_of_a_slice_are_valid_or_must_be_updated(
    slice: EndpointSlice,
    allocated: Mapping[str, int],
    allocations: Mapping[str, Allocation],
    expected: Mapping[str, int] | None,
) -> None:
    assert hints_by_zone(slice, allocated, allocations) == expected


def test_a_service_counts_as_hinted_until_one_of_its_families_is_not() -> None:
    hinted, key = HintedServices(), Key("ns", "svc")
    assert hinted.set(key, "IPv4", {"a": 1})
    assert not hinted.set(key, "IPv6", {"a": 1})
    assert hinted.remove(key, "IPv6")
    assert not hinted.remove(key, "IPv6")
    assert hinted.set(key, "IPv4", {"a": 1})
    hinted.forget(key)
    assert not len(hinted)
    assert hinted.nodes_changed(lambda: [node("a")]) == []
