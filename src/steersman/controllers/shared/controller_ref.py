"""controllerRef: resolves controller references, and adopts and releases objects by label selector.

An owner keeps the objects it controls and selects, releases those it controls and no longer selects, and adopts
the orphans it selects. `divide` decides, `claim` carries it out: upstream's ControllerRefManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from steersman.api.errors import ApiError, Conflict, Invalid, NotFound
from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Key, Kind, kind_of
from steersman.intent.actions import Batch, Done, Failed, Patch, PatchType, Read
from steersman.intent.controller import Cache

O = TypeVar("O", bound=Object)


def resolve_controller_ref(
    owners: Cache[O], kind: Kind[O], namespace: str, reference: OwnerReference | None
) -> O | None:
    """The owner that a controllerRef names; None where the cache has no owner of that kind, name and uid."""
    if reference is None or reference.kind != kind.name:
        return None
    owner = owners.get(Key(namespace, reference.name))
    return owner if owner is not None and owner.metadata.uid == reference.uid else None


class Claims(msgspec.Struct, Generic[O], frozen=True):
    """The objects an owner keeps, adopts and releases."""

    keep: tuple[O, ...] = ()
    adopt: tuple[O, ...] = ()
    release: tuple[O, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether nothing has to be written."""
        return not self.adopt and not self.release


def divide(
    owner: Object, owned: Iterable[O], orphans: Iterable[O], matches: Callable[[O], bool]
) -> Claims[O]:
    """Sorts objects into kept, adopted and released.

    ``owned`` are the objects whose controller is the owner, ``orphans`` those without a controller.
    An owner that is being deleted keeps what it has and neither adopts nor releases.
    """
    deleted = owner.metadata.deletionTimestamp is not None
    keep: list[O] = []
    adopt: list[O] = []
    release: list[O] = []
    for obj in owned:
        if matches(obj):
            keep.append(obj)
        elif not deleted:
            release.append(obj)
    if not deleted:
        namespace = owner.metadata.namespace
        for obj in orphans:
            if obj.metadata.deletionTimestamp is not None:
                continue
            if namespace and obj.metadata.namespace != namespace:
                continue
            if matches(obj):
                adopt.append(obj)
    return Claims(tuple(keep), tuple(adopt), tuple(release))


def adoption(owner: Object, obj: O, finalizers: tuple[str, ...] = ()) -> Patch[O]:
    """The patch that makes the owner the controller of an orphan.

    Its uid excludes a later object of the same name; the server refuses it when another owner became the
    controller first.
    """
    kind = kind_of(owner)
    metadata: dict[str, Any] = {
        "ownerReferences": [
            {
                "apiVersion": kind.api_version,
                "kind": kind.name,
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "uid": obj.metadata.uid,
    }
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return Patch(obj, {"metadata": metadata}, PatchType.STRATEGIC)


def release(owner: Object, obj: O, finalizers: tuple[str, ...] = ()) -> Patch[O]:
    """The patch that removes the owner's reference from an object; other owners stay."""
    metadata: dict[str, Any] = {
        "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}],
        "uid": obj.metadata.uid,
    }
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    return Patch(obj, {"metadata": metadata}, PatchType.STRATEGIC)


async def claim(
    owner: Object,
    owned: Iterable[O],
    orphans: Iterable[O],
    matches: Callable[[O], bool],
    finalizers: tuple[str, ...] = (),
) -> list[O]:
    """Adopts and releases objects, and returns the objects the owner controls now.

    Adopted objects are returned as the server answered, so their resourceVersion is good for further writes.
    All writes are tried; then the first error is raised, since a decision on half of the objects would be wrong.
    """
    claims = divide(owner, owned, orphans, matches)
    if claims.settled:
        return list(claims.keep)
    failure: ApiError | None = None
    adopt = claims.adopt
    if adopt:
        try:
            await _check_not_deleted(owner)
        except ApiError as reason:
            # Releases go ahead all the same.
            failure, adopt = reason, ()
    writes = [release(owner, obj, finalizers) for obj in claims.release]
    writes += [adoption(owner, obj, finalizers) for obj in adopt]
    outcomes = await Batch(tuple(writes), slow_start=False) if writes else []

    claimed = list(claims.keep)
    for index, outcome in enumerate(outcomes):
        releasing = index < len(claims.release)
        match outcome:
            case Done(value) if not releasing:
                claimed.append(value)
            case Failed(NotFound()):
                pass  # deleted: nothing to adopt or release
            case Failed(Invalid()) if releasing:
                pass  # another object of that name, or no reference left: nothing to release
            case Failed(error):
                failure = failure or error
            case _:
                pass
    if failure is not None:
        raise failure
    return claimed


async def _check_not_deleted(owner: Object) -> None:
    """Reads the owner live before it adopts, and raises `Conflict` where it is deleted or replaced.

    The cache may lag behind the owner's deletion. An orphan adopted after that would be garbage collected, against
    the wish of a user who deleted the owner with ``--cascade=orphan``.
    """
    known = owner.metadata
    live = (await Read(owner)).metadata
    name = f"{kind_of(owner).name} {owner.key}"
    if live.uid != known.uid:
        raise Conflict(f"original {name} is gone: got uid {live.uid}, wanted {known.uid}")
    if live.deletionTimestamp is not None:
        raise Conflict(f"{name} has just been deleted at {live.deletionTimestamp.isoformat()}")
