"""Which start of a schedule is due, and when the next one is."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from steersman.api.cron import Every, Schedule
from steersman.api.kinds.cronjobs import CronJob

MANY = 100
"""More missed starts than this are a sign of something else gone wrong."""
PADDING = timedelta(milliseconds=100)
"""So that a clock that is a little ahead of the server's does not look too early."""


class Impossible(ValueError):
    """A schedule that can be read and makes no sense: the 31st of February."""


class Due(msgspec.Struct, frozen=True):
    """What is due."""

    since: datetime
    """The last start, or whatever else to count from."""
    latest: datetime | None = None
    """The latest start that is due and was not made; None where there is none."""
    missed: int = 0
    """How many before it were missed, roughly."""


def due(cron: CronJob, schedule: Schedule | Every, now: datetime, *, deadline: bool = True) -> Due:
    """What is due now. With ``deadline``, nothing that is too late to be started. Raises `Impossible`."""
    since = cron.status.lastScheduleTime or cron.metadata.creationTimestamp or now
    patience = cron.spec.startingDeadlineSeconds
    if deadline and patience is not None:
        since = max(since, now - timedelta(seconds=patience))
    first = schedule.next(since)
    second = schedule.next(first) if first is not None else None
    if first is None or second is None:
        raise Impossible("time difference between two schedules is less than 1 second")
    if now < first:
        return Due(since)
    if now < second:
        return Due(since, first)
    # Counting every start of a year takes too long, so the distance of the first two stands for all.
    distance = round((second - first).total_seconds())
    if distance < 1:
        raise Impossible("time difference between two schedules is less than 1 second")
    missed = int((now - first).total_seconds()) // distance + 1
    at = schedule.next(first + timedelta(seconds=(missed - 2) * distance))
    latest = None
    while at is not None and at <= now:
        latest, at = at, schedule.next(at)
    return Due(since, latest, missed)


def until_next(cron: CronJob, schedule: Schedule | Every, now: datetime) -> timedelta:
    """How long to rest before the next start."""
    try:
        found = due(cron, schedule, now, deadline=False)
        since = found.latest or (now if found.missed else found.since)
    except Impossible:
        since = now
    following = schedule.next(since)
    if following is None:
        raise Impossible("there is no next time")
    return following + PADDING - now
