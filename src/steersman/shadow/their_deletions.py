"""Deletions by unknown clients: no controller of ours wanted them, and no event names their author.

Users, kubelets and schedulers delete objects, too, so such a deletion is counted and is no difference; with one exception. The pod garbage
collector tells of nothing, but leaves a pattern: the oldest terminated pods go together, and younger ones stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.kinds import Object
from steersman.api.scheme import Kind
from steersman.runtime.action_table.text import field_of

POD_GC = "pod-garbage-collector-controller"
TERMINATED = ("Succeeded", "Failed")
TOGETHER = 25.0
"""Seconds within which deletions belong to one round of the collector, which has one every 20 s."""
FEWEST = 3
"""Deletions that make a pattern."""


class Deletion(msgspec.Struct, frozen=True, eq=False):
    """An object that was deleted, as it was before."""

    kind: Kind[Any]
    obj: Object
    at: float
    """When it was seen, in monotonic seconds."""


def label(deletion: Deletion) -> str:
    """The kind, with the phase of a pod that was terminated."""
    phase = phase_of(deletion.obj)
    return f"{deletion.kind.name} ({phase})" if phase in TERMINATED else deletion.kind.name


def phase_of(obj: Object) -> str:
    """The phase of a pod; empty for other objects."""
    return str(field_of(field_of(obj, "status"), "phase") or "")


class TerminatedPods:
    """Finds the pattern of the pod garbage collector in deletions of terminated pods."""

    def __init__(self) -> None:
        self._recent: deque[Deletion] = deque()
        self._found: dict[str, None] = {}
        """The uids of those that are reported."""

    def add(self, deletion: Deletion, left: Iterable[Object]) -> tuple[Deletion, ...]:
        """Take in a deletion, with the pods that are left; returns those that the collector made, each once."""
        if _is_disrupted(deletion.obj):
            return ()
        recent = self._recent
        recent.append(deletion)
        while recent and deletion.at - recent[0].at > TOGETHER:
            self._found.pop(recent.popleft().obj.metadata.uid, None)
        youngest = max(map(_age, recent))
        others = [_age(pod) for pod in left if phase_of(pod) in TERMINATED]
        if len(recent) < FEWEST or not others or min(others) < youngest:
            return ()
        new = tuple(each for each in recent if each.obj.metadata.uid not in self._found)
        self._found.update(dict.fromkeys(each.obj.metadata.uid for each in new))
        return new


def _is_disrupted(pod: Object) -> bool:
    """Whether a pod was disrupted before it was deleted: by an eviction, by a taint, or by the collector because its node is gone."""
    conditions = field_of(field_of(pod, "status"), "conditions") or ()
    return any(field_of(each, "type") == "DisruptionTarget" for each in conditions)


def _age(one: Deletion | Object) -> datetime:
    obj = one.obj if isinstance(one, Deletion) else one
    created = obj.metadata.creationTimestamp
    assert created is not None, "an object of a server has a creationTimestamp"
    return created
