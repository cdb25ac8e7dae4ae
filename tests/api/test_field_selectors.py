"""Field selectors: what they select, and how values are escaped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import field_selectors
from steersman.api.field_selectors import FieldSelector, FieldTerm, parse_fields


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("status.phase=Running,spec.nodeName!=", "spec.nodeName!=,status.phase=Running"),
        ("a==b", "a=b"),
        (r"a=b\=c", r"a=b\=c"),
        (",a=b,,", "a=b"),
        ("=", ""),
    ],
)
def test_a_query_is_read_and_spelt_as_upstream_does(text: str, written: str) -> None:
    assert str(parse_fields(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\n", "invalid field selector: invalid escape sequence: \\n"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_query_that_cannot_be_read_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the message is compared whole)
        parse_fields(text)
    assert str(caught.value) == message


def test_a_field_that_is_not_there_counts_as_empty() -> None:
    assert parse_fields("spec.nodeName=").matches({})
    assert not parse_fields("spec.nodeName!=").matches({})
    assert parse_fields("spec.nodeName!=").matches({"spec.nodeName": "n1"})
    assert parse_fields("").empty


def test_a_selector_tells_the_one_value_it_demands() -> None:
    selector = parse_fields("metadata.name=x,metadata.namespace!=y")
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("metadata.namespace") is None


def test_terms_can_be_translated_and_dropped() -> None:
    def translate(field: str, value: str) -> tuple[str, str]:
        if field == "unknown":
            raise ValueError("field label not supported: unknown")
        return ("", "") if field == "drop" else (f"metadata.{field}", value)

    assert str(parse_fields("name=x,drop=y").translated(translate)) == "metadata.name=x"
    with pytest.raises(ValueError, match="not supported"):
        parse_fields("unknown=1").translated(translate)


def test_long_selectors_are_not_cached() -> None:
    text = ",".join(f"f{i}=1" for i in range(20_000))
    assert len(parse_fields(text).terms) == 20_000
    assert parse_fields("a=1") is parse_fields("a=1")
    assert all(len(selector.terms) < 40 for _, selector in field_selectors._cache.items())
    assert max(len(text) for text, _ in field_selectors._cache.items()) <= 512


terms = st.builds(
    FieldTerm, st.sampled_from(("a", "metadata.name", "x.y")), st.text(max_size=8), st.booleans()
)


@given(st.lists(terms, max_size=4))
def test_what_a_selector_writes_reads_as_the_same_selector(terms: list[FieldTerm]) -> None:
    selector = FieldSelector(tuple(terms))
    assert sorted(map(str, parse_fields(str(selector)).terms)) == sorted(map(str, selector.terms))
