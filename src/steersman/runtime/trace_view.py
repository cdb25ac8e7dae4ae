"""``/debug/rounds``: the trace as one JSON document, with the state of the queues and the figures of each controller.

Live views poll it: ``after`` is the number of the last round they have, and the answer names the next. Every answer is
bounded, in rounds and in bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import msgspec

from steersman.api.clock import Clock
from steersman.api.errors import BadRequest
from steersman.api.go_duration import parse_duration
from steersman.api.scheme import Key
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.controller_runner import ControllerRunner
from steersman.runtime.trace import Numbered, Trace, document
from steersman.runtime.trace_figures import FIGHT_WINDOW, concerns, fights, figures
from steersman.runtime.trace_links import Links

PATH = "/debug/rounds"
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
"""Rounds in one answer, by default and at most."""
MAX_BYTES = 4_000_000
"""Size of the rounds in one answer. The first is always given."""
PARTS = ("rounds", "controllers", "fights")
PARAMETERS = ("controller", "kind", "namespace", "name", "since", "after", "limit", "include")


class RoundsQuery(msgspec.Struct, frozen=True):
    """The filters of a request. Empty ones match everything."""

    controller: str = ""
    kind: str = ""
    """A kind or a resource, in any case: ``Pod``, ``pods``, ``deployments.apps``."""
    namespace: str = ""
    name: str = ""
    since: datetime | None = None
    after: int | None = None
    """Only rounds with a higher number, oldest first. None: the latest rounds."""
    limit: int = DEFAULT_LIMIT
    include: tuple[str, ...] = PARTS

    @classmethod
    def read(cls, query: Mapping[str, Sequence[str]], now: datetime) -> RoundsQuery:
        """The filters of a URL's query. Raises `BadRequest`."""
        for parameter in query:
            if parameter not in PARAMETERS:
                raise BadRequest(f"unknown parameter {parameter!r}; there are {', '.join(PARAMETERS)}")
        given = {parameter: values[0] for parameter, values in query.items() if values and values[0]}
        since = _since(given["since"], now) if "since" in given else None
        after = _number(given, "after", 2**63)
        limit = _number(given, "limit", MAX_LIMIT)
        include = tuple(given["include"].split(",")) if "include" in given else PARTS
        for part in include:
            if part not in PARTS:
                raise BadRequest(f"include: unknown part {part!r}; there are {', '.join(PARTS)}")
        return cls(
            given.get("controller", ""),
            given.get("kind", ""),
            given.get("namespace", ""),
            given.get("name", ""),
            since,
            after,
            DEFAULT_LIMIT if limit is None else limit,
            include,
        )


def _number(given: Mapping[str, str], parameter: str, most: int) -> int | None:
    value = given.get(parameter)
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and int(value) <= most):
        raise BadRequest(f"{parameter} must be a whole number up to {most}, but got {value[:40]!r}")
    return int(value)


def _since(text: str, now: datetime) -> datetime:
    """A time, or a duration before now: ``2026-01-02T12:00:00Z``, ``90s``, ``1h``."""
    try:
        return now - timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        pass
    try:
        return msgspec.convert(text, datetime).astimezone(now.tzinfo)
    except (msgspec.ValidationError, ValueError, OverflowError):
        raise BadRequest(
            f"since must be a time such as 2026-01-02T12:00:00Z or a duration such as 10m, but got {text[:40]!r}"
        ) from None


