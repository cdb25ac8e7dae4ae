"""Protection finalizers: they keep an object that is being deleted until nothing uses it any more.

A finalizer is added and removed by an update of the object as the cache has it, with its resourceVersion. An object that
has changed since is therefore never touched: the update is refused as a conflict, and the next round looks again.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from steersman.api.kinds import Object
from steersman.intent.actions import Update

O = TypeVar("O", bound=Object)


def is_deletion_candidate(obj: Object, finalizer: str) -> bool:
    """Whether an object is being deleted and still has the finalizer."""
    return obj.metadata.deletionTimestamp is not None and finalizer in obj.metadata.finalizers


def needs_finalizer(obj: Object, finalizer: str) -> bool:
    """Whether an object lacks the finalizer and is not being deleted.

    The API server adds finalizers at creation; objects that are older than that admission plugin get them here.
    """
    return obj.metadata.deletionTimestamp is None and finalizer not in obj.metadata.finalizers


def needs_sync(obj: Object, finalizer: str) -> bool:
    """Whether the finalizer is to be added, or possibly removed."""
    return is_deletion_candidate(obj, finalizer) or needs_finalizer(obj, finalizer)


def add_finalizer(obj: O, finalizer: str) -> Update[O]:
    """The update that adds the finalizer. Only for kinds whose view has every field."""
    return _with_finalizers(obj, (*obj.metadata.finalizers, finalizer))


def remove_finalizer(obj: O, finalizer: str) -> Update[O]:
    """The update that removes the finalizer. Only for kinds whose view has every field."""
    return _with_finalizers(obj, tuple(each for each in obj.metadata.finalizers if each != finalizer))


def _with_finalizers(obj: O, finalizers: tuple[str, ...]) -> Update[O]:
    return Update(replace(obj, metadata=replace(obj.metadata, finalizers=finalizers)))
