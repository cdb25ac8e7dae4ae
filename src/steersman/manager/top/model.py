"""The model of ``steersman top``: answers of the trace become a picture, which is rows and no drawing.

A picture is made from the one before it and an answer: `advance` keeps the last rounds of each controller, so that details and the
causes of busy keys are there although an answer has only the rounds since the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from steersman.manager.top.answer import Answer, CauseText, ControllerState, RoundText
from steersman.runtime.trace_figures import OTHER_CLIENT, WINDOW, Fight, HotKey

KEPT = 200
"""Rounds that are kept for each controller."""
HOT_KEYS = 20
"""Keys in the list of the busiest."""
CAUSES = 3
"""Causes that are told of a busy key."""
SORTS: Mapping[str, str] = {
    "rate": "rounds a second",
    "queue": "keys that are ready",
    "oldest": "age of the oldest key",
    "p99": "time of a round",
    "wait": "time in the queue",
    "writes": "accepted writes",
    "refused": "refused steps",
    "retries": "retries",
    "failures": "failed rounds",
    "controller": "name",
}
"""The columns to sort by, in the order of the key ``s``."""


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """A controller. Figures are those of the last minute; times are in seconds."""

    controller: str
    kind: str
    queue: int
    """Keys that are ready."""
    working: int
    waiting: int
    """Keys that wait for their time."""
    oldest: float
    """How long the oldest key has been ready."""
    rate: float
    """Rounds a second."""
    p50: float
    p99: float
    """How long a round takes."""
    wait: float
    """How long a key waits in the queue, p99."""
    writes: Mapping[str, int]
    """Accepted writes by verb."""
    refused: int
    retries: int
    failures: int
    crashes: int
    """Rounds in a row that ended in an unexpected exception."""
    rounds: int
    """Since the start."""

    @property
    def written(self) -> int:
        """Accepted writes of all verbs."""
        return sum(self.writes.values())

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do in the last minute."""
        return not (self.rate or self.queue or self.working)


