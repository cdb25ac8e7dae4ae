"""Volumes that are attached to nodes: the plugin and unique name of each, and how each may be attached.

The unique name of a volume, such as ``kubernetes.io/csi/ebs.csi.aws.com^vol-1``, is the one in a node's
``volumesAttached`` and ``volumesInUse``. Three plugins attach in 1.36: CSI, which all migrated in-tree plugins are
translated to, and Fibre Channel and iSCSI, for which attaching is a mere entry in the node's status.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.api.kinds import Pod, Volume
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.api.kinds.volume_sources import FCVolumeSource, ISCSIPersistentVolumeSource, ISCSIVolumeSource
from steersman.controllers.shared.csi_migration import (
    READ_ONLY_MANY,
    READ_WRITE_MANY,
    Untranslatable,
    is_migrated_inline,
    translate,
    translate_inline,
)
from steersman.intent.metrics import Metric

CSI = "kubernetes.io/csi"
FIBRE_CHANNEL = "kubernetes.io/fc"
ISCSI = "kubernetes.io/iscsi"
SEPARATOR = "^"
"""Separates the driver and the handle in the name of a CSI volume; no driver's name has it."""
BOUND = "Bound"
OPERATION_SECONDS = Metric(
    "storage_operation_duration_seconds",
    "Storage operation duration",
    ("volume_plugin", "operation_name", "status", "migrated"),
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600),
)
"""The metric of all operations on volumes: attach, detach, expand."""


class AttachableVolume(msgspec.Struct, frozen=True):
    """A volume of a plugin that attaches volumes to nodes."""

    name: str
    """The unique name."""
    spec_name: str
    """The name in events: that of the PersistentVolume, or of the inline volume."""
    plugin: str
    driver: str = ""
    handle: str = ""
    exclusive: bool = False
    """The access modes let only one node at a time have it."""
    migrated: bool = False
    pv: str = ""
    """The PersistentVolume, if it is one."""
    inline_spec: Mapping[str, Any] | None = None
    """The spec of the PersistentVolume that stands for an inline volume, as a document."""

    @property
    def qualified_plugin(self) -> str:
        """The plugin's name in metrics: that of CSI has the driver."""
        return f"{self.plugin}:{self.driver}" if self.driver else self.plugin


def is_bound_to(claim: PersistentVolumeClaim, pv: PersistentVolume) -> bool:
    """Whether a claim and a volume are bound to each other."""
    ref = pv.spec.claimRef
    return (
        claim.status.phase == BOUND
        and bool(claim.spec.volumeName)
        and claim.spec.volumeName == pv.metadata.name
        and ref is not None
        and ref.uid == claim.metadata.uid
    )


# -- attachable volumes ---------------------------------------------------------------------------


def volume_of(pv: PersistentVolume) -> AttachableVolume | None:
    """The attachable volume that a PersistentVolume is; None: no plugin attaches it. Raises `Untranslatable`."""
    name, spec = pv.metadata.name, pv.spec
    if spec.csi is not None:
        csi = spec.csi
        return csi_volume(
            csi.driver, csi.volumeHandle, name, exclusive=is_exclusive(spec.accessModes), pv=name
        )
    if spec.fc is not None:
        unique = fibre_channel_name(spec.fc)
        exclusive = is_exclusive(spec.accessModes)
        return AttachableVolume(unique, name, FIBRE_CHANNEL, exclusive=exclusive, pv=name) if unique else None
    if spec.iscsi is not None:
        exclusive = is_exclusive(spec.accessModes)
        return AttachableVolume(iscsi_name(spec.iscsi), name, ISCSI, exclusive=exclusive, pv=name)
    translated = translate(pv)
    if translated is None:
        return None
    exclusive = is_exclusive(translated.access_modes)
    return csi_volume(translated.driver, translated.handle, name, exclusive=exclusive, migrated=True, pv=name)


