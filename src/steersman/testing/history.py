"""The history of a cluster: every write with its client, every round with its verdict.

Writes and rounds are kept as they are, and described only when asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.runtime.trace import Round, Trace
from steersman.server.server import Admission, AdmissionAttributes, BeforeWrite, Server
from steersman.server.storage.watch import Commit
from steersman.sim.loop import in_background
from steersman.testing.narration import (
    EVENTS,
    about,
    describe_event,
    describe_round,
    describe_write,
    is_idle,
    is_start,
)

CAPACITY = 50_000
"""Maximum number of writes and rounds kept."""
QUIET = "leases.coordination.k8s.io"


WriteListener: TypeAlias = Callable[[datetime, str, Commit], None]
"""Called with the time, the actor and the commit of a write."""


class Entry(msgspec.Struct, frozen=True):
    """A write to an object, an event about it, or a round of a controller."""

    at: datetime
    actor: str
    """The client that wrote, or the controller of the round."""
    resource: str
    """Such as ``deployments.apps``."""
    key: Key
    description: str
    """The change, or the verdict of the round."""

    def __str__(self) -> str:
        at = self.at.strftime("%H:%M:%S.") + f"{self.at.microsecond // 1000:03d}"
        return f"{at} {self.actor}: {self.resource.partition('.')[0]} {self.key} {self.description}"


class _Note(msgspec.Struct, frozen=True):
    at: datetime
    actor: str
    record: Commit | Round
    resource: str = ""


class History:
    """Records the writes of one server, and the rounds of controllers that use its `trace`."""

    def __init__(self, server: Server, before: History | None = None) -> None:
        """``before`` is the history of the server that this one was forked from."""
        self.changed: list[Callable[[], None]] = []
        """Called after each write, except heartbeats."""
        self.listeners: list[WriteListener] = []
        """Called with each write and its actor, except heartbeats."""
        self.writes = 0
        """Number of writes, without heartbeats."""
        self.resources: dict[str, str] = {} if before is None else dict(before.resources)
        """The resource of a controller's keys, by controller."""
        self._server = server
        self._notes: deque[_Note] = deque(before._notes if before is not None else (), maxlen=CAPACITY)
        self._verdicts: dict[tuple[str, Key], str] = {}
        """The last verdict, by controller and key."""
        self._user = ""
        self.trace: Trace = _HistoryTrace(self)
        server.store.commit_hooks.append(self._on_commit)
        if server.admission is not None:
            server.admission = _UserRecorder(server.admission, self._on_request)

    def _on_request(self, user: str) -> None:
        self._user = user

    def _on_commit(self, commit: Commit) -> None:
        if commit.resource == QUIET or in_background():
            return
        # Events expire without a request.
        expired = commit.resource in EVENTS and commit.event.type is EventType.DELETED
        actor = "server" if expired or not self._user else self._user
        actor, now = actor.rpartition(":")[2], self._server.clock.now()
        self._notes.append(_Note(now, actor, commit))
        for listener in self.listeners:
            listener(now, actor, commit)
        self.writes += 1
        for tell_ in tuple(self.changed):
            tell_()

    def describe_round(self, round_: Round) -> None:
        """Record a round. An idle round with the same verdict as the last is skipped."""
        about = round_.controller, round_.key
        verdict = getattr(round_.ending, "because", "")
        if is_idle(round_) and self._verdicts.get(about) == verdict:
            return
        self._verdicts[about] = verdict
        resource = self.resources.get(round_.controller, "")
        self._notes.append(_Note(round_.started, round_.controller, round_, resource))

    def forget_start(self) -> None:
        """Forget what each start of a manager brings: idle rounds, and the registration of nodes."""
        kept = (note for note in self._notes if not is_start(note.record))
        self._notes = deque(kept, maxlen=CAPACITY)

    # -- reading ------------------------------------------------------------------------------

    def entries(self, resource: str = "", key: Key | None = None, last: int = 0) -> list[Entry]:
        """The entries of one object or of all, oldest first; at most the ``last``."""
        found: list[Entry] = []
        # The copy is atomic: a served cluster keeps writing meanwhile.
        for note in reversed(self._notes.copy()):
            entry = _entry(note, resource, key)
            if entry is not None:
                found.append(entry)
                if len(found) == last:
                    break
        return found[::-1]

    def last_rounds(self) -> Iterator[Round]:
        """The last round of each controller and key, latest first."""
        seen: dict[tuple[str, Key], None] = {}
        for note in reversed(self._notes.copy()):
            if isinstance(note.record, Round):
                about = note.record.controller, note.record.key
                if about not in seen:
                    seen[about] = None
                    yield note.record


class _HistoryTrace(Trace):
    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def record(self, round_: Round) -> None:
        super().record(round_)
        self._history.describe_round(round_)


class _UserRecorder:
    """Admission that records the user of each request, and delegates to another."""

    def __init__(self, behind: Admission, tell: Callable[[str], None]) -> None:
        self.behind = behind
        self.tell = tell

    def mutate(self, request: AdmissionAttributes) -> Any:
        return self.behind.mutate(request)

    def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
        settle = self.behind.validate(request)
        self.tell(request.user.name)
        return settle

    def warnings(self, request: AdmissionAttributes) -> tuple[str, ...]:
        return self.behind.warnings(request)


def _entry(note: _Note, resource: str, key: Key | None) -> Entry | None:
    """The entry of a note; None where it is of another resource or key."""
    record = note.record
    if isinstance(record, Round):
        if (resource and resource != note.resource) or (key is not None and key != record.key):
            return None
        return Entry(note.at, note.actor, note.resource, record.key, describe_round(record))
    if record.resource in EVENTS:
        # An event belongs to the history of its object.
        name, where = about(record.obj)
        if record.event.type is EventType.DELETED or (resource and resource != name):
            return None
        description = describe_event(record.obj)
    else:
        name, where = record.resource, Key(record.obj.metadata.namespace, record.obj.metadata.name)
        if resource and resource != name:
            return None
        description = ""
    if key is not None and key != where:
        return None
    return Entry(note.at, note.actor, name, where, description or describe_write(record))
