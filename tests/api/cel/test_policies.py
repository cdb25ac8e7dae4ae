"""Policies against the types of what they match: upstream's table, and what is around it."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.cel import Structs, check
from steersman.api.cel.policies import MatchedKind, environment, warnings, with_variables
from steersman.api.cel.schemas import kind_type
from steersman.api.cel.types import DYN, INT, STRING, Type

GVK = {"group": "apps", "version": "v1", "kind": "Deployment"}


def deployment(properties: dict[str, Any] | None) -> tuple[Type, Structs]:
    """The type of objects with some properties, or of a schema that says nothing."""
    schema: dict[str, Any] = {} if properties is None else {"type": "object", "properties": properties}
    structs = Structs()
    document = {"components": {"schemas": {"D": {**schema, "x-kubernetes-group-version-kind": [GVK]}}}}
    return kind_type(document, "apps", "v1", "Deployment", structs, "Deployment"), structs


TEXT, NUMBER = {"type": "string"}, {"type": "integer", "format": "int64"}
OPEN = {"type": "object", "properties": {"problematic": {"type": "object", "additionalProperties": True}}}


@pytest.mark.parametrize(
    ("properties", "expression", "variables", "wrong"),
    [
        ({"foo": TEXT}, "object.foo == 'bar'", {}, ""),
        ({"bar": TEXT}, "object.foo == 'bar'", {}, "undefined field 'foo'"),
        ({"foo": NUMBER}, "object.foo == 'bar'", {}, "found no matching overload for '_==_' applied to '(int, string)'"),
        ({"foo": TEXT}, "object.foo == params.bar", {}, "undefined field 'bar'"),
        (None, "params != null", {}, ""),
        (None, "true", {}, ""),
        ({"foo": TEXT}, "object.foo + 114514", {}, "found no matching overload for '_+_' applied to '(string, int)'"),
        ({"foo": TEXT}, "authorizer.group('').resource('endpoints').check('create').allowed()", {}, ""),
        (
            {"foo": TEXT},
            "authorizer.allowed()",
            {},
            "found no matching overload for 'allowed' applied to 'kubernetes.authorization.Authorizer.()'",
        ),
        ({"spec": {"type": "object", "properties": {"text": TEXT}}, "status": OPEN}, "has(object.spec.text)", {}, ""),
        ({"foo": NUMBER}, "variables.works", {"works": "true"}, ""),
        ({"foo": NUMBER}, "variables.nonExisting", {"works": "true"}, "undefined field 'nonExisting'"),
        (
            {"foo": NUMBER},
            "variables.name == object.foo",
            {"name": "'something'"},
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        ({"foo": NUMBER}, "variables.name == object.foo", {"name": "object.foo == 'str'"}, ""),
        ({"foo": NUMBER}, "variables.second == 'a'", {"first": "1", "second": "variables.first"}, "'(int, string)'"),
        ({"foo": NUMBER}, "variables.all[0] == 'a'", {"all": "[object.foo]"}, "'(int, string)'"),
        ({"foo": NUMBER}, "variables.object.nothing", {"object": "object"}, ""),
        ({"foo": NUMBER}, "request.userInfo.username == 1", {}, "'(string, int)'"),
        ({"foo": NUMBER}, "request.namespace == namespaceObject.metadata.name", {}, ""),
        ({"foo": NUMBER}, "namespaceObject.metadata.labels.x == oldObject.foo", {}, "'(string, int)'"),
    ],
)  # fmt: skip
def test_expressions_are_checked_with_what_is_matched(
    properties: dict[str, Any] | None, expression: str, variables: dict[str, str], wrong: str
) -> None:
    type_, structs = deployment(properties)
    known = with_variables(environment(structs, type_, type_), variables.items())
    found = list(
        warnings([("spec.validations[0].expression", expression)], [MatchedKind(**GVK, environment=known)])
    )
    assert bool(found) == bool(wrong)
    if wrong:
        [(field, warning)] = found
        assert field == "spec.validations[0].expression"
        assert warning.startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:")
        assert wrong in warning
        assert warning.endswith("^\n")


def test_a_warning_tells_of_all_kinds_something_is_wrong_with() -> None:
    def kind(name: str, type_: Type) -> MatchedKind:
        structs = Structs()
        return MatchedKind("", "v1", name, environment(structs, structs.add(name, {"x": type_})))

    matched = [kind("A", INT), kind("B", STRING), kind("C", INT)]
    found = list(warnings([("f", "object.x == 'a'"), ("g", "object.x == object.x")], matched))
    words = "found no matching overload for '_==_' applied to '(int, string)'"
    shown = f"ERROR: <input>:1:10: {words}\n | object.x == 'a'\n | .........^\n"
    assert found == [("f", f"/v1, Kind=A: {shown}\n/v1, Kind=C: {shown}")]


def test_there_are_parameters_only_where_a_policy_has_some() -> None:
    assert check("params.x", environment(Structs(), DYN, DYN)) == DYN
    found = list(warnings([("f", "params.x")], [MatchedKind("", "v1", "Pod", environment(Structs(), DYN))]))
    assert "undeclared reference to 'params' (in container '')" in found[0][1]
