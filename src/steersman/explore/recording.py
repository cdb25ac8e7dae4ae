"""What a manager does in a run, written down: its writes, what it creates and deletes, what goes wrong."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from steersman.api.errors import ApiError
from steersman.api.kinds import LEASES
from steersman.client.api import EventType
from steersman.explore.elected_cluster import RETRY, identity
from steersman.intent.verdict import InvalidSpec
from steersman.runtime.shell import Deposed
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Commit
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite, describe
from steersman.sim.faults.fault import Armed, Call, Fault
from steersman.sim.faults.injector import Stage
from steersman.sim.faults.leaders import LEASE, NAMESPACE

RENEWED = RETRY + 1.0
"""Seconds within which a holder notices that the lease is another's: when it next renews it."""
EXPECTED = (ApiError, InvalidSpec, Deposed)
"""What may well be raised: by servers, about objects, and at those who no longer lead."""


@dataclass
class Record:
    """What one run saw of its managers."""

    stage: Stage | None = None
    done: int = 0
    """Writes that were carried out."""
    creates: Counter[str] = field(default_factory=Counter)
    """By resource and name, generated names without their random part."""
    deletes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    """By verb and plural."""
    changes: Counter[str] = field(default_factory=Counter)
    """By plural: how often anybody wrote to it, which is what its watchers see."""
    moments: dict[tuple[int, float], Fault] = field(default_factory=dict)
    """By the server's revision and the time: a crash at which this is what the next manager finds."""
    unfounded: list[str] = field(default_factory=list)
    """Writes by a manager that did not hold the lease."""
    led: bool = False
    """Whether there is a lease to be held."""


@dataclass(frozen=True, slots=True)
class Recording(Fault):
    """No fault: it only looks on. Comes first, so that it sees what happened before anything goes wrong."""

    record: Record

    def arm(self, stage: Stage) -> Armed:
        self.record.stage = stage
        return _Recorder(self.record, stage)


class _Recorder(Armed):
    def __init__(self, record: Record, stage: Stage) -> None:
        self._record = record
        self._stage = stage
        self._targets: dict[int, str] = {}
        self._held = 0.0, ""
        """Since when who holds the lease."""

    def begin(self) -> None:
        changes = self._record.changes

        def note(commit: Commit) -> None:
            changes[commit.resource.partition(".")[0]] += 1
            if commit.resource == LEASES.resource and commit.key == object_key(NAMESPACE, LEASE):
                gone = commit.event.type is EventType.DELETED
                holder = "" if gone else commit.obj.spec.holderIdentity or ""
                if holder != self._held[1]:
                    self._held = self._stage.world.monotonic(), holder

        self._stage.world.server.store.commit_hooks.append(note)

    async def before(self, call: Call) -> None:
        self._record.calls[f"{call.verb} {call.plural}"] += 1
        if call.write:
            self._moment(CrashBeforeWrite(call.write))
            if self._record.led:
                self._check(call)
        if call.verb == "delete" and call.write:
            found = self._stage.world.server.store.table(call.resource).get(
                object_key(call.namespace, call.name)
            )
            self._targets[call.write] = _title(call.resource, found, call.name)

    def _moment(self, crash: Fault) -> None:
        world = self._stage.world
        self._record.moments.setdefault((world.server.store.revision, world.monotonic()), crash)

    def _check(self, call: Call) -> None:
        """Whether who writes holds the lease, as the server knows it."""
        since, holder = self._held
        now = self._stage.world.monotonic()
        # It cannot know at once when somebody takes the lease away against all rules, but when it next
        # renews it must.
        if holder != identity(call.life) and now - since > RENEWED:
            self._record.unfounded.append(f"{describe(call)} at {now:.1f}, while {holder or 'nobody'} leads")

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write:
            record = self._record
            record.done += 1
            self._moment(CrashAfterWrite(call.write))
            if call.verb == "create":
                record.creates[_title(call.resource, answer, "")] += 1
            elif call.verb == "delete":
                record.deletes[self._targets.pop(call.write)] += 1
        return answer


def _title(resource: str, obj: Any, name: str) -> str:
    """An object by the part of its name that no chance had a part in."""
    if obj is None:
        return f"{resource} {name}"
    meta = obj["metadata"] if isinstance(obj, dict) else obj.metadata
    generated = meta.get("generateName") if isinstance(meta, dict) else meta.generateName
    named = meta.get("name") if isinstance(meta, dict) else meta.name
    return f"{resource} {generated or named}"


class _Listener(logging.Handler):
    """Collects mistakes of the program: whatever is logged with an exception nobody expects."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not _expected(error):
            said = f"{record.getMessage()}: {type(error).__name__}: {error}"
            if said not in self.heard:
                self.heard.append(said)


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_expected, error.exceptions))
    return isinstance(error, EXPECTED)


@contextmanager
def listening() -> Iterator[list[str]]:
    """What the program says went wrong in it, and nothing on the terminal meanwhile."""
    log = logging.getLogger("steersman")
    listener = _Listener()
    before = log.level, log.propagate
    log.addHandler(listener)
    log.setLevel(logging.ERROR)
    log.propagate = False
    try:
        yield listener.heard
    finally:
        log.removeHandler(listener)
        log.setLevel(before[0])
        log.propagate = before[1]
