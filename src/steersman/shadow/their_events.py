"""The acting manager's events: about creates that were refused, and about objects that it deleted.

A server that refuses a create (a full quota, an admission webhook) refuses ours as well, and only the acting manager has tried. And the API
does not tell who deleted an object, unless a controller says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from steersman.api.errors import ApiError, Cause, Forbidden
from steersman.api.kinds import NAMESPACES, Object, ObjectReference, Struct
from steersman.api.scheme import Key, Kind
from steersman.intent.actions import Create
from steersman.runtime.action_table.text import field_of
from steersman.runtime.informer import Informers
from steersman.runtime.store import Store
from steersman.shadow.intention import controller_uid

REFUSED_FOR = timedelta(minutes=20)
"""How long a refusal is taken to stand after it was last told: the longest back-off of a controller is 1000 s."""
ABOUT = "shadow: by subject"
FAILED_CREATE = "FailedCreate"
SUCCESSFUL_DELETE = "SuccessfulDelete"
_PREFIXES = ("Error creating: ", "Error creating job: ")


class Source(Struct, frozen=True):
    component: str = ""


class TheirEvent(Object, frozen=True):
    """An event as far as it is compared."""

    involvedObject: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: Source = Source()
    reportingComponent: str = ""
    firstTimestamp: datetime | None = None
    lastTimestamp: datetime | None = None
    eventTime: datetime | None = None


def component_of(event: TheirEvent) -> str:
    """The component that tells."""
    return event.source.component or event.reportingComponent


def last_told(event: TheirEvent) -> datetime | None:
    """When an event was told last."""
    times = (event.lastTimestamp, event.eventTime, event.firstTimestamp, event.metadata.creationTimestamp)
    return next((time for time in times if time is not None), None)


EVENTS: Kind[TheirEvent] = Kind("", "v1", "Event", "events", True, TheirEvent)
REFUSALS = EVENTS.where(f"reason={FAILED_CREATE}")
DELETIONS = EVENTS.where(f"reason={SUCCESSFUL_DELETE}")


def _subject(event: TheirEvent) -> Iterable[str]:
    return (event.involvedObject.uid,)


class Refusals:
    """The creates that the server refuses, as far as caches and events tell."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._events: Store[TheirEvent] = informers.informer(REFUSALS).store
        self._events.add_index(ABOUT, _subject)

    def of(self, action: Create[object], newest: datetime | None, now: datetime) -> ApiError | None:
        """The error that a server would answer a create with; None where it would grant it.

        ``newest`` is when the owner's newest object was created: a refusal that is older no longer stands.
        """
        if self._terminating(action.namespace):
            message = f"namespace {action.namespace} is being terminated"
            return Forbidden(message, causes=(Cause("NamespaceTerminating", message, "metadata.namespace"),))
        owner = controller_uid(field_of(action.body, "metadata"))
        if not owner:
            return None
        told = {last_told(event): event for event in self._events.by(ABOUT, owner)}
        last = max((time for time in told if time is not None), default=None)
        if last is None or now - last > REFUSED_FOR or (newest is not None and newest > last):
            return None
        return Forbidden(refusal(told[last].message))

    def _terminating(self, namespace: str) -> bool:
        known = self._informers.known(NAMESPACES)
        found = known.store.get(Key("", namespace)) if known is not None else None
        return found is not None and found.metadata.deletionTimestamp is not None


def refusal(message: str) -> str:
    """The error of the server in the message of an event."""
    for prefix in _PREFIXES:
        if message.startswith(prefix):
            return message.removeprefix(prefix)
    return message


def names_in(message: str) -> tuple[str, ...]:
    """The words of a message that may be names of objects: ``Deleted pod: web-x``."""
    return tuple(word.strip('":,.') for word in message.split())
