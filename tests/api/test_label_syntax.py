"""What may be a label, and how upstream words a refusal."""

from __future__ import annotations

import pytest

from steersman.api.label_syntax import invalid, key_errors, subdomain_errors, value_errors


@pytest.mark.parametrize("key", ["a", "A.b_c-1", "example.com/name", "a" * 63, "a." * 100 + "a/b"])
def test_a_valid_key_has_no_errors(key: str) -> None:
    assert key_errors(key) == ()


@pytest.mark.parametrize(
    ("key", "starts"),
    [
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("/a", ["prefix part must be non-empty"]),
        ("UPPER/a", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("p/", ["name part must be non-empty", "name part must consist of"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("-a", ["name part must consist of"]),
        ("é", ["name part must consist of"]),
        ("a\n", ["name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
    ],
)
def test_each_thing_wrong_with_a_key_is_said(key: str, starts: list[str]) -> None:
    errors = key_errors(key)
    assert len(errors) == len(starts)
    assert all(error.startswith(start) for error, start in zip(errors, starts, strict=True))


@pytest.mark.parametrize(
    ("value", "wrong"),
    [("", 0), ("a", 0), ("1.2-3_x", 0), ("a" * 64, 1), (".a", 1), ("a ", 1), ("é" * 40, 2)],
)
def test_values_may_be_empty_but_not_just_anything(value: str, wrong: int) -> None:
    assert len(value_errors(value)) == wrong


def test_a_subdomain_is_lower_case_and_not_too_long() -> None:
    assert subdomain_errors("a.b-c.d") == ()
    assert len(subdomain_errors("A")) == 1
    assert subdomain_errors("a" * 254) == ("must be no more than 253 bytes",)


def test_a_complaint_names_the_field_and_the_value() -> None:
    assert invalid("key", 'a"b', "no") == 'key: Invalid value: "a\\"b": no'
    assert invalid("values", ("a", "b"), "no") == 'values: Invalid value: ["a","b"]: no'
