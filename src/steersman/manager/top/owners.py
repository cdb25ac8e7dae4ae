"""Owners of fields: which client set a field last, from an object's managedFields. They name the clients of a write fight.

The trace knows its own controllers; every other writer is "another client" to it, and two of those are one. The API server notes
the manager of each field, so a field whose manager changes from look to look is a fight, and the managers are its actors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.manager.top.model import FightRow, Picture
from steersman.runtime.trace_figures import FIGHT_TURNS, FIGHT_WINDOW, OTHER_CLIENT, WINDOW

MAX_SUSPECTS = 3
"""Objects that are looked at each time, at most."""
LEAST_TURNS = 2
"""How often the manager of a field must have changed: from one to another, and back."""


class Suspect(NamedTuple):
    """An object that other clients change again and again."""

    resource: str
    """With its group: ``deployments.apps``."""
    kind: str
    namespace: str
    name: str


class Contest(msgspec.Struct, frozen=True):
    """The managers of an object's fields, and how often each field changed hands since the first look."""

    owners: Mapping[str, str]
    """Field path -> manager."""
    first: datetime
    last: datetime
    """When a field last changed hands."""
    turns: Mapping[tuple[str, str, str], int] = {}
    """Field and its two managers -> how often it went from one to the other."""


def suspects(picture: Picture) -> list[Suspect]:
    """The objects of fights, and those that other clients changed often in the last minute."""
    found = [Suspect(each.resource, each.kind, each.namespace, each.name) for each in picture.fights]
    changed: dict[Suspect, set[str]] = {}
    for rounds in picture.rounds.values():
        for each in rounds:
            if picture.now - each.started > WINDOW:
                continue
            for cause in each.causes:
                if cause.event == "changed" and not cause.round:
                    about = Suspect(cause.resource, cause.kind, cause.namespace, cause.name)
                    changed.setdefault(about, set()).add(cause.resource_version)
    often = sorted(changed.items(), key=lambda item: (-len(item[1]), item[0]))
    found += [about for about, versions in often if len(versions) >= FIGHT_TURNS]
    return list(dict.fromkeys(found))[:MAX_SUSPECTS]


def owners_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The manager of each field outside of the status. Managers that share a field agree on it, so it has none here."""
    found: dict[str, str] = {}
    shared: set[str] = set()
    for entry in document.get("metadata", {}).get("managedFields") or ():
        if entry.get("subresource") != "status":
            manager = str(entry.get("manager") or "unknown")
            for path in _paths(entry.get("fieldsV1") or {}):
                if found.setdefault(path, manager) != manager:
                    shared.add(path)
    return {
        path: manager
        for path, manager in found.items()
        if path not in shared and not path.startswith(("status", "metadata"))
    }


def _paths(fields: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, inner in fields.items():
        if name == ".":
            continue
        path = f"{before}.{name.removeprefix('f:')}" if before else name.removeprefix("f:")
        if inner:
            yield from _paths(inner, path)
        else:
            yield path


def compare(before: Contest | None, owners: Mapping[str, str], now: datetime) -> Contest:
    """The contest after another look at the object."""
    if before is None:
        return Contest(owners, now, now)
    turns = Counter(before.turns)
    moved = False
    for path, manager in owners.items():
        former = before.owners.get(path, manager)
        if former != manager:
            one, other = sorted((former, manager))
            turns[path, one, other] += 1
            moved = True
    return replace(
        before, owners={**before.owners, **owners}, last=now if moved else before.last, turns=dict(turns)
    )


def name_fights(
    fights: Sequence[FightRow], contests: Mapping[Suspect, Contest], now: datetime
) -> tuple[FightRow, ...]:
    """The fights with the fields and clients that their contests show, and those that only the contests show."""
    rows = list(fights)
    for about, contest in contests.items():
        if now - contest.last > FIGHT_WINDOW or not contest.turns:
            continue
        (field, *managers), count = max(contest.turns.items(), key=lambda item: (item[1], item[0]))
        known = next((at for at, each in enumerate(rows) if _is_about(each, about)), None)
        if known is not None:
            rows[known] = replace(rows[known], field=field, clients=tuple(managers))
        elif count >= LEAST_TURNS:
            seconds = (contest.last - contest.first) / timedelta(seconds=1)
            ago = max((now - contest.last) / timedelta(seconds=1), 0.0)
            actors = (managers[0], managers[1])
            rows.append(FightRow(*about, actors, count, seconds, ago, field))
    return tuple(sorted(rows, key=lambda each: -each.turns))


def _is_about(row: FightRow, about: Suspect) -> bool:
    return (row.resource, row.namespace, row.name) == (about.resource, about.namespace, about.name) and (
        OTHER_CLIENT in row.actors
    )
