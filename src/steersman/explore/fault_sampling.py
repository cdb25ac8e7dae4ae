"""Which faults to try: every crash point in turn, and others drawn from a seed.

What is drawn fits the scenario: writes that are made, kinds that change, verbs that are used when nothing
goes wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from steersman.explore.run import Outcome
from steersman.sim.faults import crashes, leaders, lossy_watches, objects, refusals, watches
from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.fault import Fault

Faults: TypeAlias = tuple[Fault, ...]
Draw: TypeAlias = Callable[["Dice"], Faults]

MOST = 3
"""How many faults are combined at most."""
CODES = (403, 404, 409, 422, 429, 500, 503, 504)


def crash_points(reference: Outcome) -> Iterator[Faults]:
    """A crash right before and right after every write."""
    for n in range(1, reference.writes + 1):
        yield (crashes.CrashBeforeWrite(n),)
        yield (crashes.CrashAfterWrite(n),)


def crash_states(reference: Outcome) -> Iterator[Faults]:
    """The same, once for each state of the server: those before one write and after the one before it are mostly
    one, and whoever starts then finds the same."""
    for crash in reference.moments:
        yield (crash,)


def lost_answers(reference: Outcome) -> Iterator[Faults]:
    """Every write is carried out once without an answer."""
    for n in range(1, reference.writes + 1):
        yield (crashes.AnswerLost(n),)


def sample(seed: int, reference: Outcome, only: tuple[str, ...] = ()) -> Faults:
    """Some faults, from a seed; of those words alone, if there are any."""
    dice = Dice(seed, reference)
    words = [word for word in DRAWS if not only or word in only]
    faults: Faults = ()
    for _ in range(dice.random.choice((1, 1, 2, MOST))):
        faults += DRAWS[dice.random.choice(words)](dice)
    return faults


class Dice:
    """Draws what a fault needs."""

    def __init__(self, seed: int, reference: Outcome) -> None:
        self.random = random.Random(f"{seed}/faults")
        self._reference = reference
        self._kinds = sorted(
            kind for kind, count in reference.changes.items() if count and kind not in ("leases", "events")
        )

    def write(self) -> int:
        """One of the manager's writes."""
        return self.random.randint(1, max(1, self._reference.writes))

    def kind(self) -> str:
        """A kind that changes."""
        return self.random.choice(self._kinds)

    def change(self, kind: str) -> int:
        """One of its changes."""
        return self.random.randint(1, max(1, self._reference.changes.get(kind, 1)))

    def call(self) -> tuple[str, str, int]:
        """A verb, a kind, and one of the requests there are of these."""
        said = self.random.choice(sorted(self._reference.calls))
        verb, _, kind = said.partition(" ")
        return verb, kind, self.random.randint(1, self._reference.calls[said])

    def seconds(self, *spans: float) -> float:
        return self.random.choice(spans)

    def times(self) -> int:
        return self.random.choice((1, 1, 2, 5))


def _crash_after(dice: Dice) -> Faults:
    return (crashes.CrashAfterWrite(dice.write(), dice.seconds(0.5, 5, 40)),)


def _crash_before(dice: Dice) -> Faults:
    return (crashes.CrashBeforeWrite(dice.write(), dice.seconds(0.5, 5, 40)),)


def _lost(dice: Dice) -> Faults:
    return (crashes.AnswerLost(dice.write(), dice.times()),)


def _stale(dice: Dice) -> Faults:
    revisions = dice.random.choice((1, 5, 20, 100))
    return (
        crashes.CrashAfterWrite(dice.write()),
        crashes.StaleRestart(revisions, dice.seconds(1, 5, 30)),
    )


def _answers(dice: Dice) -> Faults:
    verb, kind, nth = dice.call()
    code = dice.random.choice(CODES)
    if dice.random.random() < 0.3:
        return (refusals.Answers(code, verb, kind, nth, seconds=dice.seconds(1, 20, 90)),)
    return (refusals.Answers(code, verb, kind, nth, dice.times()),)


