"""Taints of nodes by their conditions, and the labels that are kept equal to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from steersman.api.kinds.nodes import Node, Taint
from steersman.api.meta import format_time
from steersman.controllers.nodelifecycle.health import ready_status
from steersman.intent.actions import Patch

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
CONDITION_TAINTS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
"""The key of the NoSchedule taint, by type and status of a condition."""
NO_SCHEDULE_KEYS = frozenset((*CONDITION_TAINTS.values(), UNSCHEDULABLE))
"""The keys of the NoSchedule taints that this controller removes."""
NO_EXECUTE_KEYS = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""The key of the NoExecute taint, by status of the Ready condition."""
LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
"""Labels, and the deprecated label that gets the value of each."""


def no_schedule_keys(node: Node) -> tuple[str, ...]:
    """The keys of the NoSchedule taints that the conditions of a node ask for."""
    found = {
        CONDITION_TAINTS[each.type, each.status]: None
        for each in node.status.conditions
        if (each.type, each.status) in CONDITION_TAINTS
    }
    if node.spec.unschedulable:
        found[UNSCHEDULABLE] = None
    return tuple(found)


def has_no_execute(node: Node, keys: Iterable[str] = (NOT_READY, UNREACHABLE)) -> bool:
    """Whether a node has one of these NoExecute taints."""
    wanted = tuple(keys)
    return any(taint.effect == "NoExecute" and taint.key in wanted for taint in node.spec.taints)


def needs_no_execute(node: Node) -> bool:
    """Whether a node is to get a NoExecute taint, as soon as the rate of its zone allows it.

    A node that has the opposite taint gets its taint at once instead.
    """
    return ready_status(node) in NO_EXECUTE_KEYS and not has_no_execute(node)


def reconciled_taints(node: Node, now: datetime, *, is_new: bool = False) -> tuple[Taint, ...]:
    """The taints that a node is to have, but for a NoExecute taint that must wait for the rate of its zone.

    The NoSchedule taints follow its conditions. A ready node has no NoExecute taint of ours, and one that is tainted with the
    opposite of its status has them swapped. ``is_new``: seen for the first time by this process, which, as upstream,
    begins without NoExecute taints.
    """
    keys = no_schedule_keys(node)
    kept = [
        taint
        for taint in node.spec.taints
        if taint.effect != "NoSchedule" or taint.key not in NO_SCHEDULE_KEYS or taint.key in keys
    ]
    has = {taint.key for taint in kept if taint.effect == "NoSchedule"}
    added = [_taint(key, "NoSchedule", now) for key in keys if key not in has]
    status = ready_status(node)
    if is_new or status == "True":
        return (*_without_no_execute(kept), *added)
    wanted = NO_EXECUTE_KEYS.get(status)
    opposite = UNREACHABLE if wanted == NOT_READY else NOT_READY
    if wanted is not None and has_no_execute(node, (opposite,)):
        if not has_no_execute(node, (wanted,)):
            added.append(_taint(wanted, "NoExecute", now))
        kept = [taint for taint in kept if taint.effect != "NoExecute" or taint.key != opposite]
    return (*kept, *added)


def with_no_execute(node: Node, now: datetime) -> tuple[Taint, ...]:
    """The taints of a node with the NoExecute taint of its status, and not the opposite one."""
    wanted = NO_EXECUTE_KEYS[ready_status(node)]
    return (*_without_no_execute(node.spec.taints), _taint(wanted, "NoExecute", now))


def without_no_execute(node: Node) -> tuple[Taint, ...]:
    """The taints of a node without the NoExecute taints of ours."""
    return tuple(_without_no_execute(node.spec.taints))


def _without_no_execute(taints: Iterable[Taint]) -> list[Taint]:
    return [
        taint for taint in taints if taint.effect != "NoExecute" or taint.key not in (NOT_READY, UNREACHABLE)
    ]


def _taint(key: str, effect: str, now: datetime) -> Taint:
    return Taint(key=key, effect=effect, timeAdded=now.replace(microsecond=0))


def reconciled_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The deprecated labels to write: those that are missing or differ from their label."""
    return {
        deprecated: labels[label]
        for label, deprecated in LABELS.items()
        if label in labels and labels.get(deprecated) != labels[label]
    }


def patch_node(
    node: Node, taints: tuple[Taint, ...], labels: Mapping[str, str] | None = None
) -> Patch[Node] | None:
    """The patch that gives a node these taints and labels; None where it has them.

    Taints have no merge key, so the patch replaces all of them and requires the resourceVersion they were read at.

    differs: upstream adds taints in one patch and removes them in the next, and labels in a third.
    """
    body: dict[str, Any] = {}
    metadata: dict[str, Any] = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resourceVersion}
    if taints != node.spec.taints:
        body["spec"] = {"taints": [_document(taint) for taint in taints]}
    if labels:
        metadata["labels"] = dict(labels)
    if not body and not labels:
        return None
    return Patch(node, {"metadata": metadata, **body})


def _document(taint: Taint) -> dict[str, Any]:
    document: dict[str, Any] = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        document["value"] = taint.value
    if taint.timeAdded is not None:
        document["timeAdded"] = format_time(taint.timeAdded)
    return document
