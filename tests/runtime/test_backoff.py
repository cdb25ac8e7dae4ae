"""Pauses grow, are jittered, are capped, and start over; tokens flow at their rate."""

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.runtime.backoff import Backoff, Bucket, ItemBackoff, growing, jittered


class Hands:
    """A clock moved by hand."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.at = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return self.at


@pytest.mark.parametrize(
    ("attempt", "pause"),
    [(0, 0.8), (1, 1.6), (2, 3.2), (3, 6.4), (4, 12.8), (5, 25.6), (6, 30.0), (7, 30.0), (100_000, 30.0)],
)
def test_a_reflectors_pause_doubles_from_800_milliseconds_to_30_seconds(attempt: int, pause: float) -> None:
    assert growing(attempt, 0.8, 2.0, 30.0) == pytest.approx(pause)


@pytest.mark.parametrize(("factor", "cap"), [(1.0, 5.0), (0.5, 5.0)])
def test_a_pause_that_does_not_grow_stays_as_it_is(factor: float, cap: float) -> None:
    assert [growing(n, 2.0, factor, cap) for n in range(4)] == [2.0] * 4


def test_no_pause_at_all_is_possible() -> None:
    assert growing(10, 0.0, 2.0, 30.0) == 0.0


@given(st.floats(0, 1000), st.floats(0, 5), st.integers())
def test_jitter_only_prolongs_and_by_no_more_than_its_factor(
    seconds: float, factor: float, seed: int
) -> None:
    pause = jittered(random.Random(seed), seconds, factor)
    assert seconds <= pause <= seconds * (1 + factor)


def test_each_pause_lies_between_its_length_and_twice_that() -> None:
    clock = Hands()
    backoff = Backoff(clock)
    for low in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
        pause = backoff.next()
        assert low <= pause <= 2 * low
        clock.at += pause


def test_pauses_start_over_after_two_minutes_without_a_failure() -> None:
    clock = Hands()
    backoff = Backoff(clock, jitter=0.0)
    for _ in range(5):
        clock.at += backoff.next()
    clock.at += 119.9
    assert backoff.next() == pytest.approx(25.6)
    clock.at += 25.6 + 120.1
    assert backoff.next() == pytest.approx(0.8)


def test_pauses_do_not_start_over_while_failures_go_on() -> None:
    clock = Hands()
    backoff = Backoff(clock, jitter=0.0)
    pauses = []
    for _ in range(20):
        pauses.append(backoff.next())
        clock.at += pauses[-1] + 60.0
    assert pauses[6:] == [30.0] * 14


def test_success_makes_the_next_pause_the_shortest() -> None:
    backoff = Backoff(Hands(), jitter=0.0)
    assert [backoff.next(), backoff.next()] == [0.8, 1.6]
    backoff.reset()
    assert backoff.next() == 0.8


def test_the_same_seed_pauses_the_same() -> None:
    assert Backoff(Hands(7)).next() == Backoff(Hands(7)).next()
    assert Backoff(Hands(7)).next() != Backoff(Hands(8)).next()


def test_items_wait_from_5_milliseconds_to_1000_seconds_each_on_its_own() -> None:
    items = ItemBackoff[str]()
    pauses = [items.next("a") for _ in range(30)]
    assert pauses[:4] == [0.005, 0.01, 0.02, 0.04]
    assert pauses[17] == pytest.approx(655.36)
    assert pauses[18:] == [1000.0] * 12
    assert items.next("b") == 0.005
    assert (items.failures("a"), items.failures("b"), items.failures("c")) == (30, 1, 0)


def test_a_forgotten_item_begins_anew_and_takes_no_room() -> None:
    items = ItemBackoff[str]()
    items.next("a")
    items.forget("a")
    items.forget("never seen")
    assert len(items) == 0
    assert items.next("a") == 0.005


def test_an_item_can_fail_for_ever() -> None:
    items = ItemBackoff[str]()
    for _ in range(5000):
        pause = items.next("a")
    assert pause == 1000.0


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    bucket = Bucket(qps=10, burst=100)
    assert [bucket.reserve(0.0) for _ in range(100)] == [0.0] * 100
    assert [bucket.reserve(0.0) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])


def test_a_bucket_fills_up_again_but_not_beyond_its_size() -> None:
    bucket = Bucket(qps=10, burst=2)
    assert [bucket.reserve(0.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])
    assert bucket.reserve(0.2) == 0.0
    assert [bucket.reserve(1000.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])


def test_time_going_back_does_not_fill_a_bucket() -> None:
    bucket = Bucket(qps=1, burst=1)
    assert bucket.reserve(100.0) == 0.0
    assert bucket.reserve(0.0) == 1.0
    assert bucket.reserve(100.0) == 2.0


@pytest.mark.parametrize("qps", [0.0, float("inf")])
def test_a_bucket_without_a_rate_never_makes_anybody_wait(qps: float) -> None:
    bucket = Bucket(qps=qps, burst=1)
    assert [bucket.reserve(0.0) for _ in range(1000)] == [0.0] * 1000


@given(
    st.floats(0.5, 50),
    st.integers(1, 20),
    st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_a_bucket_never_lets_more_through_than_its_rate_and_burst(
    qps: float, burst: int, gaps: list[float]
) -> None:
    bucket = Bucket(qps=qps, burst=burst)
    now, granted = 0.0, []
    for gap in gaps:
        now += gap
        granted.append(now + bucket.reserve(now))
    for i, start in enumerate(granted):
        for j in range(i, len(granted)):
            assert j - i + 1 <= burst + (granted[j] - start) * qps + 1e-6
