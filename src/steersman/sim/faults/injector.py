"""The fault injector: the active faults of one world, and the operations they use.

It outlives the managers of the world: requests are numbered across restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from steersman.api.clock import Clock
from steersman.client.api import Api
from steersman.sim.faults.fault import UNNUMBERED, WRITES, ActiveFault, Call, Fault, describe
from steersman.sim.world import World


class Managers(Protocol):
    """Runs the managers of a world: the operations faults need."""

    def crash(self, down: float) -> None:
        """Kill the manager without cleanup, and start another after ``down`` seconds."""
        ...

    def start_second(self, seconds: float) -> None:
        """Run a second manager beside the first for ``seconds``, regardless of leadership."""
        ...


class FaultInjector:
    """Activates faults in a world. Managers reach the server through `FaultInjector.api`."""

    def __init__(self, world: World, faults: Sequence[Fault] = (), managers: Managers | None = None) -> None:
        self.world = world
        self.faults = tuple(faults)
        self.managers = managers
        self.writes = 0
        """Number of numbered writes so far, across restarts."""
        self.clients = 0
        """Number of clients so far, across restarts."""
        self.overlapping: list[str] = []
        """Writes of an object that a client sent while an earlier one was under way, with their times."""
        self._in_flight: dict[tuple[int, str, str, str], Call] = {}
        self.requests = 0
        """Number of all requests so far, across restarts."""
        self.incarnation = 0
        self.injected: list[str] = []
        """The faults that took effect, with their times, oldest first."""
        self._struck: dict[ActiveFault, None] = {}
        self.on_request: Callable[[Call], None] | None = None
        """Called with each request before it is sent."""
        self.active: list[ActiveFault] = [fault.activate(self) for fault in self.faults]
        for active in self.active:
            active.begin()

    # -- for the runner of managers -----------------------------------------------------------

    def api(self, api: Api) -> Api:
        """An `Api` for the current manager; it is dead once that manager crashes."""
        from steersman.sim.faults.faulty_api import FaultyApi

        self.clients += 1
        return FaultyApi(api, self, self.clients)

    def clock(self, clock: Clock) -> Clock:
        """The clock that managers read."""
        for active in self.active:
            clock = active.clock(clock)
        return clock

    def manager_died(self) -> None:
        """The manager has died: none of its later requests reach the server."""
        self.incarnation += 1

    # -- for faults ---------------------------------------------------------------------------

    def record(self, fault: ActiveFault, what: str) -> None:
        """Record that a fault took effect."""
        self._struck[fault] = None
        self.injected.append(f"{self.world.monotonic():.3f} {what}")

    def never_struck(self) -> tuple[Fault, ...]:
        """The faults that had no effect so far."""
        pairs = zip(self.faults, self.active, strict=True)
        return tuple(fault for fault, active in pairs if active not in self._struck)

    async def crash(self, fault: ActiveFault, what: str, down: float) -> None:
        """Kill the manager now. The caller never resumes."""
        self.record(fault, what)
        incarnation = self.incarnation
        if self.managers is not None:
            self.managers.crash(down)
        if self.incarnation == incarnation:
            self.manager_died()
        await forever()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a task beside the manager."""
        self.world.spawn(coroutine, name=name)

    # -- for the wrapper ----------------------------------------------------------------------

    def call(
        self,
        client: int,
        verb: str,
        resource: str,
        plural: str = "",
        namespace: str = "",
        name: str = "",
        initial: bool = False,
    ) -> Call:
        """Number a request."""
        self.requests += 1
        write = 0
        if verb in WRITES and resource not in UNNUMBERED:
            self.writes += 1
            write = self.writes
        call = Call(
            verb, resource, plural, namespace, name, write, self.incarnation, initial, self.requests, client
        )
        if self.on_request is not None:
            self.on_request(call)
        return call

    @contextmanager
    def in_flight(self, call: Call) -> Iterator[None]:
        """Around a request, from the moment it is sent until it is answered."""
        if not call.write or not call.name:
            yield
            return
        target = (call.client, call.resource, call.namespace, call.name)
        earlier = self._in_flight.setdefault(target, call)
        if earlier is not call:
            now = self.world.monotonic()
            self.overlapping.append(f"{now:.3f} {describe(call)} while {describe(earlier)} is under way")
        try:
            yield
        finally:
            if earlier is call:
                del self._in_flight[target]


async def forever() -> None:
    """Wait forever. The waiting task is cancelled from outside."""
    await asyncio.get_running_loop().create_future()
