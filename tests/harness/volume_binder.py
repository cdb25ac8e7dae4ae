"""A binder for tests of the scheduler, kubelets and storage without persistentvolume-binder-controller: binds what belongs together."""

from __future__ import annotations

from datetime import datetime

import msgspec

from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from steersman.api.scheme import Key
from steersman.api.volume_binding import BIND_COMPLETED, SELECTED_NODE, STORAGE_PROVISIONER
from steersman.intent.actions import Patch
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

PROTECTION = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")


class Seen(msgspec.Struct, frozen=True):
    claim: PersistentVolumeClaim | None
    volume: PersistentVolume | None
    storage_class: StorageClass | None


def observe(caches: Caches, key: Key) -> Seen | None:
    if not key.namespace:
        volume = caches[PERSISTENTVOLUMES].get(key)
        reference = None if volume is None else volume.spec.claimRef
        if volume is None or reference is None:
            return Seen(None, volume, None)
        claim = caches[PERSISTENTVOLUMECLAIMS].get(Key(reference.namespace, reference.name))
        return Seen(claim, volume, None)
    claim = caches[PERSISTENTVOLUMECLAIMS].get(key)
    if claim is None:
        return None
    reserved = (
        each
        for each in caches[PERSISTENTVOLUMES].list()
        if each.spec.claimRef is not None and each.spec.claimRef.uid == claim.metadata.uid
    )
    return Seen(
        claim, next(reserved, None), caches[STORAGECLASSES].get(Key("", claim.spec.storageClassName or ""))
    )


async def decide(seen: Seen, now: datetime) -> Verdict:
    claim, volume, storage_class = seen.claim, seen.volume, seen.storage_class
    for each in (claim, volume):
        if each is not None and each.metadata.deletionTimestamp is not None:
            left = [name for name in each.metadata.finalizers if name not in PROTECTION]
            if len(left) < len(each.metadata.finalizers):
                await Patch(each, {"metadata": {"finalizers": left}})
                return Rest("no longer protected")
    if claim is None:
        if volume is not None and volume.spec.claimRef is not None and volume.status.phase == "Bound":
            await Patch(volume, {"status": {"phase": "Released"}}, subresource="status")
        elif volume is not None and volume.status.phase == "Pending":
            await Patch(volume, {"status": {"phase": "Available"}}, subresource="status")
        return Rest("no claim")
    if volume is not None and claim.status.phase != "Bound":
        await Patch(volume, {"status": {"phase": "Bound"}}, subresource="status")
        annotations = {BIND_COMPLETED: "yes"}
        body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name}}
        await Patch(claim, body)
        capacity = msgspec.to_builtins(volume.spec.capacity)
        await Patch(claim, {"status": {"phase": "Bound", "capacity": capacity}}, subresource="status")
        return Rest("bound")
    if volume is None and storage_class is not None and STORAGE_PROVISIONER not in claim.metadata.annotations:
        delayed = storage_class.volumeBindingMode == "WaitForFirstConsumer"
        if not delayed or SELECTED_NODE in claim.metadata.annotations:
            annotations = {STORAGE_PROVISIONER: storage_class.provisioner}
            await Patch(claim, {"metadata": {"annotations": annotations}})
    return Rest("nothing to bind")


def _to_claim(caches: Caches, change: Change[PersistentVolume]) -> tuple[Key, ...]:
    reference = change.obj.spec.claimRef
    return (change.obj.key, *(() if reference is None else (Key(reference.namespace, reference.name),)))


def _to_volume(caches: Caches, change: Change[PersistentVolumeClaim]) -> tuple[Key, ...]:
    return (change.obj.key, Key("", change.obj.spec.volumeName))


BINDER: Controller[Seen] = Controller(
    name="persistentvolume-binder-controller",
    watches=(
        Watch(PERSISTENTVOLUMECLAIMS, to=_to_volume),
        Watch(PERSISTENTVOLUMES, to=_to_claim),
        Watch(STORAGECLASSES),
    ),
    observe=observe,
    decide=decide,
    workers=1,
    service_account="generic-garbage-collector",  # may patch everything
)
