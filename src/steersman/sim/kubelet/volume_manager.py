"""The volume manager of simulated kubelets: mounts the volumes of pods once they can be, and expands their file systems.

Pods that wait are looked at again when an object changes that volumes are made from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from steersman.api.errors import NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, storage_v1
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.sim.kubelet.heartbeats import SimulatedNode
from steersman.sim.kubelet.kubelet_events import KubeletEvents
from steersman.sim.kubelet.pod_lifecycle import PodRun
from steersman.sim.kubelet.pod_objects import CLAIMS, PodObjects
from steersman.sim.kubelet.pod_volumes import (
    MountState,
    VolumeSource,
    find_volume,
    mount_state,
    needs_expansion,
)
from steersman.sim.volume_names import attachment_name

ATTACHMENTS: Kind[storage_v1.VolumeAttachment] = load("storage.k8s.io", "v1", "VolumeAttachment")

MOUNT_RETRY = 0.5
MOUNT_RETRY_MOST = 122.0
"""Seconds before mounting a volume is retried: upstream's, doubling."""
RESIZE_CONDITIONS = (
    "Resizing",
    "FileSystemResizePending",
    "ControllerResizeError",
    "NodeResizeError",
)


class VolumeManager:
    """The volumes of pods on simulated nodes."""

    def __init__(
        self,
        node_api: Callable[[str], Api],
        objects: PodObjects,
        events: KubeletEvents,
        *,
        enqueue: Callable[[Key], None],
        retry: Callable[[Key, float], None],
        claims: bool,
        attach: bool,
    ) -> None:
        """``node_api`` returns the client that acts for a node. ``enqueue`` is called with the key of a pod that may be mounted, or of a node whose status has to be
        reported, and ``retry`` to enqueue a pod after some seconds. ``claims`` is whether pods wait for their claims to be
        bound, ``attach`` whether they wait for volumes to be attached."""
        self._node_api = node_api
        self._objects = objects
        self._events = events
        self._enqueue = enqueue
        self._retry = retry
        self._awaits_claims = claims
        self._awaits_attachment = attach
        self._users: dict[Key, dict[Key, None]] = {}
        """The pods of each claim."""
        self._reported: dict[Key, tuple[str, ...]] = {}
        """The last errors of each pod."""
        self._attaching: dict[Key, str] = {}
        """The nodes of pods that wait for volumes to be attached."""
        self._attempts: dict[Key, int] = {}
        """How often mounting the volumes of a pod failed in a row, although the node says that they are attached."""
        objects.on_claim(self._claim_changed)

    # -- pods ---------------------------------------------------------------------------------

    async def mount(
        self, pod: v1.Pod, volumes: tuple[VolumeSource, ...], machine: SimulatedNode, run: PodRun
    ) -> bool:
        """Mount the volumes of a pod; returns whether they are. Otherwise, the pod is enqueued when that may have changed.

        The file systems of a pod whose volumes are mounted are expanded where that is due.
        """
        key, waits = pod.key, run.mounted == math.inf
        sources = volumes if self._awaits_claims else tuple(each for each in volumes if each.kind != "claim")
        claims = [each for each in sources if each.kind == "claim"]
        if not waits and not claims:
            return True
        if not self._objects.is_synced(key, (each.kind for each in sources)):
            return False
        for source in claims:
            self._users.setdefault(Key(key.namespace, source.name), {})[key] = None
        state = mount_state(pod, sources, machine.node, self._objects)
        if self._awaits_attachment and state.attachable:
            self._use(key, machine, (name for name, _ in state.attachable))
        if not waits:
            await self._expand_all(pod, claims)
            return True
        self._report(pod, state.errors)
        if state.errors or run.stop_requested is not None:
            self._objects.wait(key)
            return False
        if self._awaits_attachment and not await self._are_attached(pod, state, machine):
            self._attaching[key] = machine.name
            return False
        self._forget(key)
        return True

    def unmount(self, key: Key, machine: SimulatedNode) -> None:
        """Unmount the volumes of a pod. Those that no other pod uses are reported as not in use, so they may be detached."""
        self._forget(key)
        for claim, users in tuple(self._users.items()):
            users.pop(key, None)
            if not users:
                del self._users[claim]
        if machine.volumes is not None:
            self._use(key, machine, ())

    def attached(self, node: str) -> None:
        """Enqueue the pods that wait for volumes to be attached to a node."""
        for key, name in self._attaching.items():
            if name == node:
                self._enqueue(key)

    def _forget(self, key: Key) -> None:
        """A pod no longer waits."""
        self._objects.forget(key)
        for known in (self._reported, self._attaching, self._attempts):
            known.pop(key, None)

    def _use(self, key: Key, machine: SimulatedNode, names: Iterable[str]) -> None:
        machine.use_volumes(key, names)
        if machine.report:
            self._enqueue(Key("", machine.name))

    async def _are_attached(self, pod: v1.Pod, state: MountState, machine: SimulatedNode) -> bool:
        """Whether the volumes of a pod are attached to its node, if they have to be."""
        attached = () if machine.node is None else machine.node.status.volumesAttached
        names = {each.name for each in attached}
        if any(name not in names for name, _ in state.attachable):
            return False
        for _, volume in state.attachable:
            error = await self._attachment_error(volume, machine.name)
            if error:
                self._report(pod, (error,))
                attempts = self._attempts[pod.key] = self._attempts.get(pod.key, 0) + 1
                self._retry(pod.key, min(MOUNT_RETRY * 2.0 ** min(attempts - 1, 16), MOUNT_RETRY_MOST))
                return False
        return True

    async def _attachment_error(self, volume: v1.PersistentVolume, node: str) -> str:
        """Why a volume is not attached to a node, although the status of the node says so; empty where it is."""
        csi = volume.spec.csi
        assert csi is not None
        name = attachment_name(csi.driver, csi.volumeHandle, node)
        try:
            found = await self._node_api(node).get(ATTACHMENTS, "", name)
        except NotFound as error:
            why = f"volume {csi.volumeHandle} has GET error for volume attachment {name}: {error.message}"
        else:
            if found.status.attached:
                return ""
            why = f"volume {csi.volumeHandle} is not attached for volume attachment {name}"
        return f'MountVolume.WaitForAttach failed for volume "{volume.metadata.name}" : {why}'

    def _report(self, pod: v1.Pod, errors: tuple[str, ...]) -> None:
        # differs: upstream records an event for each attempt; here only for a new message.
        known = self._reported.get(pod.key, ())
        for error in errors:
            if error not in known:
                self._events.emit(pod.spec.nodeName, pod, "Warning", "FailedMount", error)
        self._reported[pod.key] = errors

    # -- expansion ----------------------------------------------------------------------------

    async def _expand_all(self, pod: v1.Pod, sources: Iterable[VolumeSource]) -> None:
        """Expand the file systems of a pod's volumes whose expansion is finished but for that."""
        for source in sources:
            key = Key(pod.metadata.namespace, source.name)
            claim = self._objects.claim(key)
            if claim is None or not needs_expansion(claim):
                continue
            volume = find_volume(pod, source, key, self._objects)
            if not isinstance(volume, str):
                await self._expand(pod, claim, volume)

    async def _expand(
        self, pod: v1.Pod, claim: v1.PersistentVolumeClaim, volume: v1.PersistentVolume
    ) -> None:
        namespace, name = claim.key
        # The cache may lag behind an expansion that is finished: the version makes that a conflict.
        body: dict[str, Any] = {
            "metadata": {"resourceVersion": claim.metadata.resourceVersion},
            "status": {"allocatedResourceStatuses": {"storage": "NodeResizeInProgress"}},
        }
        node = pod.spec.nodeName
        api = self._node_api(node)
        claim = await api.patch(CLAIMS, namespace, name, body, subresource="status")
        message = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.metadata.name}" {node}'
        for about in (pod, claim):
            self._events.emit(node, about, "Normal", "FileSystemResizeSuccessful", message)
        gone = [
            {"type": each.type, "$patch": "delete"}
            for each in claim.status.conditions
            if each.type in RESIZE_CONDITIONS
        ]
        status = {
            "capacity": {"storage": volume.spec.capacity.get("storage", "0")},
            "allocatedResourceStatuses": {"storage": None},
            "conditions": gone,
        }
        strategic = "application/strategic-merge-patch+json"
        await api.patch(
            CLAIMS, namespace, name, {"status": status}, content_type=strategic, subresource="status"
        )

    def _claim_changed(self, claim: v1.PersistentVolumeClaim) -> None:
        if needs_expansion(claim):
            for key in self._users.get(claim.key, ()):
                self._enqueue(key)
