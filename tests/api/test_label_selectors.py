"""Label selectors: what they select, how they are spelt, and what upstream refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import label_selectors
from steersman.api.kinds import LabelSelector, LabelSelectorRequirement
from steersman.api.label_selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    compile_selector,
    parse_selector,
)


def expressions(*parts: tuple[str, str, tuple[str, ...]]) -> LabelSelector:
    return LabelSelector(
        matchExpressions=tuple(LabelSelectorRequirement(key=k, operator=o, values=v) for k, o, v in parts)
    )


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not any(compile_selector(None).matches(labels) for labels in ({}, {"a": "b"}, {"": ""}))
    assert not compile_selector(None).empty
    assert compile_selector(LabelSelector()).matches({})
    assert compile_selector(LabelSelector()).empty
    assert compile_selector({}).empty
    assert (str(NOTHING), str(EVERYTHING)) == ("", "")
    assert NOTHING != EVERYTHING


def test_plain_labels_must_all_be_there() -> None:
    selector = compile_selector(LabelSelector(matchLabels={"b": "2", "a": "1"}))
    assert selector.matches({"a": "1", "b": "2", "c": "3"})
    assert not selector.matches({"a": "1"})
    assert not selector.matches({"a": "1", "b": "3"})
    assert str(selector) == "a=1,b=2"


def test_the_map_of_a_replication_controller_is_a_selector_too() -> None:
    assert compile_selector({"a": "1"}) == compile_selector(LabelSelector(matchLabels={"a": "1"}))


@pytest.mark.parametrize(
    ("operator", "values", "matching", "failing", "written"),
    [
        ("In", ("y", "x"), {"k": "x"}, {"k": "z"}, "k in (x,y)"),
        ("In", ("x",), {"k": "x"}, {}, "k in (x)"),
        ("NotIn", ("x",), {}, {"k": "x"}, "k notin (x)"),
        ("Exists", (), {"k": ""}, {}, "k"),
        ("DoesNotExist", (), {}, {"k": ""}, "!k"),
    ],
)
def test_expressions_mean_what_they_say(
    operator: str, values: tuple[str, ...], matching: dict[str, str], failing: dict[str, str], written: str
) -> None:
    selector = compile_selector(expressions(("k", operator, values)))
    assert selector.matches(matching)
    assert not selector.matches(failing)
    assert str(selector) == written


def test_labels_and_expressions_must_all_hold() -> None:
    selector = compile_selector(
        LabelSelector(
            matchLabels={"z": "1"},
            matchExpressions=(LabelSelectorRequirement(key="a", operator="NotIn", values=("x",)),),
        )
    )
    assert selector.matches({"z": "1"})
    assert not selector.matches({"z": "1", "a": "x"})
    assert not selector.matches({})
    assert str(selector) == "a notin (x),z=1"


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (expressions(("k", "Equals", ("x",))), '"Equals" is not a valid label selector operator'),
        (
            expressions(("k", "In", ())),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expressions(("k", "Exists", ("x",))),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_selector_that_makes_no_sense_is_a_value_error(selector: LabelSelector, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the message is compared whole)
        compile_selector(selector)
    assert str(caught.value) == message


def test_a_key_or_value_that_no_label_can_have_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r'^key: Invalid value: "a b": name part must consist of'):
        compile_selector({"a b": "c"})
    with pytest.raises(ValueError, match=r'^values\[0\]\[a\]: Invalid value: "-": a valid label must be'):
        compile_selector({"a": "-"})
    with pytest.raises(ValueError, match=r"^\[key: .*, values: .*\]$"):
        compile_selector(expressions(("a b", "In", ())))


def test_compiling_the_same_again_is_free() -> None:
    first = compile_selector(LabelSelector(matchLabels={"a": "1"}))
    assert compile_selector(LabelSelector(matchLabels={"a": "1"})) is first
    assert parse_selector("a=1,b") is parse_selector("a=1,b")


def test_long_selectors_are_not_cached() -> None:
    text = ",".join(f"k{i}" for i in range(20_000))
    labels = {f"k{i}": "v" for i in range(100)}
    parse_selector("short=1")  # so that something is cached, whichever tests ran before
    for _ in range(2):
        assert len(parse_selector(text).requirements) == 20_000
        assert len(compile_selector(labels).requirements) == 100
        assert len(compile_selector(expressions(("k", "In", tuple(labels)))).requirements) == 1
    assert max(len(text) for text, _ in label_selectors._parsed.items()) <= 512
    assert all(len(selector.requirements) < 40 for _, selector in label_selectors._parsed.items())
    for (plain, rules), _ in label_selectors._compiled.items():
        assert len(plain) + sum(1 + len(values) for _, _, values in rules) < 40


def test_a_selector_tells_the_one_value_it_demands() -> None:
    selector = parse_selector("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.exact(key) for key in "abcde"] == ["1", "2", None, None, None]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("a=b,c!=d,e in (x,y),!f,g", "a=b,c!=d,e in (x,y),!f,g"),
        (" b == 1 , a ", "a,b==1"),
        ("a in (y,,x)", "a in (,x,y)"),
        ("a in ()", "a in ()"),
        ("a notin (,)", "a notin ()"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("in in (in),notin", "in in (in),notin"),
        ("y<2,x>1", "x>1,y<2"),
    ],
)
def test_a_query_is_read_and_spelt_as_upstream_does(text: str, written: str) -> None:
    assert str(parse_selector(text)) == written


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("a>4", {"a": "5"}, True),
        ("a>4", {"a": "4"}, False),
        ("a>4", {"a": "five"}, False),
        ("a>4", {}, False),
        ("a<4", {"a": "3"}, True),
        ("a<4", {"a": "99999999999999999999"}, False),
        ("a!=b", {}, True),
        ("a", {"a": "x"}, True),
        ("!a", {"a": "x"}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
    ],
)
def test_a_query_selects(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_selector(text).matches(labels) is selected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (x,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a>b",
            'unable to parse requirement: values[0]: Invalid value: "b": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_query_that_cannot_be_read_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse_selector(text)
    assert str(caught.value) == message


def test_a_bad_key_in_a_query_is_named() -> None:
    with pytest.raises(ValueError, match=r'^unable to parse requirement: <nil>: Invalid value: "a/b/c": '):
        parse_selector("a/b/c=1")


words = st.sampled_from(("a", "b", "c", "in", "notin", "10"))
keys = words | st.just("x.y/z")
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(("=", "==", "!=")), st.tuples(words)),
    st.builds(
        Requirement,
        keys,
        st.sampled_from(("in", "notin")),
        st.lists(words, min_size=1, max_size=3, unique=True).map(lambda v: tuple(sorted(v))),
    ),
    st.builds(Requirement, keys, st.sampled_from(("exists", "!"))),
    st.builds(Requirement, keys, st.sampled_from(("gt", "lt")), st.tuples(st.integers(0, 99).map(str))),
)
selectors = st.lists(requirements, max_size=5).map(Selector)


@given(selectors)
def test_what_a_selector_writes_reads_as_the_same_selector(selector: Selector) -> None:
    assert parse_selector(str(selector)) == selector


@given(selectors, st.dictionaries(keys, words, max_size=4))
def test_a_selector_selects_what_all_its_requirements_select(
    selector: Selector, labels: dict[str, str]
) -> None:
    assert selector.matches(labels) == all(r.matches(labels) for r in selector.requirements)


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_a_value_error(text: str) -> None:
    try:
        parse_selector(text).matches({})
    except ValueError:
        pass
