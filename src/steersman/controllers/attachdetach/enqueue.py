"""The volumes that a change concerns, and the nodes where they may be on several: of a pod, a claim, a PersistentVolume, a VolumeAttachment, a driver or a node.

Objects arrive in any order, so each of them leads to the volume as soon as the others are there. A node's heartbeat leads to
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.api.conditions import is_condition_true
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from steersman.api.pods import is_terminated
from steersman.api.scheme import Key
from steersman.controllers.attachdetach.memory import Memory
from steersman.controllers.attachdetach.world import (
    BY_NODE,
    BY_SOURCE,
    has_out_of_service_taint,
    is_managed,
    is_shared,
    nodes_of_volume,
    pv_source,
    volumes_of_attachment,
    volumes_of_claim,
    volumes_of_pod,
)
from steersman.controllers.shared.csi_migration import DRIVERS
from steersman.controllers.shared.pod_claims import BY_CLAIM
from steersman.controllers.shared.volumes import csi_volume, inline_volumes, volume_name_of
from steersman.intent.controller import Caches, Change, memory_of


def _rounds(caches: Caches, names: Iterable[str], node: str = "") -> Iterator[Key]:
    """The rounds of volumes; of one that several nodes may have, that of this node, or else those of all its nodes."""
    for name in dict.fromkeys(names):
        shared = is_shared(caches, name)
        if node and shared:
            yield Key(node, name)
            continue
        if shared:
            yield from (Key(each, name) for each in nodes_of_volume(caches, name))
        # Also for a shared volume: a pod that cannot be decoded may be on any node.
        yield Key("", name)


def pod_changed(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """The volumes of a pod that is scheduled, ends or goes."""
    old, new, pod = change.old, change.new, change.obj
    if not pod.spec.volumes or not pod.spec.nodeName:
        return ()
    if old is not None and new is not None and _same_use(old, new):
        return ()
    remembered = memory_of(caches, Memory).volumes_of_pod(pod.metadata.uid)
    return _rounds(caches, (*volumes_of_pod(caches, pod), *remembered), pod.spec.nodeName)


def _same_use(old: Pod, new: Pod) -> bool:
    return (
        old.spec.nodeName == new.spec.nodeName
        and old.metadata.uid == new.metadata.uid
        and is_terminated(old) == is_terminated(new)
    )


def claim_changed(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterable[Key]:
    """The volume of a claim that is bound, or no longer is."""
    old, new = change.old, change.new
    if new is None or (
        old is not None and (old.status.phase, old.spec.volumeName) == (new.status.phase, new.spec.volumeName)
    ):
        return ()
    return _rounds(caches, volumes_of_claim(caches, new.key))


def volume_changed(caches: Caches, change: Change[PersistentVolume]) -> Iterable[Key]:
    """A volume that pods use, or that is attached."""
    old, new, pv = change.old, change.new, change.obj
    if old is not None and new is not None and old.spec == new.spec:
        return ()
    name, ref = volume_name_of(pv), pv.spec.claimRef
    if name and (
        name in memory_of(caches, Memory).volumes
        or any(True for _ in caches[VOLUMEATTACHMENTS].by(BY_SOURCE, pv_source(pv.metadata.name)))
        or (ref is not None and any(True for _ in caches[PODS].by(BY_CLAIM, Key(ref.namespace, ref.name))))
    ):
        return _rounds(caches, (name,))
    return ()


def attachment_changed(caches: Caches, change: Change[VolumeAttachment]) -> Iterable[Key]:
    """The volume of a VolumeAttachment, on its node."""
    return _rounds(caches, volumes_of_attachment(caches, change.obj), change.obj.spec.nodeName)


def driver_changed(caches: Caches, change: Change[CSIDriver]) -> Iterable[Key]:
    """The volumes of a driver that begins or ceases to need attaching."""
    if _needs_attaching(change.old) == _needs_attaching(change.new):
        return ()
    driver = change.obj.metadata.name
    prefix = csi_volume(driver, "", "").name
    names = [
        name
        for pv in caches[PERSISTENTVOLUMES].list()
        if pv.spec.claimRef is not None and (name := volume_name_of(pv)).startswith(prefix)
    ]
    if driver in DRIVERS.values():
        # Only migrated in-tree plugins have inline volumes that are attached.
        for pod in caches[PODS].list():
            names += (volume.name for volume in inline_volumes(pod) if volume.driver == driver)
    return _rounds(caches, names)


def _needs_attaching(driver: CSIDriver | None) -> bool:
    return driver is None or driver.spec.attachRequired is not False


def node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """The volumes that a node enters in its lists or removes, or all of its volumes where the node itself changes."""
    old, new, name = change.old, change.new, change.obj.metadata.name
    if old is not None and new is not None and _facts(old) == _facts(new):
        if _lists(old) == _lists(new):
            return ()
        return _rounds(caches, _listed_once(old, new), name)
    names = [each for node in (old, new) if node is not None for _, each in _entries(node)]
    for attachment in caches[VOLUMEATTACHMENTS].by(BY_NODE, name):
        names += volumes_of_attachment(caches, attachment)
    if is_managed(old) != is_managed(new):
        for pod in caches[PODS].by("node", name):
            names += volumes_of_pod(caches, pod)
    return _rounds(caches, names, name)


def _facts(node: Node) -> tuple[object, ...]:
    """The facts of a node that concern all of its volumes."""
    return (
        node.metadata.uid,
        is_managed(node),
        has_out_of_service_taint(node),
        is_condition_true(node.status.conditions, "Ready"),
    )


def _lists(node: Node) -> tuple[object, ...]:
    return node.status.volumesInUse, node.status.volumesAttached


def _entries(node: Node) -> Iterator[tuple[str, str]]:
    """The volumes in a node's lists, each with the list it is in."""
    for name in node.status.volumesInUse:
        yield "in use", name
    for volume in node.status.volumesAttached:
        yield "attached", volume.name


def _listed_once(old: Node, new: Node) -> Iterator[str]:
    """The volumes that one of two states of a node lists, and the other does not."""
    before, after = dict.fromkeys(_entries(old)), dict.fromkeys(_entries(new))
    for entries, others in ((before, after), (after, before)):
        for entry in entries:
            if entry not in others:
                yield entry[1]
