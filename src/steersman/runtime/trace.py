"""The trace: rounds as data, with their causes, waiting time, actions and verdict.

A trace keeps the last rounds of each controller. It tells what happened to an object as lines of text, and as JSON
whose bytes depend on the rounds alone, so that two runs can be compared. A round holds words, not objects: no body, no
field value that could be a secret, nothing that keeps a cache entry alive.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import ApiError, Invalid
from steersman.api.scheme import Key
from steersman.intent.actions import Done, Failed, FileUnreadable
from steersman.intent.verdict import Rest, Wake
from steersman.runtime.action_table import past_tense
from steersman.runtime.action_table.text import enumerate_some, shorten


class Step(msgspec.Struct, frozen=True, gc=False):
    """One action of a round, in words."""

    action: str
    """The action, as the action table describes it."""
    outcome: str
    """Empty if it succeeded, else the error."""
    seconds: float


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A round that ended in an error instead of a verdict."""

    error: str
    code: int = 500
    """The HTTP status of the error, if it was an API error."""


Ending: TypeAlias = Rest | Wake | Failure


class Round(msgspec.Struct, frozen=True, gc=False):
    """One round of a key, from its causes to its verdict. Times are in seconds."""

    controller: str
    key: Key
    causes: tuple[str, ...]
    waited: float
    started: datetime
    took: float
    steps: tuple[Step, ...]
    ending: Ending


class Trace:
    """The last rounds of every controller, a ring each, so a busy one never pushes out a quiet one."""

    def __init__(self, capacity: int = 512) -> None:
        self._capacity = capacity
        self._rings: dict[str, deque[tuple[int, Round]]] = {}
        self._numbers = itertools.count()

    def record(self, round_: Round) -> None:
        """Add a round; the oldest of the same controller is dropped if the ring is full."""
        ring = self._rings.get(round_.controller)
        if ring is None:
            ring = self._rings[round_.controller] = deque(maxlen=self._capacity)
        ring.append((next(self._numbers), round_))

    def rounds(self, controller: str | None = None, key: Key | None = None) -> list[Round]:
        """The recorded rounds, oldest first; of one controller, of one key, or both."""
        rings = list(self._rings.values()) if controller is None else [self._rings.get(controller, deque())]
        # The numbers are unique, so the merge never has to compare two rounds.
        found = heapq.merge(*rings)
        return [round_ for _, round_ in found if key is None or round_.key == key]

    def story(self, key: Key, controller: str | None = None) -> list[str]:
        """The rounds of a key as text, a line each."""
        return [tell(round_) for round_ in self.rounds(controller, key)]

    def json(self, controller: str | None = None, key: Key | None = None) -> bytes:
        """The rounds as JSON, one document a line. Equal rounds give equal bytes."""
        return b"".join(encode(round_) + b"\n" for round_ in self.rounds(controller, key))


def tell(round_: Round) -> str:
    """A round as one line of text."""
    parts = []
    if round_.causes:
        parts.append(f"because {enumerate_some(round_.causes)}")
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
    ending: dict[str, Any]
    match round_.ending:
        case Rest(because):
            ending = {"rest": because}
        case Wake(after, because):
            ending = {"wake": round(after.total_seconds(), 6), "because": because}
        case Failure(error):
            ending = {"failure": error}
    return msgspec.json.encode(
        {
            "controller": round_.controller,
            "namespace": round_.key.namespace,
            "name": round_.key.name,
            "causes": round_.causes,
            "waited": round(round_.waited, 6),
            "started": round_.started,
            "took": round(round_.took, 6),
            "steps": [
                {"action": step.action, "outcome": step.outcome, "seconds": round(step.seconds, 6)}
                for step in round_.steps
            ],
            "ending": ending,
        }
    )


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
