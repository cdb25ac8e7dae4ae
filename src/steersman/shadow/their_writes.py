"""The writes of the acting manager, as the caches show them: objects it created, and objects it deleted.

Each must be one that our controller wanted, before or after, or would have wanted of the caches without it (`counterfactual`). A wrong update
needs no such question: our controller wants to undo it, which is an intention. An object is the acting manager's if its controllerRef names a
kind whose controller we run; a deletion, if an event says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Change
from steersman.intent.verdict import InvalidSpec
from steersman.shadow.comparison import Comparison
from steersman.shadow.counterfactual import AlteredCaches
from steersman.shadow.intention import Effect
from steersman.shadow.their_events import TheirEvent, component_of, names_in

CONTROLLERS = {
    "CronJob": "cronjob-controller",
    "DaemonSet": "daemonset-controller",
    "Deployment": "deployment-controller",
    "Job": "job-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replicationcontroller-controller",
    "StatefulSet": "statefulset-controller",
}
"""The controllers that create objects with a controllerRef, by the kind of the owner."""
CREATED = ("controllerrevisions.apps", "jobs.batch", "pods", "replicasets.apps")
"""The resources of such objects."""
RETRIES = (0.0, 1.0, 5.0)
"""Seconds after which our controller is asked; once more when the grace time is over."""
MAX_DELETED = 5000
"""Deleted objects that are remembered, to be put back."""


class TheirWrite(msgspec.Struct, frozen=True, eq=False):
    """An object that the acting manager created or deleted."""

    verb: Literal["create", "delete"]
    controller: str
    owner: Key
    owner_uid: str
    owner_version: str
    """The resourceVersion of the owner when the write was seen; empty where it was not cached."""
    owner_generation: int
    kind: Kind[Any]
    obj: Object
    """As it was created, or before it was deleted."""
    at: float
    """When it was seen, in monotonic seconds."""
    told: str = ""
    """The event that told of it."""


class Asks(Protocol):
    """How our controllers are asked: by the runner of the shadow."""

    def caches(self, controller: str) -> Any:
        """The caches of a controller; None if it does not run."""
        ...

    async def ask(self, controller: str, caches: Any, key: Key) -> list[Effect] | None:
        """What a controller would write, given these caches; None if it does not see the object."""
        ...

    def owner(self, kind: str, key: Key) -> Object | None:
        """An owner in the caches."""
        ...


class TheirWrites:
    """Checks each write of the acting manager."""

    def __init__(
        self,
        comparison: Comparison,
        asks: Asks,
        monotonic: Callable[[], float],
        differ: Callable[[TheirWrite, str], None],
    ) -> None:
        """``differ`` is called with each write that we would not have made, and what our controller says."""
        self.active = False
        """Whether the caches are synced: what is in them from the start was written by no one now."""
        self.unattributed: dict[str, int] = {}
        self._comparison = comparison
        self._asks = asks
        self._monotonic = monotonic
        self._differ = differ
        self._deleted: BoundedCache[tuple[str, str], tuple[Kind[Any], Object]] = BoundedCache(MAX_DELETED)
        """By namespace and name: the last objects that were deleted, as they were before."""
        self._writes: asyncio.Queue[TheirWrite] = asyncio.Queue()

    # -- fed by informers ---------------------------------------------------------------------

    def changed(self, kind: Kind[Any], change: Change[Any]) -> None:
        """Take in a change of an object that has a controller."""
        old, new = change.old, change.new
        if not self.active:
            return
        if old is None and new is not None:
            if new.metadata.deletionTimestamp is None:
                self._seen("create", kind, new)
        elif old is not None and old.metadata.deletionTimestamp is None:
            if new is None or new.metadata.deletionTimestamp is not None:
                self._deleted.put((old.metadata.namespace, old.metadata.name), (kind, old))

    def told(self, change: Change[TheirEvent]) -> None:
        """Take in an event about a deletion."""
        event = change.new
        if not self.active or event is None:
            return
        for name in names_in(event.message):
            found = self._deleted.get((event.metadata.namespace, name))
            if found is not None and _owned_by(found[1], event.involvedObject.uid):
                self._deleted.discard((event.metadata.namespace, name))
                self._seen("delete", *found, told=f"{component_of(event)} says: {event.message}")

    def _seen(
        self, verb: Literal["create", "delete"], kind: Kind[Any], obj: Object, told: str = ""
    ) -> None:
        reference = controller_of(obj)
        controller = CONTROLLERS.get(reference.kind, "") if reference is not None else ""
        if reference is None or not controller or self._asks.caches(controller) is None:
            return
        self._comparison.tally(controller).checked += 1
        key = Key(obj.metadata.namespace, reference.name)
        owner = self._asks.owner(reference.kind, key)
        version = owner.metadata.resourceVersion if owner is not None else ""
        generation = owner.metadata.generation if owner is not None else 0
        write = TheirWrite(
            verb, controller, key, reference.uid, version, generation, kind, obj, self._monotonic(), told
        )
        if not self._wanted(write):
            self._writes.put_nowait(write)

    # -- checking -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Check writes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                write = await self._writes.get()
                agreed = await self._would(write)
                if not agreed:
                    tasks.create_task(self._ask_again(write), name=f"shadow: {write.verb} {write.obj.key}")

    async def _ask_again(self, write: TheirWrite) -> None:
        for pause in (*RETRIES[1:], self._comparison.grace):
            await asyncio.sleep(pause)
            if self._wanted(write) or await self._would(write):
                return
        tally = self._comparison.tally(write.controller)
        if self._moved_on(write):
            tally.unclear += 1
            return
        tally.extra += 1
        self._differ(write, self._because(write))

    def _wanted(self, write: TheirWrite) -> bool:
        """Whether a round of ours wanted it, within the grace time before or after."""
        wanted = self._comparison.wishes
        at = (
            wanted.created(write.kind.resource, write.owner_uid)
            if write.verb == "create"
            else wanted.deleted(write.kind.resource, write.obj.key)
        )
        return at is not None and at >= write.at - self._comparison.grace

    async def _would(self, write: TheirWrite) -> bool:
        """Whether our controller would write the same, given the caches without the write."""
        caches = self._asks.caches(write.controller)
        key = write.obj.key
        altered = AlteredCaches(
            caches, write.kind.resource, key, None if write.verb == "create" else write.obj
        )
        try:
            effects = await self._asks.ask(write.controller, altered, write.owner)
        except (ApiError, InvalidSpec):
            return False
        return any(_same(write, effect) for effect in effects or ())

    def _moved_on(self, write: TheirWrite) -> bool:
        """Whether the owner is not as it was, so that what we would have written then cannot be told any more."""
        reference = controller_of(write.obj)
        owner = self._asks.owner(reference.kind, write.owner) if reference is not None else None
        if owner is None or owner.metadata.uid != write.owner_uid or owner.metadata.deletionTimestamp:
            return True
        if reference is not None and reference.kind == "CronJob":
            # Its status says which schedule times are done.
            return owner.metadata.resourceVersion != write.owner_version
        return owner.metadata.generation != write.owner_generation

    def _because(self, write: TheirWrite) -> str:
        return self._comparison.verdicts.get((write.controller, write.owner)) or "no round of it yet"


def _same(write: TheirWrite, effect: Effect) -> bool:
    if effect.resource != write.kind.resource:
        return False
    if write.verb == "delete":
        # Another object of the same owner is as good: which one goes depends on the instant.
        return effect.deletes
    return effect.creates and effect.owner == write.owner_uid


def _owned_by(obj: Object, uid: str) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid
