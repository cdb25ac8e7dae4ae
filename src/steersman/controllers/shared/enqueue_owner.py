"""Maps a change of an owned object to the keys of the owners to reconcile: functions for `Watch.to`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from steersman.api.kinds import Object
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.controllers.shared.controller_ref import resolve_controller_ref
from steersman.intent.controller import Caches, Change

O = TypeVar("O", bound=Object)

Enqueue: TypeAlias = Callable[[Caches, Change[Any]], Iterator[Key]]


def enqueue_owner(owners: Kind[O], selects: Callable[[O, Object], bool]) -> Enqueue:
    """Enqueues the controller of a changed object and its previous controller; for an orphan, the owners whose
    selector matches it, since each of them may adopt it."""

    def enqueue(caches: Caches, change: Change[Object]) -> Iterator[Key]:
        obj, old = change.obj, change.old
        namespace = obj.metadata.namespace
        controller = controller_of(obj)
        before = controller_of(old) if old is not None else None
        cache = caches[owners]
        if before is not None and before != controller:
            previous = resolve_controller_ref(cache, owners, namespace, before)
            if previous is not None:
                yield previous.key
        if controller is not None:
            current = resolve_controller_ref(cache, owners, namespace, controller)
            if current is not None:
                yield current.key
        elif change.new is None or obj.metadata.deletionTimestamp is not None:
            return
        elif old is None or before is not None or old.metadata.labels != obj.metadata.labels:
            for owner in cache.list(namespace):
                if selects(owner, obj):
                    yield owner.key

    return enqueue


def enqueue_revision_owner(owners: Kind[O], selects: Callable[[O, Object], bool]) -> Enqueue:
    """Like `enqueue_owner`, for ControllerRevisions: a new revision does not enqueue the owner that wrote it."""
    enqueue_others = enqueue_owner(owners, selects)

    def enqueue(caches: Caches, change: Change[Object]) -> Iterator[Key]:
        controller = controller_of(change.obj)
        if controller is None or change.old is not None:
            yield from enqueue_others(caches, change)
        if change.new is None and controller is not None and controller.kind == owners.name:
            # A revision of a deleted owner with the same name may have blocked the name of a new revision.
            yield Key(change.obj.metadata.namespace, controller.name)

    return enqueue
