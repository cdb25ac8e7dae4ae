"""Topology-aware hints: endpoints are allocated to zones in proportion to the CPUs of their nodes.

A Service asks for them by the annotation ``service.kubernetes.io/topology-mode: Auto``. Each ready endpoint is first
hinted for its own zone; then zones with more endpoints than their share give some to others. Where some zone would be
overloaded by more than a fifth, or there is too little information, no endpoint has hints.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from steersman.api.conditions import is_condition_true
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import Endpoint, EndpointHints, EndpointSlice, ForZone
from steersman.api.quantity import Quantity
from steersman.controllers.endpointslice.endpoints import ZONE
from steersman.controllers.endpointslice.hints import is_endpoint_ready, remove_hints
from steersman.controllers.endpointslice.reconciler import SliceChanges
from steersman.controllers.shared.endpoint_slices import edited, with_hints

OVERLOAD_THRESHOLD = 0.2
"""The most by which an endpoint may be overloaded."""
EXCLUDED_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Nodes with any of these labels do not count."""

ENABLED = "Topology Aware Hints has been enabled"
DISABLED = "Topology Aware Hints has been disabled"
NO_ZONE = "One or more endpoints do not have a zone specified"
NO_HINTS = "No hints allocated for zones"
INSUFFICIENT_NODES = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)
ONE_ZONE = "Nodes only ready in one zone"
INSUFFICIENT_ENDPOINTS = "Insufficient number of endpoints"
OVERLOAD = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"


class Allocation(msgspec.Struct, frozen=True):
    """The number of endpoints that are to be hinted for a zone."""

    minimum: int
    maximum: int
    desired: float


class TopologyHints(msgspec.Struct, frozen=True):
    """The slices of one IP family with topology-aware hints, or without hints and the reason why."""

    changes: SliceChanges
    zones: Mapping[str, int] = {}
    """The number of endpoints hinted for each zone; empty without hints."""
    problem: str = ""


# -- nodes ------------------------------------------------------------------------------------


def is_node_ready(node: Node) -> bool:
    return is_condition_true(node.status.conditions, "Ready")


def cpu_ratios(nodes: Iterable[Node]) -> dict[str, float] | None:
    """The share of each zone in the allocatable CPUs of all ready nodes.

    None where a node has no zone or no CPUs, and where there are fewer than two zones.
    """
    cpus: dict[str, Quantity] = {}
    for node in nodes:
        labels = node.metadata.labels
        if any(label in labels for label in EXCLUDED_LABELS) or not is_node_ready(node):
            continue
        zone, cpu = labels.get(ZONE, ""), _cpus(node)
        if not zone or not cpu.sign:
            return None
        cpus[zone] = cpus[zone] + cpu if zone in cpus else cpu
    if len(cpus) < 2:
        return None
    total = sum(cpus.values(), Quantity.of(0)).milli()
    return {zone: cpu.milli() / total for zone, cpu in cpus.items()}


def _cpus(node: Node) -> Quantity:
    try:
        return Quantity.parse(node.status.allocatable.get("cpu", "0"))
    except ValueError:
        return Quantity.of(0)


def is_overloaded(zones: Mapping[str, int], ratios: Mapping[str, float] | None) -> bool:
    """Whether a zone has too few of the endpoints hinted for zones, after nodes have changed."""
    if not zones:
        return False
    if not ratios:
        return True
    total = float(sum(zones.values()))
    return any(
        zone not in zones or zones[zone] < math.ceil(total * ratio * (1 / (1 + OVERLOAD_THRESHOLD)))
        for zone, ratio in ratios.items()
    )


# -- hints ------------------------------------------------------------------------------------


def add_hints(changes: SliceChanges, ratios: Mapping[str, float] | None) -> TopologyHints:
    """Sets topology-aware hints; unchanged slices whose hints are not right are updated."""
    slices = (*changes.create, *changes.update, *changes.unchanged)
    ready = sum(is_endpoint_ready(endpoint) for slice in slices for endpoint in slice.endpoints or ())
    allocations = allocate(ratios, ready)
    if isinstance(allocations, str):
        return TopologyHints(remove_hints(changes), problem=allocations)
    changes, allocated = _release_invalid(changes, allocations)
    written = (*changes.create, *changes.update)
    for endpoint in (endpoint for slice in written for endpoint in slice.endpoints or ()):
        if is_endpoint_ready(endpoint):
            if not endpoint.zone:
                return TopologyHints(remove_hints(changes), problem=NO_ZONE)
            allocated[endpoint.zone] += 1
    giving, receiving = giving_and_receiving(allocations, allocated)
    hinted, redistributed = redistribute(written, giving, receiving)
    for zone, difference in redistributed.items():
        allocated[zone] += difference
    if not allocated:
        return TopologyHints(remove_hints(changes), problem=NO_HINTS)
    count = len(changes.create)
    return TopologyHints(
        replace(changes, create=tuple(hinted[:count]), update=tuple(hinted[count:])), dict(allocated)
    )


