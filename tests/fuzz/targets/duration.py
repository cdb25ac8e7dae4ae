"""Durations in Go's notation: equal to exact arithmetic within the precision of a float; printed ones are parsed again."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from hypothesis import strategies as st

from steersman.api.go_duration import format_duration, parse_duration
from tests.fuzz.target import Target

_NANOS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_WHOLE = re.compile(rf"([+-]?)((?:{_PART})+|0)")
_EDGE = Fraction(1, 2**50)
"""The relative error of a float."""


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    match = _WHOLE.fullmatch(text)
    try:
        seconds = parse_duration(text)
    except ValueError:
        assert match is None or _nanos(text) >= 2**63 - _count(text)
        return
    assert match is not None
    exact = _nanos(text)
    # Each part is truncated to a nanosecond.
    assert -exact * _EDGE <= exact - Fraction(abs(seconds)) * 10**9 <= exact * _EDGE + _count(text)
    assert exact <= 2**63 + _count(text)
    assert math.copysign(1, seconds) == (-1 if match[1] == "-" and seconds else 1) or not seconds
    if exact > 2**62:
        # A float near the limit may be printed as one beyond it.
        return
    printed = format_duration(seconds)
    assert format_duration(parse_duration(printed)) == printed
    assert abs(parse_duration(printed) - seconds) <= 1e-9 + abs(seconds) * 1e-15


def _nanos(text: str) -> Fraction:
    parts = re.findall(_PART, text)
    return sum((_fraction(number) * _NANOS[unit] for number, unit in parts), Fraction(0))


def _count(text: str) -> int:
    return len(re.findall(_PART, text))


def _fraction(number: str) -> Fraction:
    whole, _, part = number.partition(".")
    # Digits beyond those that matter would only take time.
    whole, part = whole.lstrip("0")[:400] or "0", part[:400]
    return Fraction(int(whole)) + (Fraction(int(part), 10 ** len(part)) if part else 0)


_numbers = st.one_of(
    st.integers(0, 10**19).map(str),
    st.floats(0, 1e6).map("{:f}".format),
    st.sampled_from((".5", "5.", ".", "")),
)
_parts = st.builds("{}{}".format, _numbers, st.sampled_from((*_NANOS, "", "d", "é")))

TARGET = Target(
    name="duration",
    check=check,
    seeds=(
        b"1h30m",
        b"-1.5s",
        b"250ms",
        b"0",
        b"+3\xc2\xb5s2ns",
        b"9223372036854775807ns",
        b".5h5.m",
        b"2562047h47m16.854775807s",
    ),
    strategy=st.builds(
        "{}{}".format, st.sampled_from(("", "-", "+")), st.lists(_parts, max_size=4).map("".join)
    ).map(str.encode),
    dictionary=(b"h", b"ms", b"ns", b"\xce\xbcs", b".", b"-", b"0" * 30, b"9" * 30),
)
