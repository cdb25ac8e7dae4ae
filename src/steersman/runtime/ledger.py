"""The ledger: read-your-writes for each key, in place of expectations and consistency stores.

Every write of a round leaves a debt: the cache must show it before the same key is decided again.
A write that was answered is paid when the kind's cache reaches the resourceVersion of the answer;
a delete when the cache no longer shows that uid alive. A write whose answer was
lost is a doubt: the objects it is about are read from the server, which turns the doubt into an ordinary debt.

Debts are forgiven after five minutes, as upstream's expectations are, so that a watch that skips
or a server that restarts its numbering delays a key but never stops it. The time-out belongs to the debt, not to the key's
place in the work queue: a debt that is paid takes it along.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import field

from steersman.api.clock import Clock
from steersman.api.kinds import Object, ObjectMeta
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Caches
from steersman.runtime.store import Store

FORGIVEN_AFTER = 300.0
"""Seconds; upstream's ExpectationsTimeout."""


class Doubt(msgspec.Struct, frozen=True):
    """A write that got no answer, and the objects in which it would show."""

    kind: Kind[Any]
    namespace: str
    name: str = ""
    """Empty where the server chooses it."""
    uid: str = ""
    """The uid of the object to change or delete; empty for a create."""
    labels: str = ""
    """A label selector of the object to create, if its name is not known."""


class Debt(msgspec.Struct):
    """The writes that a key's caches must show."""

    since: float
    revisions: dict[str, int] = field(default_factory=dict)
    """Resource -> the revision its cache must reach."""
    deletes: list[tuple[str, Key, str]] = field(default_factory=list)
    """Resource, key and uid of objects that must be deleted or terminating."""
    doubts: dict[Doubt, None] = field(default_factory=dict)
    """Writes that got no answer, each once."""


class Ledger:
    """The debts of one controller's keys."""

    def __init__(self, stores: dict[str, Store[Object]], clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self._debts: dict[Key, Debt] = {}
        self._parked: dict[str, list[tuple[int, Key]]] = {resource: [] for resource in stores}
        self._deadlines: dict[Key, float] = {}
        """When the debts of parked keys are forgiven."""

    def _debt(self, key: Key) -> Debt:
        debt = self._debts.get(key)
        if debt is None:
            debt = self._debts[key] = Debt(self._clock.monotonic())
        return debt

    def wrote(self, key: Key, resource: str, resource_version: str) -> None:
        """Record that a write for ``key`` was answered with a resourceVersion."""
        # There is nothing to wait for if the controller does not watch the kind, or if the server's
        # resourceVersions cannot be compared.
        if resource not in self._stores or not resource_version.isdecimal():
            return
        debt = self._debt(key)
        debt.since = self._clock.monotonic()
        revision = int(resource_version)
        if revision > debt.revisions.get(resource, 0):
            debt.revisions[resource] = revision

    def deleted(self, key: Key, resource: str, target: Key, uid: str) -> None:
        """Record that a delete for ``key`` was accepted."""
        if resource in self._stores:
            debt = self._debt(key)
            debt.since = self._clock.monotonic()
            debt.deletes.append((resource, target, uid))

    def unsure(self, key: Key, doubt: Doubt) -> None:
        """Record that a write for ``key`` got no answer: it may have happened."""
        if doubt.kind.resource in self._stores:
            self._debt(key).doubts[doubt] = None

    def doubts(self, key: Key) -> tuple[Doubt, ...]:
        """The doubts of a key."""
        debt = self._debts.get(key)
        return tuple(debt.doubts) if debt is not None else ()

    def cleared(self, key: Key, doubt: Doubt, found: Iterable[ObjectMeta]) -> None:
        """Settle a doubt with the objects found on the server: the write shows in them, or in their absence.

        The cache must show them as they were found. It need not reach the revision at which the server was read:
        without further writes it may never do so.
        """
        debt = self._debts.get(key)
        if debt is not None:
            debt.doubts.pop(doubt, None)
        resource = doubt.kind.resource
        exists = False
        for meta in found:
            exists = exists or meta.uid == doubt.uid
            self.wrote(key, resource, meta.resourceVersion)
        if doubt.uid and not exists:
            self.deleted(key, resource, Key(doubt.namespace, doubt.name), doubt.uid)

    def behind(self, key: Key) -> str | None:
        """The resource whose cache has not caught up with this key's writes; None when all have."""
        debt = self._debts.get(key)
        if debt is None:
            return None
        if self._clock.monotonic() - debt.since > FORGIVEN_AFTER:
            del self._debts[key]
            return None
        for resource, revision in debt.revisions.items():
            if self._stores[resource].revision < revision:
                return resource
        for resource, target, uid in debt.deletes:
            obj = self._stores[resource].get(target)
            if obj is not None and obj.metadata.uid == uid and obj.metadata.deletionTimestamp is None:
                return resource
        if not debt.doubts:
            del self._debts[key]
        return None

    def park(self, key: Key) -> float:
        """Park a key until `caught_up` or `forgiven` returns it; returns when its debt is forgiven, in monotonic seconds."""
        debt = self._debts[key]
        for resource, revision in debt.revisions.items():
            if self._stores[resource].revision < revision:
                heapq.heappush(self._parked[resource], (revision, key))
        deadline = self._deadlines[key] = debt.since + FORGIVEN_AFTER + 0.001
        return deadline

    def unpark(self, key: Key) -> None:
        """Drop the time-out of a key that is decided now."""
        self._deadlines.pop(key, None)

    def caught_up(self, resource: str, revision: int) -> Iterator[Key]:
        """The parked keys that waited for a revision which the cache of a resource has now reached."""
        parked = self._parked[resource]
        while parked and parked[0][0] <= revision:
            yield heapq.heappop(parked)[1]

    def forgiven(self, now: float) -> list[Key]:
        """The parked keys whose debt is forgiven by ``now``, each once."""
        due = [key for key, deadline in self._deadlines.items() if deadline <= now]
        for key in due:
            del self._deadlines[key]
        return due

    @property
    def deadline(self) -> float | None:
        """When the next debt of a parked key is forgiven, in monotonic seconds; None when no key is parked."""
        return min(self._deadlines.values(), default=None)

    def forget(self, key: Key) -> None:
        """Drop the debt of a key whose object is gone."""
        self._debts.pop(key, None)

    def __len__(self) -> int:
        return len(self._debts)


def stores_of(caches: Caches, kinds: tuple[Kind[Object], ...]) -> dict[str, Store[Object]]:
    """The stores a ledger compares against, by resource."""
    stores: dict[str, Store[Object]] = {}
    for kind in kinds:
        store = caches[kind]
        assert isinstance(store, Store)
        stores[kind.resource] = store
    return stores
