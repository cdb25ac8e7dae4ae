"""Figures of controllers, computed from the rounds that a trace still has: rates, latencies, hot keys, write fights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain, pairwise

import msgspec

from steersman.api.scheme import Key
from steersman.runtime.action_table import Written
from steersman.runtime.causes import RETRY, Event
from steersman.runtime.trace import Failure, Numbered, Round

WINDOW = timedelta(minutes=1)
"""Rates, latencies and hot keys are those of the last minute."""
FIGHT_WINDOW = timedelta(minutes=10)
"""Writes that are this far apart do not belong to one fight."""
FIGHT_TURNS = 4
"""How often the writer of an object must change before it counts as a fight."""
HOTTEST = 5
"""How many of the busiest keys are listed."""
OTHER_CLIENT = "another client"
"""The writer of an object that is none of our controllers."""


class Latency(msgspec.Struct, frozen=True):
    """Seconds, as quantiles."""

    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class HotKey(msgspec.Struct, frozen=True):
    """A key with many rounds."""

    namespace: str
    name: str
    rounds: int


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """A controller in the last minute."""

    per_second: float
    """Rounds a second."""
    took: Latency
    """How long a round takes."""
    waited: Latency
    """How long a key waits in the queue."""
    writes: dict[str, int]
    """Accepted writes by verb; ``update/status`` is the verb for a subresource."""
    refused: int
    """Steps that were refused."""
    failures: int
    retries: int
    """Rounds that are retries of failed ones."""
    hottest: tuple[HotKey, ...]
    seconds: float
    """The length of the time that the figures are about: a minute, or less where the trace does not reach back as far."""


class Fight(msgspec.Struct, frozen=True):
    """An object that two actors keep changing in turns."""

    resource: str
    kind: str
    namespace: str
    name: str
    actors: tuple[str, str]
    turns: int
    """How often the writer changed."""
    first: datetime
    last: datetime


def figures(rounds: Sequence[Numbered], now: datetime, capacity: int) -> Figures:
    """The figures of one controller; ``rounds`` are its last ones, at most ``capacity``."""
    recent = [round_ for _, round_ in rounds if now - round_.started <= WINDOW]
    seconds = WINDOW.total_seconds()
    if recent and len(recent) >= capacity:
        # The ring is full: what happened before its first round is not known.
        seconds = max((now - min(each.started for each in recent)).total_seconds(), 0.001)
    keys = Counter(each.key for each in recent)
    writes: Counter[str] = Counter()
    for each in recent:
        for step in each.steps:
            for write in step.writes:
                verb = f"{write.verb}/{write.subresource}" if write.subresource else write.verb
                writes[verb] += 1
            if step.dropped:
                writes[step.writes[-1].verb] += step.dropped
    return Figures(
        per_second=round(len(recent) / seconds, 3),
        took=_latency([each.took for each in recent]),
        waited=_latency([each.waited for each in recent]),
        writes=dict(sorted(writes.items())),
        refused=sum(1 for each in recent for step in each.steps if step.outcome),
        failures=sum(isinstance(each.ending, Failure) for each in recent),
        retries=sum(RETRY in each.causes for each in recent),
        hottest=tuple(HotKey(*key, count) for key, count in _most(keys)),
        seconds=round(seconds, 3),
    )


def _most(keys: Counter[Key]) -> list[tuple[Key, int]]:
    # By name among equals, so that the order depends on the rounds alone.
    return sorted(keys.items(), key=lambda item: (-item[1], item[0]))[:HOTTEST]


def _latency(seconds: list[float]) -> Latency:
    if not seconds:
        return Latency()
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return Latency(*(round(ordered[round(last * share)], 6) for share in (0.5, 0.99, 1.0)))


def fights(rounds: Iterable[Numbered], now: datetime, writer: Callable[[Event, int], int]) -> list[Fight]:
    """The write fights of the last minutes: objects whose writer keeps changing between two actors.

    ``writer`` gives the number of our round that caused an event of another; 0 means that another client did. Status writes are
    left out: a controller that reports what another one changes is no fight.
    """
    turns: dict[tuple[str, str, Key], dict[str, tuple[datetime, str]]] = {}
    for number, round_ in rounds:
        if now - round_.started > FIGHT_WINDOW:
            continue
        for write in round_.writes:
            if write.resource_version and write.subresource != "status" and write.verb in ("update", "patch"):
                made = turns.setdefault((write.kind.resource, write.kind.name, write.key), {})
                made[write.resource_version] = (round_.started, round_.controller)
        for event in round_.events:
            if event.type == "changed" and not writer(event, number):
                seen = turns.setdefault((event.kind.resource, event.kind.name, event.key), {})
                seen.setdefault(event.last, (round_.started, OTHER_CLIENT))
    found = (_fight(resource, kind, key, written) for (resource, kind, key), written in turns.items())
    return sorted((each for each in found if each is not None), key=lambda each: -each.turns)


def _fight(resource: str, kind: str, key: Key, written: dict[str, tuple[datetime, str]]) -> Fight | None:
    """The fight about one object; ``written`` has the time and the actor of its changes, by resourceVersion."""
    if len(written) <= FIGHT_TURNS:
        return None
    ordered = [written[version] for version in sorted(written, key=_revision)]
    changes = [(before, after) for before, after in pairwise(ordered) if before[1] != after[1]]
    pairs = Counter(tuple(sorted((before[1], after[1]))) for before, after in changes)
    if not pairs:
        return None
    (one, other), count = max(pairs.items(), key=lambda item: (item[1], item[0]))
    if count < FIGHT_TURNS:
        return None
    return Fight(resource, kind, key.namespace, key.name, (one, other), count, ordered[0][0], ordered[-1][0])


def _revision(version: str) -> tuple[int, str]:
    return (int(version), version) if version.isdecimal() else (0, version)


def concerns(round_: Round, kind_of_key: str, kind: str, namespace: str, name: str) -> bool:
    """Whether a round is about an object: its key, an event among its causes, or a write. Empty matches all.

    ``kind_of_key`` is the kind of the controller's keys; ``kind`` is a kind or a resource, in any case.
    """

    def named(key: Key) -> bool:
        return (not name or key.name == name) and (not namespace or key.namespace == namespace)

    def of_kind(*kinds: str) -> bool:
        return not kind or kind.lower() in (each.lower() for each in kinds)

    if named(round_.key) and of_kind(*kind_of_key.split()):
        return True
    about: Iterable[Event | Written] = chain(round_.events, round_.writes)
    return any(
        named(each.key) and of_kind(each.kind.name, each.kind.plural, each.kind.resource) for each in about
    )
