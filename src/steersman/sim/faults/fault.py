"""What a fault is: a frozen value with a textual form, and what it does once it is armed in a world.

A fault says nothing about when it meets which request; it is armed on a `Stage`, which counts the requests
of a manager through all its lives, and asks each armed fault before and after every one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from steersman.client.api import WatchEvent
from steersman.runtime.clock import Clock

if TYPE_CHECKING:
    from steersman.sim.faults.injector import Stage

Events: TypeAlias = AsyncIterator[WatchEvent[Any]]

WRITES = frozenset(
    {"create", "update", "update_status", "patch", "delete", "delete_collection", "subresource"}
)
ASIDE = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""What is written beside the work: told, not decided upon. Such writes are not numbered."""


class Call(NamedTuple):
    """One request of a manager."""

    verb: str
    """As `Api` calls it: ``create``, ``update_status``, ``watch``, ``discover`` …"""
    resource: str
    """As in ``deployments.apps``."""
    plural: str
    namespace: str
    name: str
    write: int
    """Which write of the manager it is, from 1; 0 for what is no write, or one `ASIDE`."""
    life: int
    """Which life of the manager it belongs to, from 0: each restart begins another."""
    initial: bool = False
    """A watch that begins with everything there is."""

    def about(self, kind: str) -> bool:
        """Whether it is about a kind, named by its plural or in full; an empty name is any."""
        return not kind or kind in (self.plural, self.resource)


class Armed:
    """A fault at work in one world. Does nothing at any point it does not override."""

    def begin(self) -> None:
        """The world begins."""

    async def before(self, call: Call) -> None:
        """A request is about to be sent. May wait, or raise what the manager is to get instead."""

    async def after(self, call: Call, answer: Any) -> Any:
        """A request was carried out: answers what the manager is told, or raises."""
        return answer

    def stream(self, call: Call, events: Events) -> Events:
        """A watch begins: answers what the manager reads of it."""
        return events

    def clock(self, clock: Clock) -> Clock:
        """The time as the manager reads it."""
        return clock


@dataclass(frozen=True, slots=True)
class Fault(ABC):
    """Something that goes wrong. Equal faults in equal worlds do the same."""

    word: ClassVar[str] = ""
    """What it is called in text: ``crash_after_write``."""
    excuses: ClassVar[frozenset[str]] = frozenset()
    """What no manager could keep up under this fault, by the names of an explorer's rules."""

    @property
    def excused(self) -> frozenset[str]:
        """What this very one excuses."""
        return self.excuses

    @abstractmethod
    def arm(self, stage: Stage) -> Armed:
        """The fault in a world, ready to go wrong."""

    def __str__(self) -> str:
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING:
                words.append(_word(value))
            elif value != field.default:
                words.append(f"{field.name}={_word(value)}")
        return f"{self.word}({', '.join(words)})"


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else '""'
