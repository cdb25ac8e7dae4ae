"""The writes of the garbage collector: each against exactly the object that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.errors import Conflict, Invalid, NotFound
from steersman.api.kinds import Object, OwnerReference
from steersman.api.partial_object import Partial, partial
from steersman.api.scheme import Kind
from steersman.intent.actions import Address, Batch, Delete, Failed, Patch, PatchType, Propagation, Read
from steersman.intent.all_resources import Item

Operations: TypeAlias = list[dict[str, Any]]

TRIES = 5
GROUP = 250
"""Dependents that are let go of at once."""


def bare(item: Item) -> Kind[Partial]:
    """An object's resource, read for its metadata alone."""
    kind = item.kind
    return partial(kind.group, kind.version, kind.name, kind.plural, kind.namespaced)


async def live(item: Item) -> Object | None:
    """The object as it is now; None where it is gone, or another has its name."""
    try:
        found = await Read(Address(bare(item), item.namespace, item.name))
    except NotFound:
        return None
    return found if found.metadata.uid == item.uid else None


# -- deleting -------------------------------------------------------------------------------------


async def remove(item: Item, propagation: Propagation) -> bool:
    """Delete an object whose owners were looked at; whether there was anything to delete.

    Whom it says it is owned by must be who was looked at. Other changes do not matter: an object that
    changes all the time must not live for ever.
    """
    version = item.obj.metadata.resourceVersion
    address = Address(bare(item), item.namespace, item.name, item.uid, version)
    try:
        await Delete(address, propagation, exact=True)
        return True
    except NotFound:
        return False
    except Conflict:
        now = await live(item)
        if now is None or now.metadata.deletionTimestamp is not None:
            return False
        if _said(now) != _said(item.obj):
            raise
    try:
        await Delete(address, propagation)
    except NotFound:
        return False
    return True


def _said(obj: Object) -> tuple[object, ...]:
    """What a deletion was decided on. By value: the same may be read as different types."""
    meta = obj.metadata
    owners = (
        (each.apiVersion, each.kind, each.name, each.uid, each.blockOwnerDeletion)
        for each in meta.ownerReferences
    )
    return tuple(owners), tuple(meta.finalizers)


# -- letting go -----------------------------------------------------------------------------------


async def drop_owners(items: tuple[Item, ...], gone: Callable[[OwnerReference], bool]) -> None:
    """Take references off objects. One that is gone needs none; for all others it must succeed."""

    def without(obj: Object) -> Operations:
        return _without(obj, "ownerReferences", [gone(each) for each in obj.metadata.ownerReferences])

    for start in range(0, len(items), GROUP):
        group = items[start : start + GROUP]
        patches = tuple(_patch(item, without(item.obj)) for item in group)
        outcomes = await Batch(patches, slow_start=False)
        for item, outcome in zip(group, outcomes, strict=True):
            match outcome:
                case Failed(Invalid() | Conflict()):
                    await _change(item, without, changed=True)
                case Failed(NotFound()):
                    pass
                case Failed(error):
                    raise error


async def unblock(item: Item) -> Object | None:
    """Have an object no longer keep its owners from going; answers what it is then, None if it is gone."""

    def freed(obj: Object) -> Operations:
        return [
            operation
            for index, each in enumerate(obj.metadata.ownerReferences)
            if each.blockOwnerDeletion
            for operation in (
                _test(f"ownerReferences/{index}/uid", each.uid),
                {
                    "op": "replace",
                    "path": f"/metadata/ownerReferences/{index}/blockOwnerDeletion",
                    "value": False,
                },
            )
        ]

    return await _change(item, freed)


async def strip(item: Item, finalizer: str) -> None:
    """Take a finalizer of ours off an object: what it was for has been done."""

    def without(obj: Object) -> Operations:
        return _without(obj, "finalizers", [each == finalizer for each in obj.metadata.finalizers])

    await _change(item, without)


async def _change(
    item: Item, make: Callable[[Object], Operations], *, changed: bool = False
) -> Object | None:
    """Patch an object; if it has changed since it was seen, look at it and patch what it is now."""
    known: Object | None = await live(item) if changed else item.obj
    for left in reversed(range(TRIES)):
        patch = make(known) if known is not None else []
        if known is None or not patch:
            break
        try:
            known = await _patch(item, patch)
            break
        except NotFound:
            return None
        except (Invalid, Conflict):
            if not left:
                raise
        known = await live(item)
    return known


def _patch(item: Item, patch: Operations) -> Patch[Partial]:
    # differs: upstream patches by strategic merge, and custom resources by a merge of one version. These
    # operations are exact without a resourceVersion: the status may change as it likes.
    operations = [_test("uid", item.uid), *patch]
    return Patch(Address(bare(item), item.namespace, item.name), operations, PatchType.JSON)


def _without(obj: Object, field: str, gone: list[bool]) -> Operations:
    """Remove entries of a list, the last first: indexes stay what they are."""
    entries: Any = getattr(obj.metadata, field)
    operations: Operations = []
    for index in reversed(range(len(entries))):
        if gone[index]:
            entry = entries[index]
            place = f"{field}/{index}"
            is_text = isinstance(entry, str)
            operations.append(_test(place, entry) if is_text else _test(f"{place}/uid", entry.uid))
            operations.append({"op": "remove", "path": f"/metadata/{place}"})
    return operations


def _test(path: str, value: str) -> dict[str, Any]:
    return {"op": "test", "path": f"/metadata/{path}", "value": value}
