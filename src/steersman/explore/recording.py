"""Recording of a run: the writes of its managers, the objects they create and delete, and unexpected errors."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from steersman.api.errors import ApiError
from steersman.api.kinds import LEASES
from steersman.api.kinds.nodes import NODES
from steersman.client.api import EventType
from steersman.explore.elected_cluster import RETRY_PERIOD, identity
from steersman.explore.protection import removed_in_use
from steersman.explore.safety import SafetyMonitor
from steersman.explore.volume_bindings import VolumeBindings
from steersman.intent.verdict import InvalidSpec
from steersman.runtime.shell import Deposed
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Commit
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite
from steersman.sim.faults.fault import ActiveFault, Call, Fault, describe
from steersman.sim.faults.injector import FaultInjector
from steersman.sim.faults.leaders import LEASE, NAMESPACE

LEASE_GRACE = RETRY_PERIOD + 1.0
"""Seconds within which a holder notices that it lost the lease: at its next renewal."""
EXPECTED = (ApiError, InvalidSpec, Deposed)
"""Errors of the API server, of invalid objects and of lost leadership, which are no bugs."""


@dataclass
class RunRecord:
    """The record of one run: the requests and writes of its managers, and the violations found."""

    injector: FaultInjector | None = None
    applied: int = 0
    """Writes that were carried out."""
    creates: Counter[str] = field(default_factory=Counter)
    """By resource and name; generated names without their random part."""
    deletes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    """By verb and plural."""
    changes: Counter[str] = field(default_factory=Counter)
    """Number of events that watchers see, by plural."""
    crash_points: dict[tuple[int, float], Fault] = field(default_factory=dict)
    """A crash for each revision and time at which the next manager would start."""
    without_lease: list[str] = field(default_factory=list)
    """Writes by managers that did not hold the lease."""
    elected: bool = False
    """Whether there is leader election."""
    kubelets: tuple[str, ...] = ()
    """The nodes from which no pod may be evicted while their kubelets run."""
    unsafe: Mapping[str, str] = field(default_factory=dict)
    """The first violation of each safety invariant."""


class Recording(Fault, frozen=True):
    """No fault: records requests. It comes first, so that it sees them before any fault applies."""

    record: RunRecord

    def activate(self, injector: FaultInjector) -> ActiveFault:
        self.record.injector = injector
        return _Recorder(self.record, injector)


class _Recorder(ActiveFault):
    def __init__(self, record: RunRecord, injector: FaultInjector) -> None:
        self._record = record
        self._injector = injector
        self._targets: dict[int, str] = {}
        self._held = 0.0, ""
        """When the lease was last acquired, and by which holder."""

    def begin(self) -> None:
        changes = self._record.changes
        store = self._injector.world.server.store
        safety = SafetyMonitor(self._record.kubelets, lambda resource, key: store.table(resource).get(key))
        nodes = store.table(NODES.resource)
        safety.seed(nodes.get(key) for key in nodes.keys())  # noqa: SIM118  (a table is no dict)
        self._record.unsafe = safety.violations
        bindings = VolumeBindings()

        def note(commit: Commit) -> None:
            changes[commit.resource.partition(".")[0]] += 1
            safety.check(commit)
            if lost := removed_in_use(store, commit):
                safety.violations.setdefault("protection", lost)
            if twice := bindings.note(commit):
                safety.violations.setdefault("binding", twice)
            if commit.resource == LEASES.resource and commit.key == object_key(NAMESPACE, LEASE):
                deleted = commit.event.type is EventType.DELETED
                holder = "" if deleted else commit.obj.spec.holderIdentity or ""
                if holder != self._held[1]:
                    self._held = self._injector.world.monotonic(), holder

        store.commit_hooks.append(note)

    async def before(self, call: Call) -> None:
        self._record.calls[f"{call.verb} {call.plural}"] += 1
        if call.write:
            self._crash_point(CrashBeforeWrite(call.write))
            if self._record.elected:
                self._check(call)
        if call.verb == "delete" and call.write:
            found = self._injector.world.server.store.table(call.resource).get(
                object_key(call.namespace, call.name)
            )
            self._targets[call.write] = _title(call.resource, found, call.name)

    def _crash_point(self, crash: Fault) -> None:
        world = self._injector.world
        self._record.crash_points.setdefault((world.server.store.revision, world.monotonic()), crash)

    def _check(self, call: Call) -> None:
        """Record a write by a manager that does not hold the lease on the server."""
        since, holder = self._held
        now = self._injector.world.monotonic()
        # A manager whose lease is stolen notices it at its next renewal.
        if holder != identity(call.incarnation) and now - since > LEASE_GRACE:
            self._record.without_lease.append(
                f"{describe(call)} at {now:.1f}, while {holder or 'no manager'} leads"
            )

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write:
            record = self._record
            record.applied += 1
            self._crash_point(CrashAfterWrite(call.write))
            if call.verb == "create":
                record.creates[_title(call.resource, answer, "")] += 1
            elif call.verb == "delete":
                record.deletes[self._targets.pop(call.write)] += 1
        return answer


def _title(resource: str, obj: Any, name: str) -> str:
    """Resource and name of an object, without the random part of a generated name."""
    if obj is None:
        return f"{resource} {name}"
    meta = obj["metadata"] if isinstance(obj, dict) else obj.metadata
    generated = meta.get("generateName") if isinstance(meta, dict) else meta.generateName
    named = meta.get("name") if isinstance(meta, dict) else meta.name
    return f"{resource} {generated or named}"


class _ErrorCollector(logging.Handler):
    """Collects unexpected exceptions from the log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not _expected(error):
            message = f"{record.getMessage()}: {type(error).__name__}: {error}"
            if message not in self.errors:
                self.errors.append(message)


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_expected, error.exceptions))
    return isinstance(error, EXPECTED)


@contextmanager
def unexpected_errors() -> Iterator[list[str]]:
    """Collects unexpected errors from the log, which is not printed meanwhile."""
    log = logging.getLogger("steersman")
    collector = _ErrorCollector()
    before = log.level, log.propagate
    log.addHandler(collector)
    log.setLevel(logging.ERROR)
    log.propagate = False
    try:
        yield collector.errors
    finally:
        log.removeHandler(collector)
        log.setLevel(before[0])
        log.propagate = before[1]
