"""Volume filters: whether the claims of a pod can be used on a node, and which volumes they would be bound to. Pure functions.

They are kube-scheduler's plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone, in this order, with the
messages of 1.36::

    check_claims(pod)            once for each pod: claims that are missing, lost, or have to be bound first
    filter_volumes(pod, node)    for each node: node affinity, limits and zones of volumes, and volumes that fit unbound claims

differs: volumes of in-tree plugins are not translated to CSI, and CSIStorageCapacity is not considered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.api.label_selectors import compile_selector
from steersman.api.quantity import Quantity, storage_of
from steersman.api.scheme import Key
from steersman.api.volume_binding import BIND_COMPLETED, SELECTED_NODE
from steersman.sim.scheduler.filters import BIND_CONFLICT, NODE_CONFLICT, ZONE_CONFLICT
from steersman.sim.scheduler.node_info import NodeInfo, PodInfo
from steersman.sim.volume_names import claim_name, class_of, is_accessible, is_for_pod, not_for_pod

EXCEEDED = "node(s) exceed max volume count"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS: Mapping[str, str] = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes that restrict them to zones and regions, with the label of nodes that replaces the beta label."""

Claim: TypeAlias = v1.PersistentVolumeClaim
Volume: TypeAlias = v1.PersistentVolume


class StorageObjects(Protocol):
    """The storage objects that scheduling depends on, with the bindings that are under way."""

    def storage_class(self, name: str) -> storage_v1.StorageClass | None: ...
    def csi_node(self, name: str) -> storage_v1.CSINode | None: ...
    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None: ...
    def claim(self, key: Key) -> Claim | None: ...
    def volume(self, name: str) -> Volume | None: ...
    def volumes_of_class(self, name: str) -> Iterable[Volume]: ...
    def attachments_of_node(self, name: str) -> Iterable[storage_v1.VolumeAttachment]: ...


class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod, as far as they are the same for all nodes."""

    bound: tuple[tuple[Claim, Volume], ...]
    unbound: tuple[Claim, ...]
    """Claims that wait for this pod to be scheduled (WaitForFirstConsumer), the smallest first."""
    candidates: Mapping[str, tuple[Volume, ...]]
    """The volumes of each StorageClass of unbound claims."""
    in_use: bool = False
    """Whether a claim may only be used by one pod, and another pod uses it."""


class PodVolumes(msgspec.Struct, frozen=True):
    """The bindings that a pod needs on one node."""

    bindings: tuple[tuple[Claim, Volume], ...] = ()
    """Claims, and existing volumes to bind them to."""
    provisions: tuple[Claim, ...] = ()
    """Claims whose volume has to be provisioned."""


def is_bound(claim: Claim) -> bool:
    """Whether the binder has finished with a claim."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


# -- for all nodes ----------------------------------------------------------------------------


def check_claims(pod: PodInfo, storage: StorageObjects, others: Iterable[PodInfo]) -> PodClaims | str:
    """The claims of a pod, or why no node can run it. ``others`` are the scheduled pods that have claims, too."""
    bound: list[Claim] = []
    unbound: list[Claim] = []
    immediate = False
    for volume, ephemeral in pod.requirements.claims:
        key = claim_key(pod, volume, ephemeral)
        claim = storage.claim(key)
        if claim is None and ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{key.name}"'
        if claim is None:
            return f'persistentvolumeclaim "{key.name}" not found'
        if claim.status.phase == "Lost":
            return (
                f'persistentvolumeclaim "{key.name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volumeName}"'
            )
        if claim.metadata.deletionTimestamp is not None:
            return f'persistentvolumeclaim "{key.name}" is being deleted'
        if ephemeral and not is_for_pod(claim, pod.uid):
            return not_for_pod(claim, pod.key)
        if is_bound(claim):
            bound.append(claim)
        elif _is_delayed(claim, storage) and not claim.spec.volumeName:
            unbound.append(claim)
        else:
            immediate = True
    if immediate:
        return UNBOUND
    found: list[tuple[Claim, Volume]] = []
    for claim in bound:
        held = storage.volume(claim.spec.volumeName)
        if held is None:
            return f'persistentvolume "{claim.spec.volumeName}" not found'
        found.append((claim, held))
    classes = dict.fromkeys(map(class_of, unbound))
    return PodClaims(
        bound=tuple(found),
        unbound=tuple(sorted(unbound, key=lambda claim: storage_of(claim.spec.resources.requests))),
        candidates={name: tuple(storage.volumes_of_class(name)) for name in classes},
        in_use=_is_in_use(pod, (*bound, *unbound), others),
    )


