"""Leader election faults: a lease that is taken away, a second manager that ignores the lease."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import LEASES
from steersman.sim.faults.fault import ActiveFault, Call, Fault, describe
from steersman.sim.faults.injector import FaultInjector

THIEF = "thief"
NAMESPACE = "kube-system"
LEASE = "kube-controller-manager"
WRITE_DELAY = 0.01
"""Seconds that a write takes while two managers are active."""


class LeaseStolen(Fault, frozen=True):
    """At the manager's nth write another process takes its lease at once, and never renews it."""

    n: int
    name: ClassVar[str] = "lease_stolen"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Stolen(self, injector)


class LeaseDeleted(Fault, frozen=True):
    """At the manager's nth write its lease is deleted."""

    n: int
    name: ClassVar[str] = "lease_deleted"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Stolen(self, injector)


class TwoLeaders(Fault, frozen=True):
    """At the manager's nth write a second manager starts beside it, regardless of leadership, for ``seconds``.

    Neither knows of the other, so each creates the objects it misses.
    """

    n: int
    seconds: float = 30.0
    name: ClassVar[str] = "two_leaders"
    allowed_violations: ClassVar[frozenset[str]] = frozenset({"creates", "deletes", "writes", "leadership"})

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _TwoLeaders(self, injector)


class _Stolen(ActiveFault):
    def __init__(self, fault: LeaseStolen | LeaseDeleted, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            self._injector.spawn(self._take(call), "thief")
        return answer

    async def _take(self, call: Call) -> None:
        api = self._injector.world.api(THIEF)
        if isinstance(self._fault, LeaseDeleted):
            try:
                await api.delete(LEASES, NAMESPACE, LEASE)
            except NotFound:
                return
            self._injector.record(self, f"lease deleted after {describe(call)}")
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
                return  # no lease to take
            self._injector.record(self, f"lease stolen after {describe(call)}")
            return


class _TwoLeaders(ActiveFault):
    def __init__(self, fault: TwoLeaders, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector
        self._until = 0.0

    async def before(self, call: Call) -> None:
        # Two managers that undo each other's writes would never end if writes took no time.
        if call.write and self._injector.world.monotonic() < self._until:
            await asyncio.sleep(WRITE_DELAY)

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n and self._injector.managers is not None:
            self._injector.record(self, f"second manager starts after {describe(call)}")
            self._until = self._injector.world.monotonic() + self._fault.seconds
            self._injector.managers.start_second(self._fault.seconds)
        return answer
