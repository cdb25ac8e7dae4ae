"""ResourceClaims and their consumers: the names of the claims of a pod or PodGroup, whom a claim was made for, and whom
it is reserved for.

A claim in the spec of a consumer names a ResourceClaim, or a ResourceClaimTemplate from which one is made; the status
of the consumer then has its name. Upstream: k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

import msgspec

from steersman.api.kinds import PODS, Pod, PodResourceClaim
from steersman.api.kinds.devices import ResourceClaim, ResourceClaimConsumerReference
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup
from steersman.api.meta import controller_of, is_controlled_by
from steersman.api.scheme import kind_of

Consumer: TypeAlias = Pod | PodGroup
"""An object that uses claims. Both kinds have the same fields about them."""


class ClaimNotCreated(Exception):
    """The claim that a consumer needs has not been made from its template yet."""


class UnsupportedClaim(Exception):
    """A claim in the spec of a consumer names neither a claim nor a template: the API has more fields than are known
    here."""


class ClaimName(msgspec.Struct, frozen=True):
    """The ResourceClaim of one claim in a consumer's spec."""

    name: str | None
    """None: it was found that no claim is needed."""
    generated: bool = False
    """Made from a template: only to be used if it was made for this consumer."""


def claim_name(consumer: Consumer, claim: PodResourceClaim) -> ClaimName:
    """Return the name of a consumer's claim. Raises `ClaimNotCreated` or `UnsupportedClaim`."""
    if claim.resourceClaimName is not None:
        return ClaimName(claim.resourceClaimName)
    if claim.resourceClaimTemplateName is None:
        name = f'"{claim.name}"' if kind_of(consumer).name == PODS.name else claim.name
        raise UnsupportedClaim(f"{_quoted(consumer)}, spec.resourceClaim {name}: {_UNSUPPORTED}")
    for status in consumer.status.resourceClaimStatuses:
        if status.name == claim.name:
            return ClaimName(status.resourceClaimName, generated=True)
    raise ClaimNotCreated(f"{_quoted(consumer)}: ResourceClaim not created yet")


def claim_names(consumer: Consumer) -> Iterable[str]:
    """The names of the claims of a consumer that exist or are recorded in its status."""
    for claim in consumer.spec.resourceClaims:
        try:
            found = claim_name(consumer, claim)
        except (ClaimNotCreated, UnsupportedClaim):
            continue
        if found.name is not None:
            yield found.name


def pod_group_name(pod: Pod) -> str | None:
    """The PodGroup of a pod."""
    group = pod.spec.schedulingGroup
    return group.podGroupName if group is not None else None


def not_made_for(consumer: Consumer, claim: ResourceClaim, *, pod_groups: bool = False) -> str:
    """Why a claim is not the one that was made for a consumer; empty if it is.

    ``pod_groups``: the claim of a pod may also have been made for its PodGroup (DRAWorkloadResourceClaims).
    """
    kind = kind_of(consumer).name
    if claim.metadata.namespace != consumer.metadata.namespace:
        return f"ResourceClaim {claim.key} is not in the same namespace as {kind} {consumer.key}"
    if is_controlled_by(claim, consumer):
        return ""
    group = pod_group_name(cast("Pod", consumer)) if pod_groups and kind == PODS.name else None
    if group is None:
        # differs: with DRAWorkloadResourceClaims upstream panics, for it names the PodGroup that the pod does not have.
        return f"ResourceClaim {claim.key} was not created for {kind} {consumer.key} ({kind} is not owner)"
    if _is_made_for_group(claim, group):
        return ""
    return (
        f"ResourceClaim {claim.key} was not created for Pod {consumer.key} "
        f"(neither Pod nor PodGroup {group} is the owner)"
    )


def _is_made_for_group(claim: ResourceClaim, group: str) -> bool:
    """By name: a pod does not know the uid of its PodGroup, nor the version of its API."""
    owner = controller_of(claim)
    return (
        owner is not None
        and owner.name == group
        and owner.kind == PODGROUPS.name
        and owner.apiVersion.startswith(f"{PODGROUPS.group}/")
    )


def is_pod_reference(reference: ResourceClaimConsumerReference) -> bool:
    """Whether a claim is reserved for a pod."""
    return (reference.apiGroup, reference.resource) == (PODS.group, PODS.plural)


def is_pod_group_reference(reference: ResourceClaimConsumerReference) -> bool:
    """Whether a claim is reserved for a PodGroup."""
    return (reference.apiGroup, reference.resource) == (PODGROUPS.group, PODGROUPS.plural)


def is_reserved_for(pod: Pod, claim: ResourceClaim, *, pod_groups: bool = False) -> bool:
    """Whether a claim is reserved for a pod; with ``pod_groups`` also whether for its PodGroup, by name."""
    group = pod_group_name(pod) if pod_groups else None
    return any(
        each.uid == pod.metadata.uid
        or (group is not None and is_pod_group_reference(each) and each.name == group)
        for each in claim.status.reservedFor
    )


def consumer_of(pod: Pod, group: PodGroup | None, claim: PodResourceClaim) -> ResourceClaimConsumerReference:
    """The object that a pod's claim is to be reserved for: its PodGroup if that has the same claim, else the pod.

    Raises `UnsupportedClaim`, and `ValueError` if the pod is not in the group.
    """
    _check_supported("Pod", pod, claim)
    if group is not None:
        _check_member(pod, group)
        for shared in group.spec.resourceClaims:
            _check_supported("PodGroup", group, shared)
            if _is_same(shared, claim):
                return ResourceClaimConsumerReference(
                    apiGroup=PODGROUPS.group,
                    resource=PODGROUPS.plural,
                    name=group.metadata.name,
                    uid=group.metadata.uid,
                )
    return ResourceClaimConsumerReference(resource=PODS.plural, name=pod.metadata.name, uid=pod.metadata.uid)


_UNSUPPORTED = "none of the supported fields are set"


def _check_supported(kind: str, consumer: Consumer, claim: PodResourceClaim) -> None:
    if claim.resourceClaimName is None and claim.resourceClaimTemplateName is None:
        raise UnsupportedClaim(f"{kind} {consumer.key} claim {claim.name}: {_UNSUPPORTED}")


def _check_member(pod: Pod, group: PodGroup) -> None:
    name = pod_group_name(pod)
    if name is None:
        raise ValueError(f"Pod {pod.key} does not belong to a PodGroup")
    if (pod.metadata.namespace, name) != group.key:
        raise ValueError(
            f"Pod {pod.key} belongs to PodGroup {pod.metadata.namespace}/{name}, not PodGroup {group.key}"
        )


def _is_same(one: PodResourceClaim, other: PodResourceClaim) -> bool:
    """By fields, since the two may be of different types."""
    return (one.name, one.resourceClaimName, one.resourceClaimTemplateName) == (
        other.name,
        other.resourceClaimName,
        other.resourceClaimTemplateName,
    )


def _quoted(consumer: Consumer) -> str:
    """A consumer as upstream's errors name it."""
    kind = kind_of(consumer).name
    return f'pod "{consumer.key}"' if kind == PODS.name else f"{kind} {consumer.key}"
