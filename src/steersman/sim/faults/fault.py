"""The base of faults: a frozen value with a textual form, and its behaviour once it is active in a world.

A `FaultInjector` activates faults. It numbers the requests of a manager across its restarts, and calls each active fault before
and after every request.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from steersman.api.clock import Clock
from steersman.api.generated import gated_resources, resources
from steersman.api.suggestions import hint
from steersman.client.api import WatchEvent

if TYPE_CHECKING:
    from steersman.sim.faults.injector import FaultInjector

Events: TypeAlias = AsyncIterator[WatchEvent[Any]]

WRITES = frozenset(
    {"create", "update", "update_status", "patch", "delete", "delete_collection", "subresource"}
)
READS = frozenset({"get", "list", "watch", "discover", "document"})
ANY_WRITE, ANY_READ = "write", "read"
"""Words for all verbs of a sort."""
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

    def __post_init__(self) -> None:
        """Refuses arguments with which the fault could never strike. Raises `TypeError` and `ValueError`."""
        for field in _arguments(type(self)):
            value = getattr(self, field.name)
            expected = (int, float) if field.type is float else field.type
            if not isinstance(value, expected) or isinstance(value, bool):
                sort = {float: "a number", int: "a whole number"}.get(field.type, "a word")
                raise TypeError(f"{self.name}: {field.name} must be {sort}, not {value!r}")
            problem = self.check(field.name, value)
            if problem:
                raise ValueError(f"{self.name}: {problem}")

    def check(self, argument: str, value: Any) -> str:
        """The problem with the value of an argument; empty if it is valid."""
        return CHECKS[argument](argument, value) if argument in CHECKS else ""

    def allows(self) -> frozenset[str]:
        """The invariants that may be violated under this fault."""
        return self.allowed_violations

    def activate(self, injector: FaultInjector) -> ActiveFault:
        """The fault at work in a world."""
        raise NotImplementedError

    def __str__(self) -> str:
        words = []
        for field in _arguments(type(self)):
            value = getattr(self, field.name)
            if field.required:
                words.append(_word(value))
            elif value != field.default:
                words.append(f"{field.name}={_word(value)}")
        return f"{self.name}({', '.join(words)})"


# -- arguments --------------------------------------------------------------------------------


@cache
def _arguments(fault: type[Fault]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(fault)


def _ordinal(name: str, value: int) -> str:
    return "" if value >= 1 else f"{name} counts from 1, not {value}"


def _duration(name: str, value: float) -> str:
    return "" if 0 <= value < math.inf else f"{name} must be a time in seconds, not {value:g}"


def _positive(name: str, value: float) -> str:
    return "" if 0 < value < math.inf else f"{name} must be above 0, not {value:g}"


def _error_code(name: str, value: int) -> str:
    return "" if 400 <= value <= 599 else f"{name} must be an error of HTTP, 400 to 599, not {value}"


def _verb(name: str, value: str) -> str:
    known = ("", ANY_READ, ANY_WRITE, *sorted(READS), *sorted(WRITES))
    return "" if value in known else f"unknown verb {value!r}; {hint(value, known[1:])}"


def _kind(name: str, value: str) -> str:
    # A custom resource is known to its cluster only, and given in full.
    if not value or value in _plurals() or ("." in value and value.lower() == value):
        return ""
    singular = _plurals_by_name().get(value.lower(), "")
    meant = f"did you mean {singular!r}?" if singular else hint(value, _plurals(), "give its plural")
    return f"unknown kind {value!r}; {meant} Custom resources are given in full: 'widgets.example.com'"


def is_kind(value: str) -> bool:
    """Whether a fault may name a kind like this. The plural of a custom resource alone is none."""
    return not _kind("kind", value)


@cache
def _plurals() -> frozenset[str]:
    """Built-in resources as faults name them: by plural, or in full."""
    rows = (*resources(), *gated_resources())
    return frozenset(
        {row.plural for row in rows} | {f"{row.plural}.{row.group}" for row in rows if row.group}
    )


@cache
def _plurals_by_name() -> dict[str, str]:
    rows = (*resources(), *gated_resources())
    return {name.lower(): row.plural for row in rows for name in (row.kind, row.singular, *row.short_names)}


CHECKS: Mapping[str, Callable[[str, Any], str]] = {
    "n": _ordinal,
    "nth": _ordinal,
    "times": _ordinal,
    "revisions": _ordinal,
    "seconds": _duration,
    "down": _duration,
    "heals": _duration,
    "rate": _positive,
    "code": _error_code,
    "verb": _verb,
    "kind": _kind,
}
"""The checks of the arguments of faults, by name: the same name means the same in all of them."""


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else '""'
