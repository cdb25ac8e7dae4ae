"""Selection of faults: every crash point, every lost response, and faults sampled from a seed.

Sampled faults fit the scenario: they refer to writes, kinds and verbs of its run without faults.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from steersman.explore.run import Outcome
from steersman.sim.faults import crashes, leaders, lossy_watches, objects, requests, watches
from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.fault import Fault, is_kind

Faults: TypeAlias = tuple[Fault, ...]
Sampler: TypeAlias = Callable[["FaultSampler"], Faults]

MAX_FAULTS = 3
"""Maximum number of faults in a trial."""
SLOW_SHARE = 0.4
"""Share of the trials in which requests take time besides their other faults."""
CODES = (403, 404, 409, 422, 429, 500, 503, 504)


def crash_points(reference: Outcome) -> Iterator[Faults]:
    """A crash before and after every write."""
    for n in range(1, reference.writes + 1):
        yield (crashes.CrashBeforeWrite(n),)
        yield (crashes.CrashAfterWrite(n),)


def distinct_crash_points(reference: Outcome) -> Iterator[Faults]:
    """Crashes around writes, once for each state of the server.

    The states before a write and after the previous one are mostly equal, so a manager started then finds the same.
    """
    for crash in reference.crash_points:
        yield (crash,)


def lost_responses(reference: Outcome) -> Iterator[Faults]:
    """Every response to a write lost, one at a time."""
    for n in range(1, reference.writes + 1):
        yield (crashes.ResponseLost(n),)


def sample(seed: int, reference: Outcome, only: tuple[str, ...] = ()) -> Faults:
    """Sample faults from a seed; only those named in ``only``, if any."""
    sampler = FaultSampler(seed, reference)
    names = [name for name in SAMPLERS if not only or name in only]
    faults: Faults = ()
    for _ in range(sampler.random.choice((1, 1, 2, MAX_FAULTS))):
        faults += SAMPLERS[sampler.random.choice(names)](sampler)
    slow = any(isinstance(fault, requests.RequestLatency) for fault in faults)
    if not only and not slow and sampler.random.random() < SLOW_SHARE:
        # Whatever fails, it may fail while other requests are under way.
        faults = (*_latency(sampler), *faults)
    return faults


class FaultSampler:
    """Samples the parameters of faults."""

    def __init__(self, seed: int, reference: Outcome) -> None:
        self.random = random.Random(f"{seed}/faults")
        self._reference = reference
        self._kinds = sorted(
            kind
            for kind, count in reference.changes.items()
            if count and kind not in ("leases", "events") and is_kind(kind)
        )
        self._calls = sorted(call for call in reference.calls if is_kind(call.partition(" ")[2]))

    def write(self) -> int:
        """The number of a write of the manager."""
        return self.random.randint(1, max(1, self._reference.writes))

    def kind(self) -> str:
        """A kind whose objects change."""
        return self.random.choice(self._kinds)

    def change(self, kind: str) -> int:
        """The number of an event of that kind."""
        return self.random.randint(1, max(1, self._reference.changes.get(kind, 1)))

    def call(self) -> tuple[str, str, int]:
        """A verb, a kind, and the number of a request of these."""
        call = self.random.choice(self._calls)
        verb, _, kind = call.partition(" ")
        return verb, kind, self.random.randint(1, self._reference.calls[call])

    def seconds(self, *spans: float) -> float:
        return self.random.choice(spans)

    def times(self) -> int:
        return self.random.choice((1, 1, 2, 5))


def _crash_after(sampler: FaultSampler) -> Faults:
    return (crashes.CrashAfterWrite(sampler.write(), sampler.seconds(0.5, 5, 40)),)


def _crash_before(sampler: FaultSampler) -> Faults:
    return (crashes.CrashBeforeWrite(sampler.write(), sampler.seconds(0.5, 5, 40)),)


def _lost(sampler: FaultSampler) -> Faults:
    return (crashes.ResponseLost(sampler.write(), sampler.times()),)


def _stale(sampler: FaultSampler) -> Faults:
    revisions = sampler.random.choice((1, 5, 20, 100))
    return (
        crashes.CrashAfterWrite(sampler.write()),
        crashes.StaleRestart(revisions, sampler.seconds(1, 5, 30)),
    )


def _error_response(sampler: FaultSampler) -> Faults:
    verb, kind, nth = sampler.call()
    code = sampler.random.choice(CODES)
    if sampler.random.random() < 0.3:
        return (requests.ErrorResponse(code, verb, kind, nth, seconds=sampler.seconds(1, 20, 90)),)
    return (requests.ErrorResponse(code, verb, kind, nth, sampler.times()),)


def _outage(sampler: FaultSampler) -> Faults:
    _, _, nth = sampler.call()
    return (requests.ConnectionReset(nth=nth, seconds=sampler.seconds(1, 20, 90)),)


def _connection_reset(sampler: FaultSampler) -> Faults:
    verb, kind, nth = sampler.call()
    return (requests.ConnectionReset(verb, kind, nth, sampler.times()),)


def _slow_response(sampler: FaultSampler) -> Faults:
    verb, kind, nth = sampler.call()
    return (requests.SlowResponse(sampler.seconds(0.5, 3, 20), verb, kind, nth, sampler.times()),)


def _latency(sampler: FaultSampler) -> Faults:
    return (requests.RequestLatency(verb=sampler.random.choice(("write", "write", ""))),)


def _discovery(sampler: FaultSampler) -> Faults:
    return (requests.DiscoveryFailure(nth=sampler.times(), times=sampler.times()),)


def _frozen(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    return (watches.FrozenWatch(kind, sampler.seconds(1, 10, 60, 200), sampler.change(kind)),)


def _slow_watch(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    return (watches.SlowWatch(kind, sampler.seconds(0.2, 2, 10), sampler.change(kind)),)


def _duplicated(sampler: FaultSampler) -> Faults:
    return (watches.DuplicatedEvents(sampler.kind()),)


def _cut(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    form = sampler.random.choice((watches.END, *watches.CLOSE_ERRORS))
    return (watches.WatchCut(kind, sampler.change(kind), form, sampler.times()),)


def _coalesced(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    return (lossy_watches.CoalescedEvents(kind, sampler.seconds(1, 5, 30), sampler.change(kind)),)


def _hidden(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    return (
        lossy_watches.DroppedEvents(kind, sampler.change(kind), sampler.times(), sampler.seconds(1, 5, 30)),
    )


def _unreadable(sampler: FaultSampler) -> Faults:
    kind = sampler.kind()
    return (
        lossy_watches.UndecodableEvents(
            kind, sampler.change(kind), sampler.times(), sampler.seconds(1, 5, 30)
        ),
    )


def _stolen(sampler: FaultSampler) -> Faults:
    return (leaders.LeaseStolen(sampler.write()),)


def _deleted(sampler: FaultSampler) -> Faults:
    return (leaders.LeaseDeleted(sampler.write()),)


def _two(sampler: FaultSampler) -> Faults:
    return (leaders.TwoLeaders(sampler.write(), sampler.seconds(1, 30)),)


def _jump(sampler: FaultSampler) -> Faults:
    return (ClockJump(sampler.seconds(-3600, -30, 30, 3600), sampler.write(), sampler.seconds(0, 60)),)


def _rate(sampler: FaultSampler) -> Faults:
    return (ClockRate(sampler.seconds(0.9, 0.97, 1.03, 1.1)),)


def _corrupted_field(sampler: FaultSampler) -> Faults:
    field = sampler.random.choice(sorted(objects.CORRUPTIONS))
    return (objects.CorruptedField(sampler.kind(), field, sampler.write(), sampler.seconds(0, 5, 60)),)


def _malformed_object(sampler: FaultSampler) -> Faults:
    form = sampler.random.choice(sorted(objects.FORMS))
    return (objects.MalformedObject(sampler.kind(), form, sampler.write(), sampler.seconds(0, 5, 60)),)


SAMPLERS: Mapping[str, Sampler] = {
    "crash_after_write": _crash_after,
    "crash_before_write": _crash_before,
    "response_lost": _lost,
    "stale_restart": _stale,
    "error_response": _error_response,
    "connection_reset": _connection_reset,
    "outage": _outage,
    "slow_response": _slow_response,
    "request_latency": _latency,
    "discovery_failure": _discovery,
    "frozen_watch": _frozen,
    "slow_watch": _slow_watch,
    "duplicated_events": _duplicated,
    "watch_cut": _cut,
    "coalesced_events": _coalesced,
    "dropped_events": _hidden,
    "undecodable_events": _unreadable,
    "lease_stolen": _stolen,
    "lease_deleted": _deleted,
    "two_leaders": _two,
    "clock_jump": _jump,
    "clock_rate": _rate,
    "corrupted_field": _corrupted_field,
    "malformed_object": _malformed_object,
}
