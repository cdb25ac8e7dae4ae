"""The writes of the acting manager, as the caches show them: objects it created, and objects it deleted.

Each must be one that our controller wanted, before or after, or would have wanted of the caches without it (`counterfactual`). A wrong update
needs no such question: our controller wants to undo it, which is an intention. An object is the acting manager's if its controllerRef names a
kind whose controller we run; a deletion, if an event says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Change
from steersman.intent.verdict import InvalidSpec
from steersman.runtime.action_table.text import field_of
from steersman.shadow.comparison import Comparison
from steersman.shadow.counterfactual import AlteredCaches
from steersman.shadow.intention import Effect
from steersman.shadow.their_deletions import POD_GC, TERMINATED, Deletion, TerminatedPods, label, phase_of
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
MAX_REMEMBERED = 5000
"""Created and deleted objects that are remembered."""


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
        """The writes that a controller would make, given these caches; None if it does not see the object."""
        ...

    def owner(self, kind: str, key: Key) -> Object | None:
        """An owner in the caches."""
        ...

    def owned(self, resource: str, owner: str) -> Iterable[Object]:
        """The objects of a resource that have this controller, by its uid."""
        ...

    def pods(self) -> Iterable[Object]:
        """All pods in the caches."""
        ...

    def terminating(self, namespace: str) -> bool:
        """Whether a namespace is gone, or on its way."""
        ...


class TheirWrites:
    """Checks each write of the acting manager."""

    def __init__(
        self,
        comparison: Comparison,
        asks: Asks,
        monotonic: Callable[[], float],
        differ: Callable[[TheirWrite, str], None],
        collected: Callable[[Deletion], None],
    ) -> None:
        """``differ`` is called with each write that we would not have made, and what our controller says; ``collected`` with
        each pod that the pod garbage collector deleted, and ours would not."""
        self.active = False
        """Whether the caches are synced. The objects of the first lists are no new writes."""
        self.unattributed: dict[str, int] = {}
        """Deletions by unknown clients, by kind."""
        self._comparison = comparison
        self._asks = asks
        self._monotonic = monotonic
        self._differ = differ
        self._collected = collected
        self._deleted: BoundedCache[tuple[str, str], Deletion] = BoundedCache(MAX_REMEMBERED)
        """By namespace and name: the last objects that were deleted."""
        self._created: BoundedCache[str, float] = BoundedCache(MAX_REMEMBERED)
        """By uid: when the last objects were created."""
        self._writes: asyncio.Queue[TheirWrite] = asyncio.Queue()
        self._deletions: asyncio.Queue[Deletion] = asyncio.Queue()
        self._terminated = TerminatedPods()

    # -- fed by informers ---------------------------------------------------------------------

    def changed(self, kind: Kind[Any], change: Change[Any]) -> None:
        """Take in a change of an object that has a controller."""
        old, new = change.old, change.new
        if not self.active:
            return
        if old is None and new is not None:
            self._created.put(new.metadata.uid, self._monotonic())
            if not _is_terminating(new):
                self._seen("create", kind, new, self._monotonic())
        elif old is not None and not _is_terminating(old) and (new is None or _is_terminating(new)):
            deletion = Deletion(kind, old, self._monotonic())
            self._deleted.put((old.metadata.namespace, old.metadata.name), deletion)
            self._deletions.put_nowait(deletion)

    def told(self, change: Change[TheirEvent]) -> None:
        """Take in an event about a deletion."""
        event = change.new
        if not self.active or event is None:
            return
        for name in names_in(event.message):
            found = self._deleted.get((event.metadata.namespace, name))
            if found is not None and _owned_by(found.obj, event.involvedObject.uid):
                self._deleted.discard((event.metadata.namespace, name))
                told = f"{component_of(event)} says: {event.message}"
                self._seen("delete", found.kind, found.obj, found.at, told)

    def _seen(
        self, verb: Literal["create", "delete"], kind: Kind[Any], obj: Object, at: float, told: str = ""
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
        write = TheirWrite(verb, controller, key, reference.uid, version, generation, kind, obj, at, told)
        if not self._wanted(write):
            self._writes.put_nowait(write)

    # -- checking -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Check writes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._count_deletions(), name="shadow: deletions")
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

    async def _count_deletions(self) -> None:
        """Count the deletions that are still unattributed when the grace time is over: no event will tell of them later."""
        while True:
            deletion = await self._deletions.get()
            await asyncio.sleep(max(0.0, deletion.at + self._comparison.grace - self._monotonic()))
            if self._is_unattributed(deletion):
                name = label(deletion)
                self.unattributed[name] = self.unattributed.get(name, 0) + 1
                if phase_of(deletion.obj) in TERMINATED and self._asks.caches(POD_GC) is not None:
                    for each in self._terminated.add(deletion, self._asks.pods()):
                        self._comparison.tally(POD_GC).extra += 1
                        self._collected(each)

    def _is_unattributed(self, deletion: Deletion) -> bool:
        meta = deletion.obj.metadata
        kept = self._deleted.get((meta.namespace, meta.name))
        if kept is not deletion or self._asks.terminating(meta.namespace):
            return False
        wanted = self._comparison.wanted_writes.deleted(deletion.kind.resource, deletion.obj.key)
        if wanted is not None and wanted >= deletion.at - self._comparison.grace:
            return False
        reference = controller_of(deletion.obj)
        if reference is None or reference.kind not in CONTROLLERS:
            return True
        owner = self._asks.owner(reference.kind, Key(meta.namespace, reference.name))
        # The garbage collector deletes what its owner leaves behind.
        gone = owner is None or owner.metadata.uid != reference.uid
        return not gone and owner is not None and owner.metadata.deletionTimestamp is None

    def _wanted(self, write: TheirWrite) -> bool:
        """Whether a round of ours wanted it, within the grace time before or after."""
        wanted = self._comparison.wanted_writes
        at = (
            wanted.created(write.kind.resource, write.owner_uid)
            if write.verb == "create"
            else wanted.deleted(write.kind.resource, write.obj.key)
        )
        return at is not None and at >= write.at - self._comparison.grace

    async def _would(self, write: TheirWrite) -> bool:
        """Whether our controller would write the same, given the caches without the write."""
        altered: dict[Key, Object | None] = {write.obj.key: None}
        if write.verb == "delete":
            # Without the deletion, nothing would have been created in the place of the object.
            later = (
                obj
                for obj in self._asks.owned(write.kind.resource, write.owner_uid)
                if (self._created.get(obj.metadata.uid) or 0.0) >= write.at
            )
            altered = {**{obj.key: None for obj in later}, write.obj.key: write.obj}
        caches = AlteredCaches(self._asks.caches(write.controller), write.kind.resource, altered)
        try:
            effects = await self._asks.ask(write.controller, caches, write.owner)
        except (ApiError, InvalidSpec):
            return False
        return any(_same(write, effect) for effect in effects or ())

    def _moved_on(self, write: TheirWrite) -> bool:
        """Whether the owner has changed since the write, so that our decision at that time cannot be found out any more."""
        reference = controller_of(write.obj)
        owner = self._asks.owner(reference.kind, write.owner) if reference is not None else None
        if owner is None or owner.metadata.uid != write.owner_uid or owner.metadata.deletionTimestamp:
            return True
        if reference is not None and reference.kind == "CronJob":
            # Its status says which schedule times are done.
            return owner.metadata.resourceVersion != write.owner_version
        if _is_finished(owner):
            return True
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


def _is_finished(owner: Object) -> bool:
    """Whether a Job is over: it wants no pods any more, whatever it wanted before."""
    conditions = field_of(field_of(owner, "status"), "conditions") or ()
    return any(
        field_of(each, "type") in ("Complete", "Failed") and field_of(each, "status") == "True"
        for each in conditions
    )


def _is_terminating(obj: Object) -> bool:
    return obj.metadata.deletionTimestamp is not None


def _owned_by(obj: Object, uid: str) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid
