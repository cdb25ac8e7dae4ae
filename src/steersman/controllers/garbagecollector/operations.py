"""The writes of the garbage collector: each with the uid of the observed object as a precondition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.api.errors import Conflict, Invalid, NotFound
from steersman.api.kinds import Object, OwnerReference
from steersman.api.partial_object import PartialObject, partial_kind
from steersman.api.scheme import Kind
from steersman.intent.actions import Address, Batch, Delete, Failed, Patch, PatchType, Propagation, Read
from steersman.intent.all_resources import Item

Operations: TypeAlias = list[dict[str, Any]]

ATTEMPTS = 5
"""How often a patch is tried on an object that others change."""
MAX_BATCH = 250
"""The most dependents that are patched at once."""


def metadata_kind(item: Item) -> Kind[PartialObject]:
    """The kind that reads an object's metadata alone."""
    kind = item.kind
    return partial_kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced)


async def read_live(item: Item) -> Object | None:
    """Reads the object; None where it is gone, or its name belongs to another object now."""
    try:
        found = await Read(Address(metadata_kind(item), item.namespace, item.name))
    except NotFound:
        return None
    return found if found.metadata.uid == item.uid else None


# -- deletes --------------------------------------------------------------------------------------


async def delete_object(item: Item, propagation: Propagation) -> bool:
    """Deletes an object whose owners were classified; False where it is gone or being deleted.

    Its owner references and finalizers must be the observed ones. Any other change is ignored: an object that
    changes all the time must not live for ever.
    """
    version = item.obj.metadata.resourceVersion
    address = Address(metadata_kind(item), item.namespace, item.name, item.uid, version)
    try:
        await Delete(address, propagation, exact=True)
        return True
    except NotFound:
        return False
    except Conflict:
        now = await read_live(item)
        if now is None or now.metadata.deletionTimestamp is not None:
            return False
        if _deletion_basis(now) != _deletion_basis(item.obj):
            raise
    try:
        await Delete(address, propagation)
    except NotFound:
        return False
    return True


def _deletion_basis(obj: Object) -> tuple[object, ...]:
    """The fields a deletion is decided on, as plain values: the two objects may be of different types."""
    meta = obj.metadata
    owners = (
        (each.apiVersion, each.kind, each.name, each.uid, each.blockOwnerDeletion)
        for each in meta.ownerReferences
    )
    return tuple(owners), tuple(meta.finalizers)


# -- patches --------------------------------------------------------------------------------------


async def remove_owner_references(items: tuple[Item, ...], matches: Callable[[OwnerReference], bool]) -> None:
    """Removes the matching references from objects. Objects that are gone are skipped; any other failure is raised."""

    def without(obj: Object) -> Operations:
        tests = {
            index: _test(f"ownerReferences/{index}/uid", each.uid)
            for index, each in enumerate(obj.metadata.ownerReferences)
            if matches(each)
        }
        return _remove_entries("ownerReferences", tests)

    for start in range(0, len(items), MAX_BATCH):
        group = items[start : start + MAX_BATCH]
        patches = tuple(_patch(item, without(item.obj)) for item in group)
        outcomes = await Batch(patches, slow_start=False)
        for item, outcome in zip(group, outcomes, strict=True):
            match outcome:
                case Failed(Invalid() | Conflict()):
                    await _apply(item, without, stale=True)
                case Failed(NotFound()):
                    pass
                case Failed(error):
                    raise error


async def unblock_owners(item: Item) -> Object | None:
    """Sets ``blockOwnerDeletion`` to false in all references; returns the object, None if it is gone."""

    def unblocked(obj: Object) -> Operations:
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

    return await _apply(item, unblocked)


async def remove_finalizer(item: Item, finalizer: str) -> None:
    """Removes a finalizer from an object."""

    def without(obj: Object) -> Operations:
        tests = {
            index: _test(f"finalizers/{index}", each)
            for index, each in enumerate(obj.metadata.finalizers)
            if each == finalizer
        }
        return _remove_entries("finalizers", tests)

    await _apply(item, without)


async def _apply(item: Item, make: Callable[[Object], Operations], *, stale: bool = False) -> Object | None:
    """Patches an object; after a conflict, or if the observed one is stale, patches the live object."""
    known: Object | None = await read_live(item) if stale else item.obj
    for left in reversed(range(ATTEMPTS)):
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
        known = await read_live(item)
    return known


def _patch(item: Item, patch: Operations) -> Patch[PartialObject]:
    # differs: upstream sends strategic merge patches, and merge patches with a resourceVersion for custom
    # resources. The test operations are as exact, and do not fail when only the status changes.
    operations = [_test("uid", item.uid), *patch]
    return Patch(Address(metadata_kind(item), item.namespace, item.name), operations, PatchType.JSON)


def _remove_entries(field: str, tests: Mapping[int, dict[str, Any]]) -> Operations:
    """Removes entries of a list, each after its test; the last first, so that indexes stay valid."""
    operations: Operations = []
    for index in sorted(tests, reverse=True):
        operations += [tests[index], {"op": "remove", "path": f"/metadata/{field}/{index}"}]
    return operations


def _test(path: str, value: str) -> dict[str, Any]:
    return {"op": "test", "path": f"/metadata/{path}", "value": value}
