"""Volume binding: the storage objects that the scheduler watches, and the bindings it waits for.

A pod whose claims wait for their first consumer goes through::

    decided  --claims and volumes are reserved here-->  written  --the binder has bound all claims-->  bound
                                                           |
                                                           +--provisioning failed, or BIND_TIMEOUT-->  scheduled again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, storage_v1
from steersman.api.scheme import Key, Kind
from steersman.api.volume_binding import BETA_STORAGE_CLASS, BOUND_BY_CONTROLLER, SELECTED_NODE
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informers
from steersman.runtime.store import Store, revision_of
from steersman.sim.scheduler.node_info import NodeInfo, PodInfo
from steersman.sim.scheduler.volumes import (
    PodClaims,
    PodVolumes,
    check_claims,
    filter_volumes,
    is_bound,
)
from steersman.sim.volume_names import claim_reference, is_accessible

CLAIMS: Kind[v1.PersistentVolumeClaim] = load("", "v1", "PersistentVolumeClaim")
VOLUMES: Kind[v1.PersistentVolume] = load("", "v1", "PersistentVolume")
CLASSES: Kind[storage_v1.StorageClass] = load("storage.k8s.io", "v1", "StorageClass")
CSI_NODES: Kind[storage_v1.CSINode] = load("storage.k8s.io", "v1", "CSINode")
CSI_DRIVERS: Kind[storage_v1.CSIDriver] = load("storage.k8s.io", "v1", "CSIDriver")
ATTACHMENTS: Kind[storage_v1.VolumeAttachment] = load("storage.k8s.io", "v1", "VolumeAttachment")

BIND_TIMEOUT = 600.0
"""Seconds until a pod whose claims are still not bound is scheduled again: upstream's default."""


class PendingBinding(msgspec.Struct):
    """The bindings of a pod that were written, or are about to be."""

    node: str
    labels: Mapping[str, str]
    """The labels of the node."""
    volumes: PodVolumes
    written: bool = False
    claims: int = 0
    reserved: int = 0
    """The resourceVersions that the caches of claims and volumes must have reached to show what was written."""
    timer: asyncio.TimerHandle | None = None


