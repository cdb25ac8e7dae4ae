"""The kubelets of any number of nodes: one watch of pods, one of nodes, one queue, a few workers.

Pods cost a request for each thing that happens to them and nothing in between: a heap knows when which of
them is due. Heartbeats of all nodes share a timer, as upkeep nobody waits for.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import Struct
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer
from steersman.runtime.worker_pool import WorkerPool
from steersman.sim.kubelet.node import STATE, Shape, is_ready
from steersman.sim.kubelet.nodes import Heartbeats, Machine
from steersman.sim.kubelet.pod_lifecycle import Run, advance, asked, begin, due, lost
from steersman.sim.kubelet.pod_plan import KubeletSettings, Plan, plan
from steersman.sim.kubelet.resume import resume
from steersman.sim.kubelet.status import render
from steersman.sim.loop import background

PODS: Kind[v1.Pod] = load("", "v1", "Pod")
NODES: Kind[v1.Node] = load("", "v1", "Node")

RETRY = 1.0
"""Seconds before a request that failed is made again."""


class _Report(Struct, frozen=True):
    """A pod with a new status. The server keeps the spec, so it need not be sent."""

    metadata: ObjectMeta
    status: v1.PodStatus


class _Guest:
    """A pod on one of our nodes."""

    __slots__ = ("due", "gone", "plan", "planned", "pod", "run")

    def __init__(self, pod: v1.Pod) -> None:
        self.pod = pod
        """As last seen, or as we last wrote it."""
        self.run: Run | None = None
        self.plan: Plan | None = None
        self.planned = ""
        """The version the plan was made of."""
        self.due: float | None = None
        """When it is looked at again, where that is set."""
        self.gone = False
        """Whether it was let go: finalizers may hold it still."""


class Kubelets:
    """Some nodes, and what lives on them."""

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
    ) -> None:
        """``register`` creates the Node objects. At most ``parallel`` requests for pods are under way."""
        self._api = api
        self._clock = clock
        self._settings = settings
        self._parallel = parallel
        self._machines: dict[str, Machine] = {}
        self._heartbeats = Heartbeats(api, clock, self._machines, settings, shape, register)
        for name in names:
            self._machines[name] = Machine(name, len(self._machines) + 1)
        if not self._machines:
            raise ValueError("there must be a node")
        self._pods = Informer(PODS, api, clock)
        self._nodes = Informer(NODES, api, clock)
        self._guests: dict[Key, _Guest] = {}
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: dict[Key, None] = {}
        self._busy: dict[Key, None] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._set = 0
        self._timer: asyncio.TimerHandle | None = None
        self._crew: WorkerPool | None = None
        self._ip = 0
        self._start = (0.0, clock.now())
        self._wall_memo = (-1.0, clock.now())

    # -- for those who play fate --------------------------------------------------------------

    def fail(self, name: str) -> None:
        """The node falls silent: no heartbeats, no news of its pods. What runs there runs on."""
        self._machines[name].down = True

    def recover(self, name: str) -> None:
        """The node is heard of again, at once."""
        machine = self._machines[name]
        machine.cancel()
        if machine.down:
            machine.down = False
            self._return(machine)

    def reboot(self, name: str) -> None:
        """The node goes down with all that runs on it, and comes back after a while."""
        machine = self._machines[name]
        machine.cancel()
        machine.down = True
        loop = asyncio.get_running_loop()
        machine.timer = loop.call_later(self._settings.reboot, self._rebooted, machine)

    def _rebooted(self, machine: Machine) -> None:
        machine.boots += 1
        machine.down = False
        now = self._clock.monotonic()
        for guest in self._guests.values():
            if guest.pod.spec.nodeName == machine.name and guest.run is not None:
                guest.run = lost(self._planned(guest), advance(self._planned(guest), guest.run, now), now)
        self._return(machine)

    def _return(self, machine: Machine) -> None:
        machine.report = True
        self._enqueue(Key("", machine.name))
        for key, guest in self._guests.items():
            if guest.pod.spec.nodeName == machine.name:
                self._enqueue(key)

    # -- running ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled."""
        now = self._clock.now()
        self._start = (self._clock.monotonic(), now)
        self._pods.subscribe(self._saw_pod)
        self._nodes.subscribe(self._saw_node)
        await self._heartbeats.register()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._nodes.run(), name="kubelets: nodes")
                group.create_task(self._pods.run(), name="kubelets: pods")
                self._crew = WorkerPool(group, self._work, self._parallel, "kubelets")
                self._crew.call(self._queue.qsize())
                if self._settings.lease_interval > 0.0:
                    with background():
                        self._heartbeats.start(group)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for machine in self._machines.values():
                machine.cancel()

    def wall(self, instant: float) -> datetime:
        """An instant of monotonic time as it is written, in whole seconds."""
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

    # -- what is seen -------------------------------------------------------------------------

    def _saw_pod(self, change: Change[v1.Pod]) -> None:
        pod = change.new
        if pod is None:
            gone = self._guests.get(change.obj.key)
            if gone is not None and gone.pod.metadata.uid == change.obj.metadata.uid:
                del self._guests[change.obj.key]
            return
        if pod.spec.nodeName not in self._machines:
            return
        key = pod.key
        guest = self._guests.get(key)
        if guest is None or guest.pod.metadata.uid != pod.metadata.uid:
            self._guests[key] = _Guest(pod)
        elif guest.pod.metadata.resourceVersion == pod.metadata.resourceVersion:
            return  # our own write
        else:
            guest.pod = pod
        self._enqueue(key)

    def _saw_node(self, change: Change[v1.Node]) -> None:
        found = change.new
        machine = self._machines.get(change.obj.metadata.name)
        if machine is None:
            return
        machine.node = found
        if found is None:
            return
        wish = found.metadata.annotations.get(STATE, "")
        if wish != machine.wish:
            machine.wish = wish
            match wish:
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
                if self._crew is not None:
                    self._crew.call()

    def _later(self, key: Key, at: float) -> None:
        self._set += 1
        heapq.heappush(self._heap, (at, self._set, key))
        if self._heap[0][1] == self._set:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        at = self._heap[0][0] if self._heap else None
        self._timer = None if at is None else asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            guest = self._guests.get(key)
            if guest is not None and guest.due == at:
                guest.due = None
            self._enqueue(key)
        self._timer = None
        self._arm()

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.pop(key, None)
            self._busy[key] = None
            try:
                await (self._see_to(key) if key.namespace else self._see_to_node(key.name))
            except NotFound:
                pass  # the watch will show
            except Conflict:
                self._reload(key)
            except ApiError:
                self._later(key, self._clock.monotonic() + RETRY)
            finally:
                del self._busy[key]
                if key in self._queued:
                    self._queue.put_nowait(key)

    def _reload(self, key: Key) -> None:
        """Somebody else wrote. If the watch has shown it already, act upon that; else it will."""
        guest, seen = self._guests.get(key), self._pods.store.get(key)
        if guest is None or seen is None or guest.pod is seen:
            return
        if seen.metadata.uid == guest.pod.metadata.uid:
            guest.pod = seen
            self._enqueue(key)

    async def _see_to_node(self, name: str) -> None:
        machine = self._machines[name]
        if machine.down or machine.node is None:
            return
        if machine.wish == "rebooting":
            patch: dict[str, Any] = {"metadata": {"annotations": {STATE: None}}}
            machine.node = await self._api.patch(NODES, "", name, patch)
            machine.wish = ""
        if machine.report or not is_ready(machine.node):
            await self._heartbeats.report(machine)

    # -- a pod --------------------------------------------------------------------------------

    def _planned(self, guest: _Guest) -> Plan:
        version = guest.pod.metadata.resourceVersion
        if guest.plan is None or guest.planned != version:
            guest.plan, guest.planned = plan(guest.pod, self._settings), version
        return guest.plan

    async def _see_to(self, key: Key) -> None:
        guest = self._guests.get(key)
        if guest is None or guest.gone or self._machines[guest.pod.spec.nodeName].down:
            return
        pod, now = guest.pod, self._clock.monotonic()
        meta, intended = pod.metadata, self._planned(guest)
        run = guest.run
        if run is None:
            run = self._arrive(pod, intended, now)
        if meta.deletionTimestamp is not None:
            run = asked(run, now)
        guest.run = run = advance(intended, run, now)
        leaving = run.over and meta.deletionTimestamp is not None
        # Nobody sees the last words of a pod that goes in the same breath.
        if not leaving or meta.finalizers or intended.shutdown:
            await self._tell(guest, intended, run, now)
        if leaving:
            await self._api.delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0)
            guest.gone = True
            return
        at = due(intended, run, now)
        if at is not None and (guest.due is None or at < guest.due):
            guest.due = at
            self._later(key, at)

    def _arrive(self, pod: v1.Pod, intended: Plan, now: float) -> Run:
        status = pod.status
        if status.startTime is not None:
            run = resume(pod, intended, now, self._instant)
        else:
            run = begin(intended, now)
        if run.ip:
            self._claim(run.ip)
            return run
        if intended.host_network:
            return run._replace(ip=self._machines[pod.spec.nodeName].address)
        self._ip += 1
        number = (244 << 16) + self._ip
        return run._replace(ip=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")

    def _claim(self, ip: str) -> None:
        """Give no address out again that a pod has from before."""
        first, *rest = ip.split(".")
        if first == "10" and len(rest) == 3 and all(part.isdigit() for part in rest):
            number = int(rest[0]) << 16 | int(rest[1]) << 8 | int(rest[2])
            self._ip = max(self._ip, number - (244 << 16))

    async def _tell(self, guest: _Guest, intended: Plan, run: Run, now: float) -> None:
        pod = guest.pod
        host = self._machines[pod.spec.nodeName].address
        status = render(pod, intended, run, now, self.wall, host)
        if status == pod.status:
            return
        body = _Report(metadata=pod.metadata, status=status)
        written = await self._api.update_status(PODS, pod.metadata.namespace, pod.metadata.name, body)
        guest.planned = (
            written.metadata.resourceVersion if guest.planned == pod.metadata.resourceVersion else ""
        )
        if guest.pod is pod:
            guest.pod = written
