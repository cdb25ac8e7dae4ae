"""Claims: the storage that a pod of a StatefulSet finds again, and who it goes with.

A claim outlives its pod. With the set's retention policy it may be owned, and so be collected as garbage:
by the set, to go with it; by a pod that is to go for good, to go with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import EMPTY, PODS, Object, OwnerReference, Pod
from steersman.api.kinds.quota import PersistentVolumeClaim
from steersman.api.kinds.statefulsets import (
    STATEFULSETS,
    NewClaim,
    PersistentVolumeClaimRetentionPolicy,
    StatefulSet,
)
from steersman.api.meta import owner_reference
from steersman.api.scheme import Kind
from steersman.controllers.statefulset.identity import claim_name, claim_names, ordinal_of, ordinals
from steersman.intent.actions import ReadModifyWrite

DELETE = "Delete"
NOBODY = PersistentVolumeClaimRetentionPolicy()

Claims: TypeAlias = Mapping[str, PersistentVolumeClaim]
"""Those there are, by name."""


def policy_of(set_: StatefulSet) -> PersistentVolumeClaimRetentionPolicy:
    """Anything but Delete means to retain."""
    return set_.spec.persistentVolumeClaimRetentionPolicy or NOBODY


def new_claims(set_: StatefulSet, ordinal: int, there: Claims) -> Iterator[NewClaim]:
    """The claims that the pod of an ordinal lacks."""
    selector = set_.spec.selector
    for template in set_.spec.volumeClaimTemplates:
        name = claim_name(set_, template.metadata.name, ordinal)
        if name not in there:
            yield NewClaim(
                metadata=replace(
                    template.metadata,
                    name=name,
                    namespace=set_.metadata.namespace,
                    labels={**template.metadata.labels, **(selector.matchLabels if selector else EMPTY)},
                    # differs: upstream adds the owner later, and if it died before it never would.
                    ownerReferences=(
                        *template.metadata.ownerReferences,
                        *_wanted(set_, None, scaled_down=False),
                    ),
                ),
                spec=template.spec,
            )


def going(set_: StatefulSet, ordinal: int, there: Claims) -> str | None:
    """A claim of the ordinal's that is being deleted, if there is one."""
    for name in claim_names(set_, ordinal).values():
        if name in there and there[name].metadata.deletionTimestamp is not None:
            return name
    return None


def is_stale(set_: StatefulSet, ordinal: int, there: Claims) -> bool:
    """Whether the pod to come would find a claim that is to go with the last pod of its name."""
    if policy_of(set_).whenScaled != DELETE:
        return False
    name = f"{set_.metadata.name}-{ordinal}"
    return any(
        _means(reference, PODS, name)
        for claim in claim_names(set_, ordinal).values()
        if claim in there
        for reference in there[claim].metadata.ownerReferences
    )


# -- who owns a claim -------------------------------------------------------------------------


def disowned(set_: StatefulSet, pod: Pod, there: Claims) -> Iterator[PersistentVolumeClaim]:
    """The pod's claims whose owners are not those they should have."""
    for name in claim_names(set_, ordinal_of(pod.metadata.name)).values():
        claim = there.get(name)
        if claim is not None and owners(set_, pod, claim.metadata.ownerReferences) is not None:
            yield claim


def contested(set_: StatefulSet, pod: Pod, there: Claims) -> Iterator[str]:
    """The pod's claims that the retention policy cannot be applied to, since others control them."""
    policy = policy_of(set_)
    if DELETE in (policy.whenDeleted, policy.whenScaled):
        for name in claim_names(set_, ordinal_of(pod.metadata.name)).values():
            if name in there and _others(set_, pod, there[name].metadata.ownerReferences):
                yield name


def owners(
    set_: StatefulSet, pod: Pod, references: tuple[OwnerReference, ...]
) -> tuple[OwnerReference, ...] | None:
    """The owners a claim should have; None where it has them, or is not to be touched."""
    ours = (set_.metadata.uid, pod.metadata.uid)
    if _stale(references, STATEFULSETS, set_) or _stale(references, PODS, pod):
        return None  # left behind by an earlier set or pod of the name: it is for the garbage collector
    scrubbed = tuple(
        reference
        for reference in references
        if not _means(reference, STATEFULSETS, set_.metadata.name)
        and not _means(reference, PODS, pod.metadata.name)
    )
    policy = policy_of(set_)
    if DELETE in (policy.whenDeleted, policy.whenScaled) and _others(set_, pod, references):
        return scrubbed if any(reference.uid in ours for reference in references) else None
    scaled_down = ordinal_of(pod.metadata.name) not in ordinals(set_)
    wanted = _wanted(set_, pod, scaled_down=scaled_down)
    has = [reference.uid for reference in references if reference.uid in ours]
    controlled = all(reference.controller for reference in references if reference.uid in ours)
    if controlled and sorted(has) == sorted(reference.uid for reference in wanted):
        return None
    return scrubbed + wanted


class Handover(msgspec.Struct, frozen=True):
    """The edit that gives a claim the owners it should have, by those it has at the moment."""

    set: StatefulSet
    pod: Pod

    def __call__(self, document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        has = msgspec.convert(metadata.get("ownerReferences") or (), tuple[OwnerReference, ...])
        due = owners(self.set, self.pod, has)
        if due is not None:
            metadata["ownerReferences"] = msgspec.to_builtins(due)


def handover(
    set_: StatefulSet, pod: Pod, claim: PersistentVolumeClaim
) -> ReadModifyWrite[PersistentVolumeClaim]:
    return ReadModifyWrite(claim, Handover(set_, pod))


def _wanted(set_: StatefulSet, pod: Pod | None, *, scaled_down: bool) -> tuple[OwnerReference, ...]:
    policy = policy_of(set_)
    if pod is not None and scaled_down and policy.whenScaled == DELETE:
        return (owner_reference(pod, PODS),)
    return (owner_reference(set_, STATEFULSETS),) if policy.whenDeleted == DELETE else ()


def _means(reference: OwnerReference, kind: Kind[Any], name: str) -> bool:
    return (reference.apiVersion, reference.kind, reference.name) == (kind.api_version, kind.name, name)


def _stale(references: tuple[OwnerReference, ...], kind: Kind[Any], owner: Object) -> bool:
    """Whether a claim names an owner that has been replaced by another of its name."""
    for reference in references:
        if _means(reference, kind, owner.metadata.name):
            return reference.uid != owner.metadata.uid
    return False


def _others(set_: StatefulSet, pod: Pod, references: tuple[OwnerReference, ...]) -> bool:
    """Whether a claim is controlled by somebody else, or by who once had the name of set or pod."""
    for reference in references:
        for kind, owner in ((STATEFULSETS, set_), (PODS, pod)):
            if _means(reference, kind, owner.metadata.name):
                if reference.uid != owner.metadata.uid:
                    return True
                break
        else:
            if reference.controller:
                return True
    return False
