"""Schedules of CronJobs: whether one can be read, and why not."""

from __future__ import annotations

from functools import lru_cache

from steersman.api.cron import Unparseable, parse, zone_of


@lru_cache(maxsize=1024)
def schedule_error(text: str) -> str | None:
    """Why a schedule cannot be read; None if it can."""
    try:
        parse(text)
    except Unparseable as error:
        return str(error)
    return None


def zone_error(name: str) -> str | None:
    """Why a time zone is none; None if it is one."""
    if not name:
        return "unknown time zone "
    try:
        zone_of(name)
    except LookupError as error:
        return str(error.args[0])
    return None
