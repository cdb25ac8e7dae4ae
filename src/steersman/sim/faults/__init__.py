"""Faults: what may go wrong between a manager and its server, each one small value to be combined.

::

    from steersman.sim import faults

    with Cluster(seed=7, faults=[faults.crash_after_write(3), faults.frozen_watch("pods", 30)]) as cluster:
        ...

Each has a form as text that reads back (`parse`). `Faulted` is an `Api` in which they happen, deterministic
from the world's seed; `Stage` is where they are armed.
"""

from __future__ import annotations

from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.crashes import AnswerLost, CrashAfterWrite, CrashBeforeWrite, StaleRestart
from steersman.sim.faults.fault import Armed, Call, Fault
from steersman.sim.faults.faulty_api import Faulted
from steersman.sim.faults.injector import Managers, Stage
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen, TwoLeaders
from steersman.sim.faults.lossy_watches import CoalescedEvents, HiddenEvents, UnreadableEvents
from steersman.sim.faults.objects import Corrupted, Garbage
from steersman.sim.faults.refusals import Answers, DiscoveryFails, Reset, SlowAnswers
from steersman.sim.faults.text import ALL, BadFault, parse, text
from steersman.sim.faults.watches import DuplicatedEvents, FrozenWatch, SlowWatch, WatchCut

__all__ = (
    "ALL",
    "Armed",
    "BadFault",
    "Call",
    "Fault",
    "Faulted",
    "Managers",
    "Stage",
    "answer_lost",
    "answers",
    "clock_jump",
    "clock_rate",
    "coalesced_events",
    "corrupted",
    "crash_after_write",
    "crash_before_write",
    "discovery_fails",
    "duplicated_events",
    "frozen_watch",
    "garbage",
    "hidden_events",
    "lease_deleted",
    "lease_stolen",
    "parse",
    "reset",
    "slow_answers",
    "slow_watch",
    "stale_restart",
    "text",
    "two_leaders",
    "unreadable_events",
    "watch_cut",
)

crash_after_write = CrashAfterWrite
crash_before_write = CrashBeforeWrite
answer_lost = AnswerLost
stale_restart = StaleRestart
answers = Answers
reset = Reset
slow_answers = SlowAnswers
discovery_fails = DiscoveryFails
frozen_watch = FrozenWatch
slow_watch = SlowWatch
duplicated_events = DuplicatedEvents
watch_cut = WatchCut
coalesced_events = CoalescedEvents
hidden_events = HiddenEvents
unreadable_events = UnreadableEvents
lease_stolen = LeaseStolen
lease_deleted = LeaseDeleted
two_leaders = TwoLeaders
clock_jump = ClockJump
clock_rate = ClockRate
corrupted = Corrupted
garbage = Garbage
