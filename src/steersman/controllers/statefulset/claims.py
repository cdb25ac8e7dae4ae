"""PersistentVolumeClaims of a StatefulSet's pods: which are missing, and who owns them by the retention policy.

A claim outlives its pod. With ``persistentVolumeClaimRetentionPolicy`` Delete it has an owner and is garbage collected
with it: with the set when that is deleted, or with a pod that is scaled away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import EMPTY, PODS, Object, OwnerReference, Pod
from steersman.api.kinds.statefulsets import (
    STATEFULSETS,
    PersistentVolumeClaimRetentionPolicy,
    StatefulSet,
)
from steersman.api.kinds.storage import NewClaim, PersistentVolumeClaim
from steersman.api.meta import owner_reference
from steersman.api.scheme import Kind
from steersman.controllers.statefulset.identity import (
    claim_name,
    claim_names,
    ordinal_of,
    ordinals,
    pod_name,
)
from steersman.intent.actions import ReadModifyWrite

DELETE = "Delete"
RETAIN_ALL = PersistentVolumeClaimRetentionPolicy()

Claims: TypeAlias = Mapping[str, PersistentVolumeClaim]
"""Existing claims, by name."""


def policy_of(set_: StatefulSet) -> PersistentVolumeClaimRetentionPolicy:
    """The retention policy. Any value but Delete means Retain."""
    return set_.spec.persistentVolumeClaimRetentionPolicy or RETAIN_ALL


def missing_claims(set_: StatefulSet, ordinal: int, existing: Claims) -> Iterator[NewClaim]:
    """The claims to create for the pod of an ordinal."""
    selector = set_.spec.selector
    for template in set_.spec.volumeClaimTemplates:
        name = claim_name(set_, template.metadata.name, ordinal)
        if name not in existing:
            yield NewClaim(
                metadata=replace(
                    template.metadata,
                    name=name,
                    namespace=set_.metadata.namespace,
                    labels={**template.metadata.labels, **(selector.matchLabels if selector else EMPTY)},
                    # differs: upstream adds the owner later, and never would after a crash in between.
                    ownerReferences=(
                        *template.metadata.ownerReferences,
                        *_policy_owners(set_, None, scaled_down=False),
                    ),
                ),
                spec=template.spec,
            )


def terminating_claim(set_: StatefulSet, ordinal: int, existing: Claims) -> str | None:
    """The name of a claim of the ordinal that is being deleted; None where there is none."""
    for name in claim_names(set_, ordinal).values():
        if name in existing and existing[name].metadata.deletionTimestamp is not None:
            return name
    return None


def has_stale_claim(set_: StatefulSet, ordinal: int, existing: Claims) -> bool:
    """Whether a claim of the ordinal is still owned by its scaled-away pod, and will be deleted with that."""
    if policy_of(set_).whenScaled != DELETE:
        return False
    name = pod_name(set_, ordinal)
    return any(
        _refers_to(reference, PODS, name)
        for claim in claim_names(set_, ordinal).values()
        if claim in existing
        for reference in existing[claim].metadata.ownerReferences
    )


# -- owners -----------------------------------------------------------------------------------


def outdated_claims(set_: StatefulSet, pod: Pod, existing: Claims) -> Iterator[PersistentVolumeClaim]:
    """The pod's claims whose owners do not match the retention policy."""
    for name in claim_names(set_, ordinal_of(pod.metadata.name)).values():
        claim = existing.get(name)
        if claim is not None and new_owners(set_, pod, claim.metadata.ownerReferences) is not None:
            yield claim


def conflicting_claims(set_: StatefulSet, pod: Pod, existing: Claims) -> Iterator[str]:
    """The names of the pod's claims that have another controller, so that the retention policy is ignored."""
    policy = policy_of(set_)
    if DELETE in (policy.whenDeleted, policy.whenScaled):
        for name in claim_names(set_, ordinal_of(pod.metadata.name)).values():
            if name in existing and _has_other_owner(set_, pod, existing[name].metadata.ownerReferences):
                yield name


def new_owners(
    set_: StatefulSet, pod: Pod, references: tuple[OwnerReference, ...]
) -> tuple[OwnerReference, ...] | None:
    """The owners a claim should have; None where it has them, or must not be changed."""
    ours = (set_.metadata.uid, pod.metadata.uid)
    if _is_stale(references, STATEFULSETS, set_) or _is_stale(references, PODS, pod):
        return None  # of an earlier set or pod of that name: left to the garbage collector
    others = tuple(
        reference
        for reference in references
        if not _refers_to(reference, STATEFULSETS, set_.metadata.name)
        and not _refers_to(reference, PODS, pod.metadata.name)
    )
    policy = policy_of(set_)
    if DELETE in (policy.whenDeleted, policy.whenScaled) and _has_other_owner(set_, pod, references):
        return others if any(reference.uid in ours for reference in references) else None
    scaled_down = ordinal_of(pod.metadata.name) not in ordinals(set_)
    wanted = _policy_owners(set_, pod, scaled_down=scaled_down)
    present = [reference.uid for reference in references if reference.uid in ours]
    controlled = all(reference.controller for reference in references if reference.uid in ours)
    if controlled and sorted(present) == sorted(reference.uid for reference in wanted):
        return None
    return others + wanted


class OwnersEdit(msgspec.Struct, frozen=True):
    """Edits a live claim: sets the owners it should have, given those it has."""

    set: StatefulSet
    pod: Pod

    def __call__(self, document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        present = msgspec.convert(metadata.get("ownerReferences") or (), tuple[OwnerReference, ...])
        owners = new_owners(self.set, self.pod, present)
        if owners is not None:
            metadata["ownerReferences"] = msgspec.to_builtins(owners)


def update_owners(
    set_: StatefulSet, pod: Pod, claim: PersistentVolumeClaim
) -> ReadModifyWrite[PersistentVolumeClaim]:
    """The write that gives a claim the owners it should have."""
    return ReadModifyWrite(claim, OwnersEdit(set_, pod))


def _policy_owners(set_: StatefulSet, pod: Pod | None, *, scaled_down: bool) -> tuple[OwnerReference, ...]:
    policy = policy_of(set_)
    if pod is not None and scaled_down and policy.whenScaled == DELETE:
        return (owner_reference(pod, PODS),)
    return (owner_reference(set_, STATEFULSETS),) if policy.whenDeleted == DELETE else ()


def _refers_to(reference: OwnerReference, kind: Kind[Any], name: str) -> bool:
    return (reference.apiVersion, reference.kind, reference.name) == (kind.api_version, kind.name, name)


def _is_stale(references: tuple[OwnerReference, ...], kind: Kind[Any], owner: Object) -> bool:
    """Whether a claim refers to an earlier object of the owner's name."""
    for reference in references:
        if _refers_to(reference, kind, owner.metadata.name):
            return reference.uid != owner.metadata.uid
    return False


def _has_other_owner(set_: StatefulSet, pod: Pod, references: tuple[OwnerReference, ...]) -> bool:
    """Whether a claim has another controller, or an owner that is an earlier set or pod of the same name."""
    for reference in references:
        for kind, owner in ((STATEFULSETS, set_), (PODS, pod)):
            if _refers_to(reference, kind, owner.metadata.name):
                if reference.uid != owner.metadata.uid:
                    return True
                break
        else:
            if reference.controller:
                return True
    return False
