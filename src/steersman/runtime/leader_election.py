"""Leader election on a Lease, with a fence: a process that may no longer lead writes nothing.

Candidates never trust a written timestamp; they only notice that the lease changed, and measure on their own monotonic
clock how long it has not. A candidate that saw no change for the whole lease duration may take the lease, by an update
that names the resourceVersion it saw.

The fence follows from that. Other candidates saw a successful renewal no earlier than it was sent, so none of them
takes the lease before the lease duration has passed since the renewal was *sent*. The holder stops earlier, at the
renew deadline counted from that moment; the time between allows for clocks of different speeds and for writes still on
their way. Wall clocks play no part.

No client can rule out that the lease is deleted or edited by hand, and that a candidate that never saw it held takes
it at once.

In a **coordinated** election the API server chooses: it writes the holder into the lease, and the next
holder into ``preferredHolder``. A candidate only renews a lease that it finds under its own name, and gives way to the
preferred holder. The server compares written times, so wall clocks do play a part there.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias, TypeVar

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import Lease, ObjectMeta
from steersman.client.api import Api
from steersman.runtime.lease import (
    DOCUMENTS,
    Document,
    given_up,
    new,
    seconds_of,
    spec_of,
    taken,
    text_in,
    version_of,
)
from steersman.runtime.metrics import Metrics

T = TypeVar("T")
Emitter: TypeAlias = Callable[[Lease, str, str, str], None]

log = logging.getLogger(__name__)

JITTER = 1.2
"""How many retry periods must fit into the renew deadline; upstream's number."""
SPREAD = 0.2
"""The part of a retry period by which candidates differ, so that they do not all come at once."""
TOO_LATE = "it could not be renewed in time"
MARGIN = 0.1
"""The part of the lease duration that the fence never uses, whatever the renew deadline."""


class LostLease(Exception):
    """Another process leads, or may lead. All work as leader has been stopped."""


