"""Reclaims a volume whose claim is gone, by its reclaim policy.

::

    Retain     stays Released until an administrator acts
    Delete     an external deleter removes it; a directory of this host is removed here, and then the volume
    Recycle    a pod empties it (`recycle`), and it is Available again
"""

from __future__ import annotations

import posixpath

from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds.storage import PersistentVolume
from steersman.api.volume_binding import MIGRATED_TO
from steersman.controllers.persistentvolume.binding import fail, is_still_released
from steersman.controllers.persistentvolume.plugins import (
    IN_TREE_DELETION_PROTECTION,
    NOT_AVAILABLE,
    NoPlugin,
    deleter_of,
    external_name,
)
from steersman.controllers.persistentvolume.recycle import recycle
from steersman.controllers.persistentvolume.seen import VolumeSeen
from steersman.intent.actions import Delete, DirectoryError, Read, RemoveDirectory, Update
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

REMOVABLE = "/tmp/"


async def reclaim(seen: VolumeSeen, volume: PersistentVolume, because: str) -> Verdict:
    """Do what the reclaim policy of a released volume says."""
    driver = volume.metadata.annotations.get(MIGRATED_TO)
    if driver:
        return Rest(f"{because}; CSI driver {driver} reclaims it")
    match volume.spec.persistentVolumeReclaimPolicy:
        case "Retain":
            return Rest(f"{because}; it is retained")
        case "Recycle":
            return await recycle(seen, volume)
        case "Delete":
            return await _delete(seen, volume, because)
    await fail(volume, "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
    return Rest(f"{because}; its reclaim policy is unknown")


async def _delete(seen: VolumeSeen, volume: PersistentVolume, because: str) -> Verdict:
    seen.memory.begin(volume.key, _deleter_name(seen, volume), "delete", seen.monotonic)
    try:
        plugin = deleter_of(volume)
    except NoPlugin as error:
        await fail(volume, "VolumeFailedDelete", str(error))
        return Rest(f"{because}; {error}")
    if not plugin:
        return Rest(f"{because}; an external deleter deletes it")
    try:
        current = await Read(volume)
    except NotFound:
        return Rest("already deleted")
    if not is_still_released(current, volume, seen.claim):
        return Rest("no longer released")
    await _remove_directory(seen, current)
    if IN_TREE_DELETION_PROTECTION in current.metadata.finalizers:
        finalizers = tuple(
            each for each in current.metadata.finalizers if each != IN_TREE_DELETION_PROTECTION
        )
        try:
            unprotected = replace(current, metadata=replace(current.metadata, finalizers=finalizers))
            current = await Update(unprotected)
        except (Conflict, NotFound):
            raise
        except ApiError as error:
            why = f"persistent volume controller can't update finalizer: {error}"
            raise await _failed(seen, current, why) from None
    try:
        await Delete(current)
    except NotFound:
        pass
    return Rest(f"{because}; deleted")


async def _remove_directory(seen: VolumeSeen, volume: PersistentVolume) -> None:
    """Remove the directory of a volume. The volume is Failed while that fails."""
    try:
        if volume.spec.hostPath is None:
            raise DirectoryError(
                f'failed to create deleter for volume "{volume.metadata.name}": '
                "spec.PersistentVolumeSource.HostPath is nil"
            )
        path = volume.spec.hostPath.path
        if not is_removable(path):
            raise DirectoryError(f"host_path deleter only supports /tmp/.+ but received provided {path}")
        await RemoveDirectory(path)
    except DirectoryError as error:
        raise await _failed(seen, volume, str(error)) from None


async def _failed(seen: VolumeSeen, volume: PersistentVolume, why: str) -> InvalidSpec:
    """Makes a volume Failed and counts that; returns the error that has the round repeated."""
    await fail(volume, "VolumeFailedDelete", why)
    for measure in seen.memory.failed(volume.key):
        await measure
    return InvalidSpec(why)


def is_removable(path: str) -> bool:
    """Whether a directory that a volume names may be removed: only below ``/tmp``.

    differs: upstream looks for ``/tmp/`` anywhere in the path, and follows ``..`` out of it.
    """
    return path == posixpath.normpath(path) and path.startswith(REMOVABLE) and len(path) > len(REMOVABLE)


def _deleter_name(seen: VolumeSeen, volume: PersistentVolume) -> str:
    """The label of metrics: the plugin, or the provisioner of the class."""
    try:
        plugin = deleter_of(volume)
    except NoPlugin:
        return NOT_AVAILABLE
    return plugin or external_name(seen.provisioner) or NOT_AVAILABLE
