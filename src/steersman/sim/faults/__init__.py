"""Faults: failures injected between a manager and its API server, each a small value that combines with others.

::

    from steersman.sim import faults

    with Cluster(seed=7, faults=[faults.crash_after_write(3), faults.frozen_watch("pods", 30)]) as cluster:
        ...

Each fault has a textual form, which `parse` reads. `FaultyApi` is the `Api` in which they happen, deterministically
from the world's seed; `FaultInjector` is where they are armed.
"""

from __future__ import annotations

from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite, ResponseLost, StaleRestart
from steersman.sim.faults.fault import ActiveFault, Call, Fault
from steersman.sim.faults.faulty_api import FaultyApi
from steersman.sim.faults.injector import FaultInjector, Managers
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen, TwoLeaders
from steersman.sim.faults.lossy_watches import CoalescedEvents, DroppedEvents, UndecodableEvents
from steersman.sim.faults.objects import CorruptedField, MalformedObject
from steersman.sim.faults.requests import (
    ConnectionReset,
    DiscoveryFailure,
    ErrorResponse,
    RequestLatency,
    SlowResponse,
)
from steersman.sim.faults.text import ALL, InvalidFault, parse, text
from steersman.sim.faults.watches import DuplicatedEvents, FrozenWatch, SlowWatch, WatchCut

__all__ = (
    "ALL",
    "ActiveFault",
    "Call",
    "Fault",
    "FaultInjector",
    "FaultyApi",
    "InvalidFault",
    "Managers",
    "clock_jump",
    "clock_rate",
    "coalesced_events",
    "connection_reset",
    "corrupted_field",
    "crash_after_write",
    "crash_before_write",
    "discovery_failure",
    "dropped_events",
    "duplicated_events",
    "error_response",
    "frozen_watch",
    "lease_deleted",
    "lease_stolen",
    "malformed_object",
    "parse",
    "request_latency",
    "response_lost",
    "slow_response",
    "slow_watch",
    "stale_restart",
    "text",
    "two_leaders",
    "undecodable_events",
    "watch_cut",
)

crash_after_write = CrashAfterWrite
crash_before_write = CrashBeforeWrite
response_lost = ResponseLost
stale_restart = StaleRestart
error_response = ErrorResponse
connection_reset = ConnectionReset
slow_response = SlowResponse
request_latency = RequestLatency
discovery_failure = DiscoveryFailure
frozen_watch = FrozenWatch
slow_watch = SlowWatch
duplicated_events = DuplicatedEvents
watch_cut = WatchCut
coalesced_events = CoalescedEvents
dropped_events = DroppedEvents
undecodable_events = UndecodableEvents
lease_stolen = LeaseStolen
lease_deleted = LeaseDeleted
two_leaders = TwoLeaders
clock_jump = ClockJump
clock_rate = ClockRate
corrupted_field = CorruptedField
malformed_object = MalformedObject
