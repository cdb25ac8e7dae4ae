"""The stage: the faults of one world, armed, and what they need to know and do.

It outlives the managers that play on it: what is counted is counted through all their lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from steersman.client.api import Api
from steersman.runtime.clock import Clock
from steersman.sim.faults.fault import ASIDE, WRITES, Armed, Call, Fault
from steersman.sim.world import World


class Managers(Protocol):
    """Who runs the managers of a world: what a fault can do to them."""

    def crash(self, down: float) -> None:
        """End the manager, as a power cut would, and start another after so many seconds."""
        ...

    def double(self, seconds: float) -> None:
        """Let a second manager work beside the first, for so long, whoever leads."""
        ...


class Stage:
    """Arms faults in a world. Managers speak to the server through `Stage.api`."""

    def __init__(self, world: World, faults: Sequence[Fault] = (), managers: Managers | None = None) -> None:
        self.world = world
        self.faults = tuple(faults)
        self.managers = managers
        self.writes = 0
        """How many writes were numbered so far, through all lives of the manager."""
        self.life = 0
        self.struck: list[str] = []
        """What took effect, and when, in the order it did."""
        self.heed: Callable[[Call], None] | None = None
        """Told of each request before it is sent: for whoever looks on."""
        self.armed: list[Armed] = [fault.arm(self) for fault in self.faults]
        for armed in self.armed:
            armed.begin()

    # -- for whoever runs managers ------------------------------------------------------------

    def api(self, api: Api) -> Api:
        """An `Api` for the manager that lives now; dead once that has crashed."""
        from steersman.sim.faults.faulty_api import Faulted

        return Faulted(api, self)

    def clock(self, clock: Clock) -> Clock:
        """The time as managers read it."""
        for armed in self.armed:
            clock = armed.clock(clock)
        return clock

    def died(self) -> None:
        """The manager is gone: nothing it still asks for reaches the server."""
        self.life += 1

    # -- for faults ---------------------------------------------------------------------------

    def strike(self, what: str) -> None:
        """Note that a fault took effect."""
        self.struck.append(f"{self.world.monotonic():.3f} {what}")

    async def crash(self, what: str, down: float) -> None:
        """End the manager here and now: whoever awaits this never goes on."""
        self.strike(what)
        life = self.life
        if self.managers is not None:
            self.managers.crash(down)
        if self.life == life:
            self.died()
        await forever()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Let something happen beside the manager."""
        self.world.spawn(coroutine, name=name)

    # -- for the wrapper ----------------------------------------------------------------------

    def call(
        self, verb: str, resource: str, plural: str, namespace: str, name: str, initial: bool = False
    ) -> Call:
        """Number a request."""
        write = 0
        if verb in WRITES and resource not in ASIDE:
            self.writes += 1
            write = self.writes
        call = Call(verb, resource, plural, namespace, name, write, self.life, initial)
        if self.heed is not None:
            self.heed(call)
        return call


async def forever() -> None:
    """Never goes on. Whoever waits here is ended from outside."""
    await asyncio.get_running_loop().create_future()
