"""Hints of ``spec.trafficDistribution``: each ready endpoint is preferred in its own zone, or on its own node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from steersman.api.kinds.services import Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone, Service
from steersman.controllers.endpointslice.reconciler import SliceChanges
from steersman.controllers.shared.endpoint_slices import edited, with_hints

TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
TOPOLOGY_AWARE_HINTS = "service.kubernetes.io/topology-aware-hints"
"""The deprecated annotation, which has precedence."""

PREFER_CLOSE = "PreferClose"
PREFER_SAME_ZONE = "PreferSameZone"
PREFER_SAME_NODE = "PreferSameNode"


def topology_mode_is_auto(annotations: Mapping[str, str]) -> bool:
    """Whether the annotations of a Service ask for topology-aware hints."""
    mode = annotations.get(TOPOLOGY_AWARE_HINTS, annotations.get(TOPOLOGY_MODE, ""))
    return mode in ("Auto", "auto")


def traffic_distribution(service: Service, *, prefer_same: bool = True) -> str:
    """The traffic distribution that hints are set for; empty where there is none.

    Topology-aware hints have precedence. ``prefer_same`` is the feature gate of PreferSameZone and PreferSameNode.
    """
    value = service.spec.trafficDistribution or ""
    known = (PREFER_CLOSE, PREFER_SAME_ZONE, PREFER_SAME_NODE) if prefer_same else (PREFER_CLOSE,)
    return value if value in known and not topology_mode_is_auto(service.metadata.annotations) else ""


def is_endpoint_ready(endpoint: Endpoint) -> bool:
    return endpoint.conditions.ready is True


def prefer_close(changes: SliceChanges, distribution: str) -> SliceChanges:
    """Sets the hints of a traffic distribution; a slice whose hints are not right is updated."""
    same_node = distribution == PREFER_SAME_NODE

    def is_wrong(endpoint: Endpoint) -> bool:
        return is_endpoint_ready(endpoint) and _names(endpoint.hints) != _names(_close(endpoint, same_node))

    def hinted(endpoint: Endpoint) -> Endpoint:
        # As upstream: an endpoint that is not ready keeps the hints it has.
        return with_hints(endpoint, _close(endpoint, same_node)) if is_endpoint_ready(endpoint) else endpoint

    return rehint(changes, is_wrong, hinted)


def _close(endpoint: Endpoint, same_node: bool) -> EndpointHints | None:
    zones = (ForZone(name=endpoint.zone),) if endpoint.zone is not None else ()
    nodes = (ForNode(name=endpoint.nodeName),) if same_node and endpoint.nodeName is not None else ()
    return EndpointHints(forZones=zones, forNodes=nodes) if zones or nodes else None


def _names(hints: EndpointHints | None) -> tuple[list[str], list[str]]:
    if hints is None:
        return [], []
    return [zone.name for zone in hints.forZones], [node.name for node in hints.forNodes]


def remove_hints(changes: SliceChanges) -> SliceChanges:
    """Removes all hints; a slice that has some is updated."""
    return rehint(
        changes, lambda endpoint: endpoint.hints is not None, lambda endpoint: with_hints(endpoint, None)
    )


def rehint(
    changes: SliceChanges, is_wrong: Callable[[Endpoint], bool], hinted: Callable[[Endpoint], Endpoint]
) -> SliceChanges:
    """Sets the hints of all slices that are written, and of unchanged ones that have an endpoint with wrong hints."""
    update, unchanged = list(changes.update), list[EndpointSlice]()
    for slice in changes.unchanged:
        (update if any(map(is_wrong, slice.endpoints or ())) else unchanged).append(slice)
    return replace(
        changes,
        create=tuple(_hinted(slice, hinted) for slice in changes.create),
        update=tuple(_hinted(slice, hinted) for slice in update),
        unchanged=tuple(unchanged),
    )


def _hinted(slice: EndpointSlice, hinted: Callable[[Endpoint], Endpoint]) -> EndpointSlice:
    return edited(slice, endpoints=tuple(map(hinted, slice.endpoints or ())))
