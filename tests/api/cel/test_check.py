"""Expressions and their types, row by row. What is wrong is told in cel-go's words."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steersman.api.cel import CelError, Environment, Structs, check
from steersman.api.cel.libraries import AUTHORIZER, LIBRARY
from steersman.api.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, list_of, map_of


def environment() -> Environment:
    base = Environment()
    structs = Structs()
    structs.include(base.structs)
    port = structs.add("Web.ports.@idx", {"number": INT, "name": STRING})
    web = structs.add(
        "Web",
        {
            "replicas": INT,
            "paused": BOOL,
            "name": STRING,
            "__namespace__": STRING,
            "labels": map_of(STRING, STRING),
            "ports": list_of(port),
            "since": TIMESTAMP,
            "either": DYN,
        },
    )
    return Environment(structs=structs).with_variables(object=web, anything=DYN, authorizer=AUTHORIZER)


ENVIRONMENT = environment()


def mistake(expression: str) -> CelError | None:
    """What is wrong with an expression."""
    try:
        check(expression, ENVIRONMENT)
    except CelError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        # literals
        ("1", "int"),
        ("-1", "int"),
        ("0x1F", "int"),
        ("1u", "uint"),
        ("1.5e3", "double"),
        ("'a'", "string"),
        ('r"\\d" + """b"""', "string"),
        ("b'\\xff'", "bytes"),
        ("true", "bool"),
        ("null", "null"),
        ("[1, 2]", "list(int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("[[], [1]]", "list(list(int))"),
        # fields
        ("object.replicas", "int"),
        ("object.namespace", "string"),
        ("object.labels.app", "string"),
        ("object.labels['app']", "string"),
        ("object.ports[0].number", "int"),
        ("has(object.labels.x)", "bool"),
        ("anything.x.y[0].z", "dyn"),
        ("object.either.x", "dyn"),
        # operators
        ("1 + 2 * 3 == 7 && !(1 > 2) || 'a' in ['a']", "bool"),
        ("object.replicas < 1.5", "bool"),
        ("object.since - object.since", "duration"),
        ("object.paused ? 1 : 2", "int"),
        ("object.paused ? anything : 2", "dyn"),
        ("anything + 1", "int"),
        ("anything + anything", "dyn"),
        ("object == null", "bool"),
        ("!!object.paused", "bool"),
        ("1 - -1 - - 1", "int"),
        # functions
        ("size(object.name) + object.labels.size()", "int"),
        ("string(1) + string(object.since)", "string"),
        ("type(1)", "type(int)"),
        ("type(1) == string", "bool"),
        ("object.name.split('-').join(',')", "string"),
        ("[3, 1].sort().max()", "int"),
        ("quantity('1').add(1).asApproximateFloat()", "double"),
        ("authorizer.group('').resource('pods').check('get').allowed()", "bool"),
        ("ip('1.2.3.4').family() + cidr('1.2.3.0/24').prefixLength()", "int"),
        ("format.named('uuid').value().validate('x')", "optional_type(list(string))"),
        ("semver('1.0.0').major()", "int"),
        ("sets.contains([1], [])", "bool"),
        ("url('http://a').getQuery()['a']", "list(string)"),
        ("'%s %d'.format(['a', 1])", "string"),
        # loops
        ("object.ports.all(p, p.number > 0)", "bool"),
        ("object.ports.exists_one(p, p.name == 'a')", "bool"),
        ("object.ports.map(p, p.number)", "list(int)"),
        ("object.ports.map(p, p.number > 1, p.name)", "list(string)"),
        ("object.ports.filter(p, p.number > 1)", "list(Web.ports.@idx)"),
        ("object.labels.map(k, k)", "list(string)"),
        ("anything.map(x, x.y)", "list(dyn)"),
        ("object.labels.transformList(k, v, size(v))", "list(int)"),
        ("object.labels.transformMap(k, v, size(v))", "map(string, int)"),
        ("object.ports.transformMapEntry(i, p, {p.name: i})", "map(string, int)"),
        ("object.ports.exists(i, p, i == p.number)", "bool"),
        ("object.ports.sortBy(p, p.name)", "list(Web.ports.@idx)"),
        ("object.ports.map(p, object.ports.map(p, p.name))", "list(list(string))"),
        # optionals
        ("object.?replicas", "optional_type(int)"),
        ("object.?labels.app", "optional_type(string)"),
        ("object.labels[?'a'].orValue('b')", "string"),
        ("object.ports[?0].optMap(p, p.number)", "optional_type(int)"),
        ("object.ports[?0].optFlatMap(p, p.?number)", "optional_type(int)"),
        ("optional.none().or(optional.of(1))", "optional_type(int)"),
        ("[?object.?replicas]", "list(int)"),
        ("{?'a': object.?replicas}", "map(string, int)"),
        ("[1].first().value()", "int"),
        # structs
        ("google.protobuf.Timestamp{seconds: 1}", "timestamp"),
    ],
)
def test_an_expression_is_of_a_type(expression: str, type_: str) -> None:
    assert str(check(expression, ENVIRONMENT)) == type_


@pytest.mark.parametrize(
    ("expression", "problems"),
    [
        ("object.nothing", [(6, "undefined field 'nothing'")]),
        ("has(object.nothing)", [(3, "undefined field 'nothing'")]),
        ("object.replicas.x", [(15, "type 'int' does not support field selection")]),
        ("object.replicas == 'a'", [(16, "found no matching overload for '_==_' applied to '(int, string)'")]),
        ("object.labels[1] == ''", [(13, "found no matching overload for '_[_]' applied to '(map(string, string), int)'")]),
        ("object.name.matches(1)", [(19, "found no matching overload for 'matches' applied to 'string.(int)'")]),
        ("size(1)", [(4, "found no matching overload for 'size' applied to '(int)'")]),
        ("quantity('1').sign()", [(18, "found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'")]),
        ("x", [(0, "undeclared reference to 'x' (in container '')")]),
        ("object.x() && y()", [(8, "undeclared reference to 'x' (in container '')"), (15, "undeclared reference to 'y' (in container '')")]),
        ("1 && 'a'", [(0, "expected type 'bool' but found 'int'"), (5, "expected type 'bool' but found 'string'")]),
        ("object.ports.all(p, p.name)", [(21, "expected type 'bool' but found 'string'")]),
        ("object.ports.filter(p, 1)", [(19, "found no matching overload for '_?_:_' applied to '(int, list(Web.ports.@idx), list(Web.ports.@idx))'")]),
        ("object.replicas.all(x, true)", [(6, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)")]),
        ("authorizer.x", [(10, "unexpected failed resolution of 'kubernetes.authorization.Authorizer'")]),
        ("object{}", [(6, "'Web' is not a type")]),
        ("int{}", [(3, "'int' is not a message type")]),
        ("google.protobuf.Duration{seconds: 'a'}", [(32, "expected type of field 'seconds' is 'int' but provided type is 'string'")]),
        ("[?1]", [(2, "expected type 'optional_type(int)' but found 'int'")]),
        # literals
        ("[1, 'a', true]", [(4, "expected type 'int' but found 'string'")]),
        ("{'a': 1, 'b': 'c', 'd': true}", [(14, "expected type 'int' but found 'string'"), (24, "expected type 'int' but found 'bool'")]),
        ("[1, anything]", [(4, "expected type 'int' but found 'dyn'")]),
        ("duration('1x')", [(9, "invalid duration argument")]),
        ("timestamp('2020-02-30T00:00:00Z')", [(10, "invalid timestamp argument")]),
        ("'a'.matches('(')", [(12, "invalid matches argument")]),
        ("'a'.matches('a(?=b)')", [(12, "invalid matches argument")]),
        ("'%d'.format(['a'])", [(13, "error during formatting: decimal clause can only be used on integers, was given string")]),
        ("'%s'.format([])", [(11, "index 0 out of range")]),
        ("'%s'.format([1, 2])", [(11, "too many arguments supplied to string.format (expected 1, got 2)")]),
        # macros
        ("has(object)", [(4, "invalid argument to has() macro")]),
        ("[1].all(1, true)", [(8, "argument must be a simple name")]),
        ("[1].map(object.x, true)", [(14, "argument is not an identifier")]),
        ("[1].all(x, x, true)", [(11, "duplicate variable name: x")]),
        ("[1].all(__result__, true)", [(8, "iteration variable overwrites accumulator variable")]),
        ("optional.of(1).optMap(1, 2)", [(22, "optMap() variable name must be a simple identifier")]),
        ("[1].existsOne(i, x, x)", [(13, "found no matching overload for '_?_:_' applied to '(int, int, int)'")]),
        # of one variable it is spelt otherwise
        ("[1].existsOne(x, true)", [(14, "undeclared reference to 'x' (in container '')"), (13, "undeclared reference to 'existsOne' (in container '')")]),
        (
            "has(1) || {}.sortBy(x, x) || package",
            [
                (4, "invalid argument to has() macro"),
                (10, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"),
                (29, "reserved identifier: package"),
            ],
        ),
        # what is no expression
        ("package", [(0, "reserved identifier: package")]),
        ("9223372036854775808", [(0, "invalid int literal")]),
        ("18446744073709551616u", [(0, "invalid uint literal")]),
        ("'\\ud800'", [(0, "invalid unicode code point")]),
        ("object.`a`", [(7, "unsupported syntax: '`'")]),
        ("#", [(0, "Syntax error: token recognition error at: '#'")]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_position(expression: str, problems: list[tuple[int, str]]) -> None:
    with pytest.raises(CelError) as wrong:
        check(expression, ENVIRONMENT)
    assert [(one.at, one.message) for one in wrong.value.problems] == problems


def test_a_mistake_is_told_once_and_not_by_all_that_follows_from_it() -> None:
    with pytest.raises(CelError) as wrong:
        check("object.nothing.x[0].all(y, y.z + 1 > size(y)) && !object.nothing", ENVIRONMENT)
    assert [one.at for one in wrong.value.problems] == [6, 56]


def test_variables_of_a_loop_end_with_it() -> None:
    with pytest.raises(CelError, match="undeclared reference to 'x'"):
        check("[1].all(x, x > 0) && x > 0", ENVIRONMENT)


@pytest.mark.parametrize(
    "expression", ["(" * 300 + "1" + ")" * 300, "1" + "+1" * 400, "a" + ".b" * 400, "[" * 300]
)
def test_what_is_nested_too_deep_is_refused(expression: str) -> None:
    with pytest.raises(CelError, match="expression recursion limit exceeded: 250"):
        check(expression, ENVIRONMENT)


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(
        CelError, match="expression code point size exceeds limit: size: 100001, limit 100000"
    ):
        check("1" * 100_001, ENVIRONMENT)


@pytest.mark.parametrize(
    "expression", ["a" * 99_000, " || ".join(["true"] * 5_000), "'" * 50_001, '"""' + "\\" * 9_999]
)
def test_what_is_long_has_one_mistake_at_most(expression: str) -> None:
    error = mistake(expression)
    assert error is None or len(error.problems) == 1


