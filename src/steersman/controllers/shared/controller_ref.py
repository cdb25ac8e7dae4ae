"""Adopting and releasing: which objects an owner controls, and the writes that make it so.

An owner claims by its selector. What it controls and still selects it keeps; what it controls and no
longer selects it releases; an orphan it selects it adopts. `divide` decides, `claim` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from steersman.api.errors import ApiError, Conflict, Invalid, NotFound
from steersman.api.kinds import Object
from steersman.api.scheme import kind_of
from steersman.intent.actions import Batch, Done, Failed, Patch, PatchType, ReadLive

O = TypeVar("O", bound=Object)


class Claims(msgspec.Struct, Generic[O], frozen=True):
    """What is to become of the objects an owner controls or might control."""

    keep: tuple[O, ...] = ()
    adopt: tuple[O, ...] = ()
    release: tuple[O, ...] = ()

    @property
    def settled(self) -> bool:
        """Nothing has to be written."""
        return not self.adopt and not self.release


def divide(
    owner: Object, owned: Iterable[O], orphans: Iterable[O], matches: Callable[[O], bool]
) -> Claims[O]:
    """Sort objects into kept, adopted and released.

    ``owned`` are the objects whose controller is the owner, ``orphans`` those without a controller.
    An owner that is being deleted keeps what it has and neither adopts nor releases.
    """
    leaving = owner.metadata.deletionTimestamp is not None
    keep: list[O] = []
    adopt: list[O] = []
    release: list[O] = []
    for obj in owned:
        if matches(obj):
            keep.append(obj)
        elif not leaving:
            release.append(obj)
    if not leaving:
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
    """Become the controller of an orphan.

    The uid makes the patch miss an object that took the name since; the server refuses it when
    somebody else became the controller first.
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
    """Take the owner's reference off an object; other owners stay."""
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
    """Adopt and release, and answer with what the owner controls now.

    Adopted objects are the server's answer, so their resourceVersion is good for further writes.
    All writes are tried; then the first that failed for a real reason is raised, for a decision
    made on half of the objects would be wrong.
    """
    claims = divide(owner, owned, orphans, matches)
    if claims.settled:
        return list(claims.keep)
    refusal: ApiError | None = None
    adopt = claims.adopt
    if adopt:
        try:
            await _still_there(owner)
        except ApiError as reason:
            # What we must give up is given up all the same.
            refusal, adopt = reason, ()
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
                pass  # gone: neither ours to keep nor to give up
            case Failed(Invalid()) if releasing:
                pass  # another object of that name, or no reference left: nothing to give up
            case Failed(error):
                refusal = refusal or error
            case _:
                pass
    if refusal is not None:
        raise refusal
    return claimed


async def _still_there(owner: Object) -> None:
    """Look past the cache before adopting.

    The cache may lag behind the owner's deletion, and an orphan adopted then would be collected as
    garbage, perhaps against the wish of somebody who deleted the owner to keep the orphans.
    """
    known = owner.metadata
    live = (await ReadLive(owner)).metadata
    what = f"{kind_of(owner).name} {owner.key}"
    if live.uid != known.uid:
        raise Conflict(f"original {what} is gone: got uid {live.uid}, wanted {known.uid}")
    if live.deletionTimestamp is not None:
        raise Conflict(f"{what} has just been deleted at {live.deletionTimestamp.isoformat()}")
