"""The trace: rounds as data, with their causes, waiting time, actions and verdict.

A trace keeps the last rounds of each controller, and the last few of each object. It tells what happened to an object
as lines of text, and as JSON whose bytes depend on the rounds alone, so that two runs can be compared. A round holds
words and names, not objects: no body, no field value that could be a secret, nothing that keeps a cache entry alive.

Rounds form a chain: an event causes a round, the round writes, and the resourceVersion of the answer is that of the
event which the write causes. `steersman.runtime.trace_links` follows it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import ApiError, Invalid
from steersman.api.scheme import Key
from steersman.intent.actions import Done, Failed, FileUnreadable
from steersman.intent.verdict import Rest, Wake
from steersman.runtime.action_table import Written, past_tense
from steersman.runtime.action_table.text import enumerate_some, shorten
from steersman.runtime.causes import Cause, Event, type_of

MAX_WRITES = 128
"""Writes of one step that are kept by name: a step can create five hundred pods."""
MAX_KEPT = 8192
"""Rounds that are kept by object, per trace: those of the objects that had rounds last."""
ROUNDS_OF_OBJECT = 3
"""Rounds kept for each object and controller, however many rounds others have meanwhile."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One action of a round, in words."""

    action: str
    """The action, as the action table describes it."""
    outcome: str
    """Empty if it succeeded, else the error."""
    seconds: float
    writes: tuple[Written, ...] = ()
    """The writes that the server accepted, at most `MAX_WRITES`."""
    dropped: int = 0
    """How many more there were."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A round that ended in an error instead of a verdict."""

    error: str
    code: int = 500
    """The HTTP status of the error, if it was an API error."""
    retry_after: float = 0.0
    """Seconds until the key is tried again."""


Ending: TypeAlias = Rest | Wake | Failure


class Round(msgspec.Struct, frozen=True, gc=False):
    """One round of a key, from its causes to its verdict. Times are in seconds."""

    controller: str
    key: Key
    causes: tuple[Cause, ...]
    waited: float
    started: datetime
    took: float
    steps: tuple[Step, ...]
    ending: Ending

    @property
    def next_wake(self) -> datetime | None:
        """When the key is due again even if nothing changes."""
        match self.ending:
            case Wake(after):
                return self.started + timedelta(seconds=self.took) + after
            case Failure(retry_after=delay):
                return self.started + timedelta(seconds=self.took + delay)
        return None

    @property
    def events(self) -> Iterator[Event]:
        """The causes that are watch events."""
        return (cause for cause in self.causes if isinstance(cause, Event))

    @property
    def writes(self) -> Iterator[Written]:
        """The writes that the server accepted."""
        return (write for step in self.steps for write in step.writes)


Numbered: TypeAlias = tuple[int, Round]
"""A round and its number: unique in a trace, in the order in which rounds ended, from 1."""


class Trace:
    """The last rounds of every controller, a ring each, so a busy one never pushes out a quiet one."""

    def __init__(self, capacity: int = 256, *, enabled: bool = True) -> None:
        """``capacity``: rounds kept for each controller. A trace that is not ``enabled`` records nothing."""
        self.enabled = enabled
        self.last = 0
        """The number of the last round."""
        self.totals: dict[str, list[int]] = {}
        """By controller: rounds, and how many of them failed, since the start."""
        self.listeners: list[Callable[[int, Round], None]] = []
        """Called with every round."""
        self.capacity = capacity
        self._rings: dict[str, deque[Numbered]] = {}
        self._objects: dict[tuple[str, Key], tuple[Numbered, ...]] = {}
        """The last rounds by controller and key; the object whose last round is oldest comes first."""
        self._kept = 0
        """How many rounds there are in `_objects`."""

    def record(self, round_: Round) -> None:
        """Add a round; the oldest of the same controller is dropped if the ring is full."""
        name = round_.controller
        ring = self._rings.get(name)
        if ring is None:
            ring = self._rings[name] = deque(maxlen=self.capacity)
            self.totals[name] = [0, 0]
        self.last += 1
        entry = (self.last, round_)
        ring.append(entry)
        totals = self.totals[name]
        totals[0] += 1
        if type(round_.ending) is Failure:
            totals[1] += 1
        objects, about = self._objects, (name, round_.key)
        before = objects.pop(about, None)
        if before is None:
            objects[about] = (entry,)
            self._kept += 1
        else:
            objects[about] = (*before[1 - ROUNDS_OF_OBJECT :], entry)
            self._kept += len(before) < ROUNDS_OF_OBJECT
        while self._kept > MAX_KEPT:
            self._kept -= len(objects.pop(next(iter(objects))))
        for listener in self.listeners:
            listener(self.last, round_)

    def recent(self, controller: str) -> list[Numbered]:
        """The last rounds of a controller without a gap, oldest first."""
        return list(self._rings.get(controller, ()))

    def numbered(self, controller: str | None = None, after: int = 0) -> list[Numbered]:
        """The rounds with a number above ``after``, oldest first; of one controller, or of all."""
        rings = list(self._rings.values()) if controller is None else [self._rings.get(controller, deque())]
        kept: dict[int, Round] = dict(entry for ring in rings for entry in _newer(ring, after))
        for (name, _), entries in reversed(self._objects.items()):
            if entries[-1][0] <= after:
                break
            if controller is None or name == controller:
                kept.update(entry for entry in entries if entry[0] > after)
        return sorted(kept.items(), key=lambda entry: entry[0])

    def rounds(self, controller: str | None = None, key: Key | None = None) -> list[Round]:
        """The recorded rounds, oldest first; of one controller, of one key, or both."""
        if key is None:
            rings = (
                list(self._rings.values()) if controller is None else [self._rings.get(controller, deque())]
            )
            # The numbers are unique, so the merge never has to compare two rounds.
            return [round_ for _, round_ in heapq.merge(*rings)]
        return [round_ for _, round_ in self.numbered(controller) if round_.key == key]

    def story(self, key: Key, controller: str | None = None) -> list[str]:
        """The rounds of a key as text, a line each."""
        return [tell(round_) for round_ in self.rounds(controller, key)]

    def json(self, controller: str | None = None, key: Key | None = None) -> bytes:
        """The rounds as JSON, one document a line. Equal rounds give equal bytes."""
        return b"".join(encode(round_) + b"\n" for round_ in self.rounds(controller, key))


