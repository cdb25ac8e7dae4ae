"""Volumes as the scheduler, the kubelets and the storage drivers all see them: names, claims of pods, node affinity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from steersman.api.generated import core_v1 as v1
from steersman.api.scheduling import matches_node_selector_term
from steersman.api.scheme import Key
from steersman.api.volume_binding import BETA_STORAGE_CLASS

BINDER = "persistentvolume-binder-controller"
"""Binds claims. Where it does not run, the scheduler and the kubelets do not wait for claims."""
ATTACHER = "persistentvolume-attach-detach-controller"
"""Attaches volumes. Where it does not run, the kubelets do not wait for volumes to be attached."""
STORAGE_USER = "steersman:storage"
"""The user that simulated storage acts as."""
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"


class ClaimVolume(NamedTuple):
    """A volume of a pod that is backed by a claim."""

    name: str
    """The name of the claim; of the volume where it is ephemeral, as the claim is named after the pod as well."""
    ephemeral: bool


def claim_volumes(spec: v1.PodSpec) -> Iterator[ClaimVolume]:
    """The volumes of a pod that are backed by claims."""
    for volume in spec.volumes:
        if volume.persistentVolumeClaim is not None:
            yield ClaimVolume(volume.persistentVolumeClaim.claimName, False)
        elif volume.ephemeral is not None:
            yield ClaimVolume(volume.name, True)


def class_of(claim: v1.PersistentVolumeClaim) -> str:
    """The StorageClass of a claim, by the beta annotation or the field."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS) or claim.spec.storageClassName or ""


def claim_name(pod: str, volume: str) -> str:
    """The name of the claim of an ephemeral volume."""
    return f"{pod}-{volume}"


def is_for_pod(claim: v1.PersistentVolumeClaim, uid: str) -> bool:
    """Whether the claim of an ephemeral volume was created for the pod with this uid."""
    return any(owner.controller and owner.uid == uid for owner in claim.metadata.ownerReferences)


def not_for_pod(claim: v1.PersistentVolumeClaim, pod: Key) -> str:
    """Upstream's message for a claim that has the name of an ephemeral volume's, but was not created for the pod."""
    return f"PVC {claim.key} was not created for pod {pod} (pod is not owner)"


def claim_reference(claim: v1.PersistentVolumeClaim) -> v1.ObjectReference:
    """The claimRef of a volume of this claim."""
    meta = claim.metadata
    return v1.ObjectReference(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resourceVersion=meta.resourceVersion,
    )


def is_accessible(volume: v1.PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether the node affinity of a volume includes a node with these labels."""
    affinity = volume.spec.nodeAffinity
    if affinity is None or affinity.required is None:
        return True
    return any(
        not term.matchFields and matches_node_selector_term(term, "", labels)
        for term in affinity.required.nodeSelectorTerms
    )


def unique_name(driver: str, handle: str) -> str:
    """The name of a CSI volume in the status of nodes."""
    return f"kubernetes.io/csi/{driver}^{handle}"


def attachment_name(driver: str, handle: str, node: str) -> str:
    """The name of the VolumeAttachment of a CSI volume and a node."""
    return "csi-" + sha256(f"{handle}{driver}{node}".encode()).hexdigest()
