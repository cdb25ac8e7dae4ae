"""Claims of pods: the PersistentVolumeClaims that a pod's volumes name, or that are made for its ephemeral volumes.

The claim of an ephemeral volume has the name of the pod and of the volume, and the pod controls it. A claim that has that
name only by chance belongs to another pod or to a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.api.kinds import Object, Pod, Volume
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.api.meta import is_controlled_by
from steersman.api.scheme import Key

BY_CLAIM = "by_claim"
"""The index of pods by the keys of their claims, as `claim_keys` computes them."""


def claim_name(pod: Object, volume: Volume) -> str:
    """The name of a volume's claim; empty where the volume has none."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    return ephemeral_claim_name(pod, volume) if volume.ephemeral is not None else ""


def ephemeral_claim_name(pod: Object, volume: Volume) -> str:
    """The name of the claim that is made for an ephemeral volume."""
    return f"{pod.metadata.name}-{volume.name}"


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of a pod's claims, in the order of its volumes."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name:
            yield name


def claim_keys(pod: Pod) -> Iterable[Key]:
    """Indexes a pod by the keys of its claims."""
    if not pod.spec.volumes:
        return ()
    return [Key(pod.metadata.namespace, name) for name in claim_names(pod)]


def is_made_for(claim: PersistentVolumeClaim, pod: Object) -> bool:
    """Whether a claim was made for an ephemeral volume of this pod."""
    return claim.metadata.namespace == pod.metadata.namespace and is_controlled_by(claim, pod)


def has_claim(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """Whether a volume of a pod is that of a claim in the pod's namespace. ``ephemeral`` includes ephemeral volumes."""
    name = claim.metadata.name
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) != name:
            continue
        if volume.persistentVolumeClaim is not None or (ephemeral and is_made_for(claim, pod)):
            return True
    return False
