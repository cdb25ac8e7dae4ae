"""What happened in a cluster, in the order it happened: every write with who made it, every round with why.

A chronicle keeps what it is told of as it is, and puts it into words only for those who ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.runtime.trace import Round, Trace, tell
from steersman.server.convert import document
from steersman.server.core import Admission, Attributes, Server, Settle
from steersman.server.watch import Commit

KEPT = 50_000
"""How many writes and rounds are remembered."""
SHOWN = 8
"""How many changed fields of a write are spelt out."""
LONGEST = 60
QUIET = "leases.coordination.k8s.io"
EVENTS = ("events", "events.events.k8s.io")
DULL = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class Entry:
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


@dataclass(frozen=True, slots=True)
class _Note:
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
        self._user = ""
        self.trace: Trace = _Told(self)
        server.store.taps.append(self._wrote)
        if server.admission is not None:
            server.admission = _Witness(server.admission, self._asked)

    def _asked(self, user: str) -> None:
        self._user = user

    def _wrote(self, commit: Commit) -> None:
        if commit.resource == QUIET:
            return
        # What goes by itself was asked for by nobody.
        expired = commit.resource in EVENTS and commit.event.type is EventType.DELETED
        who = "server" if expired or not self._user else self._user
        self._notes.append(_Note(self._server.clock.now(), who.rpartition(":")[2], commit))
        self.writes += 1
        for tell_ in tuple(self.changed):
            tell_()

    def looked(self, round_: Round) -> None:
        """A controller had a round."""
        resource = self.resources.get(round_.controller, "")
        self._notes.append(_Note(round_.started, round_.controller, round_, resource))

    # -- asking -------------------------------------------------------------------------------

    def entries(self, resource: str = "", key: Key | None = None, last: int = 0) -> list[Entry]:
        """What happened to one object or to all, oldest first; at most the ``last``."""
        found: list[Entry] = []
        for note in reversed(self._notes):
            entry = _entry(note, resource, key)
            if entry is not None:
                found.append(entry)
                if len(found) == last:
                    break
        return found[::-1]

    def standing(self) -> Iterator[Round]:
        """The last round of each controller about each key, the latest first."""
        seen: dict[tuple[str, Key], None] = {}
        for note in reversed(self._notes):
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

    def mutate(self, request: Attributes) -> Any:
        return self.behind.mutate(request)

    def validate(self, request: Attributes) -> Settle | None:
        settle = self.behind.validate(request)
        self.tell(request.user)
        return settle

    def warnings(self, request: Attributes) -> tuple[str, ...]:
        return self.behind.warnings(request)


# -- in words ---------------------------------------------------------------------------------


def _entry(note: _Note, resource: str, key: Key | None) -> Entry | None:
    said = note.said
    if isinstance(said, Round):
        if (resource and resource != note.resource) or (key is not None and key != said.key):
            return None
        words = tell(said).partition(f" {said.key}: ")[2]
        return Entry(note.at, note.who, note.resource, said.key, words)
    if said.resource in EVENTS:
        return _event(note, said, resource, key)
    if resource and said.resource != resource:
        return None
    where = Key(said.obj.metadata.namespace, said.obj.metadata.name)
    if key is not None and key != where:
        return None
    return Entry(note.at, note.who, said.resource, where, _written(said))


def _event(note: _Note, commit: Commit, resource: str, key: Key | None) -> Entry | None:
    """An event is something that happened to what it is about."""
    event = commit.obj
    about = getattr(event, "involvedObject", None) or getattr(event, "regarding", None)
    if commit.event.type is EventType.DELETED or about is None:
        return None
    where = Key(about.namespace, about.name)
    plural = f"{about.kind.lower()}s"
    group = about.apiVersion.rpartition("/")[0]
    name = f"{plural}.{group}" if group else plural
    if (resource and resource.lower() != name) or (key is not None and key != where):
        return None
    message = getattr(event, "message", "") or getattr(event, "note", "")
    return Entry(note.at, note.who, name, where, f"{event.type} event {event.reason}: {message}")


def _written(commit: Commit) -> str:
    if commit.event.type is EventType.DELETED:
        return "is gone"
    if commit.old is None:
        return "is created"
    if commit.resource == "secrets":
        return "changes"
    changes = list(differences(_plain(commit.old), _plain(commit.obj)))
    more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return "; ".join(changes[:SHOWN]) + more or "is written as it was"


def _plain(obj: Any) -> dict[str, Any]:
    return document("", "", replace(obj, metadata=replace(obj.metadata, managedFields=())))


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """What tells two documents apart, a field at a time. Conditions go by their type."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            if name not in DULL:
                yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif old == new:
        return
    elif path.endswith("conditions") and (isinstance(old, list) or isinstance(new, list)):
        before = {each.get("type"): each for each in old or ()}
        for each in new or ():
            was = before.get(each.get("type"), {})
            if (was.get("status"), was.get("reason")) != (each.get("status"), each.get("reason")):
                reason = f" ({each['reason']})" if each.get("reason") else ""
                yield f"{each.get('type')} is {each.get('status')}{reason}"
    elif old is None:
        yield f"{path} = {_short(new)}"
    elif new is None:
        yield f"{path} goes"
    else:
        yield f"{path}: {_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
