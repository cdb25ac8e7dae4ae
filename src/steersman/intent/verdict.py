"""How a round ends. There is no silent return: every decision says why it rests or when it wakes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing more to do until something the controller watches changes."""

    because: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Look at the same key again after this long, whatever happens until then."""

    after: timedelta
    because: str


Verdict: TypeAlias = Rest | Wake


class Nonsense(Exception):
    """The object asks for something that cannot be, past what the server should let through.

    Raised by a decision: its round fails alone, is counted and shown, and is tried again with
    back-off, in case somebody mends the object.
    """
