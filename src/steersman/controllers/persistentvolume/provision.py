"""Provisions a volume for a claim: asks an external provisioner for one, or makes a directory of this host.

An external provisioner watches for claims with its name in an annotation. It creates a volume that is bound to the claim,
and the round of the claim completes the binding.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
)
from steersman.api.kinds.volume_sources import HostPathVolumeSource
from steersman.api.volume_binding import (
    BETA_STORAGE_PROVISIONER,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of_claim,
    mode_of,
)
from steersman.controllers.persistentvolume.binding import reference_to
from steersman.controllers.persistentvolume.plugins import (
    HOST_PATH,
    IN_TREE_DELETION_PROTECTION,
    NoPlugin,
    external_name,
    migrated_claim_annotations,
    provisioner_of,
)
from steersman.controllers.persistentvolume.seen import ClaimSeen, emit
from steersman.intent.actions import Address, Create, DirectoryError, MakeDirectory, Read, Update
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

HOST_PATHS = "/tmp/hostpath_pv"
CREATED_BY = "kubernetes.io/createdby"


async def provision(seen: ClaimSeen, claim: PersistentVolumeClaim) -> Verdict:
    """Provision a volume for a claim of a class."""
    if not seen.config.provisions:
        return Rest("dynamic provisioning is disabled")
    class_, name = seen.storage_class, class_of_claim(claim)
    try:
        if class_ is None:
            raise NoPlugin(f'storageclass.storage.k8s.io "{name}" not found')
        plugin = provisioner_of(class_.provisioner)
    except NoPlugin as error:
        await emit(seen, claim, "Warning", "ProvisioningFailed", str(error))
        return Rest(str(error))
    provisioner = plugin or external_name(class_.provisioner)
    seen.memory.begin(claim.key, provisioner, "provision", seen.monotonic)
    if plugin:
        return await _provision_host_path(seen, claim, class_)
    try:
        claim = await _set_provisioner(claim, provisioner)
    except ApiError as error:
        await _failed(seen, claim, f"Error saving claim: {error}")
        raise
    await emit(
        seen,
        claim,
        "Normal",
        "ExternalProvisioning",
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered.",
    )
    return Rest(f"waiting for the external provisioner {provisioner}")


async def _set_provisioner(claim: PersistentVolumeClaim, provisioner: str) -> PersistentVolumeClaim:
    """Let a provisioner know that a claim is its own."""
    annotations = claim.metadata.annotations
    if annotations.get(STORAGE_PROVISIONER) == provisioner:
        return claim
    named = {**annotations, BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
    annotated = replace(claim.metadata, annotations=migrated_claim_annotations(named))
    written: PersistentVolumeClaim = await Update(replace(claim, metadata=annotated))
    return written


# -- directories of this host -----------------------------------------------------------------


async def _provision_host_path(
    seen: ClaimSeen, claim: PersistentVolumeClaim, class_: StorageClass
) -> Verdict:
    if claim.spec.dataSource is not None:
        why = f'plugin "{HOST_PATH}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource'
        raise await _failed(seen, claim, why)
    try:
        claim = await _set_provisioner(claim, HOST_PATH)
    except ApiError:
        for measure in seen.memory.failed(claim.key):
            await measure
        raise
    name = f"pvc-{claim.metadata.uid}"
    try:
        await Read(Address(PERSISTENTVOLUMES, "", name))
    except NotFound:
        pass
    else:
        return Rest(f"volume {name} is provisioned already")
    if class_.mountOptions:
        options = " ".join(class_.mountOptions)
        why = f'Mount options are not supported by the provisioner but StorageClass "{class_.metadata.name}" has mount options [{options}]'
        raise await _failed(seen, claim, why)
    if not seen.config.provisions_host_paths:
        why = f'Failed to create provisioner: provisioning in volume plugin "{HOST_PATH}" is disabled'
        raise await _failed(seen, claim, why)
    if not seen.node_exists:
        node = claim.metadata.annotations[SELECTED_NODE]
        raise await _failed(seen, claim, f'Failed to get target node: node "{node}" not found')
    volume = host_path_volume(claim, class_, name)
    try:
        if mode_of(claim.spec) == "Block":
            raise DirectoryError(f"{HOST_PATH} does not support block volume provisioning")
        assert volume.spec.hostPath is not None
        await MakeDirectory(volume.spec.hostPath.path)
    except DirectoryError as error:
        claim = await _reschedule(claim)
        why = f'Failed to provision volume with StorageClass "{class_.metadata.name}": {error}'
        raise await _failed(seen, claim, why) from None
    try:
        await Create(PERSISTENTVOLUMES, "", volume)
    except AlreadyExists:
        pass
    # differs: a refused create is retried by the next round, which uses the same directory.
    message = f"Successfully provisioned volume {name} using {HOST_PATH}"
    await emit(seen, claim, "Normal", "ProvisioningSucceeded", message)
    return Rest(message)


def host_path_volume(claim: PersistentVolumeClaim, class_: StorageClass, name: str) -> PersistentVolume:
    """The volume of a directory that is made for a claim.

    differs: the directory has the uid of the claim, where upstream draws another one, so that a round that was
    interrupted leaves no directory behind.
    """
    policy = class_.reclaimPolicy or "Delete"
    storage: dict[str, Any] = {
        key: value for key, value in claim.spec.resources.requests.items() if key == "storage"
    }
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            annotations={
                CREATED_BY: "hostpath-dynamic-provisioner",
                BOUND_BY_CONTROLLER: "yes",
                PROVISIONED_BY: HOST_PATH,
            },
            finalizers=(IN_TREE_DELETION_PROTECTION,) if policy == "Delete" else (),
        ),
        spec=PersistentVolumeSpec(
            accessModes=claim.spec.accessModes or ("ReadWriteOnce",),
            capacity=storage,
            claimRef=reference_to(claim),
            hostPath=HostPathVolumeSource(path=f"{HOST_PATHS}/{claim.metadata.uid}"),
            persistentVolumeReclaimPolicy=policy,
            storageClassName=class_of_claim(claim),
        ),
    )


async def _reschedule(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Let the scheduler choose another node for a claim."""
    annotations = dict(claim.metadata.annotations)
    if annotations.pop(SELECTED_NODE, None) is None:
        return claim
    meta = replace(claim.metadata, annotations=annotations)
    try:
        written: PersistentVolumeClaim = await Update(replace(claim, metadata=meta))
    except ApiError:
        return claim  # as upstream: the event that tells why provisioning failed matters more
    return written


async def _failed(seen: ClaimSeen, claim: PersistentVolumeClaim, why: str) -> InvalidSpec:
    """Counts a failure and warns of it; returns the error that makes the round fail."""
    await emit(seen, claim, "Warning", "ProvisioningFailed", why)
    for measure in seen.memory.failed(claim.key):
        await measure
    return InvalidSpec(why)
