"""The provisioner (a dialogue): creates the volumes of claims, and deletes released volumes.

It does what external-provisioner does. The binder hands a claim over with the annotation
``volume.kubernetes.io/storage-provisioner``; the provisioner creates a volume with a claimRef, and the binder binds the two::

    claim is handed over  ->  volume pvc-UID  ->  (bound, used, claim deleted)  ->  Released  ->  deleted

A volume of ``sim.steersman.dev/hostpath`` can only be used on the node that was selected for its first consumer, as volumes of
kind's local-path provisioner; one of the CSI driver on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, storage_v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.scheme import Key, Kind
from steersman.api.volume_binding import PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER
from steersman.intent.actions import Address, Create, Delete, Emit, Patch, Read
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.storage.failures import RETRY_MAX, RETRY_MIN, StorageError, injected_error, read_class
from steersman.sim.storage.simulated_storage import CLAIMS, DRIVER, HOST_PATH
from steersman.sim.volume_names import claim_reference, class_of

VOLUMES: Kind[v1.PersistentVolume] = load("", "v1", "PersistentVolume")
ATTACHMENTS: Kind[storage_v1.VolumeAttachment] = load("storage.k8s.io", "v1", "VolumeAttachment")
NODES: Kind[v1.Node] = load("", "v1", "Node")
PROVISIONERS = (HOST_PATH, DRIVER)
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""Keeps a volume whose reclaim policy is Delete until its storage is deleted."""
ATTACHERS = "external-attacher/"
"""Prefix of the finalizers by which external-attacher keeps a volume until it is detached."""
HOSTNAME = "kubernetes.io/hostname"
DIRECTORY = "/var/lib/steersman/volumes"


class ReleasedVolume(msgspec.Struct, frozen=True):
    """A volume of the provisioner, and the nodes it is attached to."""

    volume: v1.PersistentVolume
    attached_to: tuple[str, ...]


def provisioner_of(claim: v1.PersistentVolumeClaim) -> str:
    """The provisioner that the binder has handed a claim over to."""
    annotations = claim.metadata.annotations
    return annotations.get(STORAGE_PROVISIONER) or annotations.get(BETA_STORAGE_PROVISIONER, "")


def observe(caches: Caches, key: Key) -> v1.PersistentVolumeClaim | ReleasedVolume | None:
    if key.namespace:
        return caches[CLAIMS].get(key)
    volume = caches[VOLUMES].get(key)
    if volume is None:
        return None
    attached = caches[ATTACHMENTS].by("volume", key.name)
    return ReleasedVolume(volume, tuple(each.spec.nodeName for each in attached))


async def decide(
    seen: v1.PersistentVolumeClaim | ReleasedVolume,
    now: datetime,
    any_provisioner: bool = False,
    names: tuple[str, ...] = PROVISIONERS,
) -> Verdict:
    """One claim or volume. ``names`` are the provisioners that this one stands for."""
    if isinstance(seen, ReleasedVolume):
        return await delete(seen, any_provisioner, names)
    return await provision(seen, any_provisioner, names)


