"""Hollow nodes: bind pods, say that they run, let them go. Nothing is ever started.

Works over any `Api`: in a world, or against a real API server to give its controllers something to watch.
One watch feeds one queue; a pod costs one request for each thing that happens to it: to be bound, to be
reported running, to be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from steersman.api.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, Invalid, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta as FullMeta
from steersman.api.kinds import PODS, Condition, Object, ObjectMeta, Struct
from steersman.api.scheme import Key
from steersman.client.api import Api, EventType, Unreadable, WatchEvent
from steersman.runtime.clock import Clock

NEVER_READY = "sim.steersman.dev/never-ready"
"""An annotation: this pod's images cannot be pulled."""

_PAGE = 500
_RETRY = 1.0
"""Seconds before a request that failed is made again."""


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""


class Gate(Struct, frozen=True):
    name: str = ""


class HollowSpec(Struct, frozen=True):
    nodeName: str = ""
    containers: tuple[Container, ...] = ()
    initContainers: tuple[Container, ...] = ()
    schedulingGates: tuple[Gate, ...] = ()


class HollowStatus(Struct, frozen=True):
    phase: str = ""
    startTime: Any = None
    conditions: tuple[Condition, ...] = ()


class HollowPod(Object, frozen=True):
    """What a hollow node needs to know of a pod."""

    spec: HollowSpec = HollowSpec()
    status: HollowStatus = HollowStatus()


class _StatusBody(Struct, frozen=True):
    metadata: ObjectMeta
    status: v1.PodStatus


_PODS = PODS.as_(HollowPod)

Step: TypeAlias = Callable[[HollowPod], Awaitable[None]]


