"""YAML as Go reads it: the texts of keys. Documents are tested where the server decodes them."""

from __future__ import annotations

import pytest

from steersman.api.go_yaml import MalformedDocument, YamlSyntaxError, decode


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("1.5", "1.5"),
        ("0.1", "0.1"),
        ("-0.0", "-0"),
        ("1.0", "1"),
        ("123456.0", "123456"),
        ("1234567.0", "1.234567e+06"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("3.14159265358979", "3.1415927"),
        ("1e300", ".inf"),
        ("-1e300", "-.inf"),
        ("9223372036854775807", "9223372036854775807"),
        ("true", "true"),
    ],
)
def test_keys_that_are_numbers_have_the_text_that_go_writes(key: str, text: str) -> None:
    assert decode(f"{key}: x\n".encode())[0] == {text: "x"}


@pytest.mark.parametrize("key", ["9223372036854775808", "~", "[a]"])
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(MalformedDocument):
        decode(f"? {key}\n: x\n".encode())


def test_a_syntax_error_has_a_place_and_a_problem_that_quotes_nothing() -> None:
    with pytest.raises(YamlSyntaxError) as refused:
        decode(b"a: b\nc: d: secret\n")
    assert (refused.value.line, refused.value.column) == (2, 5)
    assert refused.value.problem == "mapping values are not allowed in this context"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!int '12'", 12),
        ("!!float 12", 12.0),
        ("!!bool 'yes'", True),
        ("!!null ''", None),
        ("!!timestamp 2020-01-01", "2020-01-01"),
        ("!!binary aGk=", "hi"),
        ("!!unknown 12", "12"),
        ("!local true", "true"),
    ],
)
def test_a_tag_that_fits_decides_about_the_type(text: str, value: object) -> None:
    found = decode(f"a: {text}\n".encode())[0]["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("!!bool maybe", "yaml: cannot decode !!str `maybe` as a !!bool"),
        ("!!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"),
        ("!!float ''", "yaml: cannot decode !!null `` as a !!float"),
        ("!!null x", "yaml: cannot decode !!str `x` as a !!null"),
        ("!!timestamp never", "yaml: cannot decode !!str `never` as a !!timestamp"),
        ("!!binary '%'", "yaml: !!binary value contains invalid base64 data"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(text: str, why: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode(f"a: {text}\n".encode())
    assert str(refused.value) == why


def test_a_merge_key_may_be_written_with_its_tag() -> None:
    assert decode(b"a: {!!merge <<: {b: 1}}\n")[0] == {"a": {"b": 1}}