WORDS = (
    *[
        "object",
        "anything",
        "authorizer",
        "x",
        "y",
        "true",
        "false",
        "null",
        "in",
        "has",
        "all",
        "exists",
        "map",
        "filter",
        "size",
        "string",
        "int",
        "package",
    ],
    *[
        "transformMap",
        "optMap",
        "sortBy",
        "format",
        "matches",
        "duration",
        "timestamp",
        "optional",
        "none",
        "of",
        "replicas",
        "labels",
        "ports",
    ],
    *[
        ".",
        ",",
        ":",
        "?",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "<",
        ">",
        "<=",
        "==",
        "&&",
        "||",
        ".?",
        "[?",
        "1",
        "2u",
        "1.5",
        "'a'",
        "'%d'",
        "b'c'",
        "//",
        "`",
        "\\",
        "#",
        "é",
    ],
    "\n",
)
"""What expressions are made of, so that some of what comes out is one."""


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join) | st.text(max_size=60))
@example("[?anything]")
@example("'%.'.format([1])")
@example("{?anything: anything, ?'a': 1}.?a")
@settings(max_examples=400, deadline=None)
def test_any_text_is_of_a_type_or_wrong_and_nothing_else(text: str) -> None:
    error = mistake(text)
    if error is not None:
        assert error.problems
        assert all(-1 <= one.at <= len(text) for one in error.problems)
        assert str(error).startswith("ERROR: <input>:")