def _newer(ring: deque[Numbered], after: int) -> Iterator[Numbered]:
    """The rounds of a ring with a number above ``after``, latest first."""
    for entry in reversed(ring):
        if entry[0] <= after:
            return
        yield entry


def keep_writes(writes: Iterable[Written]) -> tuple[tuple[Written, ...], int]:
    """The first `MAX_WRITES` of some writes, and the number of the others."""
    made = tuple(writes)
    return made[:MAX_WRITES], max(len(made) - MAX_WRITES, 0)


def tell(round_: Round) -> str:
    """A round as one line of text."""
    parts = []
    if round_.causes:
        parts.append(f"because {enumerate_some(tuple(map(str, round_.causes)))}")
    parts.append(f"waited {span(round_.waited)}")
    parts.extend(
        f"{step.action} ({step.outcome})" if step.outcome else past_tense(step.action)
        for step in round_.steps
    )
    match round_.ending:
        case Rest(because):
            parts.append(f"rests: {because}")
        case Wake(after, because):
            parts.append(f"wakes in {span(after.total_seconds())}: {because}")
        case Failure(error):
            parts.append(f"failed: {error}")
    at = round_.started.strftime("%H:%M:%S.") + f"{round_.started.microsecond // 1000:03d}"
    return f"{at} {round_.controller.removesuffix('-controller')} {round_.key}: {'; '.join(parts)}"


def encode(round_: Round) -> bytes:
    """A round as JSON with its fields in a fixed order and its times to the microsecond."""
    return msgspec.json.encode(document(round_))


def document(
    round_: Round, number: int = 0, links: Callable[[Event], int] = lambda event: 0
) -> dict[str, Any]:
    """A round as a plain document. ``links`` gives the number of the round whose write caused an event; 0: not known."""
    ending: dict[str, Any]
    match round_.ending:
        case Rest(because):
            ending = {"rest": because}
        case Wake(after, because):
            ending = {"wake": round(after.total_seconds(), 6), "because": because}
        case Failure(error, code, delay):
            ending = {"failure": error, "code": code, "retryAfter": round(delay, 6)}
    return {
        **({"number": number} if number else {}),
        "controller": round_.controller,
        "namespace": round_.key.namespace,
        "name": round_.key.name,
        "causes": [_cause(cause, links) for cause in round_.causes],
        "waited": round(round_.waited, 6),
        "started": round_.started,
        "took": round(round_.took, 6),
        "steps": [_step(step) for step in round_.steps],
        "ending": ending,
        **({"next": due} if (due := round_.next_wake) is not None else {}),
    }


def _cause(cause: Cause, links: Callable[[Event], int]) -> dict[str, Any]:
    told: dict[str, Any] = {"type": type_of(cause), "text": str(cause)}
    if isinstance(cause, Event):
        told |= {
            "resource": cause.kind.resource,
            "kind": cause.kind.name,
            "namespace": cause.key.namespace,
            "name": cause.key.name,
            "event": cause.type,
            "resourceVersion": cause.last,
        }
        if cause.first != cause.last:
            told["firstResourceVersion"] = cause.first
        if writer := links(cause):
            told["round"] = writer
    return told


def _step(step: Step) -> dict[str, Any]:
    told: dict[str, Any] = {
        "action": step.action,
        "outcome": step.outcome,
        "seconds": round(step.seconds, 6),
    }
    if step.writes:
        told["writes"] = [
            {
                "verb": write.verb,
                "resource": write.kind.resource,
                "subresource": write.subresource,
                "namespace": write.key.namespace,
                "name": write.key.name,
                "resourceVersion": write.resource_version,
            }
            for write in step.writes
        ]
        if step.dropped:
            told["moreWrites"] = step.dropped
    return told


def span(seconds: float) -> str:
    """A duration in words: ``2 min 5 s``."""
    if seconds < 0.001:
        return f"{max(seconds, 0.0) * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def outcome(answer: object) -> str:
    """The outcome of an action in words: empty if it succeeded, else the error."""
    if isinstance(answer, ApiError):
        return refusal(answer)
    if isinstance(answer, FileUnreadable):
        return str(answer)
    if not isinstance(answer, list):
        return ""
    # A batch is answered with a list of outcomes.
    refused = [one.error for one in answer if isinstance(one, Failed)]
    if not refused:
        return ""
    done = sum(isinstance(one, Done) for one in answer)
    skipped = len(answer) - done - len(refused)
    tally = f"{done} done, {len(refused)} refused, {skipped} not tried"
    return f"{tally}: {refusal(refused[0])}"


def refusal(error: ApiError) -> str:
    """An API error in one short line. Of a validation error only the fields, because its message quotes values."""
    name = type(error).__name__
    if isinstance(error, Invalid):
        fields = tuple(cause.field for cause in error.causes if cause.field)
        return f"{name}: {enumerate_some(fields)}" if fields else name
    return f"{name}: {shorten(error.message)}" if error.message else name