class HotRow(msgspec.Struct, frozen=True):
    """A busy key of a controller."""

    controller: str
    namespace: str
    name: str
    rate: float
    """Rounds a second."""
    why: str
    """The causes of its last rounds, the most frequent first."""

    @property
    def key(self) -> str:
        """The key as text."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class FightRow(msgspec.Struct, frozen=True):
    """An object that two actors keep changing in turns."""

    resource: str
    """With its group: ``deployments.apps``."""
    kind: str
    namespace: str
    name: str
    actors: tuple[str, str]
    turns: int
    """How often the writer changed."""
    seconds: float
    """The time from the first of these writes to the last."""
    ago: float
    """Seconds since the last of them."""
    field: str = ""
    """The field that they change, where the API server's managedFields show it."""
    clients: tuple[str, ...] = ()
    """The names under which the API server knows the two."""

    @property
    def object(self) -> str:
        """The object as text."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}{self.field and f' {self.field}'}"

    @property
    def between(self) -> str:
        """The actors as text."""
        clients = f" ({', '.join(self.clients)})" if self.clients else ""
        return f"{' <-> '.join(self.actors)}{clients}"


class Picture(msgspec.Struct, frozen=True):
    """All that can be shown of one moment."""

    now: datetime
    """The time of the cluster."""
    running: bool
    """Whether controllers run there: false in a replica that does not lead."""
    recording: bool
    """Whether the trace is on."""
    rows: tuple[Row, ...]
    hottest: tuple[HotRow, ...]
    fights: tuple[FightRow, ...]
    rounds: Mapping[str, tuple[RoundText, ...]]
    """The last rounds by controller, oldest first."""
    next: int
    """The ``after`` of the next request."""


def advance(before: Picture | None, answer: Answer, controller: str = "") -> Picture:
    """The picture after an answer. ``controller`` leaves out fights in which it takes no part."""
    # A number that is lower than one seen belongs to another process: the manager has been restarted.
    known = {} if before is None or answer.last < before.next else before.rounds
    rounds = _merge(known, answer.rounds)
    writers = {each.number: each.controller for kept in rounds.values() for each in kept}
    return Picture(
        now=answer.now,
        running=answer.running,
        recording=answer.enabled,
        rows=tuple(map(_row, answer.controllers)),
        hottest=_hottest(answer, rounds, writers),
        fights=tuple(
            _fight(each, answer.now) for each in answer.fights if not controller or controller in each.actors
        ),
        rounds=rounds,
        next=answer.next,
    )


def _merge(
    known: Mapping[str, tuple[RoundText, ...]], new: Iterable[RoundText]
) -> dict[str, tuple[RoundText, ...]]:
    grouped: dict[str, list[RoundText]] = {}
    for each in new:
        grouped.setdefault(each.controller, []).append(each)
    return {
        name: (*known.get(name, ()), *grouped.get(name, ()))[-KEPT:] for name in sorted({*known, *grouped})
    }


def _row(state: ControllerState) -> Row:
    minute = state.last_minute
    return Row(
        controller=state.name,
        kind=state.kind,
        queue=state.queue.ready,
        working=state.queue.working,
        waiting=state.queue.waiting,
        oldest=state.queue.oldest_seconds,
        rate=minute.per_second,
        p50=minute.took.p50,
        p99=minute.took.p99,
        wait=minute.waited.p99,
        writes=minute.writes,
        refused=minute.refused,
        retries=minute.retries,
        failures=minute.failures,
        crashes=state.crashes,
        rounds=state.rounds,
    )


def sort_rows(rows: Sequence[Row], by: str) -> list[Row]:
    """The rows by a column of `SORTS`, the largest first. Among equals the busier one is first, then the order of names."""

    def order(row: Row) -> tuple[float, float, int, str]:
        value = 0.0 if by == "controller" else float(row.written if by == "writes" else getattr(row, by))
        busy = (0.0, 0) if by == "controller" else (-row.rate, -row.rounds)
        return (-value, *busy, row.controller)

    return sorted(rows, key=order)


# -- busy keys and fights ---------------------------------------------------------------------


def _hottest(
    answer: Answer,
    rounds: Mapping[str, tuple[RoundText, ...]],
    writers: Mapping[int, str],
) -> tuple[HotRow, ...]:
    busy = sorted(
        (
            (key.rounds / state.last_minute.seconds, state.name, key)
            for state in answer.controllers
            for key in state.last_minute.hottest
        ),
        key=lambda each: (-each[0], each[1], each[2].namespace, each[2].name),
    )
    return tuple(
        HotRow(
            name,
            key.namespace,
            key.name,
            round(often, 3),
            tell_causes(_recent(rounds.get(name, ()), key, answer.now), writers),
        )
        for often, name, key in busy[:HOT_KEYS]
    )


def _recent(rounds: Sequence[RoundText], key: HotKey, now: datetime) -> list[RoundText]:
    """The rounds of a key in the last minute."""
    return [
        each
        for each in rounds
        if each.name == key.name and each.namespace == key.namespace and now - each.started <= WINDOW
    ]


def tell_causes(rounds: Sequence[RoundText], writers: Mapping[int, str]) -> str:
    """The causes of some rounds of a key in words, the most frequent first, with their number.

    The echo of the controller's own writes comes last: it is busy because of the others. ``writers`` has the controllers of rounds
    by number. If the last round failed, its error comes first: it is why there are more.
    """
    own = short(rounds[-1].controller) if rounds else ""
    groups: Counter[tuple[str, str]] = Counter()
    names: dict[tuple[str, str], set[str]] = {}
    for each in rounds:
        for group, name in {_group(cause, writers): cause.name for cause in each.causes}.items():
            groups[group] += 1
            names.setdefault(group, set()).add(name)
    told = [
        f"{_subject(what, names[what, by])}{by and f' by {by}'} ×{count}"
        for (what, by), count in sorted(
            groups.items(), key=lambda item: (item[0][1] == own, -item[1], item[0])
        )[:CAUSES]
    ]
    if rounds and (error := rounds[-1].ending.failure):
        told.insert(0, f"failed: {error}")
    return ", ".join(told)


def _group(cause: CauseText, writers: Mapping[int, str]) -> tuple[str, str]:
    """The kind of a cause, and the actor behind it where it is an event."""
    if cause.type == "timer":
        # Reasons of one kind differ in the numbers after the colon.
        return f"timer: {cause.text.partition(':')[0]}", ""
    if cause.type != "event":
        return cause.text, ""
    if cause.event == "added" and not cause.round:
        return f"{cause.kind} {cause.event}", ""
    actor = short(writers.get(cause.round, "a controller")) if cause.round else OTHER_CLIENT
    return f"{cause.kind} {cause.event}", actor


def _subject(what: str, names: set[str]) -> str:
    """A cause with the name of its object, if all its events are about the same one."""
    kind, _, event = what.rpartition(" ")
    (name,) = names if len(names) == 1 else ("",)
    return f"{kind} {name} {event}" if name and kind else what


def _fight(fight: Fight, now: datetime) -> FightRow:
    return FightRow(
        resource=fight.resource,
        kind=fight.kind,
        namespace=fight.namespace,
        name=fight.name,
        actors=(short(fight.actors[0]), short(fight.actors[1])),
        turns=fight.turns,
        seconds=(fight.last - fight.first).total_seconds(),
        ago=max((now - fight.last).total_seconds(), 0.0),
    )


def short(controller: str) -> str:
    """The name of a controller as tables show it."""
    return controller.removesuffix("-controller")


# -- for programs -----------------------------------------------------------------------------


def document(picture: Picture, sort: str) -> dict[str, object]:
    """A picture as a document for programs."""
    return {
        "now": picture.now,
        "running": picture.running,
        "recording": picture.recording,
        "controllers": sort_rows(picture.rows, sort),
        "hottest": picture.hottest,
        "fights": picture.fights,
    }
