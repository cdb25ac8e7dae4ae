"""CEL expressions: any source has a type or `CelError`, and any typed one a value or `EvaluationError`, within its budget."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from steersman.api.cel import CelError, Environment, parse
from steersman.api.cel import check as type_check
from steersman.api.cel.checker import MAX_TYPE_SIZE, checked
from steersman.api.cel.cost import MAX, estimate
from steersman.api.cel.program import compile_program
from steersman.api.cel.runtime.values import EvaluationError, Optional
from steersman.api.cel.types import DYN, INT, STRING, Sort, list_of, map_of, optional_of
from tests.fuzz.target import Target

_ENVIRONMENT = Environment().with_variables(
    i=INT, s=STRING, l=list_of(INT), m=map_of(STRING, list_of(STRING)), o=optional_of(STRING), d=DYN
)


_VALUES: dict[str, Any] = {
    "i": 3,
    "s": "text",
    "l": [1, 2, 3],
    "m": {"a": ["b"], "c": []},
    "o": Optional("x", True),
    "d": {"i": 1, "s": [None, True, 1.5]},
}
_LIMIT = 10_000


def check(data: bytes) -> None:
    source = data.decode("utf-8", "replace")
    try:
        parse(source)
    except CelError:
        parsed = False
    else:
        parsed = True
    try:
        found = type_check(source, _ENVIRONMENT)
    except CelError as error:
        _check_error(error)
        return
    assert parsed, "an expression has a type and cannot be parsed"
    assert found.sort not in (Sort.ERROR, Sort.PARAMETER)
    assert found.size <= MAX_TYPE_SIZE
    assert str(found)
    # Brackets do not change a type.
    assert type_check(f"({source}\n)", _ENVIRONMENT) == found
    _evaluate(source)


def _evaluate(source: str) -> None:
    """A checked expression has a value or an error within its budget, and its cost can be estimated."""
    checked_source = checked(source, _ENVIRONMENT)
    assert 0 <= estimate(checked_source, lambda path: 10).max <= MAX
    program = compile_program(checked_source.expr, tuple(_VALUES), checked_source.types)
    try:
        assert program.evaluate(*_VALUES.values(), limit=_LIMIT).cost <= _LIMIT
    except EvaluationError:
        return


def _check_error(error: CelError) -> None:
    assert error.problems
    assert str(error).startswith("ERROR: ")
    assert all(-1 <= problem.at <= len(error.source) for problem in error.problems)


_names = st.sampled_from(("i", "s", "l", "m", "o", "d", "x", "@", "in"))
_literals = st.sampled_from(
    (
        "1", "-1", "0x1F", "1u", "1.5", "1e400", "9223372036854775808", "'a'", '"b"', "r'\\d'", "b'\\xff'", "'''c'''", "true", "null",
        "[]", "{}", "'\\ud800'", "duration('1h')", "timestamp('2020-01-01T00:00:00Z')", "'('",
    )
)  # fmt: skip


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(("+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in"))
    functions = st.sampled_from(
        ("size", "type", "int", "string", "dyn", "has", "optional.of", "quantity", "x")
    )
    methods = st.sampled_from(
        ("startsWith", "matches", "map", "filter", "all", "optMap", "format", "split", "orValue", "sum")
    )
    macros = st.sampled_from(
        ("map", "filter", "all", "exists", "exists_one", "optMap", "optFlatMap", "sortBy")
    )
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}({})".format, functions, inner),
        st.builds("{}.{}({})".format, inner, methods, inner),
        st.builds("{}.{}({}, {})".format, inner, macros, _names, inner),
        st.builds("{}.transformMap(k, v, {})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.?{}".format, inner, _names),
        st.builds("!{}".format, inner),
    )


TARGET = Target(
    name="cel",
    check=check,
    seeds=(
        b"l.all(x, x > 1) && s.startsWith('a') || m['k'].exists(y, y == s)",
        b"has(d.a.b) ? d.a.?b.orValue('x') : '%s %d'.format([s, i])",
        b"[1].map(a, {a: a}).map(b, {b: b}).map(c, {c: c})",
        b"o.optMap(x, x + 'a').optMap(x, x).optMap(x, x).hasValue()",
        b"[[] == [], [1] == [], {} == {'a': []}, dyn([]) + []]",
        b"s.matches('^(a|b)*$') && duration('1h') < timestamp('2020-01-01T00:00:00Z') - timestamp('2019-01-01T00:00:00Z')",
        b"google.protobuf.Duration{seconds: 1} == duration('1s') ? b'\\x00' : r'''a'''",
    ),
    strategy=st.recursive(_names | _literals, _compound, max_leaves=12).map(str.encode),
    dictionary=(
        b".map(a, {a: a})", b".optMap(x, x)", b"((((", b"))))", b"[[[[", b"]]]]", b" ? ", b" : ", b" && ", b" || ", b".?", b"[?", b"{?",
        b"'''", b'"""', b"\\u00e9", b"\\U0010FFFF", b"0x", b"9" * 30, b"9" * 5000, b"//", b"\n", b"`a-b`", b" in ", b"e+", b"!!", b"--",
        b".a.a.a.a", b"+1+1+1+1", b"[]==[],",
    ),
    max_bytes=16_384,
    # Every part may have overloads to try, of which some functions have dozens.
    seconds_per_byte=300e-6,
    memory_per_byte=6000,
)  # fmt: skip
