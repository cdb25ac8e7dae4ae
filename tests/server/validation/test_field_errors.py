"""Field errors have upstream's messages, values included."""

from __future__ import annotations

import json as plain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.meta_v1 import LabelSelector, LabelSelectorRequirement
from steersman.api.go_quote import quote
from steersman.server.validation.field_errors import (
    MAX_ERRORS,
    OMITTED,
    FieldErrors,
    Verbatim,
    format_selector,
    format_value,
    go_json,
    go_slice,
    go_struct,
)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a b", '"a b"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("a\nb\tc\r", '"a\\nb\\tc\\r"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("é✓", '"é✓"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_strings_are_quoted_as_go_does(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_a_quoted_string_of_plain_characters_is_json(text: str) -> None:
    assert plain.loads(quote(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (Verbatim("a"), "a"),
        (True, "true"),
        (-1, "-1"),
        (None, "null"),
        (("a", "b"), '["a","b"]'),
        ({"b": "<", "a": "&"}, '{"a":"\\u0026","b":"\\u003c"}'),
        (go_struct(Name="a", Port=1, Empty=None), '{"Name":"a","Port":1,"Empty":null}'),
        (go_slice((go_struct(A=1), go_struct(A=2))), '[{"A":1},{"A":2}]'),
    ],
)
def test_values_are_shown_by_their_type(value: object, text: str) -> None:
    assert format_value(value) == text


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_values_in_messages_are_json_that_says_the_same(value: object) -> None:
    assert plain.loads(go_json(value)) == value
    assert not set(go_json(value)) & set("<>&")


def test_labels_of_a_selector_come_before_its_expressions() -> None:
    given_ = LabelSelector(
        matchExpressions=(LabelSelectorRequirement(key="a", operator="Exists"),), matchLabels={"b": "c"}
    )
    assert format_selector(given_) == (
        '{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"Exists"}]}'
    )
    assert format_selector(None) == "null"


def test_each_sort_of_problem_has_its_reason_and_its_words() -> None:
    errors = FieldErrors()
    errors.invalid("a", 1, "is odd")
    errors.invalid("a", OMITTED, "is odd")
    errors.required("b")
    errors.required("b", "for once")
    errors.forbidden("c", "never")
    errors.duplicate("d", "x")
    errors.not_found("e", "x")
    errors.not_supported("f", "x", ("y", "z"))
    errors.too_long("g", 9)
    errors.too_many("h", 3, 1)
    assert [(problem.reason, problem.field, problem.message) for problem in errors] == [
        ("FieldValueInvalid", "a", "Invalid value: 1: is odd"),
        ("FieldValueInvalid", "a", "Invalid value: is odd"),
        ("FieldValueRequired", "b", "Required value"),
        ("FieldValueRequired", "b", "Required value: for once"),
        ("FieldValueForbidden", "c", "Forbidden: never"),
        ("FieldValueDuplicate", "d", 'Duplicate value: "x"'),
        ("FieldValueNotFound", "e", 'Not found: "x"'),
        ("FieldValueNotSupported", "f", 'Unsupported value: "x": supported values: "y", "z"'),
        ("FieldValueTooLong", "g", "Too long: may not be more than 9 bytes"),
        ("FieldValueTooMany", "h", "Too many: 3: must have at most 1 item"),
    ]


def test_what_is_fine_is_not_spoken_of() -> None:
    errors = FieldErrors()
    errors.invalid_each("a", 1, ())
    errors.nonnegative("a", 0)
    errors.nonnegative("a", None)
    errors.positive("a", 1)
    errors.immutable("a", "x", "x")
    errors.enum("a", "x", ("x", "y"))
    assert errors == []
    errors.nonnegative("a", -1)
    errors.positive("a", 0)
    errors.immutable("a", "y", "x")
    errors.enum("a", "", ("x",))
    errors.enum("a", "z", ("x",))
    assert len(errors) == 5


def test_of_very_many_errors_the_first_are_kept() -> None:
    errors = FieldErrors()
    for number in range(MAX_ERRORS + 5):
        errors.invalid(f"data[{number}]", number, "no")
        errors.required(f"required[{number}]")

    assert len(errors) == MAX_ERRORS
    assert errors[0].field == "data[0]"
