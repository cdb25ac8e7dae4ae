"""A simulated DRA driver: publishes the devices of simulated nodes as ResourceSlices, and a DeviceClass for them.

Annotations of a Node, with the prefix ``sim.steersman.dev/``, change its devices while it runs:

=====================  ==========================================================================
``devices``            their number, instead of that of the cluster
``unhealthy-devices``  names with commas between them: these get a taint with the effect NoExecute
=====================  ==========================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.generated import core_v1, load
from steersman.api.generated import resource_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer
from steersman.sim.dynamicresources import COUNT, DEVICE_CLASS, DRIVER, MAX_DEVICES, UNHEALTHY, Devices

NODES: Kind[core_v1.Node] = load("", "v1", "Node")
SLICES: Kind[v1.ResourceSlice] = load("resource.k8s.io", "v1", "ResourceSlice")
CLASSES: Kind[v1.DeviceClass] = load("resource.k8s.io", "v1", "DeviceClass")

RETRY = 1.0
"""Seconds before a failed request is retried."""


def resource_slice(node: core_v1.Node, devices: Devices) -> v1.ResourceSlice | None:
    """The ResourceSlice with the devices of a node; None where it has none."""
    meta = node.metadata
    text = meta.annotations.get(COUNT, "").strip()
    count = int(text) if text.isdecimal() and len(text) < 4 else devices.count
    unhealthy = {name.strip() for name in meta.annotations.get(UNHEALTHY, "").split(",")}
    if not count:
        return None
    owner = OwnerReference(apiVersion="v1", kind="Node", name=meta.name, uid=meta.uid, controller=True)
    return v1.ResourceSlice(
        metadata=ObjectMeta(name=f"{meta.name}-{DRIVER}", ownerReferences=(owner,)),
        spec=v1.ResourceSliceSpec(
            driver=DRIVER,
            nodeName=meta.name,
            pool=v1.ResourcePool(name=meta.name, generation=1, resourceSliceCount=1),
            devices=tuple(_device(number, devices, unhealthy) for number in range(min(count, MAX_DEVICES))),
        ),
    )


def _device(number: int, devices: Devices, unhealthy: Iterable[str]) -> v1.Device:
    name = f"device-{number}"
    attributes = {"index": number, "numa": number // 2, **devices.attributes}
    taint = v1.DeviceTaint(key=UNHEALTHY, value="true", effect="NoExecute")
    return v1.Device(
        name=name,
        attributes={key: _attribute(value) for key, value in attributes.items()},
        capacity={key: v1.DeviceCapacity(value=value) for key, value in devices.capacity.items()},
        taints=(taint,) if name in unhealthy else (),
    )


def _attribute(value: str | int | bool) -> v1.DeviceAttribute:
    if isinstance(value, bool):
        return v1.DeviceAttribute(bool=value)
    return v1.DeviceAttribute(int=value) if isinstance(value, int) else v1.DeviceAttribute(string=value)


def device_class() -> v1.DeviceClass:
    """The DeviceClass of simulated devices."""
    selector = v1.DeviceSelector(cel=v1.CELDeviceSelector(expression=f'device.driver == "{DRIVER}"'))
    return v1.DeviceClass(
        metadata=ObjectMeta(name=DEVICE_CLASS), spec=v1.DeviceClassSpec(selectors=(selector,))
    )


def updated(current: v1.ResourceSlice, desired: v1.ResourceSlice) -> v1.ResourceSlice | None:
    """The slice with the desired devices and the next generation of its pool; None where nothing changes."""
    devices = tuple(
        replace(device, taints=_kept_times(device.taints, current)) for device in desired.spec.devices
    )
    if devices == current.spec.devices:
        return None
    pool = replace(current.spec.pool, generation=current.spec.pool.generation + 1)
    return replace(current, spec=replace(current.spec, devices=devices, pool=pool))


def _kept_times(taints: tuple[v1.DeviceTaint, ...], current: v1.ResourceSlice) -> tuple[v1.DeviceTaint, ...]:
    """The taints with the times at which they were added, which the server sets."""
    known = {(taint.key, taint.effect): taint for each in current.spec.devices for taint in each.taints}
    return tuple(known.get((taint.key, taint.effect), taint) for taint in taints)


class DeviceDriver:
    """Publishes the devices of some nodes."""

    def __init__(self, api: Api, clock: Clock, names: Iterable[str], devices: Devices = Devices()) -> None:
        self._api = api
        self._devices = devices
        self._names = tuple(names)
        self._nodes = Informer(NODES, api, clock)
        self._slices = Informer(SLICES, api, clock)
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: dict[str, None] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        self._nodes.subscribe(self._on_node)
        self._slices.subscribe(self._on_slice)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._slices.run(), name="devices: slices")
            group.create_task(self._nodes.run(), name="devices: nodes")
            await self._slices.wait_synced()
            await self._retried(self._ensure_class, "the DeviceClass")
            while True:
                name = await self._queue.get()
                self._queued.pop(name, None)
                await self._retried(self._sync, name)

    async def _retried(self, act: Callable[[str], Awaitable[None]], name: str) -> None:
        while True:
            try:
                return await act(name)
            except (AlreadyExists, Conflict, NotFound):
                return  # the watch delivers what is there
            except ApiError:
                await asyncio.sleep(RETRY)

    async def _ensure_class(self, name: str) -> None:
        await self._api.create(CLASSES, "", device_class())

    def _on_node(self, change: Change[core_v1.Node]) -> None:
        old, new = change.old, change.new
        # Heartbeats change a node often.
        if old is None or new is None or old.metadata.annotations != new.metadata.annotations:
            self._enqueue(change.obj.metadata.name)

    def _on_slice(self, change: Change[v1.ResourceSlice]) -> None:
        spec = change.obj.spec
        if spec.driver == DRIVER and spec.nodeName:
            self._enqueue(spec.nodeName)

    def _enqueue(self, name: str) -> None:
        if name in self._names and name not in self._queued:
            self._queued[name] = None
            self._queue.put_nowait(name)

    async def _sync(self, name: str) -> None:
        node = self._nodes.store.get(Key("", name))
        desired = resource_slice(node, self._devices) if node is not None else None
        current = self._slices.store.get(Key("", f"{name}-{DRIVER}"))
        if current is None:
            if desired is not None:
                await self._api.create(SLICES, "", desired)
        elif desired is None:
            await self._api.delete(SLICES, "", current.metadata.name, uid=current.metadata.uid)
        elif (changed := updated(current, desired)) is not None:
            await self._api.update(SLICES, "", changed.metadata.name, changed)