def inline_volume_of(volume: Volume, namespace: str) -> AttachableVolume | None:
    """The attachable volume that a pod's inline volume is; None: no plugin attaches it. Raises `Untranslatable`.

    A CSI volume that lives as long as its pod is never attached.
    """
    if volume.fc is not None:
        unique = fibre_channel_name(volume.fc)
        return AttachableVolume(unique, volume.name, FIBRE_CHANNEL) if unique else None
    if volume.iscsi is not None:
        return AttachableVolume(iscsi_name(volume.iscsi), volume.name, ISCSI)
    translated = translate_inline(volume, namespace)
    if translated is None:
        return None
    return csi_volume(
        translated.driver,
        translated.handle,
        translated.name,
        exclusive=is_exclusive(translated.access_modes),
        migrated=True,
        inline_spec=translated.inline_spec,
    )


def csi_volume(
    driver: str,
    handle: str,
    spec_name: str,
    *,
    exclusive: bool = False,
    migrated: bool = False,
    pv: str = "",
    inline_spec: Mapping[str, Any] | None = None,
) -> AttachableVolume:
    """A CSI volume, named after its driver and handle."""
    return AttachableVolume(
        f"{CSI}/{driver}{SEPARATOR}{handle}",
        spec_name,
        CSI,
        driver,
        handle,
        exclusive,
        migrated,
        pv,
        inline_spec,
    )


def volume_name_of(pv: PersistentVolume) -> str:
    """The unique name of a PersistentVolume; empty: it is not attached."""
    try:
        volume = volume_of(pv)
    except Untranslatable:
        return ""
    return volume.name if volume is not None else ""


def by_volume(pv: PersistentVolume) -> Iterable[str]:
    """Indexes a PersistentVolume by its unique name."""
    name = volume_name_of(pv)
    return (name,) if name else ()


def inline_volumes(pod: Pod) -> Iterable[AttachableVolume]:
    """The inline volumes of a pod that are attached."""
    for volume in pod.spec.volumes:
        if _is_attached_inline(volume):
            try:
                found = inline_volume_of(volume, pod.metadata.namespace)
            except Untranslatable:
                continue
            if found is not None:
                yield found


def by_inline_volume(pod: Pod) -> Iterable[str]:
    """Indexes a pod by the unique names of its inline volumes."""
    for volume in pod.spec.volumes:
        if _is_attached_inline(volume):
            return [each.name for each in inline_volumes(pod)]
    return ()  # as nearly all pods, at the least cost


def _is_attached_inline(volume: Volume) -> bool:
    return volume.fc is not None or volume.iscsi is not None or is_migrated_inline(volume)


def volume_named(name: str) -> AttachableVolume | None:
    """The volume of a unique name, for one that no PersistentVolume or pod describes; None: not attachable."""
    if name.startswith(f"{CSI}/"):
        driver, separator, handle = name.removeprefix(f"{CSI}/").partition(SEPARATOR)
        return csi_volume(driver, handle, "nil") if separator else None
    plugin = next((each for each in (FIBRE_CHANNEL, ISCSI) if name.startswith(f"{each}/")), "")
    return AttachableVolume(name, "nil", plugin) if plugin else None


def fibre_channel_name(source: FCVolumeSource) -> str:
    """The unique name of a Fibre Channel volume; empty: its source names no target."""
    if source.targetWWNs and source.lun is not None:
        return f"{FIBRE_CHANNEL}/[{' '.join(source.targetWWNs)}]:{source.lun}"
    return f"{FIBRE_CHANNEL}/[{' '.join(source.wwids)}]" if source.wwids else ""


def iscsi_name(source: ISCSIVolumeSource | ISCSIPersistentVolumeSource) -> str:
    """The unique name of an iSCSI volume."""
    return f"{ISCSI}/{source.targetPortal}:{source.iqn}:{source.lun}"


def is_exclusive(access_modes: Iterable[str]) -> bool:
    """Whether access modes let only one node have a volume. Without any, the storage system decides."""
    modes = tuple(access_modes)
    return bool(modes) and READ_WRITE_MANY not in modes and READ_ONLY_MANY not in modes


def attachment_name(volume: AttachableVolume, node: str) -> str:
    """The name of the VolumeAttachment of a CSI volume to a node."""
    digest = hashlib.sha256(f"{volume.handle}{volume.driver}{node}".encode()).hexdigest()
    return f"csi-{digest}"
