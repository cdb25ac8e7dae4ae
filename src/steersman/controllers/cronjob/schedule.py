"""Schedules of a CronJob: the latest scheduled time that is due, and how long until the next one."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from steersman.api.cron import ConstantDelaySchedule, Schedule, parse
from steersman.api.kinds.cronjobs import CronJob

TOO_MANY_MISSED = 100
"""More missed times than this are reported: the controller was down, or the clock is skewed."""
PADDING = timedelta(milliseconds=100)
"""Added to each delay, so that a clock slightly ahead of the server's does not wake too early."""


class InvalidSchedule(ValueError):
    """A schedule that parses but has no time: the 31st of February."""


class Due(msgspec.Struct, frozen=True):
    """The scheduled time that is due."""

    since: datetime
    """The last scheduled time, or the creation of the CronJob."""
    latest: datetime | None = None
    """The latest scheduled time without a Job; None where none is due."""
    missed: int = 0
    """About how many scheduled times before it were missed."""


def schedule_of(cron: CronJob) -> Schedule | ConstantDelaySchedule:
    """The parsed schedule, in the CronJob's time zone. Raises `Unparseable` or `LookupError`."""
    own_zone = "TZ" in cron.spec.schedule
    return parse(cron.spec.schedule, "" if own_zone else cron.spec.timeZone or "")


def most_recent_due(
    cron: CronJob, schedule: Schedule | ConstantDelaySchedule, now: datetime, *, deadline: bool = True
) -> Due:
    """The time that is due now; with ``deadline``, none before ``startingDeadlineSeconds``. Raises `InvalidSchedule`."""
    since = cron.status.lastScheduleTime or cron.metadata.creationTimestamp or now
    seconds = cron.spec.startingDeadlineSeconds
    if deadline and seconds is not None:
        since = max(since, now - timedelta(seconds=seconds))
    first = schedule.next(since)
    second = schedule.next(first) if first is not None else None
    if first is None or second is None:
        raise InvalidSchedule("time difference between two schedules is less than 1 second")
    if now < first:
        return Due(since)
    if now < second:
        return Due(since, first)
    # Counting every time of a year takes too long, so the first interval stands for all.
    interval = round((second - first).total_seconds())
    if interval < 1:
        raise InvalidSchedule("time difference between two schedules is less than 1 second")
    missed = int((now - first).total_seconds()) // interval + 1
    at = schedule.next(first + timedelta(seconds=(missed - 2) * interval))
    latest = None
    while at is not None and at <= now:
        latest, at = at, schedule.next(at)
    return Due(since, latest, missed)


def until_next(cron: CronJob, schedule: Schedule | ConstantDelaySchedule, now: datetime) -> timedelta:
    """How long until the next scheduled time, with `PADDING`. Raises `InvalidSchedule`."""
    try:
        due = most_recent_due(cron, schedule, now, deadline=False)
        since = due.latest or (now if due.missed else due.since)
    except InvalidSchedule:
        since = now
    following = schedule.next(since)
    if following is None:
        raise InvalidSchedule("there is no next time")
    return following + PADDING - now
