"""Classifies the owners of an object as solid, waiting or dangling; owners the cache lacks are read live."""

from __future__ import annotations

import msgspec

from steersman.api.discovery import ApiResource
from steersman.api.errors import NotFound
from steersman.api.kinds import OwnerReference
from steersman.controllers.garbagecollector.graph import Observation, Owner, OwnerState
from steersman.controllers.garbagecollector.owner_refs import coordinates, is_deleting_dependents
from steersman.intent.actions import Address, Emit, Read
from steersman.intent.verdict import InvalidSpec


class NamespacedOwner(Exception):
    """A cluster-scoped object refers to a namespaced owner, which cannot be looked up."""


class Classified(msgspec.Struct, frozen=True):
    """The owner references of one object by the state of their owners."""

    solid: tuple[OwnerReference, ...] = ()
    waiting: tuple[OwnerReference, ...] = ()
    dangling: tuple[OwnerReference, ...] = ()
    uncached: bool = False
    """An owner exists and the cache lacks it, so its deletion enqueues nothing."""
    unwatched: bool = False
    """The cache will not have it soon: its resource cannot be watched, or is not synced."""


async def classify_owners(seen: Observation) -> Classified:
    """Classifies all owners. Raises `NamespacedOwner`, `InvalidSpec` for kinds that are not served, and `ApiError`."""
    found: dict[OwnerState, list[OwnerReference]] = {}
    uncached = unwatched = False
    for owner in seen.owners:
        state = owner.state
        if owner.in_other_namespace:
            await _emit_invalid_namespace(seen, owner.reference)
        if state is OwnerState.UNCACHED:
            state = await _read_state(seen, owner)
            if state is not OwnerState.DANGLING:
                uncached = True
                unwatched = unwatched or not _is_watched(seen, owner.resource)
        found.setdefault(state, []).append(owner.reference)
    return Classified(
        tuple(found.get(OwnerState.SOLID, ())),
        tuple(found.get(OwnerState.WAITING, ())),
        tuple(found.get(OwnerState.DANGLING, ())),
        uncached,
        unwatched,
    )


def _is_watched(seen: Observation, resource: ApiResource | None) -> bool:
    return resource is not None and resource.supports("list", "watch") and resource.id not in seen.unfilled


async def _emit_invalid_namespace(seen: Observation, reference: OwnerReference) -> None:
    item = seen.item
    await Emit(
        Address(item.kind, item.namespace, item.name, item.uid),
        "Warning",
        "OwnerRefInvalidNamespace",
        f'ownerRef {coordinates(reference, item.namespace)} does not exist in namespace "{item.namespace}"',
    )


async def _read_state(seen: Observation, owner: Owner) -> OwnerState:
    """Reads an owner from the server, by the name and namespace its reference gives."""
    reference, resource, item = owner.reference, owner.resource, seen.item
    if resource is None:
        raise _not_served(reference)
    if resource.namespaced and not item.namespace:
        raise NamespacedOwner("cluster-scoped objects cannot refer to namespaced owners")
    namespace = item.namespace if resource.namespaced else ""
    try:
        found = await Read(Address(resource.partial, namespace, reference.name))
    except NotFound as error:
        if not _is_about_object(error, resource):
            # differs: upstream takes a resource that is no longer served for an absent owner.
            raise _not_served(reference) from None
    else:
        if found.metadata.uid == reference.uid:
            return OwnerState.WAITING if is_deleting_dependents(found) else OwnerState.SOLID
    seen.absent_owners.add(coordinates(reference, namespace))
    return OwnerState.DANGLING


def _is_about_object(error: NotFound, resource: ApiResource) -> bool:
    """Whether the object was not found, and not the whole resource."""
    return bool(error.details.get("name")) or error.details.get("kind") == resource.name


def _not_served(reference: OwnerReference) -> InvalidSpec:
    return InvalidSpec(f"unable to get REST mapping for {reference.apiVersion}/{reference.kind}.")
