"""Verdicts: how a round ends. Every decision says why it rests, or when it wakes and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import msgspec

from steersman.api.scheme import Key, Kind


class Rest(msgspec.Struct, frozen=True):
    """Nothing more to do until a watched object changes."""

    because: str


class Wake(msgspec.Struct, frozen=True):
    """Run another round of the key after a delay, even if nothing changes."""

    after: timedelta
    because: str
    renewed_by: str = ""
    """The `heartbeat_of` an object (a node's Lease, say) whose every change runs a round of this key, so that the
    delay only ever passes when the heartbeats stop. The verdict of each of those rounds replaces this one. Under
    virtual time such a timer costs nothing while the heartbeats go on: neither they nor it are simulated one by one."""


def heartbeat_of(kind: Kind[Any], key: Key) -> str:
    """The name of an object's heartbeat, for `Wake.renewed_by`."""
    return f"{kind.resource} {key}"


Verdict: TypeAlias = Rest | Wake


class InvalidSpec(Exception):
    """An object asks for something impossible that the API server should not have let through.

    Raised by a decision: its round fails, is counted and shown, and is retried with back-off, in case the object is
    corrected.
    """