class LeaderElector:
    """One candidate for one lease."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        name: str,
        namespace: str,
        identity: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        patience: float | None = 10.0,
        release_on_cancel: bool = False,
        coordinated: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        timeout: Callable[[float | None], AbstractAsyncContextManager[object]] = asyncio.timeout,
        on_new_leader: Callable[[str], None] | None = None,
        emit: Emitter | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``patience`` is how many seconds the work has to end, None: as long as it takes. ``coordinated``
        leaves it to the API server who leads. ``sleep`` and ``timeout`` are in the seconds of the other candidates and of
        the clock's ``monotonic``, where the event loop's are not. ``on_new_leader`` is told of every change of the holder seen; ``emit`` records events.
        """
        if lease_duration <= renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if renew_deadline <= JITTER * retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        # The lease says its duration in whole seconds, and a server refuses none.
        if lease_duration < 1:
            raise ValueError("leaseDuration must be greater than zero")
        if renew_deadline <= 0:
            raise ValueError("renewDeadline must be greater than zero")
        if retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")
        if not identity:
            raise ValueError("Lock identity is empty")
        self.name = name
        self.identity = identity
        metrics = metrics or Metrics()
        self._status = metrics.leader.of(name)
        self._status.set(0)
        self._slowpaths = metrics.leader_slowpath.of(name)
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._duration = int(lease_duration)
        self._sleep = sleep
        self._timeout = timeout
        self._retry = retry_period
        self._patience = patience
        # One hanging request must not use up the whole deadline.
        self._limit = max(1.0, renew_deadline / 2)
        self._span = min(renew_deadline, self._duration * (1 - MARGIN))
        self._release = release_on_cancel
        self._coordinated = coordinated
        self._on_new_leader = on_new_leader
        self._emit = emit
        self._lease: Document = {}
        """As last read or written."""
        self._observed = -math.inf
        """When a change of it was last noticed."""
        self._until = -math.inf
        """Until when the fence is open."""
        self._leading = False
        self._unanswered = False
        """Whether a write was sent whose answer has not come."""
        self._reported = ""

    # -- what others ask ----------------------------------------------------------------------

    @property
    def leading(self) -> bool:
        """Whether the lease was won and not lost since. Before a write, ask `fence` instead."""
        return self._leading

    @property
    def leader(self) -> str:
        """The last known holder of the lease; empty if it is not held."""
        return text_in(self._lease, "holderIdentity")

    def fence(self) -> bool:
        """Whether it is certain, now, that no other process can hold the lease. Check before every write."""
        return self._clock.monotonic() < self._until

    def check(self, tolerance: float = 20.0) -> str | None:
        """The error, if this process should have stopped leading long ago and has not; None otherwise."""
        overdue = self._clock.monotonic() - self._observed > self._duration + tolerance
        if self._leading and overdue:
            return f"failed election to renew leadership on lease {self.name}"
        return None

    # -- leading ------------------------------------------------------------------------------

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Win the lease, then do ``lead`` for as long as it can be kept.

        Returns when ``lead`` does, and raises what it raises. When the lease is lost, ``lead`` is
        cancelled and `LostLease` raised. However it ends, ``lead`` has ended before the lease is
        released (with ``release_on_cancel``).
        """
        try:
            await self._acquire()
        except asyncio.CancelledError:
            if self._release and self._unanswered:
                # It may have been won in this very moment.
                await self._give_up()
            raise
        work = asyncio.create_task(lead(), name=f"leading by {self.name}")
        renewal = asyncio.create_task(self._renew(), name=f"renewing {self.name}")
        lost = ""
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
            if renewal.done():
                lost = renewal.result()
            elif not self.fence():
                # The work may notice the closed fence a moment before the renewal gives up.
                lost = TOO_LATE
        finally:
            # Who is asked to make way gives the lease back at once: that is what was asked for.
            released = self._heir or (self._release and not lost)
            await self._end(work, renewal, release=bool(released))
        failure = work.exception() if work.done() and not work.cancelled() else None
        if lost and (failure is not None or not work.done() or work.cancelled()):
            raise LostLease(f"leaderelection lost: {self._namespace}/{self.name}: {lost}") from failure
        work.result()

    async def _acquire(self) -> None:
        log.info("Attempting to acquire leader lease... %s/%s", self._namespace, self.name)
        while True:
            # A success that took so long that the fence is closed again is none.
            if await self._try() and self.fence():
                break
            await self._sleep(self._pause())
        self._leading = True
        self._status.set(1)
        self._say("became leader")
        log.info("Successfully acquired lease %s/%s", self._namespace, self.name)

    def _pause(self) -> float:
        """Seconds until a candidate tries again.

        differs: upstream lets up to 2.2 retry periods pass between two looks, and so may notice as late the last
        renewal of a holder that died, and as late again that the lease has run out. Here a candidate follows
        within the lease duration and one retry period.
        """
        pause = self._retry * (1 - SPREAD * self._clock.random.random())
        left = self._observed + seconds_of(self._lease) - self._clock.monotonic()
        return min(pause, left) if self.leader and left > 0.0 else pause

    async def _renew(self) -> str:
        """Keep the lease; answers why that did not go on.

        differs: upstream counts the deadline from when it last began to renew, and goes on trying
        although it sees another holder of the lease.
        """
        while True:
            try:
                async with self._timeout(self._until - self._clock.monotonic()):
                    await self._sleep(self._retry)
                    while not await self._try():
                        if self.leader != self.identity:
                            self._until = -math.inf
                            return f"held by {self.leader or 'no process'}"
                        if self._heir:
                            return f"the server prefers {self._heir}"
                        await self._sleep(self._retry)
            except TimeoutError:
                return TOO_LATE

    async def _end(self, work: asyncio.Task[None], renewal: asyncio.Task[str], *, release: bool) -> None:
        """Stop leading, in the order that keeps others safe: the work, the fence, the lease."""
        stopping = not work.done()
        renewal.cancel()
        work.cancel()
        try:
            with suppress(TimeoutError):
                async with self._timeout(self._patience):
                    await asyncio.wait((work, renewal))
            if not work.done():
                log.error("What was done as leader of %s does not stop; its writes are refused", self.name)
            elif stopping and not work.cancelled() and work.exception() is not None:
                log.error("What was done as leader of %s failed", self.name, exc_info=work.exception())
        finally:
            self._until = -math.inf
            self._leading = False
            self._status.set(0)
            self._say("stopped leading")
        if release and work.done():
            await self._give_up()

    # -- the lease ----------------------------------------------------------------------------

    async def _try(self) -> bool:
        """Try to acquire or renew once; whether this process holds the lease now."""
        try:
            held = await self._acquire_or_renew()
        except (ApiError, TimeoutError) as error:
            log.warning("Failed to update lease %s/%s: %s", self._namespace, self.name, error or "timed out")
            held = False
        except Exception:
            # A broken Api must not end the election without a word; the deadline ends it.
            log.exception("Failed to update lease %s/%s", self._namespace, self.name)
            held = False
        self._report()
        return held

    async def _acquire_or_renew(self) -> bool:
        now = self._clock.monotonic()
        if self.leader == self.identity and not self._heir and self._valid(now):
            # Most renewals: the lease is unchanged, so there is no need to read it first.
            with suppress(ApiError, TimeoutError):
                await self._write(self._lease)
                return True
        try:
            lease = await self._within(self._api.get(DOCUMENTS, self._namespace, self.name))
        except NotFound:
            if self._coordinated:
                # The server chooses a new holder: there is none until then.
                self._lease = {}
                return False
            if self.leader not in ("", self.identity) and self._valid(now):
                # differs: upstream takes a deleted lease at once, while its holder still works.
                return False
            await self._create()
            return True
        self._observe(lease)
        if self.leader == self.identity:
            if self._heir:
                return False
            self._slowpaths.inc()
        elif self._coordinated or self._leading or (self.leader and self._valid(now)):
            # Another process holds it; and a former leader must stop before it competes again.
            return False
        await self._write(lease)
        return True

    def _valid(self, now: float) -> bool:
        """Whether the lease was seen to change less than its duration ago."""
        return now < self._observed + seconds_of(self._lease)

    @property
    def _heir(self) -> str:
        """The process that the API server prefers to this one; empty if there is none."""
        preferred = text_in(self._lease, "preferredHolder") if self._coordinated else ""
        return preferred if preferred != self.identity else ""

    async def _create(self) -> None:
        lease = new(self._namespace, self.name, self._hold({"holderIdentity": self.identity}))
        self._unanswered, sent = True, self._clock.monotonic()
        self._won(await self._within(self._api.create(DOCUMENTS, self._namespace, lease)), sent)

    async def _write(self, lease: Document) -> None:
        """Make the lease ours or renew it, unless it has changed since it was read."""
        renewed = {**lease, "spec": self._hold(spec_of(lease))}
        self._unanswered, sent = True, self._clock.monotonic()
        self._won(await self._within(self._update(renewed)), sent)

    def _hold(self, before: Document) -> Document:
        return taken(before, self.identity, self._duration, self._clock.now())

    def _update(self, lease: Document) -> Awaitable[Document]:
        return self._api.update(DOCUMENTS, self._namespace, self.name, lease)

    def _won(self, lease: Document, sent: float) -> None:
        self._observe(lease)
        self._unanswered = False
        self._until = sent + self._span

    def _observe(self, lease: Document) -> None:
        # differs: upstream compares the written times, which may repeat when a clock is set back.
        if version_of(lease) != version_of(self._lease):
            self._observed = self._clock.monotonic()
        self._lease = lease

    async def _give_up(self) -> None:
        """Let others have the lease at once, instead of after its duration."""
        try:
            lease = await self._within(self._api.get(DOCUMENTS, self._namespace, self.name))
            if text_in(lease, "holderIdentity") != self.identity:
                return
            given = {**lease, "spec": given_up(spec_of(lease), self._clock.now())}
            self._observe(await self._within(self._update(given)))
        except (ApiError, TimeoutError) as error:
            log.error("Failed to release lease %s/%s: %s", self._namespace, self.name, error or "timed out")

    async def _within(self, request: Awaitable[T]) -> T:
        async with self._timeout(self._limit):
            return await request

    # -- telling ------------------------------------------------------------------------------

    def _report(self) -> None:
        if self.leader == self._reported:
            return
        self._reported = self.leader
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(self._reported)
            except Exception:
                log.exception("on_new_leader failed")

    def _say(self, what: str) -> None:
        if self._emit is None:
            return
        meta = self._lease.get("metadata") or {}
        subject = Lease(
            metadata=ObjectMeta(
                name=self.name,
                namespace=self._namespace,
                uid=str(meta.get("uid") or ""),
                resourceVersion=version_of(self._lease),
            )
        )
        self._emit(subject, "Normal", "LeaderElection", f"{self.identity} {what}")
