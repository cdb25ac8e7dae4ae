"""Simulated kubelets of any number of nodes: one watch of pods, one of nodes, one work queue, a few workers.

A pod costs one request per status change and nothing in between: a heap holds the time of its next change. The heartbeats of
all nodes share timers, in the background.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer
from steersman.runtime.worker_pool import WorkerPool
from steersman.sim.kubelet.heartbeats import Heartbeats, SimulatedNode
from steersman.sim.kubelet.kubelet_events import KubeletEvents, pod_reference
from steersman.sim.kubelet.local_pod import LocalPod, PodReport, stays_as_found
from steersman.sim.kubelet.node import CONTROLLER_ATTACHES, STATE, Shape, is_ready
from steersman.sim.kubelet.pod_addresses import PodAddresses
from steersman.sim.kubelet.pod_environment import environment_error
from steersman.sim.kubelet.pod_events import pod_events
from steersman.sim.kubelet.pod_lifecycle import (
    PodRun,
    advance,
    begin,
    due,
    has_started,
    may_start,
    rebooted,
    request_stop,
)
from steersman.sim.kubelet.pod_plan import KubeletSettings, PodPlan, plan, with_config_errors
from steersman.sim.kubelet.status import pod_ips, render, resume
from steersman.sim.loop import background

if TYPE_CHECKING:
    from steersman.sim.kubelet.claim_preparation import ClaimPreparation
    from steersman.sim.kubelet.pod_objects import PodObjects
    from steersman.sim.kubelet.volume_manager import VolumeManager

PODS: Kind[v1.Pod] = load("", "v1", "Pod")
NODES: Kind[v1.Node] = load("", "v1", "Node")

RETRY = 1.0
"""Seconds before a failed request is retried."""
MAX_IMAGES = 1000
"""Images that a node keeps; the first ones pulled are removed."""
SANDBOX = "Pod sandbox changed, it will be killed and re-created."
CLOSING = 5.0
"""Seconds that events get at the end to be sent."""


class Kubelets:
    """The kubelets of some nodes."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        names: Iterable[str],
        *,
        settings: KubeletSettings = KubeletSettings(),
        shape: Shape = Shape(),
        register: bool = True,
        parallel: int = 16,
        volumes: bool = True,
        attach: bool = True,
        dra: bool = False,
        node_api: Callable[[str], Api] | None = None,
        adopt: Iterable[v1.Node] = (),
    ) -> None:
        """``node_api`` returns the client that acts for a node, by the node's name; without it ``api`` does. All nodes share
        the watches of ``api``: one for each resource instead of one for each node. ``register`` creates the Node objects. At most ``parallel`` requests for pods are in flight. ``volumes`` is whether
        pods wait for their claims to be bound, which takes a binder; ``attach`` whether they wait for their volumes to be
        attached, which takes persistentvolume-attach-detach-controller. With ``dra`` a pod starts once its ResourceClaims
        are allocated and reserved for it; without, they are ignored. ``adopt`` are nodes of a real cluster, taken over as they
        are: with their conditions, and with the pods that run on them."""
        self._api = api
        self._node_api: Callable[[str], Api] = node_api or (lambda name: api)
        self._clock = clock
        self._settings = settings
        self._parallel = parallel
        self._awaits_claims = volumes
        self._awaits_attachment = attach
        self._volumes: VolumeManager | None = None
        """Started with the first pod that has volumes to wait for."""
        self._objects: PodObjects | None = None
        """Watched from the first pod on that is made from other objects."""
        self._machines: dict[str, SimulatedNode] = {}
        self._heartbeats = Heartbeats(api, self._node_api, clock, self._machines, settings, shape, register)
        for name in names:
            self._machines[name] = SimulatedNode(name, len(self._machines) + 1)
        for found in adopt:
            self._machines[found.metadata.name].adopt(found)
        if not self._machines:
            raise ValueError("at least one node is needed")
        self._events = KubeletEvents(api, clock, len(self._machines))
        self._pods = Informer(PODS, api, clock)
        self._nodes = Informer(NODES, api, clock)
        self._local_pods: dict[Key, LocalPod] = {}
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: dict[Key, None] = {}
        self._busy: dict[Key, None] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._set = 0
        self.timer: asyncio.TimerHandle | None = None
        self._workers: WorkerPool | None = None
        self._waits_for_claims = dra
        self._claims: ClaimPreparation | None = None
        """Started with the first pod that has ResourceClaims."""
        self._group: asyncio.TaskGroup | None = None
        self._followers: dict[Key, dict[asyncio.Future[None], None]] = {}
        """The readers of each pod's log, which wait for it to change."""
        self._addresses = PodAddresses()
        self._start = (0.0, clock.now())
        self._wall_memo = (-1.0, clock.now())

    # -- node operations ----------------------------------------------------------------------

    def fail(self, name: str) -> None:
        """Stop the kubelet of a node: no heartbeats, no pod status updates. Its containers keep running."""
        self._machines[name].down = True

    def recover(self, name: str) -> None:
        """Start the kubelet of a node again, at once."""
        machine = self._machines[name]
        machine.cancel()
        if machine.down:
            machine.down = False
            self._resume_node(machine)

    def reboot(self, name: str) -> None:
        """Restart a node with all its pods; it is back after `KubeletSettings.reboot` seconds."""
        machine = self._machines[name]
        machine.cancel()
        machine.down = True
        loop = asyncio.get_running_loop()
        machine.timer = loop.call_later(self._settings.reboot, self._rebooted, machine)

    def _rebooted(self, machine: SimulatedNode) -> None:
        machine.reboots += 1
        machine.down = False
        machine.images.clear()
        if machine.node is not None:
            message = f"Node {machine.name} has been rebooted, boot id: {machine.name}-{machine.reboots}"
            self._events.emit(machine.name, machine.node, "Warning", "Rebooted", message)
        now = self._clock.monotonic()
        for local_pod in self._local_pods.values():
            if local_pod.pod.spec.nodeName == machine.name and local_pod.run is not None:
                intended = self._planned(local_pod)
                run = advance(intended, local_pod.run, now)
                local_pod.run = rebooted(intended, run, now)
                if local_pod.run != run:
                    self._events.emit(
                        machine.name, pod_reference(local_pod.pod, ""), "Normal", "SandboxChanged", SANDBOX
                    )
        self._resume_node(machine)

    def _resume_node(self, machine: SimulatedNode) -> None:
        machine.report = True
        self._enqueue(Key("", machine.name))
        for key, local_pod in self._local_pods.items():
            if local_pod.pod.spec.nodeName == machine.name:
                self._enqueue(key)

    # -- for those who ask --------------------------------------------------------------------

    def pod(self, key: Key, uid: str) -> v1.Pod | None:
        """A pod on one of the nodes, as it was last watched or written."""
        found = self._local_pods.get(key)
        return found.pod if found is not None and found.pod.metadata.uid == uid else None

    def pods_on(self, node: str) -> list[v1.Pod]:
        """The pods on a node."""
        return [each.pod for each in self._local_pods.values() if each.pod.spec.nodeName == node]

    async def changed(self, key: Key) -> None:
        """Wait for the next change of a pod."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        followers = self._followers.setdefault(key, {})
        followers[waiter] = None
        try:
            await waiter
        finally:
            followers.pop(waiter, None)
            if not followers and self._followers.get(key) is followers:
                del self._followers[key]

    def is_down(self, node: str) -> bool:
        """Whether there is no kubelet that answers for a node."""
        machine = self._machines.get(node)
        return machine is None or machine.down

    def address(self, node: str) -> str:
        """The address of a node; its name where it is no simulated one."""
        machine = self._machines.get(node)
        return node if machine is None else machine.address

    # -- running ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled."""
        now = self._clock.now()
        self._start = (self._clock.monotonic(), now)
        self._pods.subscribe(self._on_pod)
        self._nodes.subscribe(self._on_node)
        await self._heartbeats.register()
        self._events.open()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._nodes.run(), name="kubelets: nodes")
                group.create_task(self._pods.run(), name="kubelets: pods")
                self._workers = WorkerPool(group, self._work, self._parallel, "kubelets")
                self._workers.call(self._queue.qsize())
                if self._settings.lease_interval > 0.0:
                    with background():
                        self._heartbeats.start(group)
        finally:
            if self.timer is not None:
                self.timer.cancel()
            for machine in self._machines.values():
                machine.cancel()
            await self._events.close(CLOSING)

    def wall(self, instant: float) -> datetime:
        """An instant of monotonic time as a timestamp, in whole seconds."""
        at, written = self._wall_memo
        if at != instant:
            start, began = self._start
            exact = began + timedelta(microseconds=round((instant - start) * 1e6))
            written = exact.replace(microsecond=0)
            self._wall_memo = instant, written
        return written

    def _instant(self, written: datetime) -> float:
        start, began = self._start
        return start + (written.astimezone(UTC) - began).total_seconds()

    # -- watch events -------------------------------------------------------------------------

    def _on_pod(self, change: Change[v1.Pod]) -> None:
        pod = change.new
        if self._followers:
            for waiter in tuple(self._followers.pop(change.obj.key, ())):
                if not waiter.done():
                    waiter.set_result(None)
        if pod is None:
            gone = self._local_pods.get(change.obj.key)
            if gone is not None and gone.pod.metadata.uid == change.obj.metadata.uid:
                self._addresses.release(gone.pod.metadata.uid)
                if self._claims is not None:
                    self._claims.forget(change.obj.key)
                self._release(gone)
                del self._local_pods[change.obj.key]
                if gone.stays:
                    # Its volumes may have been the last ones in use.
                    self._enqueue(Key("", gone.pod.spec.nodeName))
            return
        if pod.spec.nodeName not in self._machines:
            return
        key = pod.key
        local_pod = self._local_pods.get(key)
        if local_pod is None or local_pod.pod.metadata.uid != pod.metadata.uid:
            if local_pod is not None:
                self._addresses.release(local_pod.pod.metadata.uid)
                self._release(local_pod)
            stays = self._machines[pod.spec.nodeName].adopted and stays_as_found(
                pod, self._clock.now(), self._settings.ready_delay
            )
            self._local_pods[key] = LocalPod(pod, stays)
            # All pods of the first list are here before one of them is started.
            ips = pod_ips(pod.status)
            if ips and not pod.spec.hostNetwork and pod.status.phase not in ("Succeeded", "Failed"):
                self._addresses.reserve(pod.metadata.uid, ips)
        elif local_pod.pod.metadata.resourceVersion == pod.metadata.resourceVersion:
            return  # our own write
        else:
            local_pod.pod = pod
        self._enqueue(key)

    def _on_node(self, change: Change[v1.Node]) -> None:
        found = change.new
        machine = self._machines.get(change.obj.metadata.name)
        if machine is None:
            return
        before, machine.node = machine.node, found
        if found is None:
            return
        if (
            self._volumes is not None
            and before is not None
            and before.status.volumesAttached != found.status.volumesAttached
        ):
            self._volumes.attached(machine.name)
        if self._lacks_annotation(machine, found) or self._has_unknown_volumes(machine, found):
            self._enqueue(Key("", machine.name))
        state_annotation = found.metadata.annotations.get(STATE, "")
        if state_annotation != machine.state_annotation:
            machine.state_annotation = state_annotation
            match state_annotation:
                case "failed":
                    self.fail(machine.name)
                case "rebooting":
                    self.reboot(machine.name)
                case _:
                    self.recover(machine.name)
        if not machine.down and not is_ready(found) and self._settings.lease_interval > 0.0:
            self._enqueue(Key("", machine.name))

    # -- the queue and the heap ---------------------------------------------------------------

    def _enqueue(self, key: Key) -> None:
        if key not in self._queued:
            self._queued[key] = None
            if key not in self._busy:
                self._queue.put_nowait(key)
                if self._workers is not None:
                    self._workers.call()

    def _schedule(self, key: Key, at: float) -> None:
        self._set += 1
        heapq.heappush(self._heap, (at, self._set, key))
        if self._heap[0][1] == self._set:
            self._set_timer()

    def _set_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        at = self._heap[0][0] if self._heap else None
        self.timer = None if at is None else asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            local_pod = self._local_pods.get(key)
            if local_pod is not None and local_pod.due == at:
                local_pod.due = None
            self._enqueue(key)
        self.timer = None
        self._set_timer()

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.pop(key, None)
            self._busy[key] = None
            try:
                await (self._sync_pod(key) if key.namespace else self._sync_node(key.name))
            except NotFound:
                pass  # the watch will show
            except Conflict:
                self._reload(key)
            except ApiError:
                self._schedule(key, self._clock.monotonic() + RETRY)
            finally:
                del self._busy[key]
                if key in self._queued:
                    self._queue.put_nowait(key)

    def _reload(self, key: Key) -> None:
        """Handle a conflict: use the newer object if the watch has already delivered it; otherwise it will."""
        local_pod, seen = self._local_pods.get(key), self._pods.store.get(key)
        if local_pod is None or seen is None or local_pod.pod is seen:
            return
        if seen.metadata.uid == local_pod.pod.metadata.uid:
            local_pod.pod = seen
            self._enqueue(key)

    async def _sync_node(self, name: str) -> None:
        machine = self._machines[name]
        if machine.down or machine.node is None:
            return
        if machine.state_annotation == "rebooting":
            patch: dict[str, Any] = {"metadata": {"annotations": {STATE: None}}}
            machine.node = await self._node_api(name).patch(NODES, "", name, patch)
            machine.state_annotation = ""
        if self._lacks_annotation(machine, machine.node):
            patch = {"metadata": {"annotations": {CONTROLLER_ATTACHES: "true"}}}
            machine.node = await self._node_api(name).patch(NODES, "", name, patch)
        if self._has_unknown_volumes(machine, machine.node):
            self._check_volumes(machine)
        if machine.report or not is_ready(machine.node):
            await self._heartbeats.report(machine)

    def _lacks_annotation(self, machine: SimulatedNode, node: v1.Node) -> bool:
        """Whether the node does not say yet that a controller attaches its volumes."""
        return not machine.adopted and CONTROLLER_ATTACHES not in node.metadata.annotations

    def _has_unknown_volumes(self, machine: SimulatedNode, node: v1.Node) -> bool:
        """Whether an earlier kubelet of a node has reported volumes that this one knows nothing of."""
        managed = self._awaits_claims and self._awaits_attachment
        return managed and machine.volumes is None and bool(node.status.volumesInUse)

    def _check_volumes(self, machine: SimulatedNode) -> None:
        """Report that volumes are no longer in use, if an earlier kubelet of the node used them and no pod has any."""
        if not self._pods.synced:
            self._schedule(Key("", machine.name), self._clock.monotonic() + RETRY)
        elif not any(
            any(source.kind == "claim" for source in self._planned(each).volumes)
            for each in self._local_pods.values()
            if each.pod.spec.nodeName == machine.name
        ):
            machine.use_volumes(Key("", ""), ())

    # -- a pod --------------------------------------------------------------------------------

    def _planned(self, local_pod: LocalPod) -> PodPlan:
        version = local_pod.pod.metadata.resourceVersion
        if local_pod.plan is None or local_pod.planned != version:
            local_pod.plan, local_pod.planned = plan(local_pod.pod, self._settings), version
        return local_pod.plan

    async def _sync_pod(self, key: Key) -> None:
        local_pod = self._local_pods.get(key)
        if local_pod is None or local_pod.gone or self._machines[local_pod.pod.spec.nodeName].down:
            return
        pod, now = local_pod.pod, self._clock.monotonic()
        meta = pod.metadata
        if local_pod.stays and meta.deletionTimestamp is None:
            return
        intended, run = self._planned(local_pod), local_pod.run
        if run is None:
            if not self._is_prepared(pod):
                return
            run = self._start_pod(pod, intended, now)
        if intended.configured and may_start(intended, run):
            configured = self._configured(pod, intended)
            if configured is None:
                return
            intended = configured
        before = run
        if meta.deletionTimestamp is not None:
            run = request_stop(run, now)
        if intended.volumes and not run.terminated:
            local_pod.run = run
            machine = self._machines[pod.spec.nodeName]
            waits = run.mounted > now
            mounted = await self._volume_manager().mount(pod, intended.volumes, machine, run)
            if local_pod.run is not run:
                before = local_pod.run  # the node was rebooted meanwhile
            run = local_pod.run._replace(mounted=now) if mounted and waits else local_pod.run
        local_pod.run = run = advance(intended, run, now)
        if run is not before:
            self._emit_events(pod, intended, before, run)
        if run.terminated:
            self._addresses.release(meta.uid)
            self._release(local_pod)
        leaving = run.terminated and meta.deletionTimestamp is not None
        # The last status of a pod that is deleted at the same instant is not observable.
        if not leaving or meta.finalizers or intended.shutdown:
            await self._report_status(local_pod, intended, run, now)
        if leaving:
            api = self._node_api(pod.spec.nodeName)
            await api.delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0)
            local_pod.gone = True
            return
        at = due(intended, run, now)
        if at is not None and (local_pod.due is None or at < local_pod.due):
            local_pod.due = at
            self._schedule(key, at)

    def _is_prepared(self, pod: v1.Pod) -> bool:
        """Whether a pod has the devices it needs. If not, it is enqueued again when its claims change."""
        if not self._waits_for_claims or not pod.spec.resourceClaims:
            return True
        if pod.metadata.deletionTimestamp is not None or pod.status.startTime is not None:
            return True  # it ends, or it ran before
        if self._claims is None:
            # Imported when needed: most clusters under test have no devices.
            from steersman.sim.kubelet.claim_preparation import ClaimPreparation

            assert self._group is not None
            self._claims = ClaimPreparation(self._api, self._clock, self._enqueue)
            self._claims.start(self._group)
        return self._claims.is_prepared(pod)

    def _configured(self, pod: v1.Pod, intended: PodPlan) -> PodPlan | None:
        """The plan with the errors of containers whose ConfigMaps or Secrets are missing, or None where these are not known
        yet. A pod with errors, or without its objects, is enqueued again when one changes."""
        objects, key, namespace = self._pod_objects(), pod.key, pod.metadata.namespace
        sources = [
            source
            for each in (*intended.inits, *intended.mains, *intended.ephemerals)
            for source in each.environment
        ]
        if not objects.is_synced(key, (source.kind for source in sources)):
            return None
        if not environment_error(namespace, sources, objects):
            if not intended.volumes:
                objects.forget(key)
            return intended
        objects.wait(key)
        return with_config_errors(
            intended, lambda each: environment_error(namespace, each.environment, objects)
        )

    def _emit_events(self, pod: v1.Pod, intended: PodPlan, before: PodRun, after: PodRun) -> None:
        machine, field, about = self._machines[pod.spec.nodeName], "", None

        def is_present(image: str) -> bool:
            present = image in machine.images
            if not present and len(machine.images) >= MAX_IMAGES:
                del machine.images[next(iter(machine.images))]
            machine.images[image] = None
            return present

        if self._events.is_full(machine.name):
            return
        for event in pod_events(pod, intended, before, after, is_present):
            if about is None or event.field != field:
                field, about = event.field, pod_reference(pod, event.field)
            self._events.emit(machine.name, about, event.type, event.reason, event.message)

    def _start_pod(self, pod: v1.Pod, intended: PodPlan, now: float) -> PodRun:
        status = pod.status
        if status.startTime is not None:
            run = resume(pod, intended, now, self._instant)
        else:
            run = begin(intended, now)
        if intended.volumes and not has_started(run):
            run = run._replace(mounted=math.inf)
        if run.ips:
            return run
        machine = self._machines[pod.spec.nodeName]
        if intended.host_network:
            return run._replace(ips=(machine.address,))
        node = machine.node
        cidrs = (node.spec.podCIDRs or (node.spec.podCIDR,)) if node is not None else ()
        return run._replace(ips=self._addresses.allocate(pod.metadata.uid, cidrs))

    def _volume_manager(self) -> VolumeManager:
        if self._volumes is None:
            # Imported when needed: most pods under test have no volumes.
            from steersman.sim.kubelet.volume_manager import VolumeManager

            self._volumes = VolumeManager(
                self._node_api,
                self._pod_objects(),
                self._events,
                enqueue=self._enqueue,
                retry=lambda key, delay: self._schedule(key, self._clock.monotonic() + delay),
                claims=self._awaits_claims,
                attach=self._awaits_attachment,
            )
        return self._volumes

    def _pod_objects(self) -> PodObjects:
        if self._objects is None:
            # Imported when needed: most pods under test are made from nothing else.
            from steersman.sim.kubelet.pod_objects import PodObjects

            assert self._group is not None
            self._objects = PodObjects(self._api, self._clock, self._group, enqueue=self._enqueue)
        return self._objects

    def _release(self, local_pod: LocalPod) -> None:
        """Unmount the volumes of a pod that has ended, and forget what it waits for."""
        if self._objects is not None:
            self._objects.forget(local_pod.pod.key)
        if self._volumes is not None and local_pod.plan is not None and local_pod.plan.volumes:
            self._volumes.unmount(local_pod.pod.key, self._machines[local_pod.pod.spec.nodeName])

    async def _report_status(self, local_pod: LocalPod, intended: PodPlan, run: PodRun, now: float) -> None:
        pod = local_pod.pod
        host = self._machines[pod.spec.nodeName].address
        status = render(pod, intended, run, now, self.wall, host)
        if status == pod.status:
            return
        body = PodReport(metadata=pod.metadata, status=status)
        api = self._node_api(pod.spec.nodeName)
        written = await api.update_status(PODS, pod.metadata.namespace, pod.metadata.name, body)
        local_pod.planned = (
            written.metadata.resourceVersion if local_pod.planned == pod.metadata.resourceVersion else ""
        )
        if local_pod.pod is pod:
            local_pod.pod = written
