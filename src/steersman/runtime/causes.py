"""Causes: why a key was enqueued. An event of a watched object, a timer, or one of a few plain words."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from steersman.api.scheme import Key, Kind

START = "start"
"""The controller has just started."""
RESYNC = "resync"
"""The periodic round of a controller that must not rely on events alone."""
RETRY = "retry after a failure"
"""The last round of the key failed."""
CACHE_TIMEOUT = "timed out waiting for the cache"
"""The cache did not show the key's own writes in time."""
DECODABLE = "an object can be decoded again"
"""The last round of the key failed because an object could not be decoded."""

MAX_CAUSES = 8
"""How many causes are kept for one round; the rest is an ellipsis."""
MORE = "…"


class Event(msgspec.Struct, frozen=True, gc=False):
    """Watch events about one object. Several in a row are one cause, from the first resourceVersion to the last."""

    kind: Kind[Any]
    key: Key
    type: str
    """``added``, ``changed`` or ``deleted``."""
    first: str
    last: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key} {self.type}"


class Timer(msgspec.Struct, frozen=True, gc=False):
    """The `Wake` of an earlier round is due."""

    because: str

    def __str__(self) -> str:
        return self.because


class CaughtUp(msgspec.Struct, frozen=True, gc=False):
    """The cache of a resource shows the key's own writes now."""

    resource: str

    def __str__(self) -> str:
        return f"{self.resource} cache caught up"


Cause: TypeAlias = Event | Timer | CaughtUp | str


def add_cause(causes: tuple[Cause, ...], cause: Cause) -> tuple[Cause, ...]:
    """The causes and one more, bounded: a key can be added a thousand times before it is handed out."""
    if type(cause) is Event:
        # Called for every watch event, so names are looked up once.
        key, kind, event, last = cause.key, cause.kind, cause.type, cause.last
        for number, known in enumerate(causes):
            if type(known) is Event and known.key == key and known.kind is kind and known.type == event:
                if known.last == last:
                    return causes
                return (*causes[:number], Event(kind, key, event, known.first, last), *causes[number + 1 :])
    elif not cause or cause in causes:
        return causes
    if len(causes) < MAX_CAUSES:
        return (*causes, cause)
    return causes if causes[-1] == MORE else (*causes, MORE)


def type_of(cause: Cause) -> str:
    """The type of a cause: event, timer, cache, start, resync, retry or other."""
    match cause:
        case Event():
            return "event"
        case Timer():
            return "timer"
        case CaughtUp() | "timed out waiting for the cache":
            return "cache"
        case "start" | "resync":
            return cause
        case "retry after a failure" | "an object can be decoded again":
            return "retry"
    return "other"