class Nodes:
    """Some nodes' kubelets, and a scheduler that deals pods to them in turn."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        names: Sequence[str] = ("node-1",),
        *,
        start_delay: float = 0.0,
        ready: bool = True,
        register: bool = False,
        parallel: int = 16,
    ) -> None:
        """``start_delay`` is how many seconds a pod takes from being bound to running; ``ready`` whether it
        gets ready then. ``register`` creates the Node objects. At most ``parallel`` requests are under way."""
        if not names:
            raise ValueError("there must be a node")
        self._api = api
        self._clock = clock
        self._names = tuple(names)
        self._addresses = {name: f"192.168.{i >> 8 & 255}.{i & 255}" for i, name in enumerate(self._names, 1)}
        self._start_delay = start_delay
        self._ready = ready
        self._register = register
        self._parallel = parallel
        self._pods: dict[Key, HollowPod] = {}
        self._acted: dict[Key, str] = {}
        """The version of each pod that was last acted upon: one answer to each state."""
        self._due: dict[str, float] = {}
        """When each pod, by its uid, is to run."""
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: dict[Key, None] = {}
        self._busy: dict[Key, None] = {}
        self._turn = 0
        self._address = 244 << 16

    async def run(self) -> None:
        """Run until cancelled."""
        if self._register:
            for name in self._names:
                await self._create_node(name)
        async with asyncio.TaskGroup() as group:
            for i in range(self._parallel):
                group.create_task(self._work(), name=f"nodes-{i}")
            await self._follow()

    # -- what pods there are ------------------------------------------------------------------

    async def _follow(self) -> None:
        """Follow all pods, whatever happens to the watch."""
        version, stream = "", True
        while True:
            try:
                if not version and not stream:
                    version = await self._list()
                watch = self._api.watch(_PODS, resource_version=version, send_initial_events=not version)
                initial: dict[Key, None] | None = None if version else {}
                async for event in watch:
                    if initial is not None and event.obj is not None:
                        initial[_key(event.obj)] = None
                    if initial is not None and event.initial_end:
                        self._keep(initial)
                        initial = None
                    self._see(event)
                    if initial is None:
                        version = event.resource_version
            except Expired:
                version = ""
            except (Invalid, BadRequest):
                # A server that cannot stream a list is asked for one.
                if version or not stream:
                    raise
                stream = False
            except ApiError:
                await asyncio.sleep(_RETRY)

    async def _list(self) -> str:
        found: dict[Key, None] = {}
        token = ""
        while True:
            page = await self._api.list(_PODS, limit=_PAGE, continue_=token)
            for pod in page.items:
                found[_key(pod)] = None
                self._see(WatchEvent(EventType.ADDED, pod, ""))
            token = page.continue_
            if not token:
                self._keep(found)
                return page.resource_version

    def _keep(self, present: dict[Key, None]) -> None:
        """Forget the pods that went while nobody was looking."""
        for key in [key for key in self._pods if key not in present]:
            self._forget(key)

    def _see(self, event: WatchEvent[HollowPod | Unreadable]) -> None:
        pod = event.obj
        if pod is None or isinstance(pod, Unreadable):
            return
        key = _key(pod)
        if event.type is EventType.DELETED:
            self._forget(key)
            return
        self._pods[key] = pod
        if self._step(pod) is not None:
            self._enqueue(key)

    def _forget(self, key: Key) -> None:
        pod = self._pods.pop(key, None)
        self._acted.pop(key, None)
        if pod is not None:
            self._due.pop(pod.metadata.uid, None)

    # -- what to do about them ----------------------------------------------------------------

    def _step(self, pod: HollowPod) -> Step | None:
        """What is to happen to a pod next; None where it is as it should be, or not ours."""
        spec, status = pod.spec, pod.status
        if not spec.nodeName:
            waits = pod.metadata.deletionTimestamp is not None or spec.schedulingGates
            return None if waits else self._bind
        if spec.nodeName not in self._addresses:
            return None
        if pod.metadata.deletionTimestamp is not None:
            return self._finish
        if status.startTime is not None or status.phase in ("Succeeded", "Failed"):
            return None
        return self._start

    def _enqueue(self, key: Key) -> None:
        if key not in self._queued:
            self._queued[key] = None
            if key not in self._busy:
                self._queue.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.pop(key, None)
            self._busy[key] = None
            try:
                await self._act(key)
            finally:
                del self._busy[key]
                if key in self._queued:
                    self._queue.put_nowait(key)

    async def _act(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None or self._acted.get(key) == pod.metadata.resourceVersion:
            return
        step = self._step(pod)
        if step is None or (step == self._start and self._is_early(key, pod)):
            return
        self._acted[key] = pod.metadata.resourceVersion
        try:
            await step(pod)
        except (NotFound, Conflict):
            # It changed, or is gone: the watch will show, and then there is a new state to act upon.
            return
        except ApiError:
            self._acted.pop(key, None)
            asyncio.get_running_loop().call_later(_RETRY, self._enqueue, key)

    def _is_early(self, key: Key, pod: HollowPod) -> bool:
        """Whether a pod has still to take its time; sets the timer when first asked."""
        if not self._start_delay:
            return False
        now = self._clock.monotonic()
        uid = pod.metadata.uid
        due = self._due.get(uid)
        if due is None:
            due = self._due[uid] = now + self._start_delay
            asyncio.get_running_loop().call_later(self._start_delay, self._enqueue, key)
        return now < due

    async def _bind(self, pod: HollowPod) -> None:
        node = self._names[self._turn % len(self._names)]
        self._turn += 1
        meta = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._api.subresource(PODS, meta.namespace, meta.name, "binding", body)

    async def _start(self, pod: HollowPod) -> None:
        meta = pod.metadata
        self._due.pop(meta.uid, None)
        body = _StatusBody(metadata=meta, status=self._status(pod))
        await self._api.update_status(PODS, meta.namespace, meta.name, body)

    async def _finish(self, pod: HollowPod) -> None:
        meta = pod.metadata
        await self._api.delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0)

    # -- what a kubelet would say -------------------------------------------------------------

    def _status(self, pod: HollowPod) -> v1.PodStatus:
        now = self._clock.now().replace(microsecond=0)
        pulled = NEVER_READY not in pod.metadata.annotations and not any(
            "bad" in container.image for container in pod.spec.containers
        )
        ready = pulled and self._ready
        self._address += 1
        address = ".".join(str(self._address >> shift & 255) for shift in (16, 8, 0))
        scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        since = scheduled.lastTransitionTime if scheduled is not None else None
        names = " ".join(container.name for container in pod.spec.containers)
        reason, message = (
            ("", "") if ready else ("ContainersNotReady", f"containers with unready status: [{names}]")
        )

        def condition(type_: str, status: bool, reason: str = "", message: str = "") -> v1.PodCondition:
            return v1.PodCondition(
                type=type_,
                status="True" if status else "False",
                lastTransitionTime=since or now if type_ == "PodScheduled" else now,
                reason=reason,
                message=message,
            )

        return v1.PodStatus(
            phase="Running" if pulled else "Pending",
            startTime=now,
            hostIP=self._addresses[pod.spec.nodeName],
            hostIPs=(v1.HostIP(ip=self._addresses[pod.spec.nodeName]),),
            podIP=f"10.{address}",
            podIPs=(v1.PodIP(ip=f"10.{address}"),),
            conditions=(
                condition("Initialized", True),
                condition("Ready", ready, reason, message),
                condition("ContainersReady", ready, reason, message),
                condition("PodScheduled", True),
            ),
            containerStatuses=tuple(
                v1.ContainerStatus(
                    name=container.name,
                    image=container.image,
                    imageID=f"sim://{container.image}" if pulled else "",
                    ready=ready,
                    started=pulled,
                    state=_running(now) if pulled else _waiting(container.image),
                )
                for container in pod.spec.containers
            ),
        )

    async def _create_node(self, name: str) -> None:
        now = self._clock.now().replace(microsecond=0)
        room = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        node = v1.Node(
            metadata=FullMeta(
                name=name, labels={"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
            ),
            status=v1.NodeStatus(
                capacity=room,
                allocatable=room,
                addresses=(
                    v1.NodeAddress(type="InternalIP", address=self._addresses[name]),
                    v1.NodeAddress(type="Hostname", address=name),
                ),
                conditions=(
                    v1.NodeCondition(
                        type="Ready",
                        status="True",
                        reason="KubeletReady",
                        message="kubelet is posting ready status",
                        lastHeartbeatTime=now,
                        lastTransitionTime=now,
                    ),
                ),
            ),
        )
        try:
            await self._api.create(load("", "v1", "Node"), "", node)
        except AlreadyExists:
            return


def _key(obj: HollowPod | Unreadable) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def _running(now: Any) -> v1.ContainerState:
    return v1.ContainerState(running=v1.ContainerStateRunning(startedAt=now))


def _waiting(image: str) -> v1.ContainerState:
    why = f'Back-off pulling image "{image}"'
    return v1.ContainerState(waiting=v1.ContainerStateWaiting(reason="ImagePullBackOff", message=why))
