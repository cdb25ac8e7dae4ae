"""Expressions evaluated on plain values, with CEL's rules where Python's differ."""

from __future__ import annotations

import pytest

from steersman.api.cel import parse
from steersman.api.cel.evaluator import EvaluationError, evaluate
from steersman.api.cel.runtime.kubernetes import Semver, parse_semver
from steersman.api.quantity import Quantity

DEVICE = {
    "driver": "gpu.example.com",
    "attributes": {
        "gpu.example.com": {
            "model": "a100",
            "index": 3,
            "healthy": True,
            "version": parse_semver("1.10.0"),
            "modes": ["x", "y"],
        }
    },
    "capacity": {"gpu.example.com": {"memory": Quantity.parse("40Gi")}},
}


def value(source: str) -> object:
    return evaluate(parse(source), {"device": DEVICE})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("true", True),
        ("1 + 2 * 3", 7),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 2.0", 3.5),
        ("1 == 1.0", True),
        ("true == 1", False),
        ("'a' + 'b' == 'ab'", True),
        ("[1, 2] + [3] == [1, 2, 3]", True),
        ("'a' < 'b' && 2 >= 2", True),
        ("1 in [1, 2] && !('z' in {'a': 1})", True),
        ("size('héllo') == 5 && [1].size() == 1", True),
        ("1 > 0 ? 'yes' : 'no'", "yes"),
        ("int('12') + int(2.9)", 14),
        ("string(1) + string(true)", "1true"),
        # Where one side decides, an error of the other does not count.
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("[1, 2].all(x, x > 0) && [1, 2].exists(x, x == 2)", True),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[1, 2, 1].exists_one(x, x == 1)", False),
        ("[1, 2].map(x, x * 2) == [2, 4]", True),
        ("[1, 2, 3].filter(x, x > 1) == [2, 3]", True),
        ("{'a': 1, 'b': 2}.all(k, k != 'c')", True),
        ("'gpu-1'.matches('^gpu-[0-9]+$')", True),
        ("'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b')", True),
        ("'ABC'.lowerAscii() == 'abc' && 'a,b'.split(',') == ['a', 'b']", True),
        ("device.driver == 'gpu.example.com'", True),
        ("device.attributes['gpu.example.com'].model == 'a100'", True),
        ("device.attributes['gpu.example.com'].index > 2", True),
        ("device.attributes['gpu.example.com'].healthy", True),
        ("has(device.attributes['gpu.example.com'].nothing)", False),
        ("'gpu.example.com' in device.attributes", True),
        ("device.attributes['gpu.example.com'].modes.includes('y')", True),
        ("device.attributes['gpu.example.com'].model.includes('a100')", True),
        ("device.attributes['gpu.example.com'].?nothing.orValue(7)", 7),
        ("device.attributes[?'other'].hasValue()", False),
        ("optional.of(1).value() == 1 && !optional.none().hasValue()", True),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40960Mi')) == 0", True),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('80Gi'))", False),
        ("quantity('1').add(quantity('2')).asInteger() == 3 && isQuantity('1x') == false", True),
        # Numbers of a version are compared as numbers.
        ("device.attributes['gpu.example.com'].version.isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", True),
        ("semver('1.0.0').compareTo(semver('1.0.0-rc.1'))", 1),
        ("cel.bind(g, device.attributes['gpu.example.com'], g.healthy && g.index == 3)", True),
        ("isSemver('1.0') || semver('1.2.3').minor() == 2", True),
    ],
)
def test_an_expression_has_its_value(source: str, expected: object) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("device.attributes['gpu.example.com'].nothing == 1", "no such key: nothing"),
        ("device.attributes['other'].model == 'x'", "no such key: other"),
        ("[1][3]", "index out of bounds: 3"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("1 + 'a'", "no such overload"),
        ("'a' < 1", "no such overload"),
        ("!1", "no such overload"),
        ("1 && true", "no such overload"),
        ("unknown == 1", "no such attribute"),
        ("semver('1.0')", "No Major.Minor.Patch elements found"),
        ("optional.none().value()", "dereference"),
        ("'a'.matches('(')", "missing"),
        ("{'a': 1, 'a': 2}", "repeated key"),
        ("[1, 0].all(x, 1 / x == 1)", "division by zero"),
    ],
)
def test_an_expression_without_a_value_says_why(source: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message.replace("(", r"\(")):
        value(source)


@pytest.mark.parametrize(
    "source",
    [
        f"{[0] * 50}.all(a, {[0] * 50}.all(b, {[0] * 50}.all(c, {[0] * 50}.all(d, true))))",
        "[0,0,0,0,0,0,0,0,0,0].map(a, 'x').exists(a, " + " + ".join(["'" + "y" * 900 + "'"] * 90) + " == a)",
    ],
)
def test_an_expression_that_would_take_long_ends_at_a_limit(source: str) -> None:
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        evaluate(parse(source), {}, limit=20_000)


LARGE = {"text": "a" * 1_000_000, "many": [0] * 3_000}


@pytest.mark.parametrize(
    "source",
    [
        "'%s'.format([large.many.map(i, large.text)])",
        "'%s'.format([{'a': large.many.map(i, large)}])",
        "'%s%s%s%s%s'.format([large.text, large.text, large.text, large.text, large.text])",
        "large.many.map(i, large.text).join()",
    ],
)
def test_a_text_that_would_not_fit_into_memory_is_not_made(source: str) -> None:
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        evaluate(parse(source), {"large": LARGE})


@pytest.mark.parametrize("digits", ["1" * 1000 + "x", "1_1", "." + "1" * 1000 + "e", "1" * 1000 + "_"])
def test_a_text_that_is_no_double_is_refused_in_time_linear_in_its_length(digits: str) -> None:
    with pytest.raises(EvaluationError, match="to 'double'"):
        evaluate(parse("double(s)"), {"s": digits})


@pytest.mark.parametrize(
    ("source", "expected"), [("int(s)", 7), ("int('-' + s)", -7), ("int('+' + s)", 7), ("int(uint(s))", 7)]
)
def test_a_number_may_have_any_number_of_zeros_in_front(source: str, expected: int) -> None:
    assert evaluate(parse(source), {"s": "0" * 10_000 + "7"}) == expected
    assert evaluate(parse(source), {"s": "0" * 10_000}) == 0


def test_versions_are_ordered_and_hashed_without_build_metadata() -> None:
    one, other = parse_semver("1.2.3+a"), parse_semver("1.2.3+b")
    assert one == other
    assert hash(one) == hash(other)
    assert Semver(1, 2, 3) > Semver(1, 2, 3, ("rc",))