class VolumeBinding:
    """Decides on the volumes of pods, and binds them. A `StorageObjects`."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        changed: Callable[[], None],
        finished: Callable[[Key, str], None],
    ) -> None:
        """``changed`` is called when a storage object changes. ``finished`` is called with the key of a pod when its
        claims are bound, or with an error as well."""
        self._api = api
        self._changed = changed
        self._finished = finished
        self._informers = Informers(api, clock)
        self._claims: Store[v1.PersistentVolumeClaim] = self._watch(CLAIMS, self._on_claim)
        self._volumes: Store[v1.PersistentVolume] = self._watch(VOLUMES, self._on_volume)
        self._classes: Store[storage_v1.StorageClass] = self._watch(CLASSES, self._on_change)
        self._csi_nodes: Store[storage_v1.CSINode] = self._watch(CSI_NODES, self._on_change)
        self._csi_drivers: Store[storage_v1.CSIDriver] = self._watch(CSI_DRIVERS, self._on_change)
        self._attachments: Store[storage_v1.VolumeAttachment] = self._watch(ATTACHMENTS, self._on_change)
        self._volumes.add_index("class", _class_of_volume)
        self._attachments.add_index("node", lambda attachment: (attachment.spec.nodeName,))
        self._pending: dict[Key, PendingBinding] = {}
        self._selected: dict[Key, str] = {}
        """The nodes of claims, before their annotation is seen."""
        self._reserved: dict[str, v1.PersistentVolumeClaim] = {}
        """The claims of volumes, before their claimRef is seen."""
        self._waiting: dict[Key, dict[Key, None]] = {}
        """The pending pods of a claim."""

    def _watch(self, kind: Kind[Any], handler: Callable[[Change[Any]], None]) -> Store[Any]:
        informer = self._informers.informer(kind)
        informer.subscribe(handler)
        return informer.store

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Start the watches in a task group, and wait until they are synced."""
        group.create_task(self._informers.run(), name="scheduler: volumes")
        await self._informers.wait_synced()

    def close(self) -> None:
        """Cancel all timers."""
        for pending in self._pending.values():
            if pending.timer is not None:
                pending.timer.cancel()

    # -- storage objects ----------------------------------------------------------------------

    def claim(self, key: Key) -> v1.PersistentVolumeClaim | None:
        """A claim, with the node that was selected for it."""
        found, node = self._claims.get(key), self._selected.get(key)
        if found is None or node is None or SELECTED_NODE in found.metadata.annotations:
            return found
        annotations = {**found.metadata.annotations, SELECTED_NODE: node}
        return replace(found, metadata=replace(found.metadata, annotations=annotations))

    def volume(self, name: str) -> v1.PersistentVolume | None:
        """A volume, with the claim it is reserved for."""
        found, claim = self._volumes.get(Key("", name)), self._reserved.get(name)
        if found is None or claim is None or found.spec.claimRef is not None:
            return found
        return replace(found, spec=replace(found.spec, claimRef=claim_reference(claim)))

    def storage_class(self, name: str) -> storage_v1.StorageClass | None:
        """A StorageClass."""
        return self._classes.get(Key("", name))

    def csi_node(self, name: str) -> storage_v1.CSINode | None:
        """The CSINode of a node."""
        return self._csi_nodes.get(Key("", name))

    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None:
        """A CSI driver."""
        return self._csi_drivers.get(Key("", name))

    def volumes_of_class(self, name: str) -> Iterable[v1.PersistentVolume]:
        """The volumes of a StorageClass that may be free."""
        found = (self.volume(each.metadata.name) for each in self._volumes.by("class", name))
        return [each for each in found if each is not None]

    def attachments_of_node(self, name: str) -> Iterable[storage_v1.VolumeAttachment]:
        """The VolumeAttachments of a node."""
        return self._attachments.by("node", name)

    # -- deciding -----------------------------------------------------------------------------

    def check(self, pod: PodInfo, others: Iterable[PodInfo]) -> PodClaims | str:
        """The claims of a pod, or why no node can run it."""
        return check_claims(pod, self, others)

    def filter(self, pod: PodInfo, claims: PodClaims, node_info: NodeInfo) -> PodVolumes | tuple[str, ...]:
        """The bindings that a pod needs on a node, or why the node does not fit."""
        return filter_volumes(pod, claims, node_info, self)

    def reserve(self, key: Key, node_info: NodeInfo, volumes: PodVolumes) -> None:
        """Reserve the volumes of a pod for it, until they are bound or released."""
        self._pending[key] = PendingBinding(node_info.name, node_info.labels, volumes)
        for claim, volume in volumes.bindings:
            self._reserved[volume.metadata.name] = claim
        for claim in volumes.provisions:
            self._selected[claim.key] = node_info.name
        for claim in _claims_of(volumes):
            self._waiting.setdefault(claim.key, {})[key] = None

    def release(self, key: Key) -> None:
        """Release what is reserved for a pod."""
        pending = self._pending.pop(key, None)
        if pending is None:
            return
        if pending.timer is not None:
            pending.timer.cancel()
        for _, volume in pending.volumes.bindings:
            self._reserved.pop(volume.metadata.name, None)
        for claim in pending.volumes.provisions:
            self._selected.pop(claim.key, None)
        for claim in _claims_of(pending.volumes):
            waiting = self._waiting.get(claim.key, {})
            waiting.pop(key, None)
            if not waiting:
                self._waiting.pop(claim.key, None)

    # -- binding ------------------------------------------------------------------------------

    async def write(self, key: Key) -> None:
        """Write the bindings of a pod, for the binder and the provisioners to carry out. Raises `ApiError`."""
        pending = self._pending.get(key)
        if pending is None:
            return
        for claim, volume in pending.volumes.bindings:
            stored = await self._api.update(VOLUMES, "", volume.metadata.name, bound_volume(volume, claim))
            pending.reserved = max(pending.reserved, revision_of(stored.metadata.resourceVersion) or 0)
        for claim in pending.volumes.provisions:
            annotations = {**claim.metadata.annotations, SELECTED_NODE: pending.node}
            body = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
            written = await self._api.update(CLAIMS, claim.metadata.namespace, claim.metadata.name, body)
            pending.claims = max(pending.claims, revision_of(written.metadata.resourceVersion) or 0)
        if self._pending.get(key) is not pending:
            return  # the pod was deleted meanwhile
        pending.written = True
        loop = asyncio.get_running_loop()
        pending.timer = loop.call_later(
            BIND_TIMEOUT, self._finish, key, "binding volumes: context deadline exceeded"
        )
        self._review(key)

    def _review(self, key: Key) -> None:
        pending = self._pending.get(key)
        if pending is None or not pending.written:
            return
        error = self._binding_error(pending)
        if error is not None:
            self._finish(key, f"binding volumes: {error}" if error else "")

    def _finish(self, key: Key, error: str) -> None:
        self.release(key)
        self._finished(key, error)

    def _binding_error(self, pending: PendingBinding) -> str | None:
        """Why the bindings of a pod failed; empty where all are bound, and None while they are under way."""
        if self._claims.revision < pending.claims or self._volumes.revision < pending.reserved:
            return None
        for bound, volume in pending.volumes.bindings:
            name = volume.metadata.name
            stored = self._volumes.get(Key("", name))
            claim = self._claims.get(bound.key)
            if stored is None:
                return f'failed to check binding: persistentvolume "{name}" not found'
            if claim is None:
                return f'failed to check binding: persistentvolumeclaim "{bound.metadata.name}" not found'
            if stored.spec.claimRef is None or not stored.spec.claimRef.uid:
                return f'ClaimRef got reset for pv "{name}"'
            if not is_bound(claim):
                return None
        for provisioned in pending.volumes.provisions:
            claim = self._claims.get(provisioned.key)
            name = provisioned.metadata.name
            if claim is None:
                return f'failed to check provisioning pvc: persistentvolumeclaim "{name}" not found'
            if not claim.metadata.annotations:
                return f'selectedNode annotation reset for PVC "{name}"'
            if claim.metadata.annotations.get(SELECTED_NODE) != pending.node:
                return f'provisioning failed for PVC "{name}"'
            if claim.spec.volumeName:
                stored = self._volumes.get(Key("", claim.spec.volumeName))
                if stored is None:
                    return None  # the watch of volumes lags behind
                if not is_accessible(stored, pending.labels):
                    return (
                        f'pv "{stored.metadata.name}" node affinity doesn\'t match node "{pending.node}": '
                        "no matching NodeSelectorTerms"
                    )
            if not is_bound(claim):
                return None
        return ""

    # -- watch events -------------------------------------------------------------------------

    def _on_claim(self, change: Change[v1.PersistentVolumeClaim]) -> None:
        for key in tuple(self._waiting.get(change.obj.key, ())):
            self._review(key)
        self._changed()

    def _on_volume(self, change: Change[v1.PersistentVolume]) -> None:
        reference = change.obj.spec.claimRef
        if reference is not None:
            for key in tuple(self._waiting.get(Key(reference.namespace, reference.name), ())):
                self._review(key)
        self._changed()

    def _on_change(self, change: Change[Any]) -> None:
        self._changed()


def bound_volume(volume: v1.PersistentVolume, claim: v1.PersistentVolumeClaim) -> v1.PersistentVolume:
    """A volume that is bound to a claim. The annotation tells the binder that no user has bound it."""
    meta, known = volume.metadata, volume.spec.claimRef
    if known is None:
        meta = replace(meta, annotations={**meta.annotations, BOUND_BY_CONTROLLER: "yes"})
    return replace(volume, metadata=meta, spec=replace(volume.spec, claimRef=claim_reference(claim)))


def _claims_of(volumes: PodVolumes) -> Iterable[v1.PersistentVolumeClaim]:
    return (*(claim for claim, _ in volumes.bindings), *volumes.provisions)


def _class_of_volume(volume: v1.PersistentVolume) -> Iterable[str]:
    return (volume.metadata.annotations.get(BETA_STORAGE_CLASS) or volume.spec.storageClassName,)
