"""Simulated nodes of the kubelets, and their heartbeats: node leases and status reports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.generated import coordination_v1, load
from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.runtime.heartbeat import Heartbeat
from steersman.sim.kubelet import node as nodes
from steersman.sim.kubelet.pod_plan import KubeletSettings

NODES: Kind[v1.Node] = load("", "v1", "Node")
LEASES: Kind[coordination_v1.Lease] = load("coordination.k8s.io", "v1", "Lease")
LEASE_PREFIX = f"{LEASES.resource} {nodes.LEASES}/"
"""Prefix of a node's name: identifies its lease for watchdogs."""
RENEW_ATTEMPTS = 5
"""Attempts to renew a lease at one beat."""
NODES_PER_TASK = 250
"""Number of nodes whose leases one task renews."""


class SimulatedNode:
    """A simulated node."""

    __slots__ = (
        "address",
        "adopted",
        "down",
        "images",
        "lease",
        "name",
        "node",
        "number",
        "reboots",
        "report",
        "state_annotation",
        "timer",
        "volumes",
    )

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.address = nodes.address(number)
        self.node: v1.Node | None = None
        """As last watched; None where it does not exist."""
        self.lease: coordination_v1.Lease | None = None
        self.down = False
        self.adopted = False
        """Whether a real kubelet ran it before: its conditions stay as they are."""
        self.images: dict[str, None] = {}
        """The images that were pulled."""
        self.reboots = 0
        self.report = False
        """Whether its status is to be written even if it is ready."""
        self.state_annotation = ""
        """The last value of its state annotation."""
        self.timer: asyncio.TimerHandle | None = None
        self.volumes: dict[str, dict[Key, None]] | None = None
        """The pods of each volume that has to be attached; None before there was one, as another kubelet may have reported
        some."""

    def adopt(self, node: v1.Node) -> None:
        """Take over a node of a real cluster; one that is not ready has no kubelet."""
        self.adopted = True
        self.down = not nodes.is_ready(node)
        self.state_annotation = node.metadata.annotations.get(nodes.STATE, "")
        addresses = {each.type: each.address for each in reversed(node.status.addresses)}
        self.address = addresses.get("InternalIP", self.address)

    def use_volumes(self, key: Key, names: Iterable[str]) -> None:
        """Set the volumes of a pod that have to be attached."""
        known = self.volumes or {}
        volumes = {name: {pod: None for pod in pods if pod != key} for name, pods in known.items()}
        for name in names:
            volumes.setdefault(name, {})[key] = None
        volumes = {name: pods for name, pods in volumes.items() if pods}
        if self.volumes is None or volumes.keys() != known.keys():
            self.report = True
        self.volumes = volumes

    @property
    def volumes_in_use(self) -> tuple[str, ...] | None:
        """The volumes to report; None where nothing is known of them."""
        return None if self.volumes is None else tuple(sorted(self.volumes))

    @property
    def beats(self) -> bool:
        """Whether its lease is renewed."""
        return not self.down and self.node is not None and self.lease is not None

    def cancel(self) -> None:
        """Cancel its pending reboot."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Heartbeats:
    """Registers nodes, renews their leases and reports their status."""

    def __init__(
        self,
        api: Api,
        node_api: Callable[[str], Api],
        clock: Clock,
        machines: Mapping[str, SimulatedNode],
        settings: KubeletSettings,
        shape: nodes.Shape,
        registers: bool,
    ) -> None:
        self._api = api
        self._node_api = node_api
        self._clock = clock
        self._machines = machines
        self._settings = settings
        self._shape = shape
        self._registers = registers

    async def register(self) -> None:
        """Create missing Node objects."""
        if not self._registers:
            return
        for machine in self._machines.values():
            now = self._clock.now().replace(microsecond=0)
            body = nodes.node(machine.name, machine.number, self._shape, now)
            try:
                machine.node = await self._node_api(machine.name).create(NODES, "", body)
            except AlreadyExists:
                continue

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start the heartbeats: a few tasks for all nodes."""
        machines = list(self._machines.values())
        stripes = -(-len(machines) // NODES_PER_TASK)
        for i in range(stripes):
            stripe = {machine.name: machine for machine in machines[i::stripes]}
            group.create_task(self._beat(stripe), name=f"heartbeats-{i}")
            group.create_task(self._report(stripe), name=f"statuses-{i}")

    async def report(self, machine: SimulatedNode) -> None:
        """Update the status of a node."""
        found = machine.node
        if found is None:
            return
        now = self._clock.now().replace(microsecond=0)
        volumes = machine.volumes_in_use
        if machine.adopted and nodes.is_ready(found):
            body = nodes.confirmed(found, now, volumes)
        else:
            body = nodes.reported(found, now, machine.reboots, volumes)
        machine.node = await self._node_api(machine.name).update_status(NODES, "", machine.name, body)
        machine.report = False

    async def _beat(self, machines: Mapping[str, SimulatedNode]) -> None:
        """Renew leases, at once and then at every beat."""

        def alive(heartbeat: str) -> bool:
            machine = machines.get(heartbeat.removeprefix(LEASE_PREFIX))
            return machine is not None and machine.beats

        rhythm = self._rhythm(self._settings.lease_interval, LEASES.resource, alive)
        while True:
            await self._each(machines, self._renew)
            await rhythm.beat()

    async def _report(self, machines: Mapping[str, SimulatedNode]) -> None:
        """Report the status of nodes periodically."""
        rhythm = self._rhythm(self._settings.status_interval, NODES.resource)
        while True:
            await rhythm.beat()
            await self._each(machines, self.report)

    def _rhythm(
        self, period: float, writes: str, renews: Callable[[str], bool] = lambda heartbeat: False
    ) -> Heartbeat:
        begin = self._clock.monotonic() + period
        return Heartbeat(
            period, begin, writes=writes, repeatable=lambda: self._api.capabilities.steady, renews=renews
        )

    async def _each(
        self, machines: Mapping[str, SimulatedNode], sync: Callable[[SimulatedNode], Awaitable[None]]
    ) -> None:
        for machine in machines.values():
            if machine.down or machine.node is None:
                continue
            try:
                await sync(machine)
            except ApiError:
                continue  # retried at the next beat

    async def _renew(self, machine: SimulatedNode) -> None:
        now = self._clock.now()
        # A MicroTime without a fraction is written without one, which a real server refuses.
        now = now if now.microsecond else now.replace(microsecond=1)
        for _ in range(RENEW_ATTEMPTS):
            try:
                machine.lease = await self._renewed(machine, now)
                return
            except (AlreadyExists, Conflict, NotFound):
                # Another client changed, created or deleted the lease; the next attempt reads it.
                machine.lease = None

    async def _renewed(self, machine: SimulatedNode, now: datetime) -> coordination_v1.Lease:
        name, known = machine.name, machine.lease
        api = self._node_api(name)
        if known is None:
            try:
                known = await api.get(LEASES, nodes.LEASES, name)
            except NotFound:
                uid = machine.node.metadata.uid if machine.node is not None else ""
                return await api.create(LEASES, nodes.LEASES, nodes.lease(name, uid, now))
        body = replace(known, spec=replace(known.spec, holderIdentity=name, renewTime=now))
        return await api.update(LEASES, nodes.LEASES, name, body)