def allocate(ratios: Mapping[str, float] | None, endpoints: int) -> dict[str, Allocation] | str:
    """The least and the most endpoints of each zone; or the reason why they cannot be allocated."""
    if ratios is None:
        return INSUFFICIENT_NODES
    if len(ratios) < 2:
        return ONE_ZONE
    counts = f"({endpoints} endpoints, {len(ratios)} zones)"
    if len(ratios) > endpoints:
        return f"{INSUFFICIENT_ENDPOINTS} {counts}"
    minimums = {
        zone: math.ceil(ratio * endpoints * (1 / (1 + OVERLOAD_THRESHOLD))) for zone, ratio in ratios.items()
    }
    spare = endpoints - sum(minimums.values())
    if spare < 0:
        return f"{OVERLOAD} {counts}"
    return {
        zone: Allocation(minimum, minimum + spare, max(ratios[zone] * endpoints, float(minimum)))
        for zone, minimum in minimums.items()
    }


def _release_invalid(
    changes: SliceChanges, allocations: Mapping[str, Allocation]
) -> tuple[SliceChanges, Counter[str]]:
    """Marks unchanged slices with invalid hints for update; also returns the hints of those that stay."""
    allocated: Counter[str] = Counter()
    unchanged: list[EndpointSlice] = []
    update = list(changes.update)
    for slice in changes.unchanged:
        hints = hints_by_zone(slice, allocated, allocations)
        if hints is None:
            update.append(slice)
        else:
            unchanged.append(slice)
            for zone, number in hints.items():
                allocated[zone] += number
    return replace(changes, update=tuple(update), unchanged=tuple(unchanged)), allocated


def hints_by_zone(
    slice: EndpointSlice, allocated: Mapping[str, int], allocations: Mapping[str, Allocation]
) -> dict[str, int] | None:
    """The number of a slice's hints for each zone. None where the slice must be updated: a ready endpoint has no hints,
    a zone needs none, or one would have more than its most, with those allocated before."""
    found: dict[str, int] = {}
    for endpoint in filter(is_endpoint_ready, slice.endpoints or ()):
        if endpoint.hints is None or not endpoint.hints.forZones:
            return None
        for zone in endpoint.hints.forZones:
            if zone.name not in allocations:
                return None
            found[zone.name] = found.get(zone.name, 0) + 1
    for name, number in found.items():
        if number + allocated.get(name, 0) > allocations[name].maximum:
            return None
    return found


def giving_and_receiving(
    allocations: Mapping[str, Allocation], allocated: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """The number of endpoints that zones give to other zones, and that zones receive from others."""
    surplus: dict[str, float] = {}
    shortage: dict[str, float] = {}
    for zone, allocation in allocations.items():
        difference = allocated.get(zone, 0) - allocation.desired
        if difference > 0:
            surplus[zone] = difference
        elif difference < 0:
            shortage[zone] = -difference
    giving: dict[str, int] = {}
    receiving: dict[str, int] = {}
    while surplus and shortage:
        giver, receiver = max(surplus, key=surplus.__getitem__), max(shortage, key=shortage.__getitem__)
        give, receive = surplus[giver], shortage[receiver]
        # An endpoint moves where that brings at least one of the zones nearer to its share by half an endpoint.
        if (give < 1.0 and receive < 1.0) or give < 0.5 or receive < 0.5:
            break
        giving[giver] = giving.get(giver, 0) + 1
        surplus[giver] -= 1
        receiving[receiver] = receiving.get(receiver, 0) + 1
        shortage[receiver] -= 1
    return giving, receiving


def redistribute(
    slices: Iterable[EndpointSlice], giving: Mapping[str, int], receiving: Mapping[str, int]
) -> tuple[list[EndpointSlice], dict[str, int]]:
    """Hints every ready endpoint for its own zone, but for those that zones give to others; also returns the change in
    the number of hints of each zone."""
    give, receive = dict(giving), dict(receiving)
    changed: dict[str, int] = {}

    def hinted(endpoint: Endpoint) -> Endpoint:
        if not is_endpoint_ready(endpoint) or not endpoint.zone:
            return endpoint  # As upstream: an endpoint that is not ready keeps the hints it has.
        zone = endpoint.zone
        receiver = next(iter(receive), None)
        if receiver is not None and give.get(zone, 0) > 0:
            _take_one(give, zone)
            _take_one(receive, receiver)
            changed[receiver] = changed.get(receiver, 0) + 1
            changed[zone] = changed.get(zone, 0) - 1
            zone = receiver
        return with_hints(endpoint, EndpointHints(forZones=(ForZone(name=zone),)))

    result = [edited(slice, endpoints=[hinted(one) for one in slice.endpoints or ()]) for slice in slices]
    return result, changed


def _take_one(zones: dict[str, int], zone: str) -> None:
    zones[zone] -= 1
    if not zones[zone]:
        del zones[zone]
