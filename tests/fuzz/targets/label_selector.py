"""Label selectors: printed and parsed again they are the same, and they select what a naive evaluation selects."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from steersman.api.generated.meta_v1 import LabelSelector, LabelSelectorRequirement
from steersman.api.label_selectors import Requirement, compile_selector, parse_selector
from tests.fuzz.target import Target

_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


def check(data: bytes) -> None:
    """The first line is a selector; the others are the labels of an object, ``key=value``."""
    text, *lines = data.decode("utf-8", "replace").split("\n")
    labels = dict(line.partition("=")[::2] for line in lines)
    try:
        selector = parse_selector(text)
    except ValueError:
        return
    again = parse_selector(str(selector))
    assert str(again) == str(selector)
    assert again.requirements == selector.requirements
    expected = all(_holds(one, labels) for one in selector.requirements)
    assert selector.matches(labels) is expected
    for one in selector.requirements[:10]:
        only = selector.exact(one.key)
        if only is not None and expected:
            assert labels.get(one.key) == only
    if all(one.operator in _OPERATORS for one in selector.requirements):
        structured = compile_selector(
            LabelSelector(
                matchExpressions=tuple(
                    LabelSelectorRequirement(
                        key=one.key, operator=_OPERATORS[one.operator], values=one.values
                    )
                    for one in selector.requirements
                )
            )
        )
        assert structured.matches(labels) is expected


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds, from the documentation of the operators."""
    present = requirement.key in labels
    value = labels.get(requirement.key, "")
    match requirement.operator:
        case "exists":
            return present
        case "!":
            return not present
        case "=" | "==" | "in":
            return present and any(value == one for one in requirement.values)
        case "!=" | "notin":
            return not present or all(value != one for one in requirement.values)
    (bound,) = requirement.values
    number = _number(value)
    if number is None:
        return False
    return number > int(bound) if requirement.operator == "gt" else number < int(bound)


def _number(text: str) -> int | None:
    """The value of a number of 64 bits; None for any other text."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 40:
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


_keys = st.sampled_from(("a", "b.c/d", "in", "notin", "x_1", "-", "a/b/c", "é"))
_values = st.sampled_from(("", "a", "1", "-5", "x.y", "in", "9223372036854775808"))
_requirements = st.one_of(
    st.builds("{}{}{}".format, _keys, st.sampled_from(("=", "==", "!=", ">", "<", " = ")), _values),
    st.builds(
        "{} {} ({})".format,
        _keys,
        st.sampled_from(("in", "notin")),
        st.lists(_values, max_size=3).map(",".join),
    ),
    st.builds("{}{}".format, st.sampled_from(("", "!")), _keys),
)
_labels = st.dictionaries(_keys, _values, max_size=3).map(
    lambda labels: "\n".join(f"{key}={value}" for key, value in labels.items())
)

TARGET = Target(
    name="label_selector",
    check=check,
    seeds=(
        b"a=b,c!=d,e in (x,y),f notin (z),!g,h,i>1,j<2\na=b\ne=x\nh=\ni=2\nj=1",
        b"in in (in,notin,), notin==\nin=in",
        b"a.b/c , ! d\na.b/c=1",
    ),
    strategy=st.builds("{}\n{}".format, st.lists(_requirements, max_size=4).map(",".join), _labels).map(
        str.encode
    ),
    dictionary=(
        b" in (",
        b" notin (",
        b")",
        b",",
        b"!",
        b"!=",
        b"==",
        b">",
        b"<",
        b"\n",
        b"a=",
        b"\t",
        b"\xc2\x85",
    ),
)
