"""The dependency graph: what a round sees of one object, and the objects a change enqueues."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from steersman.api.discovery import ApiResource
from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Key, Kind
from steersman.controllers.garbagecollector.owner_refs import (
    OWNER,
    AbsentOwners,
    blocks,
    coordinates,
    coordinates_of,
    dependents,
    find_owner,
    is_deleting_dependents,
    is_orphaning,
)
from steersman.intent.all_resources import AllObjects, Item
from steersman.intent.controller import Caches, Change, memory_of


class OwnerState(Enum):
    """The state of an owner. Solid and dangling are upstream's words."""

    SOLID = "exists"
    WAITING = "waits for its dependents to be deleted"
    DANGLING = "does not exist"
    UNCACHED = "is not in the cache"


class Owner(msgspec.Struct, frozen=True):
    """An owner reference, and the state of the owner it names."""

    reference: OwnerReference
    state: OwnerState
    resource: ApiResource | None = None
    """The resource of the owner; None where its kind is not served."""
    in_other_namespace: bool = False
    """An object with this uid is in another namespace, and cannot own this one."""


class Observation(msgspec.Struct, frozen=True):
    """An object with its owners and dependents."""

    item: Item
    owners: tuple[Owner, ...]
    dependents: tuple[Item, ...]
    """All dependents where they are to be orphaned; else the first that matters, or none."""
    in_cycle: bool
    """A dependent waits for its own dependents to be deleted."""
    unfilled: tuple[str, ...]
    """Resources whose cache is not synced."""
    absent_owners: AbsentOwners


def observe(caches: Caches, key: Key) -> Observation | None:
    objects, absent_owners = caches.all_objects, memory_of(caches, AbsentOwners)
    item = objects.get(key)
    if item is None:
        return None
    owned: tuple[Item, ...] = ()
    owners: tuple[Owner, ...] = ()
    in_cycle = False
    if is_orphaning(item.obj):
        owned = tuple(dependents(objects, item))
    elif is_deleting_dependents(item.obj):
        owned = _first(each for each in dependents(objects, item) if blocks(each, item))
    elif item.obj.metadata.deletionTimestamp is None:
        owners = tuple(
            _owner(objects, absent_owners, item, each) for each in item.obj.metadata.ownerReferences
        )
        if any(owner.state is not OwnerState.SOLID for owner in owners):
            owned = _first(dependents(objects, item))
            in_cycle = any(is_deleting_dependents(each.obj) for each in dependents(objects, item))
    return Observation(item, owners, owned, in_cycle, objects.unfilled, absent_owners)


def _first(items: Iterator[Item]) -> tuple[Item, ...]:
    # An owner of thousands is observed each time one of them is deleted: a full list would be quadratic.
    first = next(items, None)
    return () if first is None else (first,)


def _owner(objects: AllObjects, absent_owners: AbsentOwners, item: Item, reference: OwnerReference) -> Owner:
    namespace = item.namespace
    resource = objects.discovered.find(reference.apiVersion, reference.kind)
    found = find_owner(objects, namespace, reference, resource) if resource is not None else None
    if found is not None:
        state = OwnerState.WAITING if is_deleting_dependents(found.obj) else OwnerState.SOLID
        return Owner(reference, state, resource)
    absent = coordinates(reference, "") in absent_owners or coordinates(reference, namespace) in absent_owners
    other = objects.of(reference.uid)
    elsewhere = other is not None and other.namespace not in ("", namespace)
    return Owner(reference, OwnerState.DANGLING if absent else OwnerState.UNCACHED, resource, elsewhere)


# -- enqueue --------------------------------------------------------------------------------------


def enqueue(caches: Caches, kind: Kind[Any], change: Change[Any]) -> Iterator[Key]:
    """The keys of the objects that a change may make garbage, or may release. The cache already shows the change."""
    old, new = change.old, change.new
    if new is None:
        yield from _after_delete(caches, kind, change.obj)
        return
    objects = caches.all_objects
    before = old.metadata.ownerReferences if old is not None else ()
    after = new.metadata.ownerReferences
    item = Item(kind, new)
    if after and after != before and any(_may_dangle(objects, item, each) for each in after):
        yield item.key
    if before and after != before:
        yield from _unblocked_owners(objects, before, after)
    if new.metadata.deletionTimestamp is not None:
        yield from _after_deletion_began(objects, item, old)


def _after_delete(caches: Caches, kind: Kind[Any], obj: Object) -> Iterator[Key]:
    """The dependents of a deleted object, and the owners that waited for it."""
    objects = caches.all_objects
    last = None
    for last in objects.by(OWNER, obj.metadata.uid):
        yield last.key
    if last is not None:
        memory_of(caches, AbsentOwners).add(coordinates_of(kind, obj))
    for reference in obj.metadata.ownerReferences:
        owner = objects.of(reference.uid)
        if owner is not None and is_deleting_dependents(owner.obj) and not _is_blocked(objects, owner):
            yield owner.key


def _is_blocked(objects: AllObjects, owner: Item) -> bool:
    """Whether a dependent still blocks the deletion of an owner."""
    return any(blocks(dependent, owner) for dependent in dependents(objects, owner))


def _may_dangle(objects: AllObjects, item: Item, reference: OwnerReference) -> bool:
    """Whether the owner of a reference may be absent, or waits for its dependents."""
    resource = objects.discovered.find(reference.apiVersion, reference.kind)
    if resource is None:
        return True
    owner = find_owner(objects, item.namespace, reference, resource)
    return owner is None or is_deleting_dependents(owner.obj)


def _unblocked_owners(
    objects: AllObjects, before: tuple[OwnerReference, ...], after: tuple[OwnerReference, ...]
) -> Iterator[Key]:
    """The owners whose deletion an object no longer blocks."""
    blocked = [reference.uid for reference in after if reference.blockOwnerDeletion]
    for reference in before:
        if reference.blockOwnerDeletion and reference.uid not in blocked:
            owner = objects.of(reference.uid)
            if owner is not None and is_deleting_dependents(owner.obj) and not _is_blocked(objects, owner):
                yield owner.key


def _after_deletion_began(objects: AllObjects, item: Item, old: Object | None) -> Iterator[Key]:
    """An object whose deletion begins or whose finalizers change, with its dependents in the foreground."""
    new = item.obj
    if not (is_orphaning(new) or is_deleting_dependents(new)):
        return
    began = old is None or old.metadata.deletionTimestamp is None
    if began or (old is not None and old.metadata.finalizers != new.metadata.finalizers):
        yield item.key
        if is_deleting_dependents(new):
            for dependent in dependents(objects, item):
                yield dependent.key
