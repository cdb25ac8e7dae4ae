"""Responses: their Warning headers."""

from __future__ import annotations

from steersman.server.http.responses import warning_headers


def test_warnings_are_quoted_and_sent_once() -> None:
    assert warning_headers(["a", 'unknown "b\\"', "", "a"]) == [
        ("Warning", '299 - "a"'),
        ("Warning", r'299 - "unknown \"b\\\""'),
    ]


def test_a_warning_that_no_header_can_carry_is_left_out() -> None:
    assert warning_headers(["a\nb", "a\0", "\udc80", "ä"]) == [("Warning", '299 - "ä"')]


def test_warnings_are_sent_in_full_up_to_a_total() -> None:
    assert len(warning_headers(["a" * 2048, "b" * 2048])[1][1]) == len('299 - ""') + 2048


def test_beyond_the_total_warnings_are_truncated_and_then_left_out() -> None:
    # The limits of upstream's warning recorder: 256 characters each, and no more once 4096 are reached.
    sent = warning_headers(["a" * 2048, "b" * 2048, "c", *(f"{each:300}" for each in range(60_000))])
    texts = [value[len('299 - "') : -1] for _, value in sent]
    assert texts[:4] == ["a" * 256, "b" * 256, "c", f"{0:300}"[:256]]
    assert 4096 <= sum(map(len, texts)) < 4096 + 256
