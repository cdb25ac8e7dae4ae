"""The comparison: whether the cluster comes to show what our controllers want, and in time.

An intention is open from the first round that wants it to the first that does not. It is *fulfilled* where its object has changed
meanwhile, *superseded* where it has not (its cause has gone), and *due* where it is still wanted once the grace time has passed
without progress. A due intention that is confirmed is a difference; one that is fulfilled after that was *late*, and one that is
superseded after that stays a difference: the acting manager never did it.

The decision itself is the oracle: whatever the acting manager wrote, the intention ends when our own controller, given the new state,
wants nothing more. So requests are never compared, and neither are generated names, uids or times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.scheme import Key
from steersman.shadow.intention import Effect, Identity

Place: TypeAlias = tuple[str, Key]
"""A controller and one of its keys."""


class Unknown(Enum):
    """The state of an object that no cache shows."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
MAX_WANTED = 20_000
"""Objects and keys of which the last wanted write or verdict is remembered."""


class ClusterView(Protocol):
    """The view of the cluster that a comparison needs, from the caches."""

    def aspect(self, effect: Effect) -> object:
        """The part of the cluster that an effect would change, to be compared with itself later; or `UNKNOWN`."""
        ...


class Intention(msgspec.Struct, eq=False):
    """A write that our controllers want, and that the cluster does not show yet."""

    controller: str
    key: Key
    effect: Effect
    """As the last round wants it."""
    count: int
    """How many writes of this identity the last round wants: a ReplicaSet wants several pods."""
    since: float
    """When it was first wanted, or when there was progress last; monotonic seconds."""
    aspect: object
    """The part of the cluster that the effect would change, as it was at that time."""
    because: str
    """The verdict of the last round."""
    reported: bool = False
    """Whether it is a difference already."""
    settled: bool = False
    """Whether the acting manager has done its part: a deleted object may be held by finalizers."""
    superseded: bool = False
    """Whether it ended without a write."""


class Tally(msgspec.Struct):
    """Figures of one controller."""

    rounds: int = 0
    failed: int = 0
    """Rounds that ended in an error."""
    wanted: int = 0
    """Intentions that were opened."""
    fulfilled: int = 0
    superseded: int = 0
    late: int = 0
    missing: int = 0
    """Differences of the kind "we would, they did not" that stand."""
    extra: int = 0
    """Differences of the kind "they did, we would not"."""
    checked: int = 0
    """Writes of the acting manager that our decisions were asked about."""
    unclear: int = 0
    """Writes of the acting manager that cannot be judged any more, because the state has moved on."""


class WantedWrites:
    """When creates and deletes were last wanted, also those that are wanted no more; in monotonic seconds."""

    def __init__(self) -> None:
        self._creates: BoundedCache[tuple[str, str], float] = BoundedCache(MAX_WANTED)
        """By resource and owner."""
        self._deletes: BoundedCache[tuple[str, Key], float] = BoundedCache(MAX_WANTED)
        """By resource and key."""

    def record(self, effects: Iterable[Effect], now: float) -> None:
        """Take in what a round wants."""
        for effect in effects:
            if effect.creates:
                self._creates.put((effect.resource, effect.owner), now)
            elif effect.deletes and not effect.terminating:
                # To finish a deletion is not to want it.
                self._deletes.put((effect.resource, effect.key), now)

    def created(self, resource: str, owner: str) -> float | None:
        """When an object of this owner was last to be created."""
        return self._creates.get((resource, owner))

    def deleted(self, resource: str, key: Key) -> float | None:
        """When this object was last to be deleted."""
        return self._deletes.get((resource, key))