def claim_key(pod: PodInfo, volume: str, ephemeral: bool) -> Key:
    """The key of the claim of a pod's volume."""
    return Key(pod.key.namespace, claim_name(pod.key.name, volume) if ephemeral else volume)


def _is_delayed(claim: Claim, storage: StorageObjects) -> bool:
    """Whether a claim is bound when its first consumer is scheduled."""
    found = storage.storage_class(class_of(claim))
    return found is not None and found.volumeBindingMode == "WaitForFirstConsumer"


def _is_in_use(pod: PodInfo, claims: Iterable[Claim], others: Iterable[PodInfo]) -> bool:
    single = {claim.key for claim in claims if "ReadWriteOncePod" in claim.spec.accessModes}
    return bool(single) and any(
        claim_key(other, *claim) in single
        for other in others
        if other.key != pod.key
        for claim in other.requirements.claims
    )


# -- for one node -----------------------------------------------------------------------------


def filter_volumes(
    pod: PodInfo, claims: PodClaims, node_info: NodeInfo, storage: StorageObjects
) -> PodVolumes | tuple[str, ...]:
    """The bindings that a pod needs on a node, or why the node does not fit."""
    if claims.in_use:
        return (IN_USE,)
    if reason := _limit_reason(pod, node_info, storage):
        return (reason,)
    found = _find_volumes(claims, node_info, storage)
    if isinstance(found, PodVolumes) and not all(
        _in_zone(volume.metadata.labels, node_info.labels) for _, volume in claims.bound
    ):
        return (ZONE_CONFLICT,)
    return found


def _find_volumes(
    claims: PodClaims, node_info: NodeInfo, storage: StorageObjects
) -> PodVolumes | tuple[str, ...]:
    name, labels = node_info.name, node_info.labels
    reasons = []
    if not all(is_accessible(volume, labels) for _, volume in claims.bound):
        reasons.append(NODE_CONFLICT)
    selected = [claim.metadata.annotations.get(SELECTED_NODE, name) for claim in claims.unbound]
    if any(node != name for node in selected):
        return (*reasons, BIND_CONFLICT)
    bindings: list[tuple[Claim, Volume]] = []
    provisions: list[Claim] = []
    for claim in claims.unbound:
        chosen = {volume.metadata.name for _, volume in bindings}
        match = None
        if SELECTED_NODE not in claim.metadata.annotations:
            match = find_matching_volume(claim, claims.candidates[class_of(claim)], labels, chosen)
        if match is not None:
            bindings.append((claim, match))
        elif _can_provision(claim, labels, storage):
            provisions.append(claim)
        else:
            return (*reasons, BIND_CONFLICT)
    return tuple(reasons) if reasons else PodVolumes(tuple(bindings), tuple(provisions))


def find_matching_volume(
    claim: Claim, volumes: Iterable[Volume], labels: Mapping[str, str], excluded: Iterable[str] = ()
) -> Volume | None:
    """The smallest available volume for a claim on a node with these labels; or the one that is reserved for the claim."""
    wanted = storage_of(claim.spec.resources.requests)
    selector = None if claim.spec.selector is None else compile_selector(claim.spec.selector)
    smallest: tuple[Quantity, Volume] | None = None
    for volume in volumes:
        spec = volume.spec
        reserved = _is_reserved(volume, claim)
        size = storage_of(spec.capacity)
        if (
            volume.metadata.name in excluded
            or (spec.claimRef is not None and not reserved)
            or size < wanted
            or (claim.spec.volumeMode or "Filesystem") != (spec.volumeMode or "Filesystem")
            or (claim.spec.volumeAttributesClassName or "") != (spec.volumeAttributesClassName or "")
            or volume.metadata.deletionTimestamp is not None
        ):
            continue
        accessible = is_accessible(volume, labels)
        if reserved:
            return volume if accessible else None
        if (
            not accessible
            or volume.status.phase != "Available"
            or (selector is not None and not selector.matches(volume.metadata.labels))
            or spec.storageClassName != class_of(claim)
            or not set(claim.spec.accessModes) <= set(spec.accessModes)
        ):
            continue
        if smallest is None or size < smallest[0]:
            smallest = (size, volume)
    return None if smallest is None else smallest[1]


