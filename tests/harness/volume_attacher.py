"""An attach-detach controller for tests of kubelets and CSI drivers without persistentvolume-attach-detach-controller.

One round for each node: volumes of its pods are attached, and those that no pod uses are detached once they are not in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    PersistentVolume,
    VolumeAttachment,
)
from steersman.api.scheme import Key
from steersman.intent.actions import Create, Delete, Patch
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.volume_names import attachment_name, unique_name


class Seen(msgspec.Struct, frozen=True):
    node: Node
    in_use: tuple[str, ...]
    wanted: dict[str, PersistentVolume]
    attachments: dict[str, tuple[VolumeAttachment, PersistentVolume]]


def _name(volume: PersistentVolume) -> str:
    assert volume.spec.csi is not None
    return unique_name(volume.spec.csi.driver, volume.spec.csi.volumeHandle)


def observe(caches: Caches, key: Key) -> Seen | None:
    node = caches[NODES].get(key)
    if node is None:
        return None
    wanted: dict[str, PersistentVolume] = {}
    for pod in caches[PODS].list():
        if pod.spec.nodeName != key.name or pod.status.phase in ("Succeeded", "Failed"):
            continue
        for volume in pod.spec.volumes:
            if volume.persistentVolumeClaim is None:
                continue
            name = volume.persistentVolumeClaim.claimName
            claim = caches[PERSISTENTVOLUMECLAIMS].get(Key(pod.metadata.namespace, name))
            found = None if claim is None else caches[PERSISTENTVOLUMES].get(Key("", claim.spec.volumeName))
            if found is not None and found.spec.csi is not None:
                wanted[_name(found)] = found
    attachments = {}
    for each in caches[VOLUMEATTACHMENTS].list():
        found = caches[PERSISTENTVOLUMES].get(Key("", each.spec.source.persistentVolumeName or ""))
        if each.spec.nodeName == key.name and found is not None:
            attachments[_name(found)] = (each, found)
    return Seen(node, tuple(node.status.volumesInUse), wanted, attachments)


async def decide(seen: Seen, now: datetime) -> Verdict:
    node = seen.node.metadata.name
    for name, volume in seen.wanted.items():
        csi = volume.spec.csi
        if name not in seen.attachments and csi is not None:
            body: dict[str, Any] = {
                "metadata": {"name": attachment_name(csi.driver, csi.volumeHandle, node)},
                "spec": {
                    "attacher": csi.driver,
                    "nodeName": node,
                    "source": {"persistentVolumeName": volume.metadata.name},
                },
            }
            await Create(VOLUMEATTACHMENTS, "", body)
    kept = [
        name
        for name, (each, _) in seen.attachments.items()
        if each.status.attached and (name in seen.wanted or name in seen.in_use)
    ]
    reported = [{"name": name, "devicePath": ""} for name in sorted(kept)]
    known = [each.name for each in seen.node.status.volumesAttached]
    if sorted(kept) != sorted(known):
        await Patch(seen.node, {"status": {"volumesAttached": reported}}, subresource="status")
    for name, (each, _) in seen.attachments.items():
        if name not in seen.wanted and name not in seen.in_use and each.metadata.deletionTimestamp is None:
            await Delete(each)
    return Rest("as attached as can be")


def _to_nodes(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    return [each.key for each in caches[NODES].list()]


def _to_node(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    return (Key("", change.obj.spec.nodeName),)


ATTACHER: Controller[Seen] = Controller(
    name="persistentvolume-attach-detach-controller",
    watches=(
        Watch(NODES),
        Watch(PODS, to=_to_node),
        Watch(PERSISTENTVOLUMECLAIMS, to=_to_nodes),
        Watch(PERSISTENTVOLUMES, to=_to_nodes),
        Watch(VOLUMEATTACHMENTS, to=_to_nodes),
    ),
    observe=observe,
    decide=decide,
    workers=1,
    service_account="attachdetach-controller",
)