@given(
    st.sampled_from(sorted(LIBRARY)),
    st.lists(st.sampled_from(("1", "'a'", "[]", "anything", "object")), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_what_is_of_any_type_fits_wherever_something_fits(name: str, args: list[str]) -> None:
    if not name.isidentifier():
        return
    call = f"{name}({', '.join(args)})"
    if mistake(call) is None:
        assert mistake(f"{name}({', '.join('anything' for _ in args)})") is None


@pytest.mark.parametrize(
    "number",
    ["9" * 5000, "-" + "9" * 5000, "9" * 5000 + "u", "0x" + "f" * 5000],
    ids=["int", "negative", "uint", "hex"],
)
def test_a_number_of_too_many_digits_is_an_invalid_literal(number: str) -> None:
    with pytest.raises(CelError, match=r"invalid u?int literal"):
        check(number, Environment())


def test_zeros_before_a_number_do_not_count() -> None:
    assert check("0" * 5000 + "7", Environment()) == INT


def test_macros_that_double_an_expression_end_at_a_limit() -> None:
    with pytest.raises(CelError, match="expression size limit exceeded"):
        check("optional.of(1)" + ".optMap(x, x)" * 40, Environment())


def test_loops_that_double_a_type_end_at_a_limit() -> None:
    with pytest.raises(CelError, match="type size limit exceeded"):
        check("[1]" + "".join(f".map(v{n}, {{v{n}: v{n}}})" for n in range(60)), Environment())


@pytest.mark.parametrize(
    "pattern", [r"(a)\\1", "(?<=a)b", "a{1001}", r"\\C", "a**", r"\\Z", "(?#x)", "[b-a]"]
)
def test_a_pattern_is_judged_as_go_judges_it(pattern: str) -> None:
    with pytest.raises(CelError, match="invalid matches argument"):
        check(f"'a'.matches('{pattern}')", Environment())


@pytest.mark.parametrize(
    "pattern", [r"\\pL", "[[:alpha:]]", r"\\Qa(b\\E", "(?U)a+", r"\\z", "(?P<n>a)", "x{,5}", "(?i-s:a)"]
)
def test_what_only_go_can_read_is_a_pattern(pattern: str) -> None:
    assert check(f"'a'.matches('{pattern}')", Environment()) == BOOL
