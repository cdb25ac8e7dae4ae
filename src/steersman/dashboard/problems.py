"""Problems: the objects that are not as they should be, each with its first cause from the explanation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from steersman.dashboard.live_objects import LiveObject, LiveObjects, LiveSnapshot
from steersman.dashboard.summaries import BAD, GONE, WAITS
from steersman.dashboard.time_slices import TimeSlices
from steersman.explain.explanation import explain_in_steps
from steersman.explain.model import Document, Explanation, Weight

MOST = 50
"""Problems that are shown."""
DELETION = timedelta(seconds=30)
"""A deletion that takes longer is a problem."""
_SCANS = ("PersistentVolumeClaim", "Service", "PodDisruptionBudget")
"""Kinds whose explanation looks at all pods of the namespace."""

_WANTED = (
    "AbleToScale",
    "Available",
    "DisruptionAllowed",
    "PodScheduled",
    "Progressing",
    "Ready",
    "ScalingActive",
)
_UNWANTED = ("Failed", "FailureTarget", "ReplicaFailure")
"""Conditions that are bad unless they are True, and conditions that are bad if they are."""


class Problem(msgspec.Struct, frozen=True):
    """A top-level object that is not as it should be."""

    id: str
    kind: str
    namespace: str
    name: str
    cause: str
    """One sentence."""
    since: str | None
    state: Literal["waits", "bad"]
    remedy: str = ""
    next: str = ""


def candidates(objects: LiveObjects) -> list[LiveObject]:
    """The objects to explain: not controlled by an object that is shown, and not well by their summary; the worst first."""
    found = [
        entry
        for entry in objects.shown()
        if entry.summary.state in (BAD, WAITS, GONE) and entry.summary.owner not in objects.by_uid
    ]
    rank = {BAD: 0, WAITS: 1, GONE: 2}
    return sorted(found, key=lambda entry: rank[entry.summary.state])[:MOST]


async def find_problems(
    objects: LiveObjects, snapshot: LiveSnapshot, chosen: Sequence[LiveObject], slices: TimeSlices
) -> list[Problem]:
    """The problems among some objects."""
    found: list[Problem] = []
    for entry in chosen:
        document = snapshot.document(entry)
        if entry.summary.state == GONE and not _takes_long(document, snapshot.now):
            continue
        for each in needed(objects, entry):
            snapshot.document(each)
            await slices.pause()
        problem = problem_of(entry, document, await slices.run(explain_in_steps(snapshot, document)))
        if problem is not None:
            found.append(problem)
    return sorted(found, key=lambda each: (each.state != BAD, each.kind, each.namespace, each.name))


def needed(objects: LiveObjects, entry: LiveObject) -> Iterator[LiveObject]:
    """The objects that the explanation of an object will decode, copied, since the feed goes on meanwhile."""
    yield from tuple(objects.below(entry))
    if entry.summary.kind in _SCANS:
        yield from tuple(objects.of_kind("Pod", entry.summary.namespace))
    elif entry.summary.cordoned:
        yield from tuple(objects.pods_on(entry.summary.name))


def _takes_long(document: Document, now: datetime) -> bool:
    deleted = _time(document.get("metadata", {}).get("deletionTimestamp"))
    return deleted is not None and now - deleted > DELETION


def problem_of(entry: LiveObject, document: Document, told: Explanation) -> Problem | None:
    """The problem of an object; None if its explanation says that it is well."""
    if told.well:
        return None
    first = told.findings[0] if told.findings else None
    summary = entry.summary
    blocked = first is not None and first.weight >= Weight.BLOCKED
    return Problem(
        id=summary.id,
        kind=summary.kind,
        namespace=summary.namespace,
        name=summary.name,
        cause=told.first,
        since=since(document),
        state="bad" if summary.state == BAD or blocked else "waits",
        remedy=first.remedy if first is not None else "",
        next=first.next if first is not None else "",
    )


def since(document: Document) -> str | None:
    """Since when an object is not as it should be, as far as its conditions tell; else when it was created."""
    meta: dict[str, Any] = document.get("metadata") or {}
    if meta.get("deletionTimestamp"):
        return str(meta["deletionTimestamp"])
    conditions = (document.get("status") or {}).get("conditions") or ()
    times = [
        str(each["lastTransitionTime"])
        for each in conditions
        if isinstance(each, dict) and each.get("lastTransitionTime") and _is_bad(each)
    ]
    return max(times, default=meta.get("creationTimestamp"))


def _is_bad(condition: dict[str, Any]) -> bool:
    type_, status = condition.get("type"), condition.get("status")
    return (type_ in _WANTED and status != "True") or (type_ in _UNWANTED and status == "True")


def _time(text: object) -> datetime | None:
    try:
        return msgspec.convert(text, datetime)
    except (msgspec.ValidationError, ValueError):
        return None
