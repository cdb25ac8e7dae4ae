"""What a client in its server's own process may count on, and what the server may know of its readers.

Both are only ever used to leave out what nobody could tell from what is done: see `steersman.runtime.heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from steersman.api.scheme import Kind

LEVEL: ContextVar[bool] = ContextVar("level", default=False)
"""Set by who reads a watch to know how things are, and not each step by which they came to be so."""


def is_steady(api: object) -> bool:
    """Whether requests through an `Api` never fail by chance, and its watches last as long as they are read.

    True of a client in its server's own process; what wraps one says so itself (``steady``) while it lets
    everything pass.
    """
    return bool(getattr(api, "steady", False))


class Resting(Protocol):
    """That there is nothing of a kind, until there is."""

    @property
    def version(self) -> str:
        """The resourceVersion at which there is nothing."""
        ...

    def end(self) -> None:
        """Nobody waits for it any more."""
        ...


def rests(api: object, kind: Kind[Any], wake: Callable[[], None]) -> Resting | None:
    """Whether there is nothing of a kind to be read, and somebody who calls ``wake`` once there may be.

    Most kinds that are followed have no objects: nobody need read a watch of them until one comes. None where
    there is something, and where this cannot be told.
    """
    if not is_steady(api):
        return None
    ask: Callable[[Kind[Any], Callable[[], None]], Resting | None] | None = getattr(api, "rests", None)
    return ask(kind, wake) if ask is not None else None
