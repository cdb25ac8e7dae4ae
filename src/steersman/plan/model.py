"""The values of a plan's report. They hold names, fields and reasons, and never the data of a Secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

Verb: TypeAlias = Literal["create", "change", "terminate", "delete"]


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Names an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cause of a write: the round that made it, and the entry of the write that led to the round."""

    text: str
    controller: str = ""
    round: int = 0
    """The number of the round in the trace; 0 where it was no round."""
    entry: int = 0
    """The number of the entry that caused it; 0 where it is not one of the plan."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One write of the timeline."""

    number: int
    at: float
    """Seconds after the change."""
    actor: str
    """``you``, a controller, ``kube-scheduler`` or ``kubelet``."""
    verb: Verb
    object: ObjectRef
    owner: str = ""
    """The controller of the object, as ``ReplicaSet web-5d4f``."""
    aspect: Literal["", "spec", "status", "metadata"] = ""
    """Which part a change has touched; empty for other verbs."""
    fields: tuple[str, ...] = ()
    cause: Cause | None = None


class ClusterEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An Event that a component records."""

    at: float
    type: str
    reason: str
    object: ObjectRef
    message: str
    count: int = 1


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that the server refuses."""

    at: float
    actor: str
    """The client whose request it was."""
    action: str
    by: str
    """The part of the server that refused it: quota, PodDisruptionBudget, admission policy, validation …"""
    message: str
    object: ObjectRef | None = None
    count: int = 1
    resolved: bool = False
    """Whether the same request was accepted later."""
    anyway: bool = False
    """Whether it is refused without the change, too."""

    @property
    def open(self) -> bool:
        """Whether the change causes it, and it stays."""
        return not self.resolved and not self.anyway


class NotConverged(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that is not as it should be when the plan ends."""

    object: ObjectRef
    summary: str
    causes: tuple[str, ...] = ()
    """The deepest first."""
    controller: str = ""
    next: str = ""
    remedy: str = ""
    waits: bool = False
    """Whether it would go on by itself, later than the plan looks."""


class MissingCapacity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pods that no node has room for."""

    pods: tuple[ObjectRef, ...]
    requests: dict[str, str]
    """The sum of their requests."""
    reason: str
    """As the scheduler says it."""


class Report(msgspec.Struct, frozen=True):
    """The report of a plan: the consequences of a change."""

    change: tuple[str, ...]
    """The steps, in words."""
    time: datetime
    """The cluster's time at which the change is made."""
    seconds: float
    """How far the plan looks."""
    timeline: tuple[Entry, ...]
    """The writes that the change causes."""
    anyway: tuple[Entry, ...]
    """The writes that happen in the same time without the change, too."""
    events: tuple[ClusterEvent, ...]
    refusals: tuple[Refusal, ...]
    not_converged: tuple[NotConverged, ...]
    not_converged_before: tuple[NotConverged, ...]
    """Objects that are not as they should be without the change, either."""
    capacity: tuple[MissingCapacity, ...]
    assumptions: tuple[str, ...]
    unknown: tuple[str, ...]
    """Facts that the plan cannot know, in words."""

    @property
    def converged(self) -> bool:
        """Whether nothing is refused for good and everything that the change touches ends as it should be."""
        return not self.not_converged and not any(each.open for each in self.refusals)

    @property
    def only_slow(self) -> bool:
        """Whether it does not converge in the time that the plan looks ahead, and would go on by itself."""
        refused = any(each.open for each in self.refusals)
        return bool(self.not_converged) and not refused and all(each.waits for each in self.not_converged)

    @property
    def exit_code(self) -> int:
        """0 where it converges, else 2."""
        return 0 if self.converged else 2

    def document(self) -> dict[str, Any]:
        """The report as a plain document."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        del found["not_converged"], found["not_converged_before"]
        return {
            "converged": self.converged,
            **found,
            "notConverged": msgspec.to_builtins(self.not_converged),
            "notConvergedBefore": msgspec.to_builtins(self.not_converged_before),
        }
