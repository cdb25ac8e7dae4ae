"""Field selectors: printed and parsed again they are the same, and they select what a naive evaluation selects."""

from __future__ import annotations

from hypothesis import strategies as st

from steersman.api.field_selectors import FieldSelector, FieldTerm, escape, parse_fields
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    """The first line is a selector; the others are the fields of an object, ``name=value``."""
    text, *lines = data.decode("utf-8", "replace").split("\n")
    fields = dict(line.partition("=")[::2] for line in lines)
    _round_trip(lines)
    try:
        selector = parse_fields(text)
    except ValueError:
        return
    again = parse_fields(str(selector))
    # Terms are sorted by their text, which may have been another: ``a==b`` is printed as ``a=b``.
    assert str(parse_fields(str(again))) == str(again)
    assert sorted(map(repr, again.terms)) == sorted(map(repr, selector.terms))
    expected = all(
        (fields.get(term.field) or "") == term.value
        if term.equal
        else (fields.get(term.field) or "") != term.value
        for term in selector.terms
    )
    assert selector.matches(fields) is expected
    for term in selector.terms[:10]:
        only = selector.exact(term.field)
        if only is not None and expected:
            assert (fields.get(term.field) or "") == only


def _round_trip(values: list[str]) -> None:
    """Any value can be selected, once it is escaped."""
    for value in values:
        selector = parse_fields(f"metadata.name={escape(value)}")
        assert selector == FieldSelector((FieldTerm("metadata.name", value),))


_names = st.sampled_from(("metadata.name", "spec.nodeName", "", "a!b", "\\"))
_values = st.text(st.sampled_from("a\\,=!é "), max_size=4)
_terms = st.builds("{}{}{}".format, _names, st.sampled_from(("=", "==", "!=")), _values | _values.map(escape))

TARGET = Target(
    name="field_selector",
    check=check,
    seeds=(
        b"metadata.name=a,status.phase!=Running,spec.nodeName==\nmetadata.name=a\nstatus.phase=x",
        b"a=\\,\\=\\\\,,=,!=b\na=,=\\",
    ),
    strategy=st.builds(
        "{}\n{}".format,
        st.lists(_terms, max_size=4).map(",".join),
        st.dictionaries(_names, _values, max_size=3).map(
            lambda fields: "\n".join(f"{name}={value}" for name, value in fields.items())
        ),
    ).map(str.encode),
    dictionary=(b"=", b"==", b"!=", b",", b"\\", b"\\,", b"\\=", b"\\\\", b"\n"),
)
