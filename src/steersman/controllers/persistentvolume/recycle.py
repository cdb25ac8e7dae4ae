"""Recycles a volume: a pod deletes all files in it, and it can be claimed again.

::

    no pod         create one, named after the volume, once no pod uses the volume
    pod of ours    running: wait; succeeded: delete it, the volume is Available; failed: delete it, the volume is Failed
    another pod    delete it: it may be of an earlier process, or a user's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.go_yaml import decode as decode_yaml
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.storage import PersistentVolume
from steersman.api.quantity import Quantity
from steersman.api.scheme import Kind
from steersman.api.volume_binding import storage_of
from steersman.controllers.persistentvolume.binding import fail, is_released, unbind
from steersman.controllers.persistentvolume.plugins import NFS, plugin_of
from steersman.controllers.persistentvolume.seen import Config, Recycler, VolumeSeen, emit, remind
from steersman.intent.actions import Create, Delete, Emit, FileUnreadable, List, Read, ReadFile
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

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
        raise await _failed(seen, volume, "failed to recycle volume: recycler pod was deleted")
    if existing.metadata.uid != created:
        await _delete(existing)
        raise await _failed(seen, volume, "old recycler pod found, will retry later")
    return await _follow(seen, volume, existing)


async def _create(
    seen: VolumeSeen, volume: PersistentVolume, namespace: str, pod: Mapping[str, Any]
) -> Verdict:
    name = volume.metadata.name
    try:
        current = await Read(volume)
    except NotFound:
        return Rest("deleted")
    if not is_released(current, seen.claim):
        return Rest("no longer released")
    try:
        created = await Create(PODS, namespace, pod)
    except AlreadyExists:
        raise await _failed(seen, volume, "old recycler pod found, will retry later") from None
    except ApiError as error:
        # Two blanks, as upstream.
        why = f"unexpected error creating recycler pod:  {error}"
        raise await _failed(seen, volume, why) from None
    seen.memory.recyclers[name] = created.metadata.uid
    return Rest(f"pod {created.key} recycles it")


async def _follow(seen: VolumeSeen, volume: PersistentVolume, pod: Pod) -> Verdict:
    """Wait for the pod to end; then it is deleted, and the volume is available or has failed."""
    if pod.status.phase not in ("Succeeded", "Failed"):
        return Rest(f"pod {pod.key} recycles it")
    await _repeat_events(volume, pod)
    await _delete(pod)
    if pod.status.phase == "Failed":
        why = pod.status.message or "pod failed, pod.Status.Message unknown"
        raise await _failed(seen, volume, f"failed to recycle volume: {why}")
    seen.memory.recyclers.pop(volume.metadata.name, None)
    try:
        current = await Read(volume)
    except NotFound:
        return Rest("deleted")
    if not is_released(current, seen.claim):
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


async def _failed(seen: VolumeSeen, volume: PersistentVolume, why: str) -> InvalidSpec:
    """Makes the volume Failed; returns the error that has the round repeated."""
    seen.memory.recyclers.pop(volume.metadata.name, None)
    message = f"Recycle failed: {why}"
    await fail(volume, "VolumeFailedRecycle", message)
    return InvalidSpec(message)


def _existing(seen: VolumeSeen, namespace: str) -> Pod | None:
    return next((pod for pod in seen.recyclers if pod.metadata.namespace == namespace), None)


# -- the pod ----------------------------------------------------------------------------------


async def _recycler_pod(config: Config, plugin: str, volume: PersistentVolume) -> dict[str, Any]:
    """The pod that recycles a volume. Raises `ValueError` where its template is not one."""
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