def _is_reserved(volume: Volume, claim: Claim) -> bool:
    reference, meta = volume.spec.claimRef, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (meta.namespace, meta.name)
        and reference.uid in ("", meta.uid)
    )


def _can_provision(claim: Claim, labels: Mapping[str, str], storage: StorageObjects) -> bool:
    found = storage.storage_class(class_of(claim))
    if found is None or found.provisioner in ("", NO_PROVISIONER):
        return False
    terms = found.allowedTopologies
    return not terms or any(
        all(labels.get(each.key) in each.values for each in term.matchLabelExpressions) for term in terms
    )


def _in_zone(volume_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether the zone labels of a volume include the zone of a node. A node without any zone is in all of them."""
    if not any(key in labels for key in ZONE_LABELS):
        return True
    for key, replacement in ZONE_LABELS.items():
        if key in volume_labels:
            zone = labels.get(key, labels.get(replacement))
            # A volume of several zones has them all in one label.
            if zone not in volume_labels[key].split("__"):
                return False
    return True


# -- volume limits ----------------------------------------------------------------------------


def _limit_reason(pod: PodInfo, node_info: NodeInfo, storage: StorageObjects) -> str:
    """Why the CSI drivers of a node cannot attach the volumes of another pod; empty where they can."""
    csi_node = storage.csi_node(node_info.name)
    new = _csi_volumes(pod, storage)
    if not new:
        return ""
    drivers = () if csi_node is None else csi_node.spec.drivers or ()
    registered = {driver.name: driver for driver in drivers}
    for name in new.values():
        driver = storage.csi_driver(name)
        if driver is not None and driver.spec.preventPodSchedulingIfMissing and name not in registered:
            return f"{name} CSI driver is not installed on the node"
    limits = {
        name: driver.allocatable.count
        for name, driver in registered.items()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    if not limits:
        return ""
    attached: dict[str, str] = {}
    for other in node_info.pods.values():
        if other.requirements.claims and other.key != pod.key:
            attached.update(_csi_volumes(other, storage))
    for each in storage.attachments_of_node(node_info.name):
        volume = storage.volume(each.spec.source.persistentVolumeName or "")
        if volume is not None and volume.spec.csi is not None:
            csi = volume.spec.csi
            attached[f"{csi.driver}/{csi.volumeHandle}"] = csi.driver
    counted = list(attached.values())
    added = [driver for name, driver in new.items() if name not in attached]
    for name in dict.fromkeys(added):
        if name in limits and counted.count(name) + added.count(name) > limits[name]:
            return EXCEEDED
    return ""


def _csi_volumes(pod: PodInfo, storage: StorageObjects) -> dict[str, str]:
    """The driver of each CSI volume of a pod. A volume that does not exist yet is one of its class's provisioner."""
    found: dict[str, str] = {}
    for volume, ephemeral in pod.requirements.claims:
        claim = storage.claim(claim_key(pod, volume, ephemeral))
        if claim is None:
            continue
        bound = storage.volume(claim.spec.volumeName) if claim.spec.volumeName else None
        if bound is None:
            storage_class = storage.storage_class(class_of(claim))
            if storage_class is not None:
                found[f"{storage_class.provisioner}/unbound-{claim.key}"] = storage_class.provisioner
        elif bound.spec.csi is not None:
            found[f"{bound.spec.csi.driver}/{bound.spec.csi.volumeHandle}"] = bound.spec.csi.driver
    return found
