"""The resizer of the simulated CSI driver: expands volumes, as external-resizer does.

::

    request > capacity  ->  Resizing, ControllerResizeInProgress
                        ->  the volume has the new capacity, FileSystemResizePending, NodeResizePending
                        ->  the kubelet of a pod that uses the claim expands the file system (`steersman.sim.kubelet.volumes`)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import storage_of
from steersman.api.scheme import Key
from steersman.intent.actions import Emit, Patch
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.storage.failures import RETRY_MAX, RETRY_MIN, StorageError, injected_error, read_class
from steersman.sim.storage.provisioner import VOLUMES
from steersman.sim.storage.simulated_storage import CLAIMS, DRIVER
from steersman.sim.volume_names import class_of

RESIZING = "Resizing"
PENDING = "FileSystemResizePending"
PENDING_MESSAGE = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


class ExpandedClaim(msgspec.Struct, frozen=True):
    """A claim, and its volume."""

    claim: v1.PersistentVolumeClaim
    volume: v1.PersistentVolume


def observe(caches: Caches, key: Key) -> ExpandedClaim | None:
    claim = caches[CLAIMS].get(key)
    volume = None if claim is None else caches[VOLUMES].get(Key("", claim.spec.volumeName))
    return None if claim is None or volume is None else ExpandedClaim(claim, volume)


async def decide(seen: ExpandedClaim, now: datetime) -> Verdict:
    claim, volume = seen.claim, seen.volume
    if volume.spec.csi is None or volume.spec.csi.driver != DRIVER or claim.status.phase != "Bound":
        return Rest("not a claim of a volume of this driver")
    wanted = claim.spec.resources.requests.get("storage", "0")
    if storage_of(claim.spec.resources.requests) <= storage_of(claim.status.capacity):
        return Rest("as large as requested")
    name = volume.metadata.name
    if claim.status.allocatedResourceStatuses.get("storage", "").startswith("NodeResize"):
        return Rest("the kubelet expands the file system")
    if claim.status.allocatedResources.get("storage") != wanted:
        await Emit(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
        await _set_status(claim, RESIZING, "", "ControllerResizeInProgress", now, allocated=wanted)
    if error := injected_error("expand", claim, volume, await read_class(class_of(claim))):
        message = f'resize volume "{name}" by resizer "{DRIVER}" failed: {error}'
        await Emit(claim, "Warning", "VolumeResizeFailed", message)
        raise StorageError(message)
    if volume.spec.capacity.get("storage") != wanted:
        await Patch(volume, {"spec": {"capacity": {"storage": wanted}}})
    await _set_status(claim, PENDING, PENDING_MESSAGE, "NodeResizePending", now, allocated=wanted)
    await Emit(claim, "Normal", "FileSystemResizeRequired", "Require file system resize of volume on node")
    return Rest("the volume is expanded")


async def _set_status(
    claim: v1.PersistentVolumeClaim, type_: str, message: str, resize: str, now: datetime, *, allocated: Any
) -> None:
    condition = {
        "type": type_,
        "status": "True",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"message": message} if message else {}),
    }
    others = [
        msgspec.to_builtins(each, str_keys=True)
        for each in claim.status.conditions
        if each.type not in (RESIZING, PENDING)
    ]
    status = {
        "conditions": [*others, condition],
        "allocatedResources": {"storage": allocated},
        "allocatedResourceStatuses": {"storage": resize},
    }
    await Patch(claim, {"status": status}, subresource="status")


def _to_claim(caches: Caches, change: Change[v1.PersistentVolume]) -> Iterable[Key]:
    reference = change.obj.spec.claimRef
    return () if reference is None else (Key(reference.namespace, reference.name),)


controller = Controller(
    name="sim-resizer",
    watches=(Watch(CLAIMS), Watch(VOLUMES, to=_to_claim)),
    observe=observe,
    decide=decide,
    workers=2,
    event_component=f"external-resizer {DRIVER}",
    min_backoff=RETRY_MIN,
    max_backoff=RETRY_MAX,
)