def _outage(dice: Dice) -> Faults:
    _, _, nth = dice.call()
    return (refusals.Reset(nth=nth, seconds=dice.seconds(1, 20, 90)),)


def _reset(dice: Dice) -> Faults:
    verb, kind, nth = dice.call()
    return (refusals.Reset(verb, kind, nth, dice.times()),)


def _slow_answers(dice: Dice) -> Faults:
    verb, kind, nth = dice.call()
    return (refusals.SlowAnswers(dice.seconds(0.5, 3, 20), verb, kind, nth, dice.times()),)


def _discovery(dice: Dice) -> Faults:
    return (refusals.DiscoveryFails(nth=dice.times(), times=dice.times()),)


def _frozen(dice: Dice) -> Faults:
    kind = dice.kind()
    return (watches.FrozenWatch(kind, dice.seconds(1, 10, 60, 200), dice.change(kind)),)


def _slow_watch(dice: Dice) -> Faults:
    kind = dice.kind()
    return (watches.SlowWatch(kind, dice.seconds(0.2, 2, 10), dice.change(kind)),)


def _duplicated(dice: Dice) -> Faults:
    return (watches.DuplicatedEvents(dice.kind()),)


def _cut(dice: Dice) -> Faults:
    kind = dice.kind()
    how = dice.random.choice((watches.END, *watches.HOWS))
    return (watches.WatchCut(kind, dice.change(kind), how, dice.times()),)


def _coalesced(dice: Dice) -> Faults:
    kind = dice.kind()
    return (lossy_watches.CoalescedEvents(kind, dice.seconds(1, 5, 30), dice.change(kind)),)


def _hidden(dice: Dice) -> Faults:
    kind = dice.kind()
    return (lossy_watches.HiddenEvents(kind, dice.change(kind), dice.times(), dice.seconds(1, 5, 30)),)


def _unreadable(dice: Dice) -> Faults:
    kind = dice.kind()
    return (lossy_watches.UnreadableEvents(kind, dice.change(kind), dice.times(), dice.seconds(1, 5, 30)),)


def _stolen(dice: Dice) -> Faults:
    return (leaders.LeaseStolen(dice.write()),)


def _deleted(dice: Dice) -> Faults:
    return (leaders.LeaseDeleted(dice.write()),)


def _two(dice: Dice) -> Faults:
    return (leaders.TwoLeaders(dice.write(), dice.seconds(1, 30)),)


def _jump(dice: Dice) -> Faults:
    return (ClockJump(dice.seconds(-3600, -30, 30, 3600), dice.write(), dice.seconds(0, 60)),)


def _rate(dice: Dice) -> Faults:
    return (ClockRate(dice.seconds(0.9, 0.97, 1.03, 1.1)),)


def _corrupted(dice: Dice) -> Faults:
    field = dice.random.choice(sorted(objects.FIELDS))
    return (objects.Corrupted(dice.kind(), field, dice.write(), dice.seconds(0, 5, 60)),)


def _garbage(dice: Dice) -> Faults:
    how = dice.random.choice(sorted(objects.ODD))
    return (objects.Garbage(dice.kind(), how, dice.write(), dice.seconds(0, 5, 60)),)


DRAWS: Mapping[str, Draw] = {
    "crash_after_write": _crash_after,
    "crash_before_write": _crash_before,
    "answer_lost": _lost,
    "stale_restart": _stale,
    "answers": _answers,
    "reset": _reset,
    "outage": _outage,
    "slow_answers": _slow_answers,
    "discovery_fails": _discovery,
    "frozen_watch": _frozen,
    "slow_watch": _slow_watch,
    "duplicated_events": _duplicated,
    "watch_cut": _cut,
    "coalesced_events": _coalesced,
    "hidden_events": _hidden,
    "unreadable_events": _unreadable,
    "lease_stolen": _stolen,
    "lease_deleted": _deleted,
    "two_leaders": _two,
    "clock_jump": _jump,
    "clock_rate": _rate,
    "corrupted": _corrupted,
    "garbage": _garbage,
}
