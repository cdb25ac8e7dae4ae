"""Reservations of ResourceClaims: removes those of consumers that are gone, adds those of pods that were bound without the
scheduler, and deallocates claims that are not in use.

::

    allocated, reserved --last consumer gone--> deallocated --> finalizer removed
    made for a pod, not reserved, pod done  --> deleted
    deleted, not reserved                   --> deallocated --> finalizer removed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, OwnerReference, Pod
from steersman.api.kinds.devices import DELETE_PROTECTION, ResourceClaim, ResourceClaimConsumerReference
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup
from steersman.api.resource_claims import (
    ClaimNotCreated,
    UnsupportedClaim,
    claim_name,
    consumer_of,
    is_pod_group_reference,
    is_pod_reference,
    is_reserved_for,
    not_made_for,
)
from steersman.api.scheme import Kind
from steersman.controllers.resourceclaim.templates import Config
from steersman.intent.actions import Address, Delete, Patch, Read
from steersman.intent.verdict import Rest, Verdict

MOST_RESERVATIONS = 256
"""Reservations that the API allows for a claim. Pods beyond that wait until another one is done."""


class ReservedClaim(msgspec.Struct, frozen=True):
    """A claim, and what the caches have of its consumers."""

    claim: ResourceClaim
    pods: Mapping[str, Pod]
    """The pods of the names it is reserved for."""
    groups: Mapping[str, PodGroup]
    """The PodGroups of the names it is reserved for."""
    deleted: frozenset[str]
    """The uids of consumers that are known to be deleted."""
    owner: Pod | None
    """The pod of the name of its controller."""
    unreserved: tuple[ResourceClaimConsumerReference, ...] = ()
    """The consumers of pods which use the claim on a node, though it is not reserved for them."""


def is_done(pod: Pod) -> bool:
    """Whether no container of a pod runs or ever will."""
    return pod.status.phase in ("Succeeded", "Failed") or (
        pod.metadata.deletionTimestamp is not None and not pod.spec.nodeName
    )


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that controls a claim, for which it was made."""
    for owner in claim.metadata.ownerReferences:
        if owner.controller and (owner.apiVersion, owner.kind) == (PODS.api_version, PODS.name):
            return owner
    return None


def needs_reservation(
    pod: Pod, group: PodGroup | None, claim: ResourceClaim, *, pod_groups: bool
) -> ResourceClaimConsumerReference | None:
    """The consumer that a claim of a pod has to be reserved for; None: there is nothing to reserve.

    The scheduler reserves claims before it binds a pod, so this is about pods that were bound without it.
    """
    if claim.status.allocation is None or not pod.spec.nodeName:
        return None
    if pod.metadata.deletionTimestamp is not None or is_done(pod):
        # differs: upstream reserves a shared claim for a pod that is done once it has released it, without end.
        return None
    if is_reserved_for(pod, claim, pod_groups=pod_groups):
        return None
    for each in pod.spec.resourceClaims:
        try:
            recorded = claim_name(pod, each)
            if recorded.name != claim.metadata.name:
                continue
            if recorded.generated and not_made_for(pod, claim, pod_groups=pod_groups):
                continue
            return consumer_of(pod, group, each)
        except (ClaimNotCreated, UnsupportedClaim, ValueError):
            continue
    return None


async def sync_reservations(seen: ReservedClaim, config: Config) -> Verdict:
    """Removes and adds reservations of a claim, and cleans up after the last one."""
    claim = seen.claim
    reserved_for = claim.status.reservedFor
    remaining = [each for each in reserved_for if await _is_in_use(seen, each, config)]
    # differs: upstream adds one reservation at a time, in the rounds of the pods.
    remaining += seen.unreserved[: max(0, MOST_RESERVATIONS - len(remaining))]
    protected = DELETE_PROTECTION in claim.metadata.finalizers
    deleted = claim.metadata.deletionTimestamp is not None
    if remaining != list(reserved_for):
        status: dict[str, Any] = {"reservedFor": [msgspec.to_builtins(each) for each in remaining] or None}
        # The last consumer deallocates the claim, so that the next one may use it elsewhere. A claim that was never
        # reserved stays allocated.
        if not remaining and protected:
            status["allocation"] = None
        current = await _patch_status(claim, status)
        if current.status.allocation is None:
            await _remove_protection(current)
        because = "updated the reservations"
    elif protected and deleted and not remaining:
        current = claim
        if claim.status.allocation is not None:
            current = await _patch_status(claim, {"allocation": None})
        await _remove_protection(current)
        return Rest("claim is being deleted and not in use: removed its finalizer")
    else:
        because = "the reservations are up to date"
    if remaining:
        return Rest(f"{because}; in use")
    owner = owning_pod(claim)
    if owner is None:
        return Rest(f"{because}; not made for a pod")
    if seen.owner is None:
        # The cache may not have the pod yet; if it is gone, the garbage collector deletes its claims.
        return Rest(f"{because}; the pod of the claim is not there")
    if deleted or (seen.owner.metadata.uid == owner.uid and not is_done(seen.owner)):
        return Rest(because)
    try:
        await Delete(claim)
    except NotFound:
        return Rest("claim is gone")
    return Rest("deleted: the pod of the claim is done")


async def _is_in_use(seen: ReservedClaim, reference: ResourceClaimConsumerReference, config: Config) -> bool:
    """Whether a reservation is to stay. Reservations for unknown kinds of consumers do."""
    if reference.uid in seen.deleted:
        return not is_pod_reference(reference) and not (
            config.pod_groups and is_pod_group_reference(reference)
        )
    if is_pod_reference(reference):
        pod = seen.pods.get(reference.name)
        if pod is None:
            return await _exists(PODS, seen.claim, reference)
        return pod.metadata.uid == reference.uid and not is_done(pod)
    if config.pod_groups and is_pod_group_reference(reference):
        group = seen.groups.get(reference.name)
        if group is None:
            return await _exists(PODGROUPS, seen.claim, reference)
        return group.metadata.uid == reference.uid
    return True


async def _exists(kind: Kind[Any], claim: ResourceClaim, reference: ResourceClaimConsumerReference) -> bool:
    """Reads a consumer live: the scheduler may have reserved the claim for one that the cache does not have yet."""
    try:
        found = await Read(Address(kind, claim.metadata.namespace, reference.name))
    except NotFound:
        return False
    return bool(found.metadata.uid == reference.uid)


async def _patch_status(claim: ResourceClaim, status: Mapping[str, Any]) -> ResourceClaim:
    """Changes the status of a claim, unless the claim has changed in the meantime.

    differs: upstream updates it as a whole, and loses the fields of an allocation that it does not know.
    """
    body = {"metadata": _version(claim), "status": status}
    patched: ResourceClaim = await Patch(claim, body, subresource="status")
    return patched


async def _remove_protection(claim: ResourceClaim) -> None:
    finalizers = [each for each in claim.metadata.finalizers if each != DELETE_PROTECTION]
    if len(finalizers) < len(claim.metadata.finalizers):
        await Patch(claim, {"metadata": {**_version(claim), "finalizers": finalizers or None}})


def _version(claim: ResourceClaim) -> dict[str, Any]:
    """The precondition of a patch."""
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resourceVersion}
