"""Durations in Go's notation, with what Go 1.26 makes of them."""

from __future__ import annotations

import pytest

from steersman.api.go_duration import parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h30m", 5_400 * 10**9),
        ("-1.5s", -(15 * 10**8)),
        ("+.5ns.5μs.5ns.5ns", 500),
        ("0.000000001h", 3600),
        ("1.9ns", 1),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0" * 5000 + "1s", 10**9),
        ("0." + "3" * 5000 + "s", 333_333_333),
    ],
)
def test_a_duration_is_a_whole_number_of_nanoseconds(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds / 10**9


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'time: invalid duration ""'),
        (".s", 'time: invalid duration ".s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("-53398278h66800863", 'time: invalid duration "-53398278h66800863"'),
        ("9" * 400, f'time: invalid duration "{"9" * 400}"'),
        ("1h" * 1001, f'time: invalid duration "{"1h" * 1001}"'),
        ("1" * 10_000, f'time: invalid duration "{"1" * 4096}"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1é", 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'),
        ("1s\n", 'time: unknown unit "s\\x0a" in duration "1s\\x0a"'),
        ('1"\\', 'time: unknown unit "\\"\\\\" in duration "1\\"\\\\"'),
    ],
)
def test_an_error_is_told_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  (the whole message is compared)
        parse_duration(text)
    assert str(refused.value) == why
