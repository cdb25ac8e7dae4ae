"""Processes of a simulated cluster that can die: what they asked for and was not done yet, never is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias, cast

from steersman.api.errors import Unreachable
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.runtime.clock import Clock
from steersman.runtime.fleet import Fleet
from steersman.runtime.shell import read_file
from steersman.server.core import Server
from steersman.server.local import LocalApi
from steersman.testing.chronicle import Chronicle

Through: TypeAlias = Callable[[Api], Api]
"""What stands between a manager and the server."""


class Place(Protocol):
    """Where processes live: a world, under virtual time or not."""

    server: Server

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None) -> Any: ...


class Wire(LocalApi):
    """A connection that can be cut."""

    def cut(self) -> None:
        """From now on nothing gets through, not even what is under way."""
        self.server = cast("Server", _Gone())


class _Gone:
    def __getattr__(self, name: str) -> Any:
        raise Unreachable("this process has ended")


class Manager:
    """One life of a process that runs controllers."""

    def __init__(
        self,
        controllers: Sequence[Controller[Any]],
        place: Place,
        clock: Clock,
        chronicle: Chronicle,
        *,
        through: Through = lambda api: api,
        files: Callable[[str], bytes] = read_file,
        name: str = "manager",
    ) -> None:
        """Starts at once, with empty caches. ``files`` reads what flags name."""
        self.controllers = tuple(controllers)
        self.name = name
        self.alive = True
        self._wires: list[Wire] = []
        self._place = place
        self._through = through
        for controller in self.controllers:
            if controller.watches:
                chronicle.resources[controller.name] = controller.watches[0].kind.resource
        self.fleet = Fleet(
            self.controllers,
            self._api("system:kube-controller-manager"),
            clock,
            api_of=lambda each: self._api(f"system:serviceaccount:kube-system:{each.account or each.name}"),
            fence=self.fence,
            trace=chronicle.trace,
            files=files,
        )
        self._task: asyncio.Task[None] = place.spawn(self._run(), name=name)

    def _api(self, user: str) -> Api:
        wire = Wire(self._place.server, user, manager="kube-controller-manager")
        self._wires.append(wire)
        return self._through(wire)

    def fence(self) -> bool:
        """Whether it may write now."""
        return self.alive

    async def _work(self) -> None:
        await self.fleet.run()

    async def _run(self) -> None:
        try:
            await self._work()
        except BaseException:
            # Whatever the dying do is nobody's concern.
            if self.alive:
                raise

    def crash(self) -> None:
        """End at once, between any two instructions: nothing is finished, flushed or said any more."""
        self.alive = False
        for wire in self._wires:
            wire.cut()
        if not self._place.loop.is_closed():
            self._place.loop.call_soon_threadsafe(self._task.cancel)
