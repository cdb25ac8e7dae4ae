"""Pauses grow, are jittered, are capped, and start over; tokens flow at their rate."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.runtime.backoff import Backoff, ItemBackoff, growing, jittered
from tests.harness.fake_clock import FakeClock


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
    clock = FakeClock()
    backoff = Backoff(clock)
    for low in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
        pause = backoff.next()
        assert low <= pause <= 2 * low
        clock.elapsed += pause


def test_pauses_start_over_after_two_minutes_without_a_failure() -> None:
    clock = FakeClock()
    backoff = Backoff(clock, jitter=0.0)
    for _ in range(5):
        clock.elapsed += backoff.next()
    clock.elapsed += 119.9
    assert backoff.next() == pytest.approx(25.6)
    clock.elapsed += 25.6 + 120.1
    assert backoff.next() == pytest.approx(0.8)


def test_pauses_do_not_start_over_while_failures_go_on() -> None:
    clock = FakeClock()
    backoff = Backoff(clock, jitter=0.0)
    pauses = []
    for _ in range(20):
        pauses.append(backoff.next())
        clock.elapsed += pauses[-1] + 60.0
    assert pauses[6:] == [30.0] * 14


def test_success_makes_the_next_pause_the_shortest() -> None:
    backoff = Backoff(FakeClock(), jitter=0.0)
    assert [backoff.next(), backoff.next()] == [0.8, 1.6]
    backoff.reset()
    assert backoff.next() == 0.8


def test_the_same_seed_pauses_the_same() -> None:
    assert Backoff(FakeClock(7)).next() == Backoff(FakeClock(7)).next()
    assert Backoff(FakeClock(7)).next() != Backoff(FakeClock(8)).next()


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
