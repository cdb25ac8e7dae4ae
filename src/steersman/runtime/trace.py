"""Rounds as data: why a key was looked at, how long it waited, what was done, how it ended.

A trace keeps the last rounds of each controller. It answers "what happened to this object?" as a
story, and as JSON whose bytes depend on the rounds alone, so two runs can be compared. A round
holds words, not objects: no body, no field value that could be a secret, nothing that keeps a cache
entry alive.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import ApiError, Invalid
from steersman.api.scheme import Key, kind_of
from steersman.intent.actions import (
    Action,
    Amend,
    Ask,
    Batch,
    Create,
    Delete,
    Done,
    Draw,
    Elapsed,
    Emit,
    Evict,
    Failed,
    Load,
    Measure,
    Patch,
    ReadLive,
    Unreadable,
    Update,
    UpdateStatus,
)
from steersman.intent.live import (
    Alter,
    Consult,
    Discover,
    Latest,
    Read,
    ReadPart,
    Remove,
    RemoveAll,
    Replace,
    Survey,
)
from steersman.intent.verdict import Rest, Wake

LONGEST = 160
"""Characters that a message may take in a trace."""
SHOWN = 4
"""How many causes, fields or counts are spelt out before the rest is only counted."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One action of a round, in words."""

    action: str
    """What was asked for, as `describe` says it."""
    outcome: str
    """Empty when it went through, else what was answered."""
    seconds: float


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A round that ended in an error instead of a verdict."""

    error: str
    code: int = 500
    """Of the refusal, where it was one."""


Ending: TypeAlias = Rest | Wake | Failure


class Round(msgspec.Struct, frozen=True, gc=False):
    """One look at one key, from its causes to its end."""

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
        """Remember a round; the oldest of the same controller makes room for it."""
        ring = self._rings.get(round_.controller)
        if ring is None:
            ring = self._rings[round_.controller] = deque(maxlen=self._capacity)
        ring.append((next(self._numbers), round_))

    def rounds(self, controller: str | None = None, key: Key | None = None) -> list[Round]:
        """What is remembered, oldest first; of one controller, of one key, or both."""
        rings = list(self._rings.values()) if controller is None else [self._rings.get(controller, deque())]
        # The numbers are unique, so the merge never has to compare two rounds.
        found = heapq.merge(*rings)
        return [round_ for _, round_ in found if key is None or round_.key == key]

    def story(self, key: Key, controller: str | None = None) -> list[str]:
        """What happened to a key, a line for each round."""
        return [tell(round_) for round_ in self.rounds(controller, key)]

    def json(self, controller: str | None = None, key: Key | None = None) -> bytes:
        """The rounds as JSON, one document a line. Equal rounds give equal bytes."""
        return b"".join(encode(round_) + b"\n" for round_ in self.rounds(controller, key))


def tell(round_: Round) -> str:
    """A round as one line for people."""
    parts = []
    if round_.causes:
        parts.append(f"because {_some(round_.causes, ', ')}")
    parts.append(f"waited {span(round_.waited)}")
    parts.extend(_told(step) for step in round_.steps)
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
    """A length of time the way one says it."""
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


# -- actions in words -------------------------------------------------------------------------


def describe(action: Action[Any]) -> str:
    """An action as a short imperative: verb, kind, name, and the least that tells it from others.

    Field names may appear, field values only where they are counts; an event's message does,
    since it is written for everybody to read.
    """
    words = _WORDS.get(type(action))
    return words(action) if words is not None else type(action).__name__.lower()


def outcome(answer: object) -> str:
    """How an action went: empty when it went through, else what was refused and why."""
    if isinstance(answer, ApiError):
        return refusal(answer)
    if isinstance(answer, Unreadable):
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
    """An API error in one short line. A validation error quotes values, so of it only the fields."""
    name = type(error).__name__
    if isinstance(error, Invalid):
        fields = tuple(cause.field for cause in error.causes if cause.field)
        return f"{name}: {_some(fields, ', ')}" if fields else name
    return f"{name}: {_short(error.message)}" if error.message else name


def _create(action: Create[Any]) -> str:
    meta = _get(action.body, "metadata")
    name = _get(meta, "name") or f"{_get(meta, 'generateName') or ''}*"
    return f"create {action.kind.name.lower()} {Key(action.namespace, name)}"


def _update_status(action: UpdateStatus[Any]) -> str:
    changes = tuple(_counts(_get(action.obj, "status"), action.status))
    if action.annotations is not None and dict(action.annotations) != dict(action.obj.metadata.annotations):
        changes = (*changes, "annotations")
    return f"update {_what(action.obj)} status{_detail(changes)}"


def _patch(action: Patch[Any]) -> str:
    where = f" {action.subresource}" if action.subresource else ""
    return f"patch {_what(action.obj)}{where}{_detail(tuple(_paths(action.body)))}"


def _delete(action: Delete) -> str:
    how: list[str] = [action.propagation] if action.propagation else []
    if action.exact:
        how.append("exact")
    if action.grace is not None:
        how.append(f"grace {action.grace} s")
    return f"delete {_what(action.obj)}{_detail(tuple(how))}"


def _emit(action: Emit) -> str:
    what = _what(action.about) if action.kind is None else f"{action.kind.name.lower()} {action.about.key}"
    return f"emit {action.type} {action.reason} about {what}: {_short(action.message)}"


def _place(action: Any) -> str:
    return f"{action.kind.name.lower()} {Key(action.namespace, action.name)}"


def _remove(action: Remove) -> str:
    how: list[str] = [action.propagation] if action.propagation else []
    if action.version:
        how.append("exact")
    return f"delete {_place(action)}{_detail(tuple(how))}"


def _batch(action: Batch[Any]) -> str:
    if len(action.actions) == 1:
        return describe(action.actions[0])
    tally: dict[tuple[str, str, str], int] = {}
    for one in action.actions:
        kind = getattr(one, "kind", None) or _kind(getattr(one, "obj", None))
        verb = _VERBS.get(type(one), "do")
        group = (verb, kind.name.lower(), kind.plural) if kind is not None else (verb, "action", "actions")
        tally[group] = tally.get(group, 0) + 1
    if len(tally) > SHOWN:
        every: dict[str, list[int]] = {}
        for (verb, _, _), n in tally.items():
            every.setdefault(verb, []).append(n)
        return _JOIN.join(f"{verb} {sum(counts)} of {len(counts)} kinds" for verb, counts in every.items())
    said = (f"{verb} {n} {one if n == 1 else many}" for (verb, one, many), n in tally.items())
    return _JOIN.join(said) or "nothing"


_WORDS: dict[type, Callable[[Any], str]] = {
    Create: _create,
    Update: lambda action: f"update {_what(action.obj)}",
    UpdateStatus: _update_status,
    Patch: _patch,
    Amend: lambda action: f"amend {_what(action.obj)}",
    Delete: _delete,
    Evict: lambda action: f"evict {_what(action.obj)}",
    ReadLive: lambda action: f"read {_what(action.obj)}",
    Ask: lambda action: f"ask {action.kind.name.lower()}",
    Load: lambda action: f"load {action.path}",
    Draw: lambda action: f"draw {action.bits} bits",
    Emit: _emit,
    Measure: lambda action: f"measure {action.metric.name} {action.value:g}",
    Elapsed: lambda action: "look at the clock",
    Batch: _batch,
    Discover: lambda action: "discover",
    Consult: lambda action: f"read {action.path}",
    Read: lambda action: f"read {_place(action)}",
    Latest: lambda action: f"read the version of {action.kind.resource}",
    ReadPart: lambda action: f"read {_place(action)} {action.subresource}",
    Survey: lambda action: f"list {action.kind.resource} in {action.namespace}",
    Remove: _remove,
    RemoveAll: lambda action: f"delete all {action.kind.resource} in {action.namespace}",
    Alter: lambda action: f"patch {_place(action)}{_detail(tuple(_paths(action.body)))}",
    Replace: lambda action: f"update {_place(action)}{action.subresource and ' ' + action.subresource}",
}

_VERBS: dict[type, str] = {
    Create: "create",
    Update: "update",
    UpdateStatus: "update",
    Patch: "patch",
    Amend: "amend",
    Delete: "delete",
    Evict: "evict",
    ReadLive: "read",
    Ask: "ask",
    Load: "load",
    Draw: "draw",
    Emit: "emit",
    Measure: "measure",
    Elapsed: "look at",
    Batch: "do",
    Discover: "discover",
    Consult: "read",
    Read: "read",
    ReadPart: "read",
    Latest: "read",
    Survey: "list",
    Remove: "delete",
    RemoveAll: "delete all",
    Alter: "patch",
    Replace: "update",
}

_JOIN = " + "

_PAST = {
    "create": "created",
    "update": "updated",
    "patch": "patched",
    "amend": "amended",
    "delete": "deleted",
    "evict": "evicted",
    "emit": "emitted",
    "measure": "measured",
}


def _told(step: Step) -> str:
    if step.outcome:
        return f"{step.action} ({step.outcome})"
    parts = (part.partition(" ") for part in step.action.split(_JOIN))
    return _JOIN.join(_PAST.get(verb, verb) + space + rest for verb, space, rest in parts)


def _kind(obj: object) -> Any:
    try:
        return kind_of(obj)
    except LookupError:
        return None


def _what(obj: Any) -> str:
    kind = _kind(obj)
    return f"{(kind.name if kind is not None else type(obj).__name__).lower()} {obj.key}"


def _get(holder: Any, field: str) -> Any:
    """A field of a struct or of a plain document, None where there is none."""
    # Structs first: the check of an abstract class costs more than all the rest.
    if isinstance(holder, msgspec.Struct):
        return getattr(holder, field, None)
    return holder.get(field) if isinstance(holder, Mapping) else None


def _counts(old: Any, new: Any) -> Iterator[str]:
    """The whole numbers of a status that change. Numbers say the most and give nothing away."""
    fields: Any = new.__struct_fields__ if isinstance(new, msgspec.Struct) else new
    for field in fields if isinstance(fields, tuple | Mapping) else ():
        value = _get(new, field)
        if type(value) is int:
            before = _get(old, field)
            if before != value:
                yield f"{field} {before} -> {value}" if type(before) is int else f"{field} {value}"


def _paths(body: object) -> Iterator[str]:
    """The fields a patch names, two levels deep, without their values."""
    if not isinstance(body, Mapping):
        if isinstance(body, list | tuple):
            yield from (str(_get(operation, "path")) for operation in body)
        return
    for field, value in body.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{field}.{inner}" for inner in value)
        else:
            yield field


def _some(things: tuple[str, ...], joint: str) -> str:
    if len(things) <= SHOWN:
        return joint.join(things)
    return f"{joint.join(things[:SHOWN])} and {len(things) - SHOWN} more"


def _detail(things: tuple[str, ...]) -> str:
    return f" ({_some(things, ', ')})" if things else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
