"""The pods of a Job: which index each is for, how it ended, and who goes first where there are too many."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from steersman.api import pods
from steersman.api.kinds import Job, Pod
from steersman.controllers.job.spec import completions_of, is_indexed, replaces_only_failed
from steersman.intent.actions import Patch, PatchType

FINALIZER = "batch.kubernetes.io/job-tracking"
"""Keeps a pod until it is counted."""
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
"""How often pods of the same index failed before this one."""
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"

_DIGITS = re.compile(r"[0-9]{1,18}")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MOST = 2**31 - 1
_EVER = datetime.max.replace(tzinfo=UTC)


def index_of(pod: Pod) -> int | None:
    """The completion the pod is for, where it says so."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if _DIGITS.fullmatch(text) else None


def is_valid(pod: Pod, job: Job) -> bool:
    """Whether the pod is for a completion there is."""
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < completions_of(job)


def is_tracked(pod: Pod) -> bool:
    """Whether the pod waits to be counted."""
    return FINALIZER in pod.metadata.finalizers


def has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"


def has_failed(pod: Pod, job: Job) -> bool:
    """Whether the pod counts as failed: also if it is asked to go, for it may never get to say how it ended."""
    if pod.status.phase == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return pod.metadata.deletionTimestamp is not None and not has_succeeded(pod)


def failures_before(pod: Pod) -> int:
    """The failures of its index that counted."""
    return _count(pod, FAILURES)


def ignored_before(pod: Pod) -> int:
    """The failures of its index that did not count."""
    return _count(pod, IGNORED)


def _count(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    count = int(text) if _DIGITS.fullmatch(text) else 0
    return count if count <= _MOST else 0


def let_go(pod: Pod) -> Patch[Pod]:
    """Take the finalizer off, and leave all others."""
    metadata = {"$deleteFromPrimitiveList/finalizers": [FINALIZER], "uid": pod.metadata.uid}
    return Patch(pod, {"metadata": metadata}, PatchType.STRATEGIC)


# -- who goes first -------------------------------------------------------------------------------


def surplus(job: Job, active: Iterable[Pod], at_least: int) -> list[Pod]:
    """The pods to delete: at least so many, and all that are for no index or for one that has another pod."""
    if not is_indexed(job):
        return sorted(active, key=_standing)[:at_least]
    going: list[Pod] = []
    staying: list[Pod] = []
    beyond: list[Pod] = []
    indexed = sorted(active, key=lambda pod: _or_first(index_of(pod)))
    for index, group in groupby(indexed, key=index_of):
        rivals = sorted(group, key=_standing)
        if index is None:
            going += rivals
        elif index >= completions_of(job):
            beyond += rivals
        else:
            going += rivals[:-1]
            staying.append(rivals[-1])
    going += beyond
    if len(going) < at_least:
        going += sorted(staying, key=_standing)[: at_least - len(going)]
    return going


def in_order(job: Job, owned: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods in the order in which they are counted."""
    if not is_indexed(job):
        return tuple(owned)
    return tuple(sorted(owned, key=lambda pod: _or_first(index_of(pod))))


def _or_first(index: int | None) -> int:
    return -1 if index is None else index


def _standing(pod: Pod) -> tuple[Any, ...]:
    """Smaller is missed less: not placed, not running, not ready; then what is so for the shortest time."""
    ready = pods.is_ready(pod)
    regular, sidecar = pods.restarts(pod)
    return (
        bool(pod.spec.nodeName),
        _PHASES.get(pod.status.phase, 0),
        ready,
        _youngest_first(pods.ready_since(pod)) if ready else 0.0,
        -regular,
        -sidecar,
        _youngest_first(pod.metadata.creationTimestamp),
    )


def _youngest_first(at: datetime | None) -> float:
    return -(at if at is not None else _EVER).timestamp()
