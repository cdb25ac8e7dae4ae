"""Completion indexes: as text, as sets, and what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.controllers.job.indexes import Indexes

SETS = st.frozensets(st.integers(0, 60), max_size=40)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ((), ""),
        ((0,), "0"),
        ((0, 1), "0,1"),
        ((0, 1, 2), "0-2"),
        ((1, 3, 4, 5, 7), "1,3-5,7"),
        ((2, 3, 9, 10), "2,3,9,10"),
    ],
)
def test_indexes_are_written_as_upstream_writes_them(indexes: tuple[int, ...], text: str) -> None:
    assert str(Indexes.of(indexes)) == text


@pytest.mark.parametrize(
    ("text", "completions", "found"),
    [
        ("0-3,5", 10, [0, 1, 2, 3, 5]),
        ("0-3,5", 3, [0, 1, 2]),
        ("5,6", 5, []),
        ("0,x,2", 9, [0, 2]),
        ("4-2", 9, []),
        ("1,,3", 9, [1, 3]),
        ("", 9, []),
    ],
)
def test_text_is_read_as_far_as_it_makes_sense(text: str, completions: int, found: list[int]) -> None:
    assert list(Indexes.parse(text, completions)) == found


@given(SETS)
def test_what_is_written_reads_back(indexes: frozenset[int]) -> None:
    made = Indexes.of(indexes)
    assert Indexes.parse(str(made), 100) == made
    assert list(made) == sorted(indexes)
    assert len(made) == len(indexes)


@given(SETS, SETS)
def test_they_behave_as_sets(one: frozenset[int], other: frozenset[int]) -> None:
    a, b = Indexes.of(one), Indexes.of(other)
    assert list(a | b) == sorted(one | other)
    assert a.intersection_size(b) == len(one & other)
    assert [n for n in range(70) if n in a] == sorted(one)


@given(SETS, st.integers(0, 50), st.integers(0, 70))
def test_what_is_lacking_are_the_first_that_are_not_there(
    indexes: frozenset[int], completions: int, count: int
) -> None:
    missing = [n for n in range(completions) if n not in indexes]
    assert Indexes.of(indexes).missing(completions, count) == missing[:count]


@given(st.text(alphabet="0123456789,-+ x", max_size=30), st.integers(0, 50))
def test_no_text_whatever_gives_an_index_there_is_not(text: str, completions: int) -> None:
    assert all(0 <= index < completions for index in Indexes.parse(text, completions))
