"""Nodes: whether each should run a daemon pod, and the daemon pods it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds import Opaque, Pod, Toleration
from steersman.api.kinds.daemonsets import PodPlacement
from steersman.api.kinds.nodes import Node, NodeSelectorTerm
from steersman.api.pods import is_terminal
from steersman.api.scheduling import NO_EXECUTE, NO_SCHEDULE, matches_node_selector_term, tolerates
from steersman.controllers.daemonset.template import daemon_tolerations, target_node

# -- should a node run a pod ------------------------------------------------------------------


class NodeFit(msgspec.Struct, frozen=True):
    """Whether a node should run a DaemonSet's pod: upstream's NodeShouldRunDaemonPod."""

    should_run: bool
    """The node gets a pod."""
    should_continue: bool
    """A pod that runs there may stay."""
    known: bool = True
    """Whether the node can be decoded. If not, its pods stay as they are: none is created, and none deleted."""


SHOULD_RUN, SHOULD_CONTINUE, SHOULD_NOT_RUN = NodeFit(True, True), NodeFit(False, True), NodeFit(False, False)
UNKNOWN, UNKNOWN_WITH_PODS = NodeFit(False, True, known=False), NodeFit(True, True, known=False)
"""The fit of a node that cannot be decoded: it counts as one that should run a pod where it has one."""


class NodeRequirements(msgspec.Struct, frozen=True):
    """The scheduling requirements of a pod template."""

    node: str
    """``spec.nodeName``; empty for any node."""
    labels: tuple[tuple[str, str], ...]
    """``spec.nodeSelector``."""
    terms: tuple[NodeSelectorTerm, ...] | None
    """The required node affinity, of which one term must match; None where there is none."""
    tolerations: tuple[Toleration, ...]

    def fit(self, node: Node, *, numeric: bool = False) -> NodeFit:
        """Whether this node should run a pod. ``numeric``: see `tolerates`."""
        if not self._selects(node):
            return SHOULD_NOT_RUN
        fit = SHOULD_RUN
        for taint in node.spec.taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerates(
                self.tolerations, taint, numeric=numeric
            ):
                if taint.effect == NO_EXECUTE:
                    return SHOULD_NOT_RUN
                fit = SHOULD_CONTINUE
        return fit

    def _selects(self, node: Node) -> bool:
        name, labels = node.metadata.name, node.metadata.labels
        if self.node and self.node != name:
            return False
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return self.terms is None or any(
            matches_node_selector_term(term, name, labels) for term in self.terms
        )


_decode = msgspec.json.Decoder(PodPlacement).decode
_cache: BoundedCache[int, tuple[Opaque | PodPlacement, NodeRequirements]] = BoundedCache(1024)


def requirements_of(spec: Opaque | PodPlacement) -> NodeRequirements:
    """The requirements of a template's pod spec, cached since every change of a node needs them."""
    cached = _cache.get(id(spec))
    if cached is None:
        # The spec is kept alive, or its id might be reused.
        cached = (spec, _read(spec))
        _cache.put(id(spec), cached)
    return cached[1]


def _read(spec: Opaque | PodPlacement) -> NodeRequirements:
    placing = _decode(spec) if isinstance(spec, msgspec.Raw) else spec
    affinity = placing.affinity and placing.affinity.nodeAffinity
    required = affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
    return NodeRequirements(
        node=placing.nodeName,
        labels=tuple(placing.nodeSelector.items()),
        terms=required.nodeSelectorTerms if required else None,
        tolerations=(*placing.tolerations, *daemon_tolerations(bool(placing.hostNetwork))),
    )


# -- the pods of each node --------------------------------------------------------------------

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class NodePods(msgspec.Struct, frozen=True):
    """A node and a DaemonSet's pods that are bound to it or wait to be scheduled to it."""

    node: str
    fit: NodeFit
    pods: Sequence[Pod] = ()
    """In order of precedence: scheduled pods, then the oldest."""
    not_deleted: Sequence[Pod] = ()
    """The pods without a deletionTimestamp."""
    exists: bool = True
    """Whether the node exists."""


def group_by_node(fits: Mapping[str, NodeFit], pods: Iterable[Pod]) -> list[NodePods]:
    """Every node with its pods, and after them nodes that are gone but still have pods.

    Nodes that cannot be decoded come last, so that a rolling update never waits for them while others are left.
    Left out are terminal pods that are being deleted, and pods without a target node.
    """
    by_node: dict[str, list[Pod]] = {}
    not_deleted: dict[str, list[Pod]] = {}
    for pod in pods:
        deleted = pod.metadata.deletionTimestamp is not None
        if deleted and is_terminal(pod):
            continue
        node = target_node(pod)
        if node:
            by_node.setdefault(node, []).append(pod)
            if not deleted:
                not_deleted.setdefault(node, []).append(pod)
    for several in (*by_node.values(), *not_deleted.values()):
        if len(several) > 1:
            several.sort(key=precedence)
    nodes = [
        NodePods(node, fit, by_node.get(node, ()), not_deleted.get(node, ()))
        for node, fit in fits.items()
        if fit.known
    ]
    gone = (node for node in by_node if node not in fits)
    nodes.extend(
        NodePods(node, SHOULD_NOT_RUN, by_node[node], not_deleted.get(node, ()), False) for node in gone
    )
    for node in (node for node, fit in fits.items() if not fit.known):
        fit = UNKNOWN_WITH_PODS if node in by_node else UNKNOWN
        nodes.append(NodePods(node, fit, by_node.get(node, ()), not_deleted.get(node, ())))
    return nodes


def precedence(pod: Pod) -> tuple[bool, datetime, str]:
    """The sort key for a node's pods, the one to keep first."""
    meta = pod.metadata
    return (not pod.spec.nodeName, meta.creationTimestamp or _LONG_AGO, meta.name)
