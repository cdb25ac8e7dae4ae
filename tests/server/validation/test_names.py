"""Names, ports, keys and paths: what fits, what does not, and how the rules imply each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors

names = st.text("abz019-._/A%= ", min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (
            text.subdomain,
            ("a", "a.b", "0", "a-b.c-d", "a" * 253),
            ("", "A", "a..b", "-a", "a-", "a_b", "a" * 254),
        ),
        (text.label, ("a", "0", "a-b", "a" * 63), ("", "a.b", "A", "-a", "a" * 64)),
        (text.label_1035, ("a", "a0"), ("0", "0a", "a.b", "")),
        (text.wildcard, ("*.a", "*.a.b"), ("*", "a.*.b", "*a.b", "a")),
        (text.search, ("a", "_a._b", "a_b"), ("__a_", ".", "A")),
        (text.segment, ("A b", "system:node", "..."), (".", "..", "a/b", "a%b")),
        (text.qualified, ("a", "A_b.c", "x.io/a"), ("", "/a", "X.io/a", "a/b/c", "a" * 64)),
        (text.port_name, ("a", "http-2", "a" * 15), ("", "80", "a--b", "-a", "a-", "A", "a" * 16)),
        (text.percent, ("0%", "100%", "250%"), ("", "%", "1", "-1%", "1.5%")),
        (text.header, ("X-A", "a"), ("", "a b", "a:")),
        (text.environment, ("A", "a.b-c", "a b", "1"), ("", "a=b", "a\n", "é")),
        (text.config_key, ("a", ".a", "A_b-c.d", "a" * 253), ("", ".", "..", "..a", "a/b", "a" * 254)),
    ],
)
def test_each_rule_tells_the_good_from_the_bad(
    rule: Callable[[str], tuple[str, ...]], good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    assert [name for name in good if rule(name)] == []
    assert [name for name in bad if not rule(name)] == []


@given(names)
def test_a_label_is_a_subdomain_and_a_key_and_fits_into_a_path(name: str) -> None:
    if not text.label(name):
        assert not text.subdomain(name)
        assert not text.qualified(name)
        assert not text.segment(name)
    if not text.label_1035(name):
        assert not text.label(name)


@given(names)
def test_a_name_with_dots_is_told_from_a_name_that_is_wrong_all_over(name: str) -> None:
    dotted = "." in name and not text.subdomain(name)
    assert (text.label(name) == ("must not contain dots",)) == dotted


@given(names)
def test_a_prefix_that_is_taken_begins_a_name_where_it_does_not_end_with_a_dash(name: str) -> None:
    if not text.prefix(text.subdomain, name) and not name.endswith("-"):
        assert not text.subdomain(f"{name}abcde")


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a-", True),
        ("web-0-", True),
        ("a.", False),
        ("-", False),
        ("A-b-", False),
        ("_-", True),
        ("a--", True),
    ],
)
def test_of_a_prefix_that_ends_with_a_dash_the_last_two_characters_are_not_looked_at(
    name: str, fits: bool
) -> None:
    assert (not text.prefix(text.subdomain, name)) is fits


def test_what_is_too_long_is_counted_in_bytes() -> None:
    assert text.config_key("é" * 127)[0] == "must be no more than 253 characters"
    assert "must be no more than 253 characters" not in text.config_key("é" * 126)


@pytest.mark.parametrize(
    ("number", "fits"), [(0, False), (1, True), (65535, True), (65536, False), (-1, False)]
)
def test_ports_have_sixteen_bits_and_none_is_zero(number: int, fits: bool) -> None:
    assert (not text.port(number)) is fits


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("a/b", []),
        ("", []),
        ("a..b/..c", []),
        ("/a", ["must be a relative path"]),
        ("a/../b", ["must not contain '..'"]),
        ("/..", ["must be a relative path", "must not contain '..'"]),
    ],
)
def test_a_path_below_a_directory_neither_begins_at_the_root_nor_steps_back(
    path: str, wrong: list[str]
) -> None:
    errors = FieldErrors()
    text.descending(errors, "at", path)
    assert [problem.message.rpartition('": ')[2] for problem in errors] == wrong
