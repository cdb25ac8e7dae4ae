"""The token bucket: bursts, rates, and tokens that are given back."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.token_bucket import TokenBucket


def test_a_full_bucket_lets_a_burst_through_at_once() -> None:
    bucket = TokenBucket(20, 30)
    assert [bucket.reserve(0.0) for _ in range(30)] == [0.0] * 30


def test_beyond_the_burst_requests_come_at_the_rate() -> None:
    bucket = TokenBucket(20, 30)
    for _ in range(30):
        bucket.reserve(0.0)
    assert [bucket.reserve(0.0) for _ in range(3)] == pytest.approx([0.05, 0.10, 0.15])


def test_time_fills_the_bucket_again_but_never_beyond_the_burst() -> None:
    bucket = TokenBucket(10, 2)
    bucket.reserve(0.0)
    bucket.reserve(0.0)
    assert bucket.reserve(1000.0) == 0.0
    assert bucket.reserve(1000.0) == 0.0
    assert bucket.reserve(1000.0) == pytest.approx(0.1)


@pytest.mark.parametrize("qps", [0, -1, -0.5, float("inf")])
def test_a_rate_of_zero_or_less_or_infinity_is_no_limit(qps: float) -> None:
    bucket = TokenBucket(qps, 1)
    assert all(bucket.reserve(0.0) == 0.0 for _ in range(1000))


def test_time_going_back_does_not_fill_a_bucket() -> None:
    bucket = TokenBucket(qps=1, burst=1)
    assert bucket.reserve(100.0) == 0.0
    assert bucket.reserve(0.0) == 1.0
    assert bucket.reserve(100.0) == 2.0


def test_a_token_is_only_taken_at_once_if_there_is_one() -> None:
    bucket = TokenBucket(qps=0.5, burst=1)
    assert bucket.try_take(0.0)
    assert not bucket.try_take(1.0)
    assert bucket.try_take(2.0)


def test_a_burst_of_zero_still_lets_requests_through_at_the_rate() -> None:
    bucket = TokenBucket(10, 0)
    assert bucket.reserve(0.0) == 0.0
    assert bucket.reserve(0.0) == pytest.approx(0.1)


@given(
    st.lists(st.floats(0, 0.5), min_size=1, max_size=200),
    st.floats(0.5, 100),
    st.integers(1, 50),
)
def test_no_window_of_time_sees_more_than_the_burst_and_the_rate_allow(
    gaps: list[float], qps: float, burst: int
) -> None:
    bucket = TokenBucket(qps, burst)
    now, sent = 0.0, []
    for gap in gaps:
        now += gap
        sent.append(now + bucket.reserve(now))
    assert sent == sorted(sent), "first come, first served"
    for i, start in enumerate(sent):
        for j in range(i, len(sent)):
            assert j - i + 1 <= burst + (sent[j] - start) * qps + 1e-6


async def test_a_request_that_is_cancelled_while_it_waits_gives_its_token_back() -> None:
    bucket = TokenBucket(0.001, 1)
    await bucket.acquire()
    waiting = asyncio.create_task(bucket.acquire())
    await asyncio.sleep(0)
    before = bucket.reserve(asyncio.get_running_loop().time())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert bucket.reserve(asyncio.get_running_loop().time()) == pytest.approx(before, rel=0.01)
