"""What a round sees of one object, and which objects a change is a reason to look at."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from steersman.api.discovery import Resource
from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Key, Kind
from steersman.controllers.garbagecollector.absent_owners import Absent, coordinates, coordinates_of
from steersman.controllers.garbagecollector.owner_refs import (
    FOREGROUND,
    ORPHAN,
    OWNER,
    blocks,
    dependents,
    leaves,
    owner_at,
    waits,
)
from steersman.intent.all_resources import AllObjects, Item
from steersman.intent.controller import Caches, Change, memory_of


class Standing(Enum):
    """What is known of an owner."""

    SOLID = "lives"
    WAITING = "waits for its dependents to go"
    ABSENT = "does not exist"
    UNSEEN = "is not in the cache"


class Owner(msgspec.Struct, frozen=True):
    """An owner reference, and what is known of whom it means."""

    reference: OwnerReference
    standing: Standing
    resource: Resource | None = None
    """Where such owners are served; None where that is not known."""
    elsewhere: bool = False
    """There is such an object in another namespace, where it can own nothing of this one."""


class Seen(msgspec.Struct, frozen=True):
    item: Item
    owners: tuple[Owner, ...]
    dependents: tuple[Item, ...]
    """All of them where they are to be let go of; else one that matters, or none."""
    circle: bool
    """One of its dependents waits for its own dependents."""
    unfilled: tuple[str, ...]
    absent: Absent


# -- seeing ---------------------------------------------------------------------------------------


def observe(caches: Caches, key: Key) -> Seen | None:
    everything, absent = caches.all_objects, memory_of(caches, Absent)
    item = everything.get(key)
    if item is None:
        return None
    owned: tuple[Item, ...] = ()
    owners: tuple[Owner, ...] = ()
    circle = False
    if leaves(item.obj, ORPHAN):
        owned = tuple(dependents(everything, item))
    elif waits(item.obj):
        owned = _one(each for each in dependents(everything, item) if blocks(each, item))
    elif item.obj.metadata.deletionTimestamp is None:
        owners = tuple(_owner(everything, absent, item, each) for each in item.obj.metadata.ownerReferences)
        if any(owner.standing is not Standing.SOLID for owner in owners):
            owned = _one(dependents(everything, item))
            circle = any(waits(each.obj) for each in dependents(everything, item))
    return Seen(item, owners, owned, circle, everything.unfilled, absent)


def _one(items: Iterator[Item]) -> tuple[Item, ...]:
    # A set of thousands is looked at each time one of them goes: once is enough.
    first = next(items, None)
    return () if first is None else (first,)


def _owner(everything: AllObjects, absent: Absent, item: Item, reference: OwnerReference) -> Owner:
    namespace = item.namespace
    resource = everything.discovered.find(reference.apiVersion, reference.kind)
    found = owner_at(everything, namespace, reference, resource) if resource is not None else None
    if found is not None:
        return Owner(reference, Standing.WAITING if waits(found.obj) else Standing.SOLID, resource)
    known = coordinates(reference, "") in absent or coordinates(reference, namespace) in absent
    other = everything.of(reference.uid)
    elsewhere = other is not None and other.namespace not in ("", namespace)
    return Owner(reference, Standing.ABSENT if known else Standing.UNSEEN, resource, elsewhere)


# -- whom a change concerns -----------------------------------------------------------------------


def concerned(caches: Caches, kind: Kind[Any], change: Change[Any]) -> Iterator[Key]:
    """The objects to look at after a change: the cache shows it already."""
    old, new = change.old, change.new
    if new is None:
        yield from _gone(caches, kind, change.obj)
        return
    everything = caches.all_objects
    before = old.metadata.ownerReferences if old is not None else ()
    after = new.metadata.ownerReferences
    item = Item(kind, new)
    if after and after != before and any(_doubtful(everything, item, each) for each in after):
        yield item.key
    if before and after != before:
        yield from _unblocked(everything, before, after)
    if new.metadata.deletionTimestamp is not None:
        yield from _leaving(everything, item, old)


def _gone(caches: Caches, kind: Kind[Any], obj: Object) -> Iterator[Key]:
    """Its dependents lack an owner now; its owners may have waited for it."""
    everything = caches.all_objects
    last = None
    for last in everything.by(OWNER, obj.metadata.uid):
        yield last.key
    if last is not None:
        memory_of(caches, Absent).add(coordinates_of(kind, obj))
    for reference in obj.metadata.ownerReferences:
        owner = everything.of(reference.uid)
        if owner is not None and waits(owner.obj) and not _blocked(everything, owner):
            yield owner.key


def _blocked(everything: AllObjects, owner: Item) -> bool:
    """Whether something still keeps an owner from going: then it need not be looked at yet."""
    return any(blocks(dependent, owner) for dependent in dependents(everything, owner))


def _doubtful(everything: AllObjects, item: Item, reference: OwnerReference) -> bool:
    """Whether a reference may mean no owner, or one that goes."""
    resource = everything.discovered.find(reference.apiVersion, reference.kind)
    if resource is None:
        return True
    owner = owner_at(everything, item.namespace, reference, resource)
    return owner is None or waits(owner.obj)


def _unblocked(
    everything: AllObjects, before: tuple[OwnerReference, ...], after: tuple[OwnerReference, ...]
) -> Iterator[Key]:
    """The owners that this object no longer keeps from going."""
    still = [reference.uid for reference in after if reference.blockOwnerDeletion]
    for reference in before:
        if reference.blockOwnerDeletion and reference.uid not in still:
            owner = everything.of(reference.uid)
            if owner is not None and waits(owner.obj) and not _blocked(everything, owner):
                yield owner.key


def _leaving(everything: AllObjects, item: Item, old: Object | None) -> Iterator[Key]:
    """An object that begins to wait for us, or for something else than before."""
    new = item.obj
    if not (leaves(new, ORPHAN) or leaves(new, FOREGROUND)):
        return
    begun = old is None or old.metadata.deletionTimestamp is None
    if begun or (old is not None and old.metadata.finalizers != new.metadata.finalizers):
        yield item.key
        if waits(new):
            for dependent in dependents(everything, item):
                yield dependent.key
