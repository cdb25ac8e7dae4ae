"""Capabilities: what an `Api` promises beyond its verbs.

A server across a network promises nothing. A server in the same process is steady and can tell when a kind has no
objects; clients use that to leave out requests that could not make a difference. See `steersman.runtime.heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from steersman.api.scheme import Kind


class EmptyKind(Protocol):
    """A kind that has no objects, and a callback for when it gets one."""

    @property
    def version(self) -> str:
        """The resourceVersion at which the kind has no objects."""
        ...

    def end(self) -> None:
        """Drop the callback."""
        ...


class Capabilities:
    """The promises of an `Api`. The defaults are those of a server across a network."""

    def __init__(self, *, steady: bool = False) -> None:
        self._steady = steady

    @property
    def steady(self) -> bool:
        """Requests never fail by chance, and a watch lasts as long as it is read."""
        return self._steady

    def when_not_empty(self, kind: Kind[Any], wake: Callable[[], None]) -> EmptyKind | None:
        """Call ``wake`` once a kind that has no objects may have one, so that it need not be watched until then.

        None if the kind has objects, or if the server cannot tell.
        """
        return None


REMOTE = Capabilities()
"""The capabilities of a server across a network."""
