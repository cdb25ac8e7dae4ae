"""Validation of names, ports, keys and paths, and how the rules imply each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

any_text = st.text("abz019-._/A%= ", min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (
            names.dns1123_subdomain,
            ("a", "a.b", "0", "a-b.c-d", "a" * 253),
            ("", "A", "a..b", "-a", "a-", "a_b", "a" * 254),
        ),
        (names.dns1123_label, ("a", "0", "a-b", "a" * 63), ("", "a.b", "A", "-a", "a" * 64)),
        (names.dns1035_label, ("a", "a0"), ("0", "0a", "a.b", "")),
        (names.wildcard_subdomain, ("*.a", "*.a.b"), ("*", "a.*.b", "*a.b", "a")),
        (names.dns_search_domain, ("a", "_a._b", "a_b"), ("__a_", ".", "A")),
        (names.path_segment, ("A b", "system:node", "..."), (".", "..", "a/b", "a%b")),
        (names.qualified_name, ("a", "A_b.c", "x.io/a"), ("", "/a", "X.io/a", "a/b/c", "a" * 64)),
        (names.port_name, ("a", "http-2", "a" * 15), ("", "80", "a--b", "-a", "a-", "A", "a" * 16)),
        (names.percent, ("0%", "100%", "250%"), ("", "%", "1", "-1%", "1.5%")),
        (names.http_header, ("X-A", "a"), ("", "a b", "a:")),
        (names.env_var_name, ("A", "a.b-c", "a b", "1"), ("", "a=b", "a\n", "é")),
        (names.config_map_key, ("a", ".a", "A_b-c.d", "a" * 253), ("", ".", "..", "..a", "a/b", "a" * 254)),
    ],
)
def test_each_rule_tells_the_good_from_the_bad(
    rule: Callable[[str], tuple[str, ...]], good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    assert [name for name in good if rule(name)] == []
    assert [name for name in bad if not rule(name)] == []


@given(any_text)
def test_a_label_is_a_subdomain_and_a_key_and_fits_into_a_path(name: str) -> None:
    if not names.dns1123_label(name):
        assert not names.dns1123_subdomain(name)
        assert not names.qualified_name(name)
        assert not names.path_segment(name)
    if not names.dns1035_label(name):
        assert not names.dns1123_label(name)


@given(any_text)
def test_a_name_with_dots_is_told_from_a_name_that_is_wrong_all_over(name: str) -> None:
    dotted = "." in name and not names.dns1123_subdomain(name)
    assert (names.dns1123_label(name) == ("must not contain dots",)) == dotted


@given(any_text)
def test_a_prefix_that_is_taken_begins_a_name_where_it_does_not_end_with_a_dash(name: str) -> None:
    if not names.generate_name(names.dns1123_subdomain, name) and not name.endswith("-"):
        assert not names.dns1123_subdomain(f"{name}abcde")


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
    assert (not names.generate_name(names.dns1123_subdomain, name)) is fits


def test_what_is_too_long_is_counted_in_bytes() -> None:
    assert names.config_map_key("é" * 127)[0] == "must be no more than 253 characters"
    assert "must be no more than 253 characters" not in names.config_map_key("é" * 126)


@pytest.mark.parametrize(
    ("number", "fits"), [(0, False), (1, True), (65535, True), (65536, False), (-1, False)]
)
def test_ports_have_sixteen_bits_and_none_is_zero(number: int, fits: bool) -> None:
    assert (not names.port_number(number)) is fits


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
    names.validate_descending_path(errors, "at", path)
    assert [problem.message.rpartition('": ')[2] for problem in errors] == wrong
