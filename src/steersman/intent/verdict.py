"""How a round ends. There is no silent return: every decision says why it rests or when it wakes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import msgspec

from steersman.api.scheme import Key, Kind


class Rest(msgspec.Struct, frozen=True):
    """Nothing more to do until something the controller watches changes."""

    because: str


class Wake(msgspec.Struct, frozen=True):
    """Look at the same key again after this long, whatever happens until then."""

    after: timedelta
    because: str
    hears: str = ""
    """The `voice` of an object whose every change leads to a round of this key, where silence alone is what the
    key is to be woken for. Each further verdict takes the place of this one. Under virtual time a heart that
    beats then costs nothing: neither the beats nor the waking is there until somebody looks."""


def voice(kind: Kind[Any], key: Key) -> str:
    """What `Wake.hears` calls an object."""
    return f"{kind.resource} {key}"


Verdict: TypeAlias = Rest | Wake


class Nonsense(Exception):
    """The object asks for something that cannot be, past what the server should let through.

    Raised by a decision: its round fails alone, is counted and shown, and is tried again with
    back-off, in case somebody mends the object.
    """
