"""Validation rules on values: transitions, ratcheting, messages and budgets. What a real server answers is in tests/real."""

from __future__ import annotations

import time
from typing import Any

import pytest

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.codec.convert import to_struct
from steersman.server.crd import rules as rules_module
from steersman.server.crd.rule_validation import validate_expressions
from steersman.server.crd.rules import RuleNode, compile_rules


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, **more}


def schema(properties: dict[str, Any], *rules: dict[str, Any]) -> JSONSchemaProps:
    plain = {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}
    made: JSONSchemaProps = to_struct(JSONSchemaProps, plain)
    return made


def compiled(properties: dict[str, Any], *rules: dict[str, Any]) -> RuleNode:
    node = compile_rules(schema(properties, *rules))
    assert node is not None
    return node


def errors(node: RuleNode, value: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [f"{error.field}: {error.message}" for error in node.check(value, old)[0]]


INTEGER = {"type": "integer"}


def test_a_rule_is_evaluated_on_every_value_of_its_schema() -> None:
    positive = {**INTEGER, "x-kubernetes-validations": [rule("self > 0")]}
    node = compiled(
        {
            "list": {"type": "array", "items": positive},
            "map": {"type": "object", "additionalProperties": positive},
        }
    )
    assert errors(node, {"list": [1, -1], "map": {"a": 0}}) == [
        "list[1]: Invalid value: -1: failed rule: self > 0",
        "map[a]: Invalid value: 0: failed rule: self > 0",
    ]
    assert errors(node, {"list": [None], "map": {}}) == []


def test_numbers_are_doubles_and_times_are_times() -> None:
    formats = {
        "ratio": {"type": "number"},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
    }
    node = compiled(
        formats,
        rule("self.ratio / 2.0 == 0.5"),
        rule("self.when < timestamp('2020-01-02T00:00:00Z')"),
        rule("self.day.getDate() == 2"),
        rule("self.wait == duration('90s')"),
        rule("self.data == b'abc'"),
    )
    value = {"ratio": 1, "when": "2020-01-01T00:00:00Z", "day": "2020-01-02", "wait": "1m30s", "data": "YWJj"}
    assert errors(node, value) == []


def test_sets_and_list_maps_are_equal_in_any_order_and_join_by_key() -> None:
    keyed = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": INTEGER}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-validations": [rule("self == oldSelf"), rule("(oldSelf + self).size() == 2")],
    }
    node = compiled({"list": keyed})
    a, b = {"name": "a", "n": 1}, {"name": "b", "n": 2}
    assert errors(node, {"list": [b, a]}, {"list": [a, b]}) == []
    assert errors(node, {"list": [b, {**a, "n": 3}]}, {"list": [a, b]}) == [
        "list: Invalid value: failed rule: self == oldSelf"
    ]


def test_an_unchanged_value_that_breaks_a_rule_is_a_warning() -> None:
    node = compiled({"a": {**INTEGER, "x-kubernetes-validations": [rule("self < 5")]}, "b": INTEGER})
    found, warned = node.check({"a": 9, "b": 2}, {"a": 9, "b": 1})
    assert (found, warned) == ([], ["a: Invalid value: 9: failed rule: self < 5"])
    assert errors(node, {"a": 8}, {"a": 9}) == ["a: Invalid value: 8: failed rule: self < 5"]


def test_a_message_that_cannot_be_made_gives_way_to_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    for expression in ("string(1 / 0)", "''", "'a\\nb'", "'x'.replace('x', 'y'.replace('y', 'z')) + ''"):
        node = compiled({"a": INTEGER}, rule("self.a > 1", messageExpression=expression))
        (text,) = errors(node, {"a": 0})
        expected = "z" if "replace" in expression else "failed rule: self.a > 1"
        assert text == f"<nil>: Invalid value: {expected}"


def test_rules_stop_where_the_budget_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "BUDGET", 50)
    items = {"type": "array", "items": INTEGER}
    node = compiled({"list": items}, rule("self.list.all(x, x > 0)"), rule("self.list.size() > 100"))
    assert errors(node, {"list": [1]}) == ["<nil>: Invalid value: failed rule: self.list.size() > 100"]
    assert errors(node, {"list": [1] * 20}) == [
        '<nil>: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules '
        "will be run"
    ]


def test_a_rule_that_costs_too_much_ends_within_a_second_and_says_so() -> None:
    items = {"type": "array", "items": INTEGER}
    node = compiled({"list": items}, rule("self.list.all(x, self.list.all(y, x == y))"), rule("false"))
    begin = time.process_time()
    (text,) = errors(node, {"list": [1] * 100_000})
    assert time.process_time() - begin < 1
    assert text == (
        "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules "
        "will be run due to call cost exceeds limit for rule: self.list.all(x, self.list.all(y, x == y))"
    )


def test_costs_are_estimated_by_the_limits_of_a_schema() -> None:
    def costs(**limits: Any) -> list[str]:
        items = {"type": "array", "items": {"type": "string", "maxLength": 10}, **limits}
        found = validate_expressions(
            schema({"list": items}, rule("self.list.all(x, self.list.exists(y, x == y))")), "s", []
        )
        return [error.message for error in found]

    assert costs(maxItems=100) == []
    assert "estimated rule cost exceeds budget by factor of more than 100x" in costs()[0]


def test_a_rule_of_a_part_that_has_errors_is_not_compiled() -> None:
    given = schema({"a": INTEGER}, rule("self.nothing"))
    from steersman.server.status_errors import FieldError

    assert len(validate_expressions(given, "s", [])) == 1
    assert validate_expressions(given, "s", [FieldError("x", "s.properties[a].type", "x")]) == []
