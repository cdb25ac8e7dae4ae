"""Properties of the parser and of the evaluator, on expressions that hypothesis makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.cel import CelError, Environment, parse
from steersman.api.cel.checker import checked
from steersman.api.cel.libraries import TYPE_NAMES
from steersman.api.cel.program import compile_program
from steersman.api.cel.runtime.values import EvaluationError
from steersman.api.cel.syntax import Call, Expr, Fold, Ident, ListOf, Literal, MapOf, Select, StructOf
from steersman.api.cel.types import DYN, INT, STRING, list_of, map_of

_STRENGTHS = {"||": 1, "&&": 2, "==": 3, "<": 3, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}

LITERALS = st.sampled_from(["0", "1", "7u", "2.5", "'a'", '"b c"', "b'x'", "true", "false", "null", "r'\\d'"])
NAMES = st.sampled_from(["a", "b", "texts", "table", "number"])
ATOMS = LITERALS | NAMES

Tree = Any
"""An atom, or a tuple of an operator and its operands."""

TREES: st.SearchStrategy[Tree] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(_STRENGTHS)), inner, inner),
        st.tuples(st.just("!"), inner),
        st.tuples(st.just("?:"), inner, inner, inner),
        st.tuples(st.just("[]"), inner, inner),
        st.tuples(st.just("list"), st.lists(inner, max_size=3)),
        st.tuples(st.just("{}"), st.lists(st.tuples(inner, inner), max_size=2)),
        st.tuples(st.sampled_from(["all", "exists", "exists_one", "map", "filter"]), inner, inner),
        st.tuples(st.sampled_from(["size", "string", "int", "type"]), inner),
        st.tuples(st.just("has"), inner, st.sampled_from(["a", "b"])),
        st.tuples(
            st.sampled_from(["startsWith", "matches", "split", "indexOf", "contains", "join", "orValue"]),
            inner,
            inner,
        ),
    ),
    max_leaves=12,
)


def printed(tree: Tree, *, brackets: bool) -> str:
    """A tree as source: with brackets around every part, or only where the grammar needs them."""
    return _printed(tree, 0, brackets)


def _printed(tree: Tree, outside: int, brackets: bool) -> str:
    if isinstance(tree, str):
        return f"({tree})" if brackets else tree
    operator, *parts = tree
    strength: float

    def show(part: Tree, strength: int = 0) -> str:
        return _printed(part, strength, brackets)

    match operator:
        case "!":
            text, strength = f"!{show(parts[0], 7)}", 6
        case "?:":
            text, strength = f"{show(parts[0], 1)} ? {show(parts[1], 1)} : {show(parts[2])}", 0.5
        case "[]":
            text, strength = f"{show(parts[0], 8)}[{show(parts[1])}]", 8
        case "list":
            text, strength = f"[{', '.join(map(show, parts[0]))}]", 9
        case "{}":
            entries = ", ".join(f"{show(key)}: {show(value)}" for key, value in parts[0])
            text, strength = f"{{{entries}}}", 9
        case "all" | "exists" | "exists_one" | "map" | "filter":
            text, strength = f"{show(parts[0], 8)}.{operator}(x, {show(parts[1])})", 8
        case "size" | "string" | "int" | "type":
            text, strength = f"{operator}({show(parts[0])})", 9
        case "has":
            text, strength = f"has({show(parts[0], 8)}.{parts[1]})", 9
        case _ if operator in _STRENGTHS:
            strength = _STRENGTHS[operator]
            # The operand on the right binds stronger: operators are left-associative.
            text = f"{show(parts[0], strength)} {operator} {show(parts[1], strength + 1)}"
        case _:
            text, strength = f"{show(parts[0], 8)}.{operator}({show(parts[1])})", 8
    return f"({text})" if brackets or strength < outside else text


def shape(expr: Expr) -> Any:
    """A syntax tree without positions. Chains of one logical operator are flat either way."""
    match expr:
        case Literal():
            return expr.type.name, repr(expr.value)
        case Ident():
            return expr.name
        case Select():
            return "select", shape(expr.operand), expr.field, expr.test
        case Call(function="_&&_" | "_||_"):
            terms: list[Any] = []
            for arg in expr.args:
                one = shape(arg)
                terms += one[1] if isinstance(one, tuple) and one[0] == expr.function else [one]
            return expr.function, terms
        case Call():
            return expr.function, [shape(part) for part in expr.parts], expr.target is None
        case ListOf():
            return "list", [shape(each) for each in expr.elements]
        case MapOf() | StructOf():
            return "map", [shape(part) for part in expr.parts]
        case Fold():
            return "fold", expr.variable, [shape(part) for part in expr.parts]
    raise AssertionError(expr)


@given(TREES)
@settings(max_examples=300, deadline=None)
def test_brackets_that_the_grammar_does_not_need_change_nothing(tree: Tree) -> None:
    plain, bracketed = printed(tree, brackets=False), printed(tree, brackets=True)
    assert shape(parse(plain)) == shape(parse(bracketed)), plain


VARIABLES: dict[str, Any] = {
    "a": {"a": 1, "b": {"a": "x"}},
    "b": None,
    "texts": ["b c", "a", ""],
    "table": {"a": [1, 2], "b": []},
    "number": 3,
    "x": -1,
}
TYPED = Environment().with_variables(
    a=DYN, b=DYN, texts=list_of(STRING), table=map_of(STRING, list_of(INT)), number=INT, x=DYN
)
LIMIT = 5_000


@pytest.mark.parametrize("is_checked", [False, True])
@given(tree=TREES)
@settings(max_examples=300, deadline=None)
def test_an_evaluation_ends_within_its_budget_with_a_value_or_an_error(is_checked: bool, tree: Tree) -> None:
    source = printed(tree, brackets=False)
    try:
        expr, types = checked(source, TYPED) if is_checked else (parse(source), {})
        program = compile_program(expr, tuple(VARIABLES), types, type_names=TYPE_NAMES)
        found = program.evaluate(*VARIABLES.values(), limit=LIMIT)
    except (CelError, EvaluationError):
        return
    assert 0 <= found.cost <= LIMIT
    # The same again: evaluation changes neither the variables nor the program.
    assert repr(program.evaluate(*VARIABLES.values(), limit=LIMIT)) == repr(found)


@given(tree=TREES)
@settings(max_examples=200, deadline=None)
def test_types_do_not_change_values(tree: Tree) -> None:
    source = printed(tree, brackets=False)
    try:
        expr, types = checked(source, TYPED)
    except CelError:
        return
    outcomes = []
    for known in (types, {}):
        program = compile_program(expr, tuple(VARIABLES), known, type_names=TYPE_NAMES)
        try:
            outcomes.append(repr(program.evaluate(*VARIABLES.values()).value))
        except EvaluationError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1], source
