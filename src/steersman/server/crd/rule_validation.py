"""Validation of the expressions of validation rules in a definition: their types, and what they can cost.

The cost of a rule is estimated from the limits of its schema, times how often its value can be in one object. One rule and
all rules of a version together have a limit each.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.cel import Structs
from steersman.api.cel.declarations import Declaration, declare
from steersman.api.cel.schemas import escape
from steersman.api.generated.apiextensions_v1 import JSONSchemaProps, ValidationRule
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.rules import CompiledRule, compile_rule, max_cardinality
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, go_struct

EXPRESSION_LIMIT = 10_000_000
"""The estimated cost of one expression (StaticEstimatedCostLimit)."""
VERSION_LIMIT = 100_000_000
"""The estimated cost of all rules of a version (StaticEstimatedCRDCostLimit)."""
_MAX = 2**64 - 1
_SHOWN = 4
"""The most expensive rules, which are named where all of them together cost too much."""


class _Node(msgspec.Struct, frozen=True):
    """A schema and its place."""

    schema: JSONSchemaProps
    plain: Any
    path: str
    declaration: Declaration | None
    """None if its type is not visible from outside."""
    cardinality: int | None
    """How often its value can be in one object; None if no limit is stated."""
    uncorrelatable: str
    """The path of the list around it whose items cannot be compared with those they replace; empty if there is none."""
    root: bool


class _Validation:
    def __init__(self, schema_errors: list[FieldError]) -> None:
        self.errors = FieldErrors()
        self.total = 0
        self.expensive: list[tuple[int, str]] = []
        self._structs = Structs()
        self._broken = [error.field for error in schema_errors]

    def validate(self, node: _Node) -> None:
        schema, path = node.schema, node.path
        inner_cardinality = _times(node.cardinality, _elements(schema))
        if isinstance(schema.additionalProperties, JSONSchemaProps):
            self._inside(node, schema.additionalProperties, "additionalProperties", inner_cardinality)
        for name in schema.properties:
            self._property(node, name, inner_cardinality)
        if isinstance(schema.items, JSONSchemaProps):
            correlated = schema.xKubernetesListType == "map"
            blocked = node.uncorrelatable or ("" if correlated else path)
            self._inside(node, schema.items, "items", inner_cardinality, blocked)
        if schema.xKubernetesValidations and not any(field.startswith(path) for field in self._broken):
            self._rules(node)

    def _inside(
        self,
        node: _Node,
        schema: JSONSchemaProps,
        name: str,
        cardinality: int | None,
        uncorrelatable: str | None = None,
    ) -> None:
        self.validate(
            _Node(
                schema,
                node.plain[name],
                f"{node.path}.{name}",
                None if node.declaration is None else node.declaration.element,
                cardinality,
                node.uncorrelatable if uncorrelatable is None else uncorrelatable,
                schema.xKubernetesEmbeddedResource,
            )
        )

    def _property(self, node: _Node, name: str, cardinality: int | None) -> None:
        schema = node.schema.properties[name]
        escaped = escape(name)
        declaration = None
        if node.declaration is not None and escaped is not None:
            declaration = node.declaration.fields.get(escaped)
        self.validate(
            _Node(
                schema,
                node.plain["properties"][name],
                f"{node.path}.properties[{name}]",
                declaration,
                cardinality,
                node.uncorrelatable,
                schema.xKubernetesEmbeddedResource,
            )
        )

    def _rules(self, node: _Node) -> None:
        schema, where = node.schema, f"{node.path}.x-kubernetes-validations"
        declaration = node.declaration or declare(node.plain, self._structs, node.path, root=node.root)
        if declaration is None:
            detail = (
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to "
                "convert structural schema to CEL declarations"
            )
            self.errors.append(FieldError("InternalError", where, f"Internal error: {detail}"))
            return
        for index, rule in enumerate(schema.xKubernetesValidations):
            compiled = compile_rule(rule, schema, declaration, self._structs)
            self._rule(compiled, node, declaration, f"{where}[{index}]")

    def _rule(self, compiled: CompiledRule, node: _Node, declaration: Declaration, where: str) -> None:
        rule = compiled.rule
        times = max_cardinality(declaration) if node.cardinality is None else node.cardinality
        cost = min(compiled.max_cost * times, _MAX)
        self._observe(f"{where}.rule", "estimated rule cost", cost)
        if compiled.error:
            self.errors.invalid(f"{where}.rule", _shown(rule), compiled.error)
        if compiled.message_error:
            self.errors.invalid(f"{where}.messageExpression", _shown(rule), compiled.message_error)
        elif compiled.message is not None:
            self._observe(
                f"{where}.messageExpression", "estimated messageExpression cost", compiled.message_cost
            )
        if compiled.uses_old_self:
            if node.uncorrelatable:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {node.uncorrelatable}"
                self.errors.invalid(f"{where}.rule", rule.rule, detail)
        elif rule.optionalOldSelf is not None:
            detail = "may not be set if oldSelf is not used in rule"
            self.errors.invalid(f"{where}.optionalOldSelf", rule.optionalOldSelf, detail)

    def _observe(self, where: str, name: str, cost: int) -> None:
        if cost > EXPRESSION_LIMIT:
            self.errors.forbidden(where, _cost_message(name, cost, EXPRESSION_LIMIT))
        self.total = min(self.total + cost, _MAX)
        if cost >= VERSION_LIMIT // 100:
            self.expensive = sorted((*self.expensive, (cost, where)), key=lambda each: -each[0])[:_SHOWN]


def validate_expressions(
    schema: JSONSchemaProps, path: str, schema_errors: list[FieldError]
) -> list[FieldError]:
    """Validates the rules of a structural schema; those of a part that has errors are left out."""
    found = _Validation(schema_errors)
    plain = to_builtins(schema)
    declaration = declare(plain, found._structs, "selfType", root=True)
    found.validate(_Node(schema, plain, path, declaration, 1, "", root=True))
    if found.total > VERSION_LIMIT:
        for _, where in found.expensive:
            found.errors.forbidden(
                where,
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
            )
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        found.errors.forbidden(path, _cost_message(name, found.total, VERSION_LIMIT))
    return found.errors


def _elements(schema: JSONSchemaProps) -> int | None:
    """How many values a value has inside; None if no limit is stated."""
    if schema.type == "array":
        return None if schema.maxItems is None else max(schema.maxItems, 0)
    if schema.type == "object" and schema.additionalProperties is not None:
        return None if schema.maxProperties is None else max(schema.maxProperties, 0)
    return 1


def _times(cardinality: int | None, elements: int | None) -> int | None:
    return None if cardinality is None or elements is None else min(cardinality * elements, _MAX)


def _cost_message(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )


def _shown(rule: ValidationRule) -> object:
    """A rule as upstream's message has it: the fields of its internal type."""
    return go_struct(
        Rule=rule.rule,
        Message=rule.message,
        MessageExpression=rule.messageExpression,
        Reason=rule.reason,
        FieldPath=rule.fieldPath,
        OptionalOldSelf=rule.optionalOldSelf,
    )
