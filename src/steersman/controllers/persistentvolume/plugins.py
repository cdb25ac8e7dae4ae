"""Volume plugins of kube-controller-manager: which of them provisions, deletes or recycles a volume.

Upstream has two left in-tree. ``kubernetes.io/host-path`` provisions, deletes and recycles; ``kubernetes.io/nfs`` recycles.
The plugins of cloud volumes have been replaced by CSI drivers: their volumes are marked with the name of the driver,
and its external provisioner acts on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.kinds.storage import PersistentVolume
from steersman.api.volume_binding import (
    BETA_STORAGE_PROVISIONER,
    MIGRATED_TO,
    PROVISIONED_BY,
    STORAGE_PROVISIONER,
)
from steersman.controllers.shared.csi_migration import DRIVERS

IN_TREE = "kubernetes.io/"
HOST_PATH = "kubernetes.io/host-path"
NFS = "kubernetes.io/nfs"
NOT_AVAILABLE = "N/A"
"""The label of metrics where there is no plugin."""

DELETION_PROTECTION = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE_DELETION_PROTECTION = "kubernetes.io/pv-controller"
"""Finalizers that keep a provisioned volume until its storage is deleted, by a CSI driver or here."""


class NoPlugin(Exception):
    """No plugin does what is asked for. The message is upstream's."""


def provisioner_of(name: str) -> str:
    """The plugin that provisions for the provisioner of a class; empty where an external one does. Raises `NoPlugin`."""
    if name == HOST_PATH:
        return HOST_PATH
    if name in DRIVERS or not name.startswith(IN_TREE):
        return ""
    raise NoPlugin(_no_plugin(name, "provisionable"))


def deleter_of(volume: PersistentVolume) -> str:
    """The plugin that deletes the storage of a volume; empty where an external deleter does. Raises `NoPlugin`."""
    provisioned_by = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if provisioned_by:
        if provisioned_by == HOST_PATH:
            return HOST_PATH
        if not provisioned_by.startswith(IN_TREE):
            return ""
        raise NoPlugin(_no_plugin(provisioned_by, "deletable"))
    if MIGRATED_TO in volume.metadata.annotations or volume.spec.csi is not None:
        return ""
    plugin = plugin_of(volume)
    if plugin == HOST_PATH:
        return HOST_PATH
    why = "no deletable volume plugin matched" if plugin else "no volume plugin matched"
    raise NoPlugin(f'error getting deleter volume plugin for volume "{volume.metadata.name}": {why}')


def plugin_of(volume: PersistentVolume) -> str:
    """The plugin of a volume's source, which can recycle the volume; empty if there is none."""
    if volume.spec.hostPath is not None:
        return HOST_PATH
    return NFS if volume.spec.nfs is not None else ""


def _no_plugin(name: str, ability: str) -> str:
    if name in (HOST_PATH, NFS):
        return f"no {ability} volume plugin matched"
    return f"no volume plugin matched name: {name}"


def external_name(provisioner: str) -> str:
    """The name under which an external provisioner knows the provisioner of a class."""
    return DRIVERS.get(provisioner, provisioner)


# -- migration to CSI drivers -----------------------------------------------------------------


def migrated_claim_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations of a claim with the CSI driver that its provisioner was replaced by; the same object if right."""
    return _migrated(
        annotations, annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER))
    )


def migrated_volume_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The same of a volume, by the provisioner that made it."""
    return _migrated(annotations, annotations.get(PROVISIONED_BY))


def _migrated(annotations: Mapping[str, str], provisioner: str | None) -> Mapping[str, str]:
    if provisioner is None:
        return annotations
    driver = DRIVERS.get(provisioner, "")
    if annotations.get(MIGRATED_TO, "") == driver:
        return annotations
    rest = {name: value for name, value in annotations.items() if name != MIGRATED_TO}
    return {**rest, MIGRATED_TO: driver} if driver else rest


def protecting_finalizers(volume: PersistentVolume) -> tuple[str, ...]:
    """The finalizers of a provisioned volume; the same object if they are right.

    A volume of an in-tree plugin is protected here while its reclaim policy is Delete, and by no CSI driver. One whose
    plugin was replaced is left to its driver.
    """
    finalizers = volume.metadata.finalizers
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY)
    if provisioner is None or not (provisioner in DRIVERS or provisioner.startswith(IN_TREE)):
        return finalizers
    unwanted = set()
    policy = volume.spec.persistentVolumeReclaimPolicy
    if provisioner in DRIVERS:
        unwanted.add(IN_TREE_DELETION_PROTECTION)
    else:
        unwanted.add(DELETION_PROTECTION)
        if policy in ("Retain", "Recycle"):
            unwanted.add(IN_TREE_DELETION_PROTECTION)
    wanted = tuple(name for name in finalizers if name not in unwanted)
    # differs: upstream tries to protect a volume that is being deleted, and is refused.
    protectable = provisioner not in DRIVERS and volume.metadata.deletionTimestamp is None
    if protectable and policy == "Delete" and IN_TREE_DELETION_PROTECTION not in finalizers:
        wanted = (*wanted, IN_TREE_DELETION_PROTECTION)
    return finalizers if wanted == finalizers else wanted