class TraceView:
    """A trace, and the controller groups whose rounds it has."""

    def __init__(self, trace: Trace, clock: Clock) -> None:
        self.trace = trace
        self._clock = clock
        self._links = Links(trace)
        self.groups: list[ControllerGroup] = []
        """The running groups; none while this process does not lead."""

    def answer(self, query: Mapping[str, Sequence[str]]) -> bytes:
        """The document for the query of a URL. Raises `BadRequest`."""
        steps = self.answer_in_steps(query)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return cast("bytes", done.value)

    def answer_in_steps(self, query: Mapping[str, Sequence[str]]) -> Generator[None, None, bytes]:
        """The same, with pauses: a trace may have thousands of rounds. Raises `BadRequest`."""
        now = self._clock.now()
        found = yield from self._snapshot(RoundsQuery.read(query, now), now)
        return msgspec.json.encode(found)

    def _snapshot(self, query: RoundsQuery, now: datetime) -> Generator[None, None, dict[str, Any]]:
        runners = {runner.controller.name: runner for group in self.groups for runner in group.runners}
        found: dict[str, Any] = {
            "now": now,
            "running": bool(runners),
            "enabled": self.trace.enabled,
            "last": self.trace.last,
        }
        if "controllers" in query.include:
            found["controllers"] = [
                self._controller(runner, now)
                for name, runner in sorted(runners.items())
                if query.controller in ("", name)
            ]
            yield
        if "fights" in query.include:
            recent = self.trace.numbered()
            yield
            self._links.refresh()
            found["fights"] = fights(recent, now, self._links.writer)
            found["fightWindowSeconds"] = FIGHT_WINDOW.total_seconds()
            yield
        if query.name:
            found["keys"] = [
                entry
                for name, runner in sorted(runners.items())
                if query.controller in ("", name) and (entry := _key_state(runner, query, now)) is not None
            ]
        if "rounds" in query.include:
            found |= yield from self._rounds(query, runners)
        return found

    def _rounds(
        self, query: RoundsQuery, runners: Mapping[str, ControllerRunner[Any]]
    ) -> Generator[None, None, dict[str, Any]]:
        kinds = {name: _kind_of_keys(runner) for name, runner in runners.items()}
        last, matching = self.trace.last, []
        numbered = self.trace.numbered(query.controller or None, query.after or 0)
        yield
        self._links.refresh()
        for number, round_ in numbered:
            if (query.since is None or round_.started >= query.since) and concerns(
                round_, kinds.get(round_.controller, ""), query.kind, query.namespace, query.name
            ):
                matching.append((number, round_))
            yield
        return (yield from _bounded(matching, query, self._links, last))

    def _controller(self, runner: ControllerRunner[Any], now: datetime) -> dict[str, Any]:
        name, queue = runner.controller.name, runner.queue
        rounds = self.trace.recent(name)
        total, failed = self.trace.totals.get(name, (0, 0))
        return {
            "name": name,
            "kind": _kind_of_keys(runner).partition(" ")[0],
            "rounds": total,
            "failures": failed,
            "crashes": runner.crashes,
            "queue": {
                "ready": len(queue),
                "waiting": queue.waiting,
                "working": queue.working,
                "oldestSeconds": round(queue.oldest(), 3),
                "longestSeconds": round(queue.longest(), 3),
            },
            "writeLatency": round(runner.latency, 6),
            "lastMinute": figures(rounds, now, self.trace.capacity),
        }


def _kind_of_keys(runner: ControllerRunner[Any]) -> str:
    """The kind, the plural and the resource of the objects that a controller's keys name; empty if they name none."""
    watches = runner.controller.watches
    if not watches:
        return ""
    kind = watches[0].kind
    return f"{kind.name} {kind.plural} {kind.resource}"


def _key_state(runner: ControllerRunner[Any], query: RoundsQuery, now: datetime) -> dict[str, Any] | None:
    """The state of the key that a query names in one controller's queue; None if it is not about that kind or rests."""
    kinds = _kind_of_keys(runner).lower().split()
    if query.kind and query.kind.lower() not in kinds:
        return None
    key = Key(query.namespace, query.name)
    state, due, causes = runner.queue.due(key)
    behind = runner.behind(key)
    if not state and not behind:
        return None
    found = {
        "controller": runner.controller.name,
        "namespace": key.namespace,
        "name": key.name,
        "state": state,
        "causes": [str(cause) for cause in causes],
        "failures": runner.queue.failures(key),
    }
    if due:
        found["due"] = now + timedelta(seconds=due)
    if behind:
        found["waitsForCacheOf"] = behind
    return found


def _bounded(
    matching: Sequence[Numbered], query: RoundsQuery, links: Links, last: int
) -> Generator[None, None, dict[str, Any]]:
    """As many rounds as an answer may have: the first ones after a number, else the latest."""
    forward = query.after is not None
    chosen: list[tuple[int, msgspec.Raw]] = []
    size = 0
    for number, round_ in matching if forward else reversed(matching):
        if len(chosen) == query.limit:
            break
        encoded = msgspec.json.encode(document(round_, number, partial(links.writer, by=number)))
        size += len(encoded)
        if chosen and size > MAX_BYTES:
            break
        chosen.append((number, msgspec.Raw(encoded)))
        yield
    truncated = len(chosen) < len(matching)
    if not forward:
        chosen.reverse()
    return {
        "rounds": [encoded for _, encoded in chosen],
        "truncated": truncated,
        "next": (chosen[-1][0] if chosen else query.after or 0) if forward and truncated else last,
    }
