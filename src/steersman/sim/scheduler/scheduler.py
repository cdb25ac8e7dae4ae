"""The scheduler's loop: follow pods and nodes, place one pod after the other, bind them side by side."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.informer import Informer
from steersman.runtime.worker_pool import WorkerPool
from steersman.sim.scheduler.node_info import Hosts, Tenant, tenant
from steersman.sim.scheduler.placement import Placed, Ranks, Unplaced
from steersman.sim.scheduler.preemption import victims
from steersman.sim.scheduler.queue import Queue, Waiting

PODS: Kind[v1.Pod] = load("", "v1", "Pod")
NODES: Kind[v1.Node] = load("", "v1", "Node")
STRATEGIC = "application/strategic-merge-patch+json"
CLOSING = 5.0
TURN = 64
"""How many pods are placed before others get their turn."""


class Scheduler:
    """Gives pods their nodes."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        name: str = "default-scheduler",
        parallel: int = 16,
        talkative: bool = False,
        preempts: bool = True,
    ) -> None:
        """``name`` is the ``schedulerName`` of its pods. ``talkative`` records an event for each pod it
        places, too, and not only for those it cannot."""
        self._api = api
        self._clock = clock
        self._name = name
        self._parallel = parallel
        self._talkative = talkative
        self._preempts = preempts
        self._recorder = Recorder(api, clock, component=name, sink="events.k8s.io")
        self._pods = Informer(PODS, api, clock)
        self._nodes = Informer(NODES, api, clock)
        self._hosts = Hosts()
        self._ranks = Ranks(self._hosts)
        self._queue = Queue()
        self._assumed: dict[Key, str] = {}
        """The uids of pods that are being bound."""
        self._todo: asyncio.Queue[tuple[Waiting, Placed | Unplaced]] = asyncio.Queue()
        self._awake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._crew: WorkerPool

    async def run(self) -> None:
        """Run until cancelled."""
        self._nodes.subscribe(self._saw_node)
        self._pods.subscribe(self._saw_pod)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._nodes.run(), name="scheduler: nodes")
                group.create_task(self._pods.run(), name="scheduler: pods")
                self._recorder.open()
                self._crew = WorkerPool(group, self._work, self._parallel, "scheduler")
                await self._nodes.wait_synced()
                await self._pods.wait_synced()
                await self._schedule()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._recorder.close(CLOSING)

    # -- what is seen -------------------------------------------------------------------------

    def _saw_node(self, change: Change[v1.Node]) -> None:
        old, new = change.old, change.new
        if new is None:
            self._hosts.drop_node(change.obj.metadata.name)
        elif old is None or not _alike(old, new):
            self._hosts.put_node(new)
        else:
            return  # a heartbeat
        self._stir()

    def _saw_pod(self, change: Change[v1.Pod]) -> None:
        pod, key = change.new, change.obj.key
        if pod is None:
            self._assumed.pop(key, None)
            self._queue.drop(key)
            if self._hosts.drop(key):
                self._stir()
        elif pod.status.phase in ("Succeeded", "Failed"):
            self._queue.drop(key)
            if self._hosts.drop(key):
                self._stir()
        elif pod.spec.nodeName:
            self._assumed.pop(key, None)
            self._queue.drop(key)
            news = self._hosts.home(key) != pod.spec.nodeName
            self._hosts.put(tenant(pod, self._hosts.resident(key)), pod.spec.nodeName)
            if news:
                self._stir()  # somebody may want to be beside it
        elif self._assumed.get(key) != pod.metadata.uid:
            self._saw_waiting(pod, key)

    def _saw_waiting(self, pod: v1.Pod, key: Key) -> None:
        spec = pod.spec
        ours = (spec.schedulerName or "default-scheduler") == self._name
        if not ours or spec.schedulingGates or pod.metadata.deletionTimestamp is not None:
            self._queue.drop(key)
            return
        known = self._queue.get(key)
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            was = known.pod
            known.pod = pod
            if was.spec == spec and was.metadata.labels == pod.metadata.labels:
                return
        self._queue.put(pod)
        self._awake.set()

    def _stir(self) -> None:
        self._queue.stir()
        self._awake.set()

    # -- deciding -----------------------------------------------------------------------------

    async def _schedule(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            self._rouse()
            done = 0
            while (waiting := self._queue.pop()) is not None:
                self._decide(waiting)
                done += 1
                if done % TURN == 0:
                    await asyncio.sleep(0)

    def _rouse(self) -> None:
        at = self._queue.wake(self._clock.monotonic())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer = asyncio.get_running_loop().call_at(at, self._awake.set)

    def _decide(self, waiting: Waiting) -> None:
        pod = waiting.pod
        new = tenant(pod)
        decision = self._ranks.place(new)
        if isinstance(decision, Placed):
            self._hosts.put(new, decision.node)
            self._assumed[new.key] = new.uid
        else:
            self._queue.park(waiting, self._clock.monotonic())
        self._todo.put_nowait((waiting, decision))
        self._crew.call()

    # -- telling ------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            waiting, decision = await self._todo.get()
            try:
                if isinstance(decision, Placed):
                    await self._bind(waiting, decision.node)
                else:
                    await self._refuse(waiting, decision)
            except NotFound:
                continue  # the watch will show
            except ApiError:
                if isinstance(decision, Unplaced):
                    waiting.said = ""  # so that it is told at the next attempt

    async def _bind(self, waiting: Waiting, node: str) -> None:
        meta = waiting.pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._api.subresource(PODS, meta.namespace, meta.name, "binding", body)
        except ApiError:
            self._forget(waiting)
            raise
        if self._talkative:
            said = f"Successfully assigned {waiting.pod.key} to {node}"
            self._recorder.emit(waiting.pod, "Normal", "Scheduled", said, action="Binding")

    def _forget(self, waiting: Waiting) -> None:
        """It was not bound after all."""
        key = waiting.pod.key
        if self._assumed.pop(key, None) is None:
            return
        self._hosts.drop(key)
        if self._queue.get(key) is waiting:
            self._queue.retry(waiting, self._clock.monotonic())
            self._stir()

    async def _refuse(self, waiting: Waiting, decision: Unplaced) -> None:
        pod = waiting.pod
        nominated, gone = "", False
        if self._preempts and pod.spec.preemptionPolicy != "Never" and pod.spec.priority:
            found = victims(tenant(pod), self._hosts)
            if found is not None:
                nominated, leaving = found
                gone = True
                for each in leaving:
                    await self._evict(pod, each)
        message = decision.message
        if not gone and decision.reasons:
            never = pod.spec.preemptionPolicy == "Never"
            tail = "preemption: not eligible due to preemptionPolicy=Never." if never else decision.unhelped
            message = f"{message} {tail}"
        # differs: upstream records an event for each attempt; the same words again help nobody.
        if message == waiting.said:
            return
        waiting.said = message
        self._recorder.emit(pod, "Warning", "FailedScheduling", message, action="Scheduling")
        await self._tell(pod, message, nominated)

    async def _tell(self, pod: v1.Pod, message: str, nominated: str) -> None:
        meta = pod.metadata
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        known = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        said: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        if known is not None and (known.status, known.reason, known.message) == (
            "False",
            "Unschedulable",
            message,
        ):
            return
        if known is None or known.status != "False":
            said["lastTransitionTime"] = now
        status: dict[str, Any] = {"conditions": [said]}
        if nominated:
            status["nominatedNodeName"] = nominated
        body = {"metadata": {"uid": meta.uid}, "status": status}
        await self._api.patch(
            PODS, meta.namespace, meta.name, body, content_type=STRATEGIC, subresource="status"
        )

    async def _evict(self, pod: v1.Pod, victim: Tenant) -> None:
        """Ask a pod to make room, saying why."""
        namespace, name = victim.key
        said = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [said]}}
        try:
            await self._api.patch(PODS, namespace, name, body, content_type=STRATEGIC, subresource="status")
            await self._api.delete(PODS, namespace, name, uid=victim.uid)
        except NotFound:
            return
        about = self._pods.store.get(victim.key)
        if about is not None:
            words = f"Preempted by pod {pod.metadata.uid} on node {about.spec.nodeName}"
            self._recorder.emit(about, "Normal", "Preempted", words, action="Preempting")


def _alike(old: v1.Node, new: v1.Node) -> bool:
    """Whether nothing changed that a scheduler looks at."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
        and old.metadata.uid == new.metadata.uid
    )
