"""LeaseCandidates of a coordinated leader election: each tells the API server that its process could lead.

The server's election controller checks that candidates are alive by setting ``pingTime``; those that renew after that
take part. It chooses one of them by their strategy: with ``OldestEmulationVersion`` the one that emulates the oldest
version, so that during an upgrade no newer process leads. The chosen one is written into the lease, where
`LeaderElector` finds it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Any, cast

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, NotFound
from steersman.api.meta import format_micro_time
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType
from steersman.runtime.backoff import Backoff
from steersman.runtime.lease import Document, time_in

log = logging.getLogger(__name__)

CANDIDATES: Kind[Document] = Kind(
    "coordination.k8s.io", "v1beta1", "LeaseCandidate", "leasecandidates", True, dict
)
STRATEGY = "OldestEmulationVersion"
RENEW = 300
"""Seconds after which a candidate renews without having been asked. The server forgets it after 30 minutes."""


class Candidate:
    """One process's LeaseCandidate, under the name it would hold the lease by."""

    def __init__(
        self, api: Api, clock: Clock, *, name: str, namespace: str, lease: str, binary: str, emulation: str
    ) -> None:
        """``binary`` is the version this is, ``emulation`` the one it behaves like: ``1.36.4``."""
        self._api = api
        self._clock = clock
        self._name = name
        self._namespace = namespace
        self._claim = {
            "leaseName": lease,
            "binaryVersion": binary,
            "emulationVersion": emulation,
            "strategy": STRATEGY,
        }
        self._backoff = Backoff(clock)

    async def run(self) -> None:
        """Stand for election until cancelled."""
        while True:
            try:
                pinged = await self._listen(await self._renew())
            except ApiError as error:
                log.warning("Cannot stand for election: lease candidate %s: %s", self._name, error)
                pinged = False
            if pinged:
                self._backoff.reset()
            else:
                # Also where a watch ended early: a server that ends each at once is not asked in a loop.
                await asyncio.sleep(self._backoff.next())

    async def _renew(self) -> str:
        """Be there, as of now. Answers at which resourceVersion."""
        try:
            found = await self._api.get(CANDIDATES, self._namespace, self._name)
            document = {**found, "spec": self._spec(found.get("spec") or {})}
            written = await self._api.update(CANDIDATES, self._namespace, self._name, document)
        except NotFound:
            document = {
                "apiVersion": CANDIDATES.api_version,
                "kind": CANDIDATES.name,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._spec({}),
            }
            written = await self._api.create(CANDIDATES, self._namespace, document)
        return str(written["metadata"]["resourceVersion"])

    def _spec(self, before: Document) -> Document:
        # differs: an answer is never older than the question, though this clock may be behind the server's.
        renewed = max(self._clock.now(), time_in(before.get("pingTime")) or self._clock.now())
        return {**before, **self._claim, "renewTime": format_micro_time(renewed)}

    async def _listen(self, since: str) -> bool:
        """Wait until it is time to renew; whether that is because the server asked, or a long time passed."""
        began = self._clock.monotonic()
        watch = self._api.watch(
            CANDIDATES,
            self._namespace,
            field_selector=f"metadata.name={self._name}",
            resource_version=since,
            timeout_seconds=RENEW,
        )
        async with aclosing(cast("Any", watch)) as events:
            async for event in events:
                if event.type is EventType.DELETED or _pinged(event.obj):
                    return True
        return self._clock.monotonic() - began >= RENEW / 2


def _pinged(candidate: object) -> bool:
    """Whether the server asks for a sign of life that has not been given."""
    spec = candidate.get("spec") or {} if isinstance(candidate, dict) else {}
    ping, renewed = time_in(spec.get("pingTime")), time_in(spec.get("renewTime"))
    return ping is not None and (renewed is None or ping > renewed)
