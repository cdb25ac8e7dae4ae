"""Recycles a volume: a pod deletes all files in it, and it can be claimed again.

::

    no pod         create one, named after the volume, once no pod uses the volume
    pod of ours    running: wait; succeeded: delete it, the volume is Available; failed: delete it, the volume is Failed
    another pod    delete it: it may be of an earlier process, or a user's

A volume that could not be recycled is tried again after the sync period. The pod of a volume that is deleted meanwhile runs
to its end and is deleted then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.go_yaml import decode as decode_yaml
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.storage import PersistentVolume
from steersman.api.pods import is_terminal
from steersman.api.quantity import Quantity
from steersman.api.scheme import Kind
from steersman.api.volume_binding import MIGRATED_TO, storage_of
from steersman.controllers.persistentvolume.binding import (
    fail,
    is_released,
    is_still_released,
    unbind,
)
from steersman.controllers.persistentvolume.plugins import NFS, plugin_of
from steersman.controllers.persistentvolume.seen import (
    Config,
    Recycler,
    RecyclerSeen,
    VolumeSeen,
    emit,
    remind,
)
from steersman.intent.actions import Address, Create, Delete, Emit, FileUnreadable, List, Read, ReadFile
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

PREFIX = "recycler-for-"
GI = Quantity.parse("1Gi").value()
EVENTS: Kind[dict[str, Any]] = Kind("", "v1", "Event", "events", True, dict)


def recycler_name(volume: str) -> str:
    return PREFIX + volume


def volume_of_recycler(pod: Pod) -> str:
    """The name of the volume that a pod recycles; empty for any other pod."""
    return pod.metadata.name.removeprefix(PREFIX) if pod.metadata.name.startswith(PREFIX) else ""


async def recycle(seen: VolumeSeen, volume: PersistentVolume) -> Verdict:
    """Take the next step in recycling a released volume."""
    ref = volume.spec.claimRef
    assert ref is not None
    created = seen.memory.recyclers.get(volume.metadata.name)
    pause = _pause(seen)
    if created is None and pause > 0:
        return Wake(timedelta(seconds=pause), "recycling failed, and is tried again")
    if created is None and seen.pods and seen.claim is None:
        message = f"Volume is used by pods: {','.join(seen.pods)}"
        await emit(seen, volume, "Normal", "VolumeFailedRecycle", message)
        return remind(message)
    plugin = plugin_of(volume)
    if not plugin:
        message = "No recycler plugin found for the volume!"
        await fail(volume, "VolumeFailedRecycle", message)
        return Rest(message)
    try:
        pod = await _recycler_pod(seen.config, plugin, volume)
    except (FileUnreadable, ValueError) as error:
        raise InvalidSpec(f"cannot make a pod that recycles the volume: {error}") from None
    namespace = pod["metadata"]["namespace"]
    existing = _existing(seen, namespace)
    if existing is None and created is None:
        return await _create(seen, volume, namespace, pod)
    if existing is None:
        return await _failed(seen, volume, "failed to recycle volume: recycler pod was deleted")
    if existing.metadata.uid != created:
        return await _replace(seen, volume, existing)
    return await _follow(seen, volume, existing)


async def _create(
    seen: VolumeSeen, volume: PersistentVolume, namespace: str, pod: Mapping[str, Any]
) -> Verdict:
    name = volume.metadata.name
    try:
        current = await Read(volume)
    except NotFound:
        return Rest("deleted")
    if not is_still_released(current, volume, seen.claim):
        return Rest("no longer released")
    try:
        created = await Create(PODS, namespace, pod)
    except AlreadyExists:
        return await _replace(seen, volume, Address(PODS, namespace, recycler_name(name)))
    except ApiError as error:
        # Two blanks, as upstream.
        why = f"unexpected error creating recycler pod:  {error}"
        return await _failed(seen, volume, why)
    seen.memory.recyclers[name] = created.metadata.uid
    return Rest(f"pod {created.key} recycles it")


async def _replace(seen: VolumeSeen, volume: PersistentVolume, pod: Pod | Address[Pod]) -> Verdict:
    """Delete a pod that has the name of the one to create, which has to wait."""
    try:
        await Delete(pod)
    except NotFound:
        pass
    except ApiError as error:
        return await _failed(seen, volume, f"failed to delete old recycler pod {pod.key}: {error}")
    return await _failed(seen, volume, "old recycler pod found, will retry later")


async def _follow(seen: VolumeSeen, volume: PersistentVolume, pod: Pod) -> Verdict:
    """Wait for the pod to end; then it is deleted, and the volume is available or has failed."""
    if not is_terminal(pod):
        return Rest(f"pod {pod.key} recycles it")
    await _repeat_events(volume, pod)
    refusal = None
    try:
        await _delete(pod)
    except ApiError as error:
        refusal = error
    if pod.status.phase == "Failed":
        why = pod.status.message or "pod failed, pod.Status.Message unknown"
        return await _failed(seen, volume, f"failed to recycle volume: {why}")
    if refusal is not None:
        return await _failed(seen, volume, f"failed to delete recycler pod: {refusal}")
    seen.memory.recyclers.pop(volume.metadata.name, None)
    seen.memory.recycle_failures.pop(volume.metadata.name, None)
    try:
        current = await Read(volume)
    except NotFound:
        return Rest("deleted")
    if not is_still_released(current, volume, seen.claim):
        return Rest("no longer released")
    await Emit(volume, "Normal", "VolumeRecycled", "Volume recycled")
    await unbind(current)
    return Rest("recycled")


async def _repeat_events(volume: PersistentVolume, pod: Pod) -> None:
    """Repeat the events of a recycler pod on its volume.

    differs: when the pod has ended, where upstream watches them meanwhile.
    """
    about = f"involvedObject.name={pod.metadata.name},involvedObject.uid={pod.metadata.uid}"
    for event in await List(EVENTS, pod.metadata.namespace, field_selector=about, as_manager=True):
        message = f"Recycler pod: {event.get('message', '')}"
        await Emit(volume, "Warning" if event.get("type") == "Warning" else "Normal", "RecyclerPod", message)


async def _delete(pod: Pod) -> None:
    try:
        await Delete(pod)
    except NotFound:
        pass


async def _failed(seen: VolumeSeen, volume: PersistentVolume, why: str) -> Wake:
    """Makes the volume Failed, until it is tried again."""
    seen.memory.recyclers.pop(volume.metadata.name, None)
    seen.memory.recycle_failures[volume.metadata.name] = seen.monotonic
    message = f"Recycle failed: {why}"
    await fail(volume, "VolumeFailedRecycle", message)
    return Wake(timedelta(seconds=seen.config.sync_period), message)


def _pause(seen: VolumeSeen) -> float:
    """Seconds until a volume may be tried again: each pod that ends or is deleted causes a round, which is too early."""
    failed = seen.memory.recycle_failures.get(seen.volume.metadata.name)
    return 0.0 if failed is None else failed + seen.config.sync_period - seen.monotonic


def _existing(seen: VolumeSeen, namespace: str) -> Pod | None:
    return next((pod for pod in seen.recyclers if pod.metadata.namespace == namespace), None)


# -- pods that are not needed any more -------------------------------------------------------------


def is_to_be_recycled(seen: VolumeSeen) -> bool:
    volume = seen.volume
    return (
        volume.spec.persistentVolumeReclaimPolicy == "Recycle"
        and not volume.metadata.annotations.get(MIGRATED_TO)
        and is_released(volume, seen.claim)
    )


async def stop(seen: VolumeSeen) -> None:
    """Deletes the pod that recycles a volume which is claimed again, or is to be retained or deleted.

    differs: upstream lets it empty the volume of the new claim.
    """
    created = seen.memory.recyclers.pop(seen.volume.metadata.name)
    for pod in seen.recyclers:
        if pod.metadata.uid == created:
            await _delete(pod)


async def clean_up(seen: RecyclerSeen) -> Verdict:
    """Deletes the pod that recycled a volume which is gone, once it has ended."""
    if not is_terminal(seen.pod):
        return Rest(f"deleted; pod {seen.pod.key} still recycles it")
    await _delete(seen.pod)
    seen.memory.recyclers.pop(seen.volume.name, None)
    return Rest("deleted, and so is the pod that recycled it")


# -- the pod ----------------------------------------------------------------------------------


async def _recycler_pod(config: Config, plugin: str, volume: PersistentVolume) -> dict[str, Any]:
    """The pod that recycles a volume. Raises `ValueError` where its template is not one."""
    # differs: upstream reads the template once and does not start without it.
    recycler = config.nfs if plugin == NFS else config.host_path
    template: Any = TEMPLATE
    if recycler.template:
        template, _ = decode_yaml(await ReadFile(recycler.template))
    try:
        meta, spec = dict(template.get("metadata") or {}), dict(template["spec"])
        first, *others = spec["volumes"]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"pod specification ({recycler.template}): does not contain any volume(s)") from None
    meta.pop("generateName", None)
    meta["name"] = recycler_name(volume.metadata.name)
    # differs: the server refuses upstream's pod if its template names no namespace.
    meta["namespace"] = meta.get("namespace") or "default"
    spec["activeDeadlineSeconds"] = deadline(recycler, volume)
    spec["volumes"] = [{"name": first["name"], **_source(volume)}, *others]
    return {**template, "metadata": meta, "spec": spec}


def deadline(recycler: Recycler, volume: PersistentVolume) -> int:
    """Seconds that recycling a volume may take, by its size."""
    return max(recycler.minimum, storage_of(volume.spec.capacity).value() // GI * recycler.increment)


def _source(volume: PersistentVolume) -> dict[str, Any]:
    if volume.spec.nfs is not None:
        return {"nfs": {"server": volume.spec.nfs.server, "path": volume.spec.nfs.path}}
    assert volume.spec.hostPath is not None
    return {"hostPath": {"path": volume.spec.hostPath.path}}


TEMPLATE: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "default"},
    "spec": {
        "restartPolicy": "Never",
        "volumes": [{"name": "vol"}],
        "containers": [
            {
                "name": "pv-recycler",
                "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                "command": ["/bin/sh"],
                "args": [
                    "-c",
                    'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1',
                ],
                "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}],
            }
        ],
    },
}
"""Upstream's pod."""
