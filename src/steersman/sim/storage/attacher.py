"""The attacher of the simulated CSI driver: answers VolumeAttachments, as external-attacher does.

::

    VolumeAttachment created  ->  finalizer  ->  status.attached     (or status.attachError, and another attempt)
    VolumeAttachment deleted  ->  detached   ->  finalizer removed   (or status.detachError, and another attempt)

A volume keeps a finalizer until it is detached from all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import meta_v1, storage_v1
from steersman.api.scheme import Key
from steersman.intent.actions import Address, Patch, Read
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.storage.failures import RETRY_MAX, RETRY_MIN, StorageError, injected_error, read_class
from steersman.sim.storage.provisioner import ATTACHMENTS, NODES, VOLUMES, volume_of_attachment
from steersman.sim.storage.simulated_storage import DRIVER

FINALIZER = "external-attacher/csi-sim-steersman-dev"
NODE_ID = "csi.alpha.kubernetes.io/node-id"


class Attachment(msgspec.Struct, frozen=True):
    """A VolumeAttachment, and its volume."""

    attachment: storage_v1.VolumeAttachment
    volume: v1.PersistentVolume | None


class AttachedVolume(msgspec.Struct, frozen=True):
    """A volume of the driver, and its number of VolumeAttachments."""

    volume: v1.PersistentVolume
    attachments: int


def observe(caches: Caches, key: Key) -> Attachment | AttachedVolume | None:
    attachment = caches[ATTACHMENTS].get(key)
    if attachment is not None:
        name = attachment.spec.source.persistentVolumeName or ""
        return Attachment(attachment, caches[VOLUMES].get(Key("", name)))
    volume = caches[VOLUMES].get(key)
    if volume is None:
        return None
    return AttachedVolume(volume, len(tuple(caches[ATTACHMENTS].by("volume", key.name))))


async def decide(seen: Attachment | AttachedVolume, now: datetime) -> Verdict:
    if isinstance(seen, AttachedVolume):
        return await release(seen)
    if seen.attachment.spec.attacher != DRIVER:
        return Rest("not an attachment of this driver")
    if seen.attachment.metadata.deletionTimestamp is not None:
        return await detach(seen, now)
    return await attach(seen, now)


async def attach(seen: Attachment, now: datetime) -> Verdict:
    """Attach a volume to a node."""
    attachment, volume = seen.attachment, seen.volume
    if attachment.status.attached:
        return Rest("attached")
    if volume is None:
        name = attachment.spec.source.persistentVolumeName
        return await _refuse(attachment, "attachError", f'persistentvolume "{name}" not found', now)
    if FINALIZER not in attachment.metadata.finalizers:
        await Patch(
            attachment,
            {
                "metadata": {
                    "finalizers": [*attachment.metadata.finalizers, FINALIZER],
                    "annotations": {NODE_ID: attachment.spec.nodeName},
                }
            },
        )
    if volume.metadata.deletionTimestamp is None and FINALIZER not in volume.metadata.finalizers:
        await Patch(volume, {"metadata": {"finalizers": [*volume.metadata.finalizers, FINALIZER]}})
    if error := await _error("attach", seen):
        return await _refuse(attachment, "attachError", error, now)
    await Patch(attachment, {"status": {"attached": True, "attachError": None}}, subresource="status")
    return Rest("attached")


async def detach(seen: Attachment, now: datetime) -> Verdict:
    """Detach a volume from a node."""
    attachment = seen.attachment
    left = [each for each in attachment.metadata.finalizers if each != FINALIZER]
    if len(left) == len(attachment.metadata.finalizers):
        return Rest("detached")
    if error := await _error("detach", seen):
        return await _refuse(attachment, "detachError", error, now)
    try:
        status = {"attached": False, "attachError": None, "detachError": None}
        await Patch(attachment, {"status": status}, subresource="status")
        await Patch(attachment, {"metadata": {"finalizers": left}})
    except NotFound:
        return Rest("gone")
    return Rest("detached")


async def release(seen: AttachedVolume) -> Verdict:
    """Let a volume go that is being deleted and is not attached to any node."""
    volume = seen.volume
    finalizers = volume.metadata.finalizers
    if volume.metadata.deletionTimestamp is None or FINALIZER not in finalizers:
        return Rest("not waiting to be released")
    if seen.attachments:
        return Rest("still attached")
    await Patch(volume, {"metadata": {"finalizers": [each for each in finalizers if each != FINALIZER]}})
    return Rest("released")


async def _error(operation: str, seen: Attachment) -> str:
    node: meta_v1.Object | None = None
    try:
        node = await Read(Address(NODES, "", seen.attachment.spec.nodeName))
    except NotFound:
        if operation == "attach":
            return f'node "{seen.attachment.spec.nodeName}" not found'
    name = "" if seen.volume is None else seen.volume.spec.storageClassName
    return injected_error(operation, seen.volume, node, await read_class(name))


async def _refuse(
    attachment: storage_v1.VolumeAttachment, field: str, message: str, now: datetime
) -> Verdict:
    """Write the error of an operation to the status. Raises `StorageError`, so that it is attempted again."""
    known = attachment.status.attachError if field == "attachError" else attachment.status.detachError
    if known is None or known.message != message:
        error: dict[str, Any] = {"message": message, "time": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        await Patch(
            attachment,
            {"status": {"attached": attachment.status.attached, field: error}},
            subresource="status",
        )
    raise StorageError(message)


def _to_attachments(caches: Caches, change: Change[v1.PersistentVolume]) -> Iterable[Key]:
    """A volume, and its attachments."""
    volume = change.obj
    if volume.spec.csi is None or volume.spec.csi.driver != DRIVER:
        return ()
    attachments = caches[ATTACHMENTS].by("volume", volume.metadata.name)
    return (volume.key, *(each.key for each in attachments))


def _to_volume(caches: Caches, change: Change[storage_v1.VolumeAttachment]) -> Iterable[Key]:
    """An attachment; its volume as well, once the attachment is gone."""
    if change.new is not None:
        return (change.new.key,)
    return [Key("", name) for name in volume_of_attachment(change.obj)]


controller: Controller[Attachment | AttachedVolume] = Controller(
    name="sim-attacher",
    watches=(
        Watch(ATTACHMENTS, to=_to_volume, indexes={"volume": volume_of_attachment}),
        Watch(VOLUMES, to=_to_attachments),
    ),
    observe=observe,
    decide=decide,
    workers=4,
    event_component=f"external-attacher-{DRIVER}",
    min_backoff=RETRY_MIN,
    max_backoff=RETRY_MAX,
)
