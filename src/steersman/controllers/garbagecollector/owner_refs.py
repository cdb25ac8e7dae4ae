"""Owner references: how an object's metadata ties it to owners and dependents, and the owners known to be absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.discovery import ApiResource
from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Kind
from steersman.intent.all_resources import AllObjects, Item

FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that is deleted after its dependents."""
ORPHAN = "orphan"
"""The finalizer of an object whose dependents are kept without it."""

OWNER = "owner"
"""The index of dependents by the uid of their owners."""


def owner_uids(obj: Object) -> Iterable[str]:
    """The values of an object in the index `OWNER`."""
    return [reference.uid for reference in obj.metadata.ownerReferences if reference.uid]


def is_orphaning(obj: Object) -> bool:
    """Whether an object is being deleted and its dependents are to be orphaned."""
    return obj.metadata.deletionTimestamp is not None and ORPHAN in obj.metadata.finalizers


def is_deleting_dependents(obj: Object) -> bool:
    """Whether an object is being deleted and waits for its dependents to be deleted first."""
    return obj.metadata.deletionTimestamp is not None and FOREGROUND in obj.metadata.finalizers


def dependents(objects: AllObjects, owner: Item) -> Iterator[Item]:
    """The dependents of an object. A reference to an owner in another namespace does not count.

    differs: nothing depends on itself. Upstream would make it wait for its own deletion.
    """
    namespace, uid = owner.namespace, owner.uid
    for item in objects.by(OWNER, uid):
        if (not namespace or item.namespace == namespace) and item.uid != uid:
            yield item


def blocks(item: Item, owner: Item) -> bool:
    """Whether a dependent has ``blockOwnerDeletion`` set for this owner."""
    return any(
        reference.uid == owner.uid and bool(reference.blockOwnerDeletion)
        for reference in item.obj.metadata.ownerReferences
    )


def find_owner(
    objects: AllObjects, item_namespace: str, reference: OwnerReference, resource: ApiResource
) -> Item | None:
    """The owner that a reference names, where the cache has it with the same uid."""
    namespace = item_namespace if resource.namespaced else ""
    found = objects.at(resource, namespace, reference.name)
    return found if found is not None and found.uid == reference.uid else None


# -- absent owners --------------------------------------------------------------------------------

ABSENT_OWNERS = 500
"""The size of the cache of absent owners; upstream's number."""


class Coordinates(msgspec.Struct, frozen=True):
    """An owner as a reference names it, with its namespace; empty for a cluster-scoped owner."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


def coordinates(reference: OwnerReference, namespace: str) -> Coordinates:
    """The owner that a reference names, if it is in this namespace."""
    return Coordinates(reference.apiVersion, reference.kind, namespace, reference.name, reference.uid)


def coordinates_of(kind: Kind[object], obj: Object) -> Coordinates:
    """An object as references to it would name it."""
    meta = obj.metadata
    return Coordinates(kind.api_version, kind.name, meta.namespace, meta.name, meta.uid)


class AbsentOwners:
    """Remembers owners that do not exist. A uid is never used again, so an absent owner stays absent."""

    def __init__(self, size: int = ABSENT_OWNERS) -> None:
        self._known: BoundedCache[Coordinates, bool] = BoundedCache(size)

    def add(self, owner: Coordinates) -> None:
        self._known.put(owner, True)

    def __contains__(self, owner: Coordinates) -> bool:
        return self._known.use(owner) is not None

    def __len__(self) -> int:
        return len(self._known)
