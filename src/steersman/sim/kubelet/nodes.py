"""The nodes of a fleet of kubelets: who is up, and the heartbeats of them all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.generated import coordination_v1, load
from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.runtime.heartbeat import Heartbeat
from steersman.sim.kubelet import node as nodes
from steersman.sim.kubelet.pod_plan import KubeletSettings

NODES: Kind[v1.Node] = load("", "v1", "Node")
LEASES: Kind[coordination_v1.Lease] = load("coordination.k8s.io", "v1", "Lease")
VOICE = f"{LEASES.resource} {nodes.LEASES}/"
"""Before the name of a node: how its lease is called by who listens for it."""
TRIES = 5
"""How often a lease is tried to be renewed at one beat."""
STRIPE = 250
"""How many nodes' leases are renewed one after the other."""


class Machine:
    """One node."""

    __slots__ = ("address", "boots", "down", "lease", "name", "node", "number", "report", "timer", "wish")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.address = nodes.address(number)
        self.node: v1.Node | None = None
        """As last seen; None where it is not there."""
        self.lease: coordination_v1.Lease | None = None
        self.down = False
        self.boots = 0
        self.report = False
        """Whether its status should be written though nothing in it seems wrong."""
        self.wish = ""
        """What its annotation asked for last."""
        self.timer: asyncio.TimerHandle | None = None

    @property
    def beats(self) -> bool:
        """Whether its lease is renewed."""
        return not self.down and self.node is not None and self.lease is not None

    def cancel(self) -> None:
        """Forget what was to happen to it."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Heartbeats:
    """Registers nodes, renews their leases and reports their status."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        machines: Mapping[str, Machine],
        settings: KubeletSettings,
        shape: nodes.Shape,
        registers: bool,
    ) -> None:
        self._api = api
        self._clock = clock
        self._machines = machines
        self._settings = settings
        self._shape = shape
        self._registers = registers

    async def register(self) -> None:
        """Create the Node objects that are not there."""
        if not self._registers:
            return
        for machine in self._machines.values():
            now = self._clock.now().replace(microsecond=0)
            body = nodes.node(machine.name, machine.number, self._shape, now)
            try:
                machine.node = await self._api.create(NODES, "", body)
            except AlreadyExists:
                continue

    def start(self, group: asyncio.TaskGroup) -> None:
        """Let hearts beat: a few tasks for all of them."""
        machines = list(self._machines.values())
        stripes = -(-len(machines) // STRIPE)
        for i in range(stripes):
            stripe = {machine.name: machine for machine in machines[i::stripes]}
            group.create_task(self._beat(stripe), name=f"heartbeats-{i}")
            group.create_task(self._report(stripe), name=f"statuses-{i}")

    async def report(self, machine: Machine) -> None:
        """Write a node's status."""
        found = machine.node
        if found is None:
            return
        now = self._clock.now().replace(microsecond=0)
        body = nodes.reported(found, now, machine.boots)
        machine.node = await self._api.update_status(NODES, "", machine.name, body)
        machine.report = False

    async def _beat(self, machines: Mapping[str, Machine]) -> None:
        """Renew leases, first at once and then at every beat."""

        def alive(heartbeat: str) -> bool:
            machine = machines.get(heartbeat.removeprefix(VOICE))
            return machine is not None and machine.beats

        rhythm = self._rhythm(self._settings.lease_interval, LEASES.resource, alive)
        while True:
            await self._each(machines, self._renew)
            await rhythm.beat()

    async def _report(self, machines: Mapping[str, Machine]) -> None:
        """Report the status of nodes though nothing changed."""
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
        self, machines: Mapping[str, Machine], see_to: Callable[[Machine], Awaitable[None]]
    ) -> None:
        for machine in machines.values():
            if machine.down or machine.node is None:
                continue
            try:
                await see_to(machine)
            except ApiError:
                continue  # the next beat comes soon

    async def _renew(self, machine: Machine) -> None:
        now = self._clock.now()
        # A MicroTime without a fraction is written without one, which a real server refuses.
        now = now if now.microsecond else now.replace(microsecond=1)
        for _ in range(TRIES):
            try:
                machine.lease = await self._renewed(machine, now)
                return
            except (AlreadyExists, Conflict, NotFound):
                # Another wrote it, made it or took it away; with the next look that is known.
                machine.lease = None

    async def _renewed(self, machine: Machine, now: datetime) -> coordination_v1.Lease:
        name, known = machine.name, machine.lease
        if known is None:
            try:
                known = await self._api.get(LEASES, nodes.LEASES, name)
            except NotFound:
                uid = machine.node.metadata.uid if machine.node is not None else ""
                return await self._api.create(LEASES, nodes.LEASES, nodes.lease(name, uid, now))
        body = replace(known, spec=replace(known.spec, holderIdentity=name, renewTime=now))
        return await self._api.update(LEASES, nodes.LEASES, name, body)
