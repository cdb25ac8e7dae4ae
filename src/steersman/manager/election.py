"""Leader election of a manager: its leases, and the controllers it runs under each.

There is one lease, or two with leader migration. A manager that loses either lease exits: a restart is the only way back
that leaves no state behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from steersman.api.clock import Clock
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.manager.flags import UsageError
from steersman.manager.migration import COMPONENT, Migration, Shares
from steersman.manager.options import Options
from steersman.manager.version import KUBERNETES
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

FLUSH_TIMEOUT = 1.0
"""Seconds to send the last leader election events."""


class LeaderElection:
    """The leases of one manager."""

    def __init__(
        self, options: Options, migration: Migration | None, api: Api, clock: Clock, metrics: Metrics
    ) -> None:
        """``migration`` is the leader migration configuration, if enabled. Raises `UsageError`."""
        settings = options.settings
        self.identity = identity(clock)
        self._api = api
        self._clock = clock
        self._recorder = Recorder(self._api, clock, component=COMPONENT)
        self._options = options
        self._metrics = metrics
        self._release = settings.enabled("ControllerManagerReleaseLeaderElectionLockOnExit")
        self._coordinated = settings.enabled("CoordinatedLeaderElection")
        self._shares = migration.split(options.controllers) if migration else Shares(options.controllers, ())
        self._main = self._elector(options.election.name, coordinated=self._coordinated)
        # differs: upstream lets the API server choose here, too, but creates no LeaseCandidate for this lease.
        self._migrated = self._elector(migration.leaderName, coordinated=False) if migration else None

    def check(self) -> str | None:
        """Health check: an error where this process holds a lease much longer than it may."""
        electors = [self._main, *([self._migrated] if self._migrated is not None else [])]
        return next((wrong for elector in electors if (wrong := elector.check()) is not None), None)

    async def run(self, lead: Lead) -> None:
        """Acquire the leases and lead until one is lost. Raises `LostLease`."""
        events = asyncio.create_task(self._recorder.run(), name="leader events")
        started = asyncio.Event()
        electors = [self._main.run(lambda: lead(self._shares.main, self._main.fence, started.set))]
        if self._migrated is not None:
            electors.append(self._migrate(self._migrated, lead, started))
        if self._coordinated:
            electors.append(self._candidate().run())
        try:
            await _until_one_ends([asyncio.create_task(elector, name="election") for elector in electors])
        except LostLease as lost:
            log.error("%s", lost)
            raise
        finally:
            await self._recorder.close(FLUSH_TIMEOUT)
            events.cancel()

    async def _migrate(self, elector: LeaderElector, lead: Lead, started: asyncio.Event) -> None:
        # As upstream: the leader holds the main lease, and serviceaccount-token-controller runs, before this begins.
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
                patience=self._options.shutdown_timeout or None,
                release_on_cancel=self._release,
                coordinated=coordinated,
                on_new_leader=partial(self._notice, name),
                emit=self._recorder.emit,
                metrics=self._metrics,
            )
        except ValueError as error:
            raise UsageError(f"leader election: {error}") from None

    def _notice(self, lease: str, holder: str) -> None:
        if holder and holder != self.identity:
            log.info(
                "waiting: the lease %s/%s is held by %s", self._options.election.namespace, lease, holder
            )

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
    """Wait for the first task to end, cancel the others, and return or raise as the first did."""
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