async def provision(
    claim: v1.PersistentVolumeClaim, any_provisioner: bool = False, names: tuple[str, ...] = PROVISIONERS
) -> Verdict:
    """Create the volume of a claim, if the claim was handed over."""
    provisioner, name = provisioner_of(claim), class_of(claim)
    if claim.spec.volumeName or claim.metadata.deletionTimestamp is not None:
        return Rest("bound already, or being deleted")
    if not provisioner or (provisioner not in names and not any_provisioner):
        return Rest("not handed over to this provisioner")
    storage_class = await read_class(name)
    if storage_class is None:
        raise await _failed(claim, f'storageclass.storage.k8s.io "{name}" not found')
    selected = claim.metadata.annotations.get(SELECTED_NODE, "")
    if storage_class.volumeBindingMode == "WaitForFirstConsumer" and not selected:
        return Rest("no node is selected yet")
    message = f'External provisioner is provisioning volume for claim "{claim.key}"'
    await Emit(claim, "Normal", "Provisioning", message)
    node = None
    if selected:
        try:
            node = await Read(Address(NODES, "", selected))
        except NotFound:
            # The scheduler selects another node.
            await Patch(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return Rest("the selected node does not exist")
    if error := injected_error("provision", claim, storage_class):
        raise await _failed(claim, f'failed to provision volume with StorageClass "{name}": {error}')
    volume = new_volume(claim, storage_class, node)
    try:
        await Create(VOLUMES, "", volume)
    except AlreadyExists:
        return Rest("the volume exists already")
    message = f"Successfully provisioned volume {volume.metadata.name}"
    await Emit(claim, "Normal", "ProvisioningSucceeded", message)
    return Rest("the volume was created")


async def _failed(claim: v1.PersistentVolumeClaim, message: str) -> StorageError:
    await Emit(claim, "Warning", "ProvisioningFailed", message)
    return StorageError(message)


def new_volume(
    claim: v1.PersistentVolumeClaim, storage_class: storage_v1.StorageClass, node: v1.Node | None
) -> v1.PersistentVolume:
    """The volume of a claim."""
    name, provisioner = f"pvc-{claim.metadata.uid}", storage_class.provisioner
    policy = storage_class.reclaimPolicy or "Delete"
    spec = v1.PersistentVolumeSpec(
        accessModes=claim.spec.accessModes,
        capacity={"storage": claim.spec.resources.requests.get("storage", "0")},
        claimRef=claim_reference(claim),
        mountOptions=storage_class.mountOptions,
        persistentVolumeReclaimPolicy=policy,
        storageClassName=storage_class.metadata.name,
        volumeMode=claim.spec.volumeMode,
        volumeAttributesClassName=claim.spec.volumeAttributesClassName,
        csi=None if "/" in provisioner else _csi_source(claim, provisioner),
        hostPath=_host_path(name, claim) if "/" in provisioner else None,
        nodeAffinity=_on_node(node) if provisioner == HOST_PATH and node is not None else None,
    )
    meta = ObjectMeta(
        name=name,
        annotations={PROVISIONED_BY: provisioner},
        finalizers=(FINALIZER,) if policy == "Delete" else (),
    )
    return v1.PersistentVolume(metadata=meta, spec=spec)


def _csi_source(claim: v1.PersistentVolumeClaim, driver: str) -> v1.CSIPersistentVolumeSource:
    return v1.CSIPersistentVolumeSource(
        driver=driver, volumeHandle=f"vol-{claim.metadata.uid}", fsType="ext4"
    )


def _host_path(name: str, claim: v1.PersistentVolumeClaim) -> v1.HostPathVolumeSource:
    meta = claim.metadata
    path = f"{DIRECTORY}/{name}_{meta.namespace}_{meta.name}"
    return v1.HostPathVolumeSource(path=path, type="DirectoryOrCreate")


def _on_node(node: v1.Node) -> v1.VolumeNodeAffinity:
    hostname = node.metadata.labels.get(HOSTNAME, node.metadata.name)
    term = v1.NodeSelectorRequirement(key=HOSTNAME, operator="In", values=(hostname,))
    return v1.VolumeNodeAffinity(
        required=v1.NodeSelector(nodeSelectorTerms=(v1.NodeSelectorTerm(matchExpressions=(term,)),))
    )


async def delete(
    seen: ReleasedVolume, any_provisioner: bool = False, names: tuple[str, ...] = PROVISIONERS
) -> Verdict:
    """Delete a volume that no claim needs any more, if its reclaim policy says so."""
    volume = seen.volume
    meta, spec = volume.metadata, volume.spec
    provisioner = meta.annotations.get(PROVISIONED_BY, "")
    if not provisioner or (provisioner not in names and not any_provisioner):
        return Rest("not a volume of this provisioner")
    if spec.persistentVolumeReclaimPolicy != "Delete":
        if FINALIZER in meta.finalizers:
            await _remove_finalizer(volume)
        return Rest("retained")
    if volume.status.phase != "Released":
        return Rest("in use")
    storage_class = await read_class(spec.storageClassName)
    error = injected_error("delete", volume, storage_class)
    if seen.attached_to and not any_provisioner:
        error = f"persistentvolume {meta.name} is still attached to node {seen.attached_to[0]}"
    if error:
        await Emit(volume, "Warning", "VolumeFailedDelete", error)
        raise StorageError(error)
    if meta.deletionTimestamp is None:
        await Delete(volume)
    if FINALIZER in meta.finalizers or any_provisioner:
        await _remove_finalizer(volume)
    return Rest("deleted")


async def _remove_finalizer(volume: v1.PersistentVolume) -> None:
    left = [
        each for each in volume.metadata.finalizers if each != FINALIZER and not each.startswith(ATTACHERS)
    ]
    try:
        await Patch(volume, {"metadata": {"uid": volume.metadata.uid, "finalizers": left}})
    except NotFound:
        return


def volume_of_attachment(attachment: storage_v1.VolumeAttachment) -> Iterable[str]:
    """The name of the volume that a VolumeAttachment is about."""
    name = attachment.spec.source.persistentVolumeName
    return () if name is None else (name,)


def _to_volume(caches: Caches, change: Change[storage_v1.VolumeAttachment]) -> Iterable[Key]:
    return [Key("", name) for name in volume_of_attachment(change.obj)]


controller: Controller[v1.PersistentVolumeClaim | ReleasedVolume] = Controller(
    name="sim-provisioner",
    watches=(
        Watch(CLAIMS),
        Watch(VOLUMES),
        Watch(ATTACHMENTS, to=_to_volume, indexes={"volume": volume_of_attachment}),
    ),
    observe=observe,
    decide=decide,
    workers=4,
    event_component=HOST_PATH,
    min_backoff=RETRY_MIN,
    max_backoff=RETRY_MAX,
)
any_controller: Controller[v1.PersistentVolumeClaim | ReleasedVolume] = replace(
    controller, decide=partial(decide, any_provisioner=True)
)
"""The same for claims of all StorageClasses: it stands for whatever provisioners a cluster has, and attaches nothing."""
hostpath_controller: Controller[v1.PersistentVolumeClaim | ReleasedVolume] = replace(
    controller, decide=partial(decide, names=(HOST_PATH,))
)
"""The provisioner of the default StorageClass alone, beside that of the CSI driver."""
csi_controller: Controller[v1.PersistentVolumeClaim | ReleasedVolume] = replace(
    controller, name="sim-csi-provisioner", decide=partial(decide, names=(DRIVER,)), event_component=DRIVER
)
"""The provisioner of the CSI driver, with events in the driver's name."""
