"""Leader election of a manager: which locks it stands for, and what it does under each.

There is one lock, or two with leader migration. A manager that loses any of them ends: starting again is the one way
back that leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.manager.flags import UsageError
from steersman.manager.migration import COMPONENT, Migration, Shares
from steersman.manager.options import Options
from steersman.manager.version import KUBERNETES
from steersman.runtime.clock import Clock
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.leader_election import LeaderElector, LostLease
from steersman.runtime.lease import identity
from steersman.runtime.lease_candidate import Candidate
from steersman.runtime.metrics import Metrics

log = logging.getLogger(__name__)

Fence: TypeAlias = Callable[[], bool]
Lead: TypeAlias = Callable[
    [tuple[Controller[Any], ...], Fence, Callable[[], None]], Coroutine[Any, Any, None]
]
"""Runs controllers while a fence is open, and calls back when they have started."""

CLOSING = 1.0
"""Seconds to send the last events about the election."""


class Election:
    """The locks of one manager."""

    def __init__(
        self, options: Options, table: Migration | None, api: Api, clock: Clock, metrics: Metrics
    ) -> None:
        """``table`` is that of leader migration, where there is one. Raises `UsageError`."""
        settings = options.settings
        self.identity = identity(clock)
        self._api = api
        self._clock = clock
        self._recorder = Recorder(self._api, clock, component=COMPONENT)
        self._options = options
        self._metrics = metrics
        self._release = settings.enabled("ControllerManagerReleaseLeaderElectionLockOnExit")
        self._coordinated = settings.enabled("CoordinatedLeaderElection")
        self._shares = table.split(options.controllers) if table else Shares(options.controllers, ())
        self._main = self._elector(options.election.name, coordinated=self._coordinated)
        # differs: upstream has the API server choose here, too, but enters no candidate for this lock.
        self._migrated = self._elector(table.leaderName, coordinated=False) if table else None

    def check(self) -> str | None:
        """What is wrong, if this process holds a lock for much longer than it may."""
        electors = [self._main, *([self._migrated] if self._migrated is not None else [])]
        return next((wrong for elector in electors if (wrong := elector.check()) is not None), None)

    async def run(self, lead: Lead) -> None:
        """Win the locks and lead, for as long as they are kept. Raises `LostLease`."""
        events = asyncio.create_task(self._recorder.run(), name="leader events")
        started = asyncio.Event()
        stands = [self._main.run(lambda: lead(self._shares.main, self._main.fence, started.set))]
        if self._migrated is not None:
            stands.append(self._migrate(self._migrated, lead, started))
        if self._coordinated:
            stands.append(self._candidate().run())
        try:
            await _until_one_ends([asyncio.create_task(stand, name="election") for stand in stands])
        except LostLease as lost:
            log.error("%s", lost)
            raise
        finally:
            await self._recorder.close(CLOSING)
            events.cancel()

    async def _migrate(self, elector: LeaderElector, lead: Lead, started: asyncio.Event) -> None:
        # Whoever leads has both locks, and the controller that gives out tokens is at work.
        await started.wait()
        await elector.run(lambda: lead(self._shares.migrated, elector.fence, lambda: None))

    def _elector(self, name: str, *, coordinated: bool) -> LeaderElector:
        election = self._options.election
        try:
            return LeaderElector(
                self._api,
                self._clock,
                name=name,
                namespace=election.namespace,
                identity=self.identity,
                lease_duration=election.lease_duration,
                renew_deadline=election.renew_deadline,
                retry_period=election.retry_period,
                patience=self._options.shutdown or None,
                release_on_cancel=self._release,
                coordinated=coordinated,
                emit=self._recorder.emit,
                metrics=self._metrics,
            )
        except ValueError as error:
            raise UsageError(f"leader election: {error}") from None

    def _candidate(self) -> Candidate:
        election = self._options.election
        major, minor = self._options.features.emulated
        return Candidate(
            self._api,
            self._clock,
            name=self.identity,
            namespace=election.namespace,
            lease=election.name,
            binary=KUBERNETES.removeprefix("v"),
            emulation=f"{major}.{minor}.0",
        )


async def _until_one_ends(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the first to end, end the others, and end as the first did."""
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if task in done:
            with suppress(asyncio.CancelledError):
                task.result()
