"""Wording: counts, durations and times as a person says them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from steersman.api.printable import one_line

SHOWN = 3
"""How many names are listed before the rest is only counted."""
LONGEST = 300
"""Characters of a message of the API server that are shown."""


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 pod``, ``3 pods``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def some(names: Sequence[str]) -> str:
    """The first names, and the number of the others: ``a, b, c and 2 more``."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"


def duration(length: timedelta) -> str:
    """A duration in its two largest units: ``2 min 5 s``."""
    seconds = max(round(length.total_seconds()), 0)
    units = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts: list[str] = []
    for size, unit in units:
        amount, seconds = divmod(seconds, size)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0 s"


def at(when: datetime, now: datetime) -> str:
    """A time and its distance from now: ``at 12:00:05 (in 5 s)``."""
    text = (
        when.strftime("%H:%M:%S") if abs(when - now) < timedelta(days=1) else when.strftime("%Y-%m-%d %H:%M")
    )
    return (
        f"at {text} (in {duration(when - now)})" if when > now else f"at {text} ({duration(now - when)} ago)"
    )


def brief(message: str) -> str:
    """A message in one line, without its full stop, and not too long."""
    line = one_line(" ".join(message.split())).rstrip(".")
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
