"""Durations in Go's notation (``1h30m``, ``250ms``), parsed and formatted as Go's package time does."""

from __future__ import annotations

import re

from steersman.api.go_quote import quote

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
"""Nanoseconds."""
_UNITS["h"] = 60 * _UNITS["m"]
_PART = re.compile(r"(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)(?P<unit>[^0-9.]*)")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration; a bare ``0`` is allowed. Raises `ValueError` with Go's message.

    The result fits Go's 64 bits of nanoseconds: it is below 2**63 nanoseconds, about 292 years.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, end = 0.0, 0
    for part in _PART.finditer(rest):
        if part.start() != end:
            break
        unit = part["unit"]
        if not unit:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        total += float(part["number"]) * _UNITS[unit]
        end = part.end()
    if not rest or end != len(rest) or total >= 2**63:
        raise ValueError(f"time: invalid duration {quote(text)}")
    return sign * total / 10**9


def format_duration(seconds: float) -> str:
    """Return a duration as Go prints it: ``1h0m0s``, ``10s``, ``1.5s``, ``250ms``."""
    nanos = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanos else ""
    for unit in ("ns", "µs", "ms"):
        if 0 < nanos < 1000 * _UNITS[unit]:
            return f"{sign}{_decimal(nanos, _UNITS[unit])}{unit}"
    hours, rest = divmod(nanos, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    shown = f"{_decimal(rest, 10**9)}s"
    if minutes or hours:
        shown = f"{minutes}m{shown}"
    return f"{sign}{hours}h{shown}" if hours else f"{sign}{shown}"


def _decimal(number: int, by: int) -> str:
    whole, rest = divmod(number, by)
    return f"{whole}.{rest:0{len(str(by)) - 1}d}".rstrip("0").rstrip(".")
