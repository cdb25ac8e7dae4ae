"""The scheduler loop: watches pods and nodes, schedules pods one after the other, and binds them in parallel."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.meta import format_time
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.informer import Informer
from steersman.runtime.worker_pool import WorkerPool
from steersman.sim.scheduler.node_info import NodeInfos, PodInfo, pod_info
from steersman.sim.scheduler.placement import (
    NOT_FOUND,
    NOTHING_TO_DEALLOCATE,
    Ranking,
    Scheduled,
    SchedulerError,
    Unschedulable,
    VolumeFilter,
    victims,
)
from steersman.sim.scheduler.queue import QueuedPod, SchedulingQueue
from steersman.sim.scheduler.requirements import requirements

if TYPE_CHECKING:
    from steersman.sim.scheduler.dynamic_resources import DynamicResources
    from steersman.sim.scheduler.volume_binding import VolumeBinding

PODS: Kind[v1.Pod] = load("", "v1", "Pod")
NODES: Kind[v1.Node] = load("", "v1", "Node")
STRATEGIC = "application/strategic-merge-patch+json"
CLOSING = 5.0
Decision: TypeAlias = Scheduled | Unschedulable | SchedulerError
TURN = 64
"""Number of pods scheduled before other tasks run."""


class Scheduler:
    """Schedules pods."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        name: str = "default-scheduler",
        parallel: int = 16,
        scheduled_events: bool = False,
        preempts: bool = True,
        volumes: bool = True,
        dra: bool = False,
    ) -> None:
        """``name`` is the ``schedulerName`` of its pods. ``scheduled_events`` records Scheduled events, not only
        FailedScheduling. ``volumes`` is whether the claims of pods are considered: they are only ever bound where there is
        a binder. ``dra`` allocates the ResourceClaims of pods, which are ignored otherwise."""
        self._api = api
        self._clock = clock
        self._name = name
        self._parallel = parallel
        self._scheduled_events = scheduled_events
        self._preempts = preempts
        self._considers_volumes = volumes
        self._volumes: VolumeBinding | None = None
        """Started with the first pod that has claims."""
        self._considers_devices = dra
        self._devices: DynamicResources | None = None
        """Started with the first pod that has ResourceClaims."""
        self._recorder = Recorder(api, clock, component=name, sink="events.k8s.io")
        self._pods = Informer(PODS, api, clock)
        self._nodes = Informer(NODES, api, clock)
        self._node_infos = NodeInfos()
        self._ranks = Ranking(self._node_infos)
        self._queue = SchedulingQueue()
        self._assumed: dict[Key, str] = {}
        """UIDs of pods that are being bound."""
        self._decisions: asyncio.Queue[tuple[QueuedPod, Decision]] = asyncio.Queue()
        self._awake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._workers: WorkerPool

    async def run(self) -> None:
        """Run until cancelled."""
        self._nodes.subscribe(self._on_node)
        self._pods.subscribe(self._on_pod)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._nodes.run(), name="scheduler: nodes")
                group.create_task(self._pods.run(), name="scheduler: pods")
                self._recorder.open()
                self._workers = WorkerPool(group, self._work, self._parallel, "scheduler")
                await self._nodes.wait_synced()
                await self._pods.wait_synced()
                await self._schedule(group)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._volumes is not None:
                self._volumes.close()
            await self._recorder.close(CLOSING)

    # -- watch events -------------------------------------------------------------------------

    def _on_node(self, change: Change[v1.Node]) -> None:
        old, new = change.old, change.new
        if new is None:
            self._node_infos.remove_node(change.obj.metadata.name)
        elif old is None or not _unchanged(old, new):
            self._node_infos.put_node(new)
        else:
            return  # a heartbeat
        self._cluster_changed()

    def _on_pod(self, change: Change[v1.Pod]) -> None:
        pod, key = change.new, change.obj.key
        if pod is None:
            self._assumed.pop(key, None)
            self._queue.remove(key)
            if self._volumes is not None:
                self._volumes.release(key)
            if self._devices is not None:
                self._devices.release(key)
            if self._node_infos.remove(key):
                self._cluster_changed()
        elif pod.status.phase in ("Succeeded", "Failed"):
            self._queue.remove(key)
            if self._node_infos.remove(key):
                self._cluster_changed()
        elif pod.spec.nodeName:
            self._assumed.pop(key, None)
            self._queue.remove(key)
            changed = self._node_infos.node_of(key) != pod.spec.nodeName
            self._node_infos.put(pod_info(pod, self._node_infos.pod(key)), pod.spec.nodeName)
            if changed:
                self._cluster_changed()  # pods with affinity to it may fit now
        elif self._assumed.get(key) != pod.metadata.uid:
            self._on_unscheduled(pod, key)

    def _on_unscheduled(self, pod: v1.Pod, key: Key) -> None:
        spec = pod.spec
        ours = (spec.schedulerName or "default-scheduler") == self._name
        if not ours or spec.schedulingGates or pod.metadata.deletionTimestamp is not None:
            self._queue.remove(key)
            return
        known = self._queue.get(key)
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            was = known.pod
            known.pod = pod
            claims, known_claims = pod.status.resourceClaimStatuses, was.status.resourceClaimStatuses
            if was.spec == spec and was.metadata.labels == pod.metadata.labels and claims == known_claims:
                return
        self._queue.put(pod)
        self._awake.set()

    def _cluster_changed(self) -> None:
        self._queue.cluster_changed()
        self._awake.set()

    # -- scheduling ---------------------------------------------------------------------------

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            self._flush_backoff()
            done = 0
            while (queued := self._queue.pop()) is not None:
                volumes, devices = self._lacks_volumes(queued.pod), self._lacks_devices(queued.pod)
                if volumes or devices:
                    await self._watch(volumes, devices, group)
                    if self._queue.get(queued.pod.key) is not queued:
                        continue  # it was deleted meanwhile
                self._decide(queued)
                done += 1
                if done % TURN == 0:
                    await asyncio.sleep(0)

    def _flush_backoff(self) -> None:
        at = self._queue.flush_backoff(self._clock.monotonic())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer = asyncio.get_running_loop().call_at(at, self._awake.set)

    def _decide(self, queued: QueuedPod) -> None:
        pod = queued.pod
        new = pod_info(pod)
        devices = self._devices
        if devices is not None and pod.spec.resourceClaims and devices.missing_claim(pod):
            self._queue.wait(queued)  # as upstream, nothing is reported
            return
        decision = self._place(pod, new)
        if isinstance(decision, Scheduled):
            self._node_infos.put(new, decision.node)
            self._assumed[new.key] = new.uid
            node_info = self._node_infos.get(decision.node)
            if self._volumes is not None and decision.volumes is not None and node_info is not None:
                self._volumes.reserve(new.key, node_info, decision.volumes)
        else:
            self._queue.add_unschedulable(queued, self._clock.monotonic())
        self._decisions.put_nowait((queued, decision))
        self._workers.call()

    def _lacks_volumes(self, pod: v1.Pod) -> bool:
        """Whether a pod is the first one that needs volumes to be watched."""
        return self._volumes is None and self._considers_volumes and bool(requirements(pod.spec).claims)

    def _lacks_devices(self, pod: v1.Pod) -> bool:
        """Whether a pod is the first one that needs devices to be watched."""
        return self._devices is None and self._considers_devices and bool(pod.spec.resourceClaims)

    async def _watch(self, volumes: bool, devices: bool, group: asyncio.TaskGroup) -> None:
        # Imported when needed: most clusters under test have neither volumes nor devices.
        if volumes:
            from steersman.sim.scheduler.volume_binding import VolumeBinding

            binding = VolumeBinding(
                self._api, self._clock, changed=self._cluster_changed, finished=self._volumes_bound
            )
            await binding.start(group)
            self._volumes = binding
        if devices:
            from steersman.sim.scheduler.dynamic_resources import DynamicResources

            dynamic_resources = DynamicResources(self._api, self._clock, self._cluster_changed)
            await dynamic_resources.start(group)
            self._devices = dynamic_resources

    def _place(self, pod: v1.Pod, new: PodInfo) -> Decision:
        volumes, devices = self._volumes, self._devices
        by_volumes: VolumeFilter | None = None
        if volumes is not None and new.requirements.claims:
            claims = volumes.check(new, self._node_infos.with_claims.values())
            if isinstance(claims, str):
                reasons = {node_info.name: (claims,) for node_info in self._node_infos}
                return Unschedulable(reasons, claims, is_final=True)
            by_volumes = partial(volumes.filter, new, claims)
        if devices is None or not pod.spec.resourceClaims:
            return self._ranks.schedule(new, by_volumes)
        return devices.place(pod, self._node_infos, partial(self._ranks.schedule, new, by_volumes))

    # -- binding and reporting ----------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            queued, decision = await self._decisions.get()
            try:
                if isinstance(decision, Scheduled) and decision.volumes:
                    await self._bind_volumes(queued, decision.node)
                elif isinstance(decision, Scheduled):
                    await self._bind(queued, decision.node)
                elif isinstance(decision, SchedulerError):
                    await self._report(queued, decision.message, reason="SchedulerError")
                else:
                    await self._report_unschedulable(queued, decision)
            except NotFound:
                continue  # the watch delivers the deletion
            except ApiError:
                if not isinstance(decision, Scheduled):
                    queued.message = ""  # so that the next attempt reports it

    async def _bind_volumes(self, queued: QueuedPod, node: str) -> None:
        """Write the bindings of a pod's claims. The pod is bound once the claims are, see `_volumes_bound`."""
        assert self._volumes is not None
        key = queued.pod.key
        try:
            await self._volumes.write(key)
        except ApiError:
            self._volumes.release(key)
            self._forget(queued)
            raise

    def _volumes_bound(self, key: Key, error: str) -> None:
        """Go on with a pod whose claims are bound, or cannot be."""
        queued, node = self._queue.get(key), self._node_infos.node_of(key)
        if queued is None or node is None:
            return  # the pod was deleted
        if not error:
            self._decisions.put_nowait((queued, Scheduled(node)))
        else:
            self._forget(queued)
            message = f'running PreBind plugin "VolumeBinding": {error}'
            self._decisions.put_nowait((queued, SchedulerError(message)))
        self._workers.call()

    async def _bind(self, queued: QueuedPod, node: str) -> None:
        meta = queued.pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            if self._devices is not None:
                await self._devices.write(queued.pod.key)
            await self._api.subresource(PODS, meta.namespace, meta.name, "binding", body)
        except ApiError:
            self._forget(queued)
            raise
        if self._scheduled_events:
            message = f"Successfully assigned {queued.pod.key} to {node}"
            self._recorder.emit(queued.pod, "Normal", "Scheduled", message, action="Binding")

    def _forget(self, queued: QueuedPod) -> None:
        """Undo an assumed binding that failed."""
        key = queued.pod.key
        if self._devices is not None:
            self._devices.release(key)
        if self._assumed.pop(key, None) is None:
            return
        self._node_infos.remove(key)
        if self._queue.get(key) is queued:
            self._queue.retry(queued, self._clock.monotonic())
            self._cluster_changed()

    async def _report_unschedulable(self, queued: QueuedPod, decision: Unschedulable) -> None:
        pod = queued.pod
        if decision.is_final:
            await self._report(queued, f"{decision.message} {NOT_FOUND}")
            return
        nominated, gone = "", False
        if self._preempts and pod.spec.preemptionPolicy != "Never" and pod.spec.priority:
            found = victims(pod_info(pod), self._node_infos)
            if found is not None:
                nominated, chosen = found
                gone = True
                for each in chosen:
                    await self._evict(pod, each)
        message = decision.message
        if not gone and decision.reasons:
            never = pod.spec.preemptionPolicy == "Never"
            tail = (
                "preemption: not eligible due to preemptionPolicy=Never."
                if never
                else decision.preemption_message
            )
            words = NOTHING_TO_DEALLOCATE if self._devices is None else await self._devices.deallocate(pod)
            message = f"{message} {words}, {tail}"
        await self._report(queued, message, nominated)

    async def _report(
        self, queued: QueuedPod, message: str, nominated: str = "", reason: str = "Unschedulable"
    ) -> None:
        # differs: upstream records an event for each attempt; here only for a new message.
        if message == queued.message:
            return
        queued.message = message
        self._recorder.emit(queued.pod, "Warning", "FailedScheduling", message, action="Scheduling")
        await self._set_condition(queued.pod, message, nominated, reason)

    async def _set_condition(self, pod: v1.Pod, message: str, nominated: str, reason: str) -> None:
        meta = pod.metadata
        now = format_time(self._clock.now())
        known = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if known is not None and (known.status, known.reason, known.message) == (
            "False",
            reason,
            message,
        ):
            return
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = now
        status: dict[str, Any] = {"conditions": [condition]}
        if nominated:
            status["nominatedNodeName"] = nominated
        body = {"metadata": {"uid": meta.uid}, "status": status}
        await self._api.patch(
            PODS, meta.namespace, meta.name, body, content_type=STRATEGIC, subresource="status"
        )

    async def _evict(self, pod: v1.Pod, victim: PodInfo) -> None:
        """Preempt a pod."""
        namespace, name = victim.key
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        try:
            await self._api.patch(PODS, namespace, name, body, content_type=STRATEGIC, subresource="status")
            await self._api.delete(PODS, namespace, name, uid=victim.uid)
        except NotFound:
            return
        about = self._pods.store.get(victim.key)
        if about is not None:
            message = f"Preempted by pod {pod.metadata.uid} on node {about.spec.nodeName}"
            self._recorder.emit(about, "Normal", "Preempted", message, action="Preempting")


def _unchanged(old: v1.Node, new: v1.Node) -> bool:
    """Whether nothing changed that scheduling depends on."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
        and old.metadata.uid == new.metadata.uid
    )
