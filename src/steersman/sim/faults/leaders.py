"""More than one who leads: a lease that is taken away, a second manager that does not ask."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import LEASES
from steersman.sim.faults.crashes import describe
from steersman.sim.faults.fault import Armed, Call, Fault
from steersman.sim.faults.injector import Stage

THIEF = "thief"
NAMESPACE = "kube-system"
LEASE = "kube-controller-manager"
MOMENT = 0.01
"""Seconds that a write takes while two managers work at once."""


@dataclass(frozen=True, slots=True)
class LeaseStolen(Fault):
    """With the manager's nth write somebody else takes its lease, without waiting, and never renews it."""

    n: int
    word: ClassVar[str] = "lease_stolen"

    def arm(self, stage: Stage) -> Armed:
        return _Stolen(self, stage)


@dataclass(frozen=True, slots=True)
class LeaseDeleted(Fault):
    """With the manager's nth write somebody deletes its lease."""

    n: int
    word: ClassVar[str] = "lease_deleted"

    def arm(self, stage: Stage) -> Armed:
        return _Stolen(self, stage)


@dataclass(frozen=True, slots=True)
class TwoLeaders(Fault):
    """With the manager's nth write a second one begins to work beside it, whoever leads, for some seconds.

    Neither can know of the other, so each makes what it sees missing.
    """

    n: int
    seconds: float = 30.0
    word: ClassVar[str] = "two_leaders"
    excuses: ClassVar[frozenset[str]] = frozenset({"creates", "deletes", "writes", "leadership"})

    def arm(self, stage: Stage) -> Armed:
        return _Two(self, stage)


class _Stolen(Armed):
    def __init__(self, fault: LeaseStolen | LeaseDeleted, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            self._stage.spawn(self._take(call), "thief")
        return answer

    async def _take(self, call: Call) -> None:
        api = self._stage.world.api(THIEF)
        if isinstance(self._fault, LeaseDeleted):
            try:
                await api.delete(LEASES, NAMESPACE, LEASE)
            except NotFound:
                return
            self._stage.strike(f"the lease is deleted after {describe(call)}")
            return
        for _ in range(10):
            try:
                lease = await api.get(LEASES.untyped, NAMESPACE, LEASE)
                lease["spec"]["holderIdentity"] = THIEF
                await api.update(LEASES.untyped, NAMESPACE, LEASE, lease)
            except Conflict:
                await asyncio.sleep(0)
                continue
            except ApiError:
                return  # there is no lease to take
            self._stage.strike(f"the lease is stolen after {describe(call)}")
            return


class _Two(Armed):
    def __init__(self, fault: TwoLeaders, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage
        self._until = 0.0

    async def before(self, call: Call) -> None:
        # Two who undo each other's work would do so for ever, if it took them no time.
        if call.write and self._stage.world.monotonic() < self._until:
            await asyncio.sleep(MOMENT)

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n and self._stage.managers is not None:
            self._stage.strike(f"a second manager begins after {describe(call)}")
            self._until = self._stage.world.monotonic() + self._fault.seconds
            self._stage.managers.double(self._fault.seconds)
        return answer
