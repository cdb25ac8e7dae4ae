"""Durations in Go's notation (``1h30m``, ``250ms``), parsed and formatted as Go's package time does."""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
"""Nanoseconds."""
_UNITS["h"] = 60 * _UNITS["m"]
_PART = re.compile(r"(?P<whole>[0-9]*)(?P<fraction>\.[0-9]*)?(?P<unit>[^0-9.]*)")
_LIMIT = 2**63
"""Nanoseconds that no duration reaches but the most negative one."""
_MAX_DIGITS = 20
"""Digits of a number, without zeros in front, that may still be below the limit."""
_MAX_PARTS = 1000
"""Parts of a duration. differs: Go has no limit, and is fast enough to do without; a megabyte of ``1h1h…`` would hold everything up for seconds."""
_MAX_SHOWN = 4096
"""Characters of a text that errors show. differs: Go shows all of it."""


def parse_duration(text: str) -> float:
    """Return the seconds of a duration; a bare ``0`` is allowed. Raises `ValueError` with Go's message."""
    return duration_nanos(text) / 10**9


def duration_nanos(text: str) -> int:
    """Return the nanoseconds of a duration. Raises `ValueError` with Go's message.

    As in Go each part is truncated to nanoseconds, and the whole is within 64 bits: about 292 years.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    invalid = ValueError(f"time: invalid duration {_quote(text)}")
    if not rest:
        raise invalid
    total = position = parts = 0
    while position < len(rest):
        parts += 1
        if parts > _MAX_PARTS:
            raise invalid
        part = _PART.match(rest, position)
        if part is None or not (part["whole"] or (part["fraction"] or ".") != "."):
            raise invalid
        whole = part["whole"].lstrip("0")
        if len(whole) > _MAX_DIGITS or int(whole or "0") > _LIMIT:
            raise invalid
        unit = part["unit"]
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        total += int(whole or "0") * _UNITS[unit] + _fraction(part["fraction"], _UNITS[unit])
        if total > _LIMIT:
            raise invalid
        position = part.end()
    if total == _LIMIT and sign > 0:
        raise invalid
    return sign * total


def _fraction(text: str | None, unit: int) -> int:
    """The nanoseconds of a fraction such as ``.5`` of a unit, truncated."""
    digits = (text or ".")[1 : _MAX_DIGITS + 1]
    return int(digits) * unit // 10 ** len(digits) if digits else 0


def _quote(text: str) -> str:
    """A text as Go's package time quotes it: with every byte beyond ASCII escaped, and no letter for control characters."""
    shown = text[:_MAX_SHOWN].encode("utf-8", "replace")
    return '"' + "".join(_QUOTED.get(byte) or chr(byte) for byte in shown) + '"'


_QUOTED = {byte: f"\\x{byte:02x}" for byte in (*range(0x20), *range(0x80, 0x100))} | {34: '\\"', 92: "\\\\"}


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
