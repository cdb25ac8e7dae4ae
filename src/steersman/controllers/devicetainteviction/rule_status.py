"""The condition EvictionInProgress of a DeviceTaintRule: how many pods it evicts, has evicted or would evict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.kinds import Condition, Pod
from steersman.api.kinds.devices import DEVICETAINTRULES, DeviceTaintRule, ResourceClaim, ResourceSlice
from steersman.api.meta import format_time, truncate_to_seconds
from steersman.api.scheduling import NO_EXECUTE
from steersman.controllers.devicetainteviction.evictions import current_slices, selects
from steersman.intent.actions import Patch, PatchType
from steersman.intent.verdict import Rest, Verdict, Wake

EVICTION_IN_PROGRESS = "EvictionInProgress"
PERIOD = timedelta(seconds=10)
"""The shortest time between two updates of the condition for one generation of a rule."""
NO_EFFECT = "None"


class RuleCounts(msgspec.Struct, frozen=True):
    """Counts for the status of a rule: the pods that it evicts, or would evict with the effect NoExecute, and the devices that it selects."""

    pods: int = 0
    namespaces: int = 0
    published_devices: int = 0
    allocated_devices: int = 0
    evicted: int = 0
    """Pods evicted because of the rule since the controller was started."""


def count_devices(
    rule: DeviceTaintRule, pools: Iterable[Sequence[ResourceSlice]], claims: Iterable[ResourceClaim]
) -> tuple[int, int]:
    """The number of published and of allocated devices that a rule selects."""
    published = sum(
        selects(rule, slice.spec.driver, slice.spec.pool.name, device.name)
        for slices in pools
        for slice in current_slices(slices)
        for device in slice.spec.devices
    )
    allocated = sum(
        selects(rule, result.driver, result.pool, result.device)
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
    return published, allocated


def count_pods(pods: Iterable[Pod]) -> tuple[int, int]:
    """The number of pods, and of their namespaces."""
    namespaces = [pod.metadata.namespace for pod in pods]
    return len(namespaces), len(set(namespaces))


def new_condition(rule: DeviceTaintRule, counts: RuleCounts) -> Condition:
    """The condition of a rule, without its time."""
    status, parts = "False", []
    match rule.spec.taint.effect:
        case "NoExecute" if counts.pods:
            status, reason = "True", "PodsPendingEviction"
            verb = "pod needs" if counts.pods == 1 else "pods need"
            parts = [f"{counts.pods} {verb} to be evicted in {_namespaces(counts.namespaces)}."]
        case "NoExecute":
            reason = "Completed" if counts.evicted else "NotStarted"
        case "None":
            reason = "NoEffect"
            parts = [
                f"{_number(counts.published_devices, 'published device')} selected.",
                f"{_number(counts.allocated_devices, 'allocated device')} selected.",
                f"{_number(counts.pods, 'pod')} would be evicted in {_namespaces(counts.namespaces)} "
                "if the effect was NoExecute.",
                "This information will not be updated again. "
                "Recreate the DeviceTaintRule to trigger an update.",
            ]
        case _:
            reason = "OtherEffect"
            parts = ["Eviction only happens for the NoExecute effect."]
    if counts.evicted:
        parts.append(f"{_number(counts.evicted, 'pod')} evicted since starting the controller.")
    return Condition(
        type=EVICTION_IN_PROGRESS,
        status=status,
        reason=reason,
        message=" ".join(parts),
        observedGeneration=rule.metadata.generation,
    )


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _namespaces(count: int) -> str:
    return "1 namespace" if count == 1 else f"{count} different namespaces"


def needs_counts(rule: DeviceTaintRule) -> bool:
    """Whether the condition of a rule depends on pods, which are expensive to count."""
    return rule.spec.taint.effect in (NO_EXECUTE, NO_EFFECT)


def waits(rule: DeviceTaintRule, now: datetime) -> timedelta | None:
    """How long the condition of a rule is not to be updated; None: it may be."""
    known = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    if known is None or known.lastTransitionTime is None:
        return None
    since = now - known.lastTransitionTime
    if known.observedGeneration != rule.metadata.generation or since >= PERIOD:
        return None
    return PERIOD - since


def _content(condition: Condition) -> tuple[object, ...]:
    """A condition but for its time."""
    return (condition.status, condition.reason, condition.message, condition.observedGeneration)


async def update_status(
    rule: DeviceTaintRule, counts: RuleCounts, now: datetime, field_manager: str
) -> Verdict:
    """Writes the condition of a rule if it changes."""
    remaining = waits(rule, now)
    if remaining is not None:
        return Wake(remaining, "the condition was updated a moment ago")
    known = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    condition = new_condition(rule, counts)
    if known is not None and _content(known) == _content(condition):
        return Rest("the condition is up to date")
    document: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observedGeneration,
        "lastTransitionTime": format_time(truncate_to_seconds(now)),
    }
    body = {
        "apiVersion": DEVICETAINTRULES.api_version,
        "kind": DEVICETAINTRULES.name,
        # Another rule of this name is refused by its uid.
        "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
        "status": {"conditions": [document]},
    }
    await Patch(rule, body, PatchType.APPLY, subresource="status", field_manager=field_manager, force=True)
    return Rest(f"condition updated: {condition.reason}")
