"""Which owners of an object live, go, or are absent: what the cache does not show is asked of the server."""

from __future__ import annotations

import msgspec

from steersman.api.discovery import Resource
from steersman.api.errors import NotFound
from steersman.api.kinds import OwnerReference
from steersman.controllers.garbagecollector.absent_owners import coordinates
from steersman.controllers.garbagecollector.observe import Owner, Seen, Standing
from steersman.controllers.garbagecollector.owner_refs import waits
from steersman.intent.actions import Address, Emit, Read
from steersman.intent.verdict import InvalidSpec


class Impossible(Exception):
    """A cluster-scoped object says that it is owned by a namespaced one. Nobody can find that owner."""


class Judged(msgspec.Struct, frozen=True):
    """The owner references of one object, by what became of whom they mean."""

    solid: tuple[OwnerReference, ...] = ()
    waiting: tuple[OwnerReference, ...] = ()
    absent: tuple[OwnerReference, ...] = ()
    unseen: bool = False
    """One that lives is not in the cache, so that nobody will tell when it goes."""
    unread: bool = False
    """Nor will it be soon: its resource cannot be read, or is not followed."""


async def judge(seen: Seen) -> Judged:
    """Sort the owners of an object. Raises `Impossible`, `InvalidSpec` for kinds nobody serves, and `ApiError`."""
    found: dict[Standing, list[OwnerReference]] = {}
    unseen = unread = False
    for owner in seen.owners:
        standing = owner.standing
        if owner.elsewhere:
            await _report(seen, owner.reference)
        if standing is Standing.UNSEEN:
            standing = await _ask(seen, owner)
            if standing is not Standing.ABSENT:
                unseen = True
                unread = unread or not _followed(seen, owner.resource)
        found.setdefault(standing, []).append(owner.reference)
    return Judged(
        tuple(found.get(Standing.SOLID, ())),
        tuple(found.get(Standing.WAITING, ())),
        tuple(found.get(Standing.ABSENT, ())),
        unseen,
        unread,
    )


def _followed(seen: Seen, resource: Resource | None) -> bool:
    return resource is not None and resource.can("list", "watch") and resource.id not in seen.unfilled


async def _report(seen: Seen, reference: OwnerReference) -> None:
    """Say that an object cannot be owned by one in another namespace."""
    item = seen.item
    await Emit(
        Address(item.kind, item.namespace, item.name, item.uid),
        "Warning",
        "OwnerRefInvalidNamespace",
        f'ownerRef {coordinates(reference, item.namespace)} does not exist in namespace "{item.namespace}"',
    )


async def _ask(seen: Seen, owner: Owner) -> Standing:
    """Look for an owner at the server, where its reference says that it is."""
    reference, resource, item = owner.reference, owner.resource, seen.item
    if resource is None:
        raise _unserved(reference)
    if resource.namespaced and not item.namespace:
        raise Impossible("cluster-scoped objects cannot refer to namespaced owners")
    namespace = item.namespace if resource.namespaced else ""
    try:
        found = await Read(Address(resource.partial, namespace, reference.name))
    except NotFound as error:
        if not _names(error, resource):
            # differs: upstream takes a resource that is no longer served for an owner that is not there.
            raise _unserved(reference) from None
    else:
        if found.metadata.uid == reference.uid:
            return Standing.WAITING if waits(found) else Standing.SOLID
    seen.absent.add(coordinates(reference, namespace))
    return Standing.ABSENT


def _names(error: NotFound, resource: Resource) -> bool:
    """Whether an object was not found, and not the whole resource."""
    return bool(error.details.get("name")) or error.details.get("kind") == resource.name


def _unserved(reference: OwnerReference) -> InvalidSpec:
    return InvalidSpec(f"unable to get REST mapping for {reference.apiVersion}/{reference.kind}.")
