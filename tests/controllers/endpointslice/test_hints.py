"""Hints of the traffic distribution in rows, and which hints a Service asks for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from steersman.api.kinds.services import Endpoint, EndpointHints, EndpointSlice
from steersman.controllers.endpointslice.hints import (
    PREFER_CLOSE,
    PREFER_SAME_NODE,
    PREFER_SAME_ZONE,
    TOPOLOGY_AWARE_HINTS,
    TOPOLOGY_MODE,
    prefer_close,
    remove_hints,
    topology_mode_is_auto,
    traffic_distribution,
)
from steersman.controllers.endpointslice.reconciler import SliceChanges
from tests.harness.endpoint_slices import a_service, an_endpoint, slice_of


def hinted(slices: tuple[EndpointSlice, ...]) -> list[list[tuple[list[str], list[str]] | None]]:
    """The zones and nodes of the hints of each endpoint."""
    return [
        [
            None
            if one.hints is None
            else ([zone.name for zone in one.hints.forZones], [node.name for node in one.hints.forNodes])
            for one in slice.endpoints or ()
        ]
        for slice in slices
    ]


A1, B2 = an_endpoint("1", "zone-a", "node-1"), an_endpoint("2", "zone-b", "node-2")
A3, B4 = an_endpoint("3", "zone-a", "node-3"), an_endpoint("4", "zone-b", "node-4")
A5, C6 = an_endpoint("5", "zone-a", "node-5"), an_endpoint("6", "zone-c", "node-6")
ALL = SliceChanges(create=(slice_of(A1, B2), slice_of(A3, B4)), update=(slice_of(A5), slice_of(C6)))
BARE1, BARE2 = an_endpoint("1", None, "node-1"), an_endpoint("2", None, "node-2")
BARE = SliceChanges(create=(slice_of(BARE1),), update=(slice_of(BARE2),))
NO_ZONE_NO_NODE = SliceChanges(create=(slice_of(an_endpoint()),))


@pytest.mark.parametrize(
    ("distribution", "changes", "created", "updated"),
    [
        pytest.param(
            PREFER_CLOSE,
            ALL,
            [[(["zone-a"], []), (["zone-b"], [])], [(["zone-a"], []), (["zone-b"], [])]],
            [[(["zone-a"], [])], [(["zone-c"], [])]],
            id="zones with PreferClose",
        ),
        pytest.param(
            PREFER_SAME_ZONE,
            ALL,
            [[(["zone-a"], []), (["zone-b"], [])], [(["zone-a"], []), (["zone-b"], [])]],
            [[(["zone-a"], [])], [(["zone-c"], [])]],
            id="zones with PreferSameZone",
        ),
        pytest.param(
            PREFER_SAME_NODE,
            ALL,
            [
                [(["zone-a"], ["node-1"]), (["zone-b"], ["node-2"])],
                [(["zone-a"], ["node-3"]), (["zone-b"], ["node-4"])],
            ],
            [[(["zone-a"], ["node-5"])], [(["zone-c"], ["node-6"])]],
            id="zones and nodes with PreferSameNode",
        ),
        pytest.param(PREFER_CLOSE, BARE, [[None]], [[None]], id="no zones"),
        pytest.param(
            PREFER_SAME_NODE, BARE, [[([], ["node-1"])]], [[([], ["node-2"])]], id="no zones, but nodes"
        ),
        pytest.param(PREFER_SAME_NODE, NO_ZONE_NO_NODE, [[None]], [], id="neither"),
    ],
)
def test_an_endpoint_is_hinted_for_its_zone_and_node(
    distribution: str,
    changes: SliceChanges,
    created: list[list[tuple[list[str], list[str]] | None]],
    updated: list[list[tuple[list[str], list[str]] | None]],
) -> None:
    result = prefer_close(changes, distribution)
    assert hinted(result.create) == created
    assert hinted(result.update) == updated


RIGHT = an_endpoint("1", "zone-a", "node-1", hint="zone-a")
WITH_NODE = an_endpoint("1", "zone-a", "node-1", hint="zone-a", node_hint="node-1")


@pytest.mark.parametrize(
    ("distribution", "endpoint", "stale"),
    [
        pytest.param(PREFER_CLOSE, RIGHT, False, id="right"),
        pytest.param(PREFER_CLOSE, A1, True, id="missing"),
        pytest.param(PREFER_CLOSE, an_endpoint("1", "zone-a", hint="zone-b"), True, id="wrong zone"),
        pytest.param(PREFER_CLOSE, an_endpoint("1", hint="zone-b"), True, id="of a zone it is no longer in"),
        pytest.param(PREFER_CLOSE, WITH_NODE, True, id="a node too much"),
        pytest.param(PREFER_SAME_NODE, WITH_NODE, False, id="right, with node"),
        pytest.param(PREFER_SAME_NODE, RIGHT, True, id="a node missing"),
        pytest.param(
            PREFER_SAME_NODE,
            an_endpoint("1", "zone-a", "node-1", hint="zone-a", node_hint="node-2"),
            True,
            id="wrong node",
        ),
        pytest.param(PREFER_CLOSE, an_endpoint("1", "zone-a", ready=False), False, id="not ready"),
        pytest.param(
            PREFER_CLOSE, an_endpoint("1", "zone-a", ready=False, hint="zone-b"), False, id="not ready, wrong"
        ),
        pytest.param(PREFER_CLOSE, an_endpoint("1", "zone-a", ready=None), False, id="readiness unknown"),
        pytest.param(
            PREFER_CLOSE,
            replace(an_endpoint("1"), hints=EndpointHints()),
            False,
            id="hints that name nothing",
        ),
    ],
)
def test_an_unchanged_slice_is_updated_when_a_ready_endpoint_has_wrong_hints(
    distribution: str, endpoint: Endpoint, stale: bool
) -> None:
    slice = slice_of(endpoint, name="s")
    result = prefer_close(SliceChanges(unchanged=(slice,)), distribution)
    assert (len(result.update), len(result.unchanged)) == ((1, 0) if stale else (0, 1))
    assert slice.endpoints == (endpoint,)


def test_an_endpoint_that_is_not_ready_keeps_its_hints_in_a_slice_that_is_written() -> None:
    unready = an_endpoint("1", "zone-a", ready=False, hint="zone-b")
    assert hinted(prefer_close(SliceChanges(update=(slice_of(unready, A1),)), PREFER_CLOSE).update) == [
        [(["zone-b"], []), (["zone-a"], [])]
    ]


def test_hints_are_removed_from_all_slices() -> None:
    some, none = slice_of(RIGHT, an_endpoint("2", ready=False, hint="zone-a")), slice_of(A1)
    changes = SliceChanges(create=(some,), update=(some,), unchanged=(some, none))
    result = remove_hints(changes)
    assert hinted(result.create) == [[None, None]]
    assert hinted(result.update) == [[None, None], [None, None]]
    assert result.unchanged == (none,)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({"topology-hints": "enabled"}, False),
        ({TOPOLOGY_AWARE_HINTS: "enabled"}, False),
        ({TOPOLOGY_AWARE_HINTS: "aUto"}, False),
        ({TOPOLOGY_AWARE_HINTS: "auto"}, True),
        ({TOPOLOGY_AWARE_HINTS: "Auto"}, True),
        ({TOPOLOGY_AWARE_HINTS: "disabled"}, False),
        ({TOPOLOGY_MODE: "enabled"}, False),
        ({TOPOLOGY_MODE: "aUto"}, False),
        ({TOPOLOGY_MODE: "auto"}, True),
        ({TOPOLOGY_MODE: "Auto"}, True),
        ({TOPOLOGY_MODE: "disabled"}, False),
        ({TOPOLOGY_MODE: "disabled", TOPOLOGY_AWARE_HINTS: "auto"}, True),
        ({TOPOLOGY_MODE: "auto", TOPOLOGY_AWARE_HINTS: "disabled"}, False),
    ],
)
def test_topology_aware_hints_are_asked_for_by_annotation(
    annotations: Mapping[str, str], expected: bool
) -> None:
    assert topology_mode_is_auto(annotations) == expected


@pytest.mark.parametrize(
    ("value", "mode", "gate", "expected"),
    [
        (None, "", True, ""),
        (PREFER_CLOSE, "", True, PREFER_CLOSE),
        (PREFER_CLOSE, "", False, PREFER_CLOSE),
        (PREFER_SAME_ZONE, "", True, PREFER_SAME_ZONE),
        (PREFER_SAME_NODE, "", True, PREFER_SAME_NODE),
        (PREFER_SAME_NODE, "", False, ""),
        (PREFER_SAME_ZONE, "", False, ""),
        ("Unknown", "", True, ""),
        (PREFER_CLOSE, "Auto", True, ""),
        (PREFER_CLOSE, "Disabled", True, PREFER_CLOSE),
    ],
)
def test_a_traffic_distribution_counts_where_it_is_known_and_hints_are_not_topology_aware(
    value: str | None, mode: str, gate: bool, expected: str
) -> None:
    service = a_service(trafficDistribution=value, annotations={TOPOLOGY_MODE: mode} if mode else {})
    assert traffic_distribution(service, prefer_same=gate) == expected