class Comparison:
    """The open intentions of all controllers, and what became of the others."""

    def __init__(self, grace: float, view: ClusterView) -> None:
        """``grace``: the seconds that the acting manager has for each write."""
        self.grace = grace
        self.tallies: dict[str, Tally] = {}
        self.failing: dict[Place, str] = {}
        """The keys whose last round failed, with the error."""
        self.wanted_writes = WantedWrites()
        self.verdicts: BoundedCache[Place, str] = BoundedCache(MAX_WANTED)
        """The last verdicts."""
        self._view = view
        self._open: dict[Place, dict[Identity, Intention]] = {}

    def tally(self, controller: str) -> Tally:
        """The figures of a controller."""
        tally = self.tallies.get(controller)
        if tally is None:
            tally = self.tallies[controller] = Tally()
        return tally

    @property
    def open(self) -> Iterator[Intention]:
        """The intentions that are open."""
        return (each for intentions in self._open.values() for each in intentions.values())

    def failed(self, controller: str, key: Key, error: str) -> None:
        """A round ended in an error: what it wanted is not known, so everything stays as it is."""
        tally = self.tally(controller)
        tally.rounds += 1
        tally.failed += 1
        self.failing[controller, key] = error

    def decided(
        self, controller: str, key: Key, wanted: Sequence[Effect], because: str, now: float
    ) -> list[Intention]:
        """Take in a round; returns the intentions that ended and had been reported: late, or superseded."""
        place = (controller, key)
        self.failing.pop(place, None)
        self.tally(controller).rounds += 1
        self.wanted_writes.record(wanted, now)
        self.verdicts.put(place, because)
        before = self._open.pop(place, {})
        after: dict[Identity, Intention] = {}
        for effect, count in _counted(wanted):
            known = before.pop(effect.identity, None)
            if known is None:
                after[effect.identity] = self._opened(place, effect, count, because, now)
            else:
                self._still_wanted(known, effect, count, because, now)
                after[effect.identity] = known
        if after:
            self._open[place] = after
        return [each for each in before.values() if self._ended(each)]

    def _opened(self, place: Place, effect: Effect, count: int, because: str, now: float) -> Intention:
        self.tally(place[0]).wanted += count
        return Intention(*place, effect, count, now, self._view.aspect(effect), because)

    def _still_wanted(self, known: Intention, effect: Effect, count: int, because: str, now: float) -> None:
        tally = self.tally(known.controller)
        aspect = self._view.aspect(effect)
        done = max(known.count - count, 0)
        tally.wanted += max(count - known.count, 0)
        tally.fulfilled += done
        # The same write is wanted of another state with other figures: the acting manager keeps up, and so do we.
        moved = effect.content != known.effect.content and aspect != known.aspect
        if done or moved:
            known.since, known.aspect = now, aspect
            tally.fulfilled += moved and not done
            tally.wanted += moved and not done
        known.effect, known.count, known.because = effect, count, because

    def _ended(self, intention: Intention) -> bool:
        """Count an intention that is wanted no more; returns whether it had been reported."""
        tally = self.tally(intention.controller)
        if intention.settled:
            return False
        intention.superseded = not _shows(
            intention.effect, intention.aspect, self._view.aspect(intention.effect)
        )
        if intention.superseded:
            tally.superseded += intention.count
            return intention.reported
        tally.fulfilled += intention.count
        if intention.reported:
            tally.missing -= 1
            tally.late += 1
        return intention.reported

    def due(self, place: Place, now: float) -> Iterator[Intention]:
        """The open intentions of a key whose grace time has passed, and that are not reported yet."""
        for intention in self._open.get(place, {}).values():
            waits = not intention.reported and not intention.settled
            if waits and now - intention.since >= self.grace:
                yield intention

    def next_due(self, place: Place, now: float) -> float | None:
        """The time at which a key is decided again, in monotonic seconds: when its next intention is due, or a grace time from now where
        one is overdue or reported. None where none is open."""
        waiting = [each for each in self._open.get(place, {}).values() if not each.settled]
        times = [each.since + self.grace for each in waiting if not each.reported]
        if any(each.reported or each.since + self.grace <= now for each in waiting):
            times.append(now + self.grace)
        return min((time for time in times if time > now), default=None)

    def still_open(self, intention: Intention) -> bool:
        """Whether an intention is still wanted."""
        place = (intention.controller, intention.key)
        return self._open.get(place, {}).get(intention.effect.identity) is intention

    def settle(self, intention: Intention) -> None:
        """Record that the acting manager has done its part of an intention, although it is still wanted."""
        intention.settled = True
        self.tally(intention.controller).fulfilled += intention.count

    def report(self, intention: Intention) -> None:
        """Record that an intention is a difference."""
        intention.reported = True
        self.tally(intention.controller).missing += 1


def _shows(effect: Effect, before: object, after: object) -> bool:
    """Whether the cluster came to show an effect, or may have: a place that no cache shows tells nothing."""
    if after is UNKNOWN:
        return True
    if isinstance(before, frozenset) and isinstance(after, frozenset):
        # Objects that only disappeared were not created.
        return not after <= before
    if effect.verb == "update status" and after is None:
        # The object was deleted, by a user or with its owner, and its status was not written.
        return False
    return after != before


def _counted(wanted: Iterable[Effect]) -> Iterator[tuple[Effect, int]]:
    """Each effect once, as it is wanted last, with the number of writes of the same identity."""
    counts: dict[Identity, tuple[Effect, int]] = {}
    for effect in wanted:
        _, count = counts.get(effect.identity, (effect, 0))
        # Only objects with generated names are wanted more than once.
        counts[effect.identity] = (effect, count + 1 if effect.creates else 1)
    return iter(counts.values())
