"""What happened in a cluster, in the order it happened: every write with who made it, every round with why.

A chronicle keeps what it is told of as it is, and puts it into words only for those who ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.runtime.trace import Round, Trace
from steersman.server.server import Admission, AdmissionAttributes, BeforeWrite, Server
from steersman.server.storage.watch import Commit
from steersman.sim.loop import in_background
from steersman.testing.narration import EVENTS, about, is_idle, looked, told, written

KEPT = 50_000
"""How many writes and rounds are remembered."""
QUIET = "leases.coordination.k8s.io"


class Entry(msgspec.Struct, frozen=True):
    """One thing that happened to an object."""

    at: datetime
    who: str
    """Who wrote, or which controller looked."""
    resource: str
    """Such as ``deployments.apps``."""
    key: Key
    what: str
    """In words: what was changed, or what a controller did and why it stopped."""

    def __str__(self) -> str:
        at = self.at.strftime("%H:%M:%S.") + f"{self.at.microsecond // 1000:03d}"
        return f"{at} {self.who}: {self.resource.partition('.')[0]} {self.key} {self.what}"


class _Note(msgspec.Struct, frozen=True):
    at: datetime
    who: str
    said: Commit | Round
    resource: str = ""


class Chronicle:
    """Follows one server, and the controllers that are given its `trace`."""

    def __init__(self, server: Server, before: Chronicle | None = None) -> None:
        """``before`` is of the server this one was forked from: what happened there happened here."""
        self.changed: list[Callable[[], None]] = []
        """Called after each write that is no heartbeat."""
        self.writes = 0
        """How many there were, heartbeats aside."""
        self.resources: dict[str, str] = {} if before is None else dict(before.resources)
        """By controller: the resource its keys are of."""
        self._server = server
        self._notes: deque[_Note] = deque(before._notes if before is not None else (), maxlen=KEPT)
        self._verdicts: dict[tuple[str, Key], str] = {}
        """By controller and key: how the last round ended."""
        self._user = ""
        self.trace: Trace = _Told(self)
        server.store.commit_hooks.append(self._wrote)
        if server.admission is not None:
            server.admission = _Witness(server.admission, self._asked)

    def _asked(self, user: str) -> None:
        self._user = user

    def _wrote(self, commit: Commit) -> None:
        if commit.resource == QUIET or in_background():
            return
        # What goes by itself was asked for by nobody.
        expired = commit.resource in EVENTS and commit.event.type is EventType.DELETED
        who = "server" if expired or not self._user else self._user
        self._notes.append(_Note(self._server.clock.now(), who.rpartition(":")[2], commit))
        self.writes += 1
        for tell_ in tuple(self.changed):
            tell_()

    def looked(self, round_: Round) -> None:
        """A controller had a round. One that ends as the last did, and did nothing, is no news."""
        about = round_.controller, round_.key
        verdict = getattr(round_.ending, "because", "")
        if is_idle(round_) and self._verdicts.get(about) == verdict:
            return
        self._verdicts[about] = verdict
        resource = self.resources.get(round_.controller, "")
        self._notes.append(_Note(round_.started, round_.controller, round_, resource))

    def forget_idle_rounds(self) -> None:
        """Forget the rounds in which nothing was done. A start has many."""
        kept = (note for note in self._notes if not (isinstance(note.said, Round) and is_idle(note.said)))
        self._notes = deque(kept, maxlen=KEPT)

    # -- asking -------------------------------------------------------------------------------

    def entries(self, resource: str = "", key: Key | None = None, last: int = 0) -> list[Entry]:
        """What happened to one object or to all, oldest first; at most the ``last``."""
        found: list[Entry] = []
        # A copy is made in one piece: a cluster that is served goes on meanwhile.
        for note in reversed(self._notes.copy()):
            entry = _entry(note, resource, key)
            if entry is not None:
                found.append(entry)
                if len(found) == last:
                    break
        return found[::-1]

    def standing(self) -> Iterator[Round]:
        """The last round of each controller about each key, the latest first."""
        seen: dict[tuple[str, Key], None] = {}
        for note in reversed(self._notes.copy()):
            if isinstance(note.said, Round):
                about = note.said.controller, note.said.key
                if about not in seen:
                    seen[about] = None
                    yield note.said


class _Told(Trace):
    def __init__(self, chronicle: Chronicle) -> None:
        super().__init__()
        self._chronicle = chronicle

    def record(self, round_: Round) -> None:
        super().record(round_)
        self._chronicle.looked(round_)


class _Witness:
    """Admission that notes who asks, and leaves the rest to another."""

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
    """A note in words, where it is of this resource and key."""
    said = note.said
    if isinstance(said, Round):
        if (resource and resource != note.resource) or (key is not None and key != said.key):
            return None
        return Entry(note.at, note.who, note.resource, said.key, looked(said))
    if said.resource in EVENTS:
        # An event is something that happened to what it is about.
        name, where = about(said.obj)
        if said.event.type is EventType.DELETED or (resource and resource != name):
            return None
        words = told(said.obj)
    else:
        name, where = said.resource, Key(said.obj.metadata.namespace, said.obj.metadata.name)
        if resource and resource != name:
            return None
        words = ""
    if key is not None and key != where:
        return None
    return Entry(note.at, note.who, name, where, words or written(said))
