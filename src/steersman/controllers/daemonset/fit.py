"""Whether a node is one for the pods of a template."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds.daemonsets import NodeSelectorTerm, Placing, Toleration
from steersman.api.kinds.nodes import Node, Taint
from steersman.api.scheduling import NO_EXECUTE, NO_SCHEDULE, matches, tolerates


class Fit(msgspec.Struct, frozen=True):
    """What a node is to a DaemonSet."""

    runs: bool
    """It is to have a pod."""
    stays: bool
    """A pod that is there already may stay."""


WANTED, ENDURED, UNFIT = Fit(True, True), Fit(False, True), Fit(False, False)

_NODE = "node.kubernetes.io/"
TOLERATIONS = (
    Toleration(key=_NODE + "not-ready", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=_NODE + "unreachable", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=_NODE + "disk-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_NODE + "memory-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_NODE + "pid-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_NODE + "unschedulable", operator="Exists", effect=NO_SCHEDULE),
)
"""What every pod of a DaemonSet tolerates: a node in trouble is to keep it."""

HOST_NETWORK = (Toleration(key=_NODE + "network-unavailable", operator="Exists", effect=NO_SCHEDULE),)
"""And what one on the node's own network does not need."""


class Wish(msgspec.Struct, frozen=True):
    """What the pods of a template ask of a node."""

    node: str
    labels: tuple[tuple[str, str], ...]
    terms: tuple[NodeSelectorTerm, ...] | None
    """One of these must hold, where there are any."""
    tolerations: tuple[Toleration, ...]

    def fit(self, node: Node, *, numeric: bool = False) -> Fit:
        """What this node is to them. ``numeric``: see `tolerates`."""
        if not self._selects(node):
            return UNFIT
        fit = WANTED
        for taint in node.spec.taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not self._bears(taint, numeric):
                if taint.effect == NO_EXECUTE:
                    return UNFIT
                fit = ENDURED
        return fit

    def _bears(self, taint: Taint, numeric: bool) -> bool:
        return tolerates(self.tolerations, taint, numeric=numeric)

    def _selects(self, node: Node) -> bool:
        name, labels = node.metadata.name, node.metadata.labels
        if self.node and self.node != name:
            return False
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return self.terms is None or any(matches(term, name, labels) for term in self.terms)


_placing = msgspec.json.Decoder(Placing).decode
_known: BoundedCache[int, tuple[Any, Wish]] = BoundedCache(1024)


def wish(spec: Any) -> Wish:
    """What a template's spec asks for, whichever form it has. Asked for every node that changes, so it is kept."""
    known = _known.get(id(spec))
    if known is None:
        known = (spec, _read(spec))
        _known.put(id(spec), known)
    return known[1]


def _read(spec: Any) -> Wish:
    placing: Placing = _placing(spec) if isinstance(spec, msgspec.Raw) else spec
    affinity = placing.affinity and placing.affinity.nodeAffinity
    required = affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
    return Wish(
        node=placing.nodeName,
        labels=tuple(placing.nodeSelector.items()),
        terms=required.nodeSelectorTerms if required else None,
        tolerations=(*placing.tolerations, *automatic(bool(placing.hostNetwork))),
    )


def automatic(host_network: bool) -> tuple[Toleration, ...]:
    """The tolerations that come with being a pod of a DaemonSet."""
    return (*TOLERATIONS, *HOST_NETWORK) if host_network else TOLERATIONS
