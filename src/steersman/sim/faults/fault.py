"""What a fault is: a frozen value with a textual form, and its behaviour once it is active in a world.

A `FaultInjector` activates faults. It numbers the requests of a manager across its restarts, and calls each active fault before
and after every request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from steersman.api.clock import Clock
from steersman.client.api import WatchEvent

if TYPE_CHECKING:
    from steersman.sim.faults.injector import FaultInjector

Events: TypeAlias = AsyncIterator[WatchEvent[Any]]

WRITES = frozenset(
    {"create", "update", "update_status", "patch", "delete", "delete_collection", "subresource"}
)
UNNUMBERED = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Resources whose writes are not numbered: they report decisions, but are not decisions."""


class Call(NamedTuple):
    """A request of a manager."""

    verb: str
    """The method of `Api`: ``create``, ``update_status``, ``watch``, ``discover`` …"""
    resource: str
    """Such as ``deployments.apps``."""
    plural: str
    namespace: str
    name: str
    write: int
    """The number of the write, from 1; 0 for reads and for resources in `UNNUMBERED`."""
    incarnation: int
    """How often the manager has been restarted, from 0."""
    initial: bool = False
    """Whether a watch begins with the current objects."""
    number: int = 0
    """The number of the request, from 1: reads and all writes."""
    client: int = 0
    """The number of the client, from 1. Each controller of each manager has one of its own."""

    def about(self, kind: str) -> bool:
        """Whether it is about a kind, given as plural or in full; an empty kind matches any."""
        return not kind or kind in (self.plural, self.resource)


def describe(call: Call) -> str:
    """A request for reports."""
    name = f"{call.namespace}/{call.name}".strip("/")
    number = f"write {call.write}: " if call.write else ""
    return f"{number}{call.verb} {call.resource} {name}".rstrip()


class ActiveFault:
    """A fault at work in one world. Every hook does nothing unless overridden."""

    def begin(self) -> None:
        """Called when the world starts."""

    async def before(self, call: Call) -> None:
        """Called before a request is sent. May wait, or raise the error that the manager gets instead."""

    async def after(self, call: Call, answer: Any) -> Any:
        """Called after a request was carried out: returns the response that the manager gets, or raises."""
        return answer

    async def refused(self, call: Call) -> None:
        """Called after the server refused a request, before the manager gets the error."""

    def stream(self, call: Call, events: Events) -> Events:
        """Called when a watch starts: returns the events that the manager gets."""
        return events

    def clock(self, clock: Clock) -> Clock:
        """The clock that the manager reads."""
        return clock


class Fault(msgspec.Struct, frozen=True):
    """A fault. Equal faults in equal worlds behave the same."""

    name: ClassVar[str] = ""
    """Its name in text, such as ``crash_after_write``."""
    allowed_violations: ClassVar[frozenset[str]] = frozenset()
    """Invariants of the explorer that no manager can keep under this fault."""

    def allows(self) -> frozenset[str]:
        """The invariants that may be violated under this fault."""
        return self.allowed_violations

    def activate(self, injector: FaultInjector) -> ActiveFault:
        """The fault at work in a world."""
        raise NotImplementedError

    def __str__(self) -> str:
        words = []
        for field in msgspec.structs.fields(type(self)):
            value = getattr(self, field.name)
            if field.required:
                words.append(_word(value))
            elif value != field.default:
                words.append(f"{field.name}={_word(value)}")
        return f"{self.name}({', '.join(words)})"


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else '""'
