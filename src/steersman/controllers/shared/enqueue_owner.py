"""Which owners a change of something they may control concerns: written once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from steersman.api.kinds import Object, OwnerReference
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Caches, Change

O = TypeVar("O", bound=Object)

To: TypeAlias = Callable[[Caches, Change[Any]], Iterator[Key]]


def concerned(owners: Kind[O], selects: Callable[[O, Object], bool]) -> To:
    """For `Watch.to`: the owner that controls the object, and the one that did; for an orphan, those that
    select it, as long as somebody may adopt it."""

    def resolve(caches: Caches, namespace: str, reference: OwnerReference) -> Iterator[Key]:
        key = Key(namespace, reference.name)
        owner = caches[owners].get(key)
        # A namesake of another kind, or of another time, is not meant.
        if reference.kind == owners.name and owner is not None and owner.metadata.uid == reference.uid:
            yield key

    def to(caches: Caches, change: Change[Object]) -> Iterator[Key]:
        obj, old = change.obj, change.old
        namespace = obj.metadata.namespace
        controller = controller_of(obj)
        before = controller_of(old) if old is not None else None
        if before is not None and before != controller:
            yield from resolve(caches, namespace, before)
        if controller is not None:
            yield from resolve(caches, namespace, controller)
        elif change.new is None or obj.metadata.deletionTimestamp is not None:
            return
        elif old is None or before is not None or old.metadata.labels != obj.metadata.labels:
            for owner in caches[owners].list(namespace):
                if selects(owner, obj):
                    yield owner.key

    return to


def concerned_by_revision(owners: Kind[O], selects: Callable[[O, Object], bool]) -> To:
    """The same for ControllerRevisions: nobody need look at one of its own that has just come, for it wrote it."""
    others = concerned(owners, selects)

    def to(caches: Caches, change: Change[Object]) -> Iterator[Key]:
        controller = controller_of(change.obj)
        if controller is None or change.old is not None:
            yield from others(caches, change)
        if change.new is None and controller is not None and controller.kind == owners.name:
            # One of a namesake of before may have stood in for its own.
            yield Key(change.obj.metadata.namespace, controller.name)

    return to
