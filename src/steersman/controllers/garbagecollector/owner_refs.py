"""How objects are tied to each other: what their metadata says of owners and dependents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.api.discovery import Resource
from steersman.api.kinds import Object, OwnerReference
from steersman.intent.all_resources import AllObjects, Item

FOREGROUND = "foregroundDeletion"
"""The finalizer of what goes once its dependents have gone."""
ORPHAN = "orphan"
"""The finalizer of what goes once its dependents have been let go."""

OWNER = "owner"


def owner_uids(obj: Object) -> Iterable[str]:
    """Filed under the uid of each owner."""
    return [reference.uid for reference in obj.metadata.ownerReferences if reference.uid]


def leaves(obj: Object, finalizer: str) -> bool:
    """Whether an object is being deleted and has a finalizer of ours."""
    return obj.metadata.deletionTimestamp is not None and finalizer in obj.metadata.finalizers


def waits(obj: Object) -> bool:
    """Whether an object is being deleted, and waits for its dependents to go first."""
    return leaves(obj, FOREGROUND)


def dependents(everything: AllObjects, owner: Item) -> Iterator[Item]:
    """What says it is owned by an object, and may be: an owner in another namespace is none.

    differs: nothing depends on itself. Upstream would have it wait for itself to go.
    """
    namespace, uid = owner.namespace, owner.uid
    for item in everything.by(OWNER, uid):
        if (not namespace or item.namespace == namespace) and item.uid != uid:
            yield item


def blocks(item: Item, owner: Item) -> bool:
    """Whether a dependent keeps its owner, which waits, from going."""
    return any(
        reference.uid == owner.uid and bool(reference.blockOwnerDeletion)
        for reference in item.obj.metadata.ownerReferences
    )


def owner_at(
    everything: AllObjects, item_namespace: str, reference: OwnerReference, resource: Resource
) -> Item | None:
    """The owner that a reference means, where the cache shows it: by name and place, and by uid."""
    namespace = item_namespace if resource.namespaced else ""
    found = everything.at(resource, namespace, reference.name)
    return found if found is not None and found.uid == reference.uid else None
