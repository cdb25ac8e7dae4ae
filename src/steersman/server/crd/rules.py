"""Validation rules of custom resources (``x-kubernetes-validations``), compiled once for each version and evaluated on writes.

A rule is evaluated on every value of the schema it stands in. A rule that reads ``oldSelf`` is evaluated only where the value
replaces one that it can be compared with; the failure of any other rule is a warning where the value has not changed
("ratcheting"). All rules of one object share a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.cel import CelError, Environment, Structs
from steersman.api.cel.checker import Checked, checked
from steersman.api.cel.conversion import compile_conversion, needs_list_types
from steersman.api.cel.cost import estimate
from steersman.api.cel.declarations import MAX_REQUEST, Declaration, declare
from steersman.api.cel.libraries import TYPE_NAMES
from steersman.api.cel.program import PER_CALL_LIMIT, Program, Result, compile_program
from steersman.api.cel.runtime.values import NONE, CostLimitExceeded, EvaluationError, Optional
from steersman.api.cel.schemas import escape
from steersman.api.cel.syntax import Ident, walk
from steersman.api.cel.types import BOOL, STRING, optional_of
from steersman.api.generated.apiextensions_v1 import JSONSchemaProps, ValidationRule
from steersman.api.go_quote import quote
from steersman.api.patch.values import json_equal
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.errors import MISSING, NO_FIELD
from steersman.server.crd.number_validation import number
from steersman.server.crd.paths import InvalidPath, field_at
from steersman.server.evaluation import Meter, evaluated, evaluation_key
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import OMITTED, FieldErrors, Verbatim

BUDGET = 10_000_000
"""The cost of all rules of one object (RuntimeCELCostBudget)."""
MAX_MESSAGE = 5 * 1024
"""Bytes of a message that a messageExpression makes."""
_SELF_TYPE = "selfType"


class CompiledRule(NamedTuple):
    """A rule and its programs, or the errors of its expressions."""

    rule: ValidationRule
    program: Program | None = None
    error: str = ""
    uses_old_self: bool = False
    max_cost: int = 0
    message: Program | None = None
    message_error: str = ""
    message_cost: int = 0
    field_path: str = ""
    list_types: bool = False
    """Whether an expression compares or joins lists, so that it has to know sets and list maps."""

    @property
    def optional_old_self(self) -> bool:
        return bool(self.rule.optionalOldSelf)


def max_cardinality(declaration: Declaration) -> int:
    """How often a value can be in one object, if no list or map around it has a limit."""
    return MAX_REQUEST // (declaration.min_size + 1)


def compile_rule(
    rule: ValidationRule, schema: JSONSchemaProps, declaration: Declaration, structs: Structs
) -> CompiledRule:
    """Compiles a rule of a schema."""
    if not rule.rule.strip():
        return CompiledRule(rule)
    environment = _environment(declaration, structs, optional=bool(rule.optionalOldSelf))
    try:
        found = checked(rule.rule, environment)
    except CelError as error:
        return CompiledRule(rule, error=f"compilation failed: {error}")
    if found.type != BOOL:
        return CompiledRule(rule, error="cel expression must evaluate to a bool")
    compiled = CompiledRule(
        rule,
        _program(found),
        uses_old_self=any(isinstance(part, Ident) and part.name == "oldSelf" for part, _ in walk(found.expr)),
        max_cost=_cost(found, declaration),
        field_path=_field_path(rule, schema),
        list_types=needs_list_types(found),
    )
    return _with_message(compiled, environment, declaration) if rule.messageExpression else compiled


def _with_message(compiled: CompiledRule, environment: Environment, declaration: Declaration) -> CompiledRule:
    try:
        found = checked(compiled.rule.messageExpression, environment)
    except CelError as error:
        return compiled._replace(message_error=f"messageExpression compilation failed: {error}")
    if found.type != STRING:
        return compiled._replace(message_error="messageExpression must evaluate to a string")
    return compiled._replace(
        message=_program(found),
        message_cost=_cost(found, declaration),
        list_types=compiled.list_types or needs_list_types(found),
    )


def _environment(declaration: Declaration, structs: Structs, *, optional: bool) -> Environment:
    known = Environment().structs.copy()
    known.include(structs)
    old = optional_of(declaration.type) if optional else declaration.type
    return Environment(structs=known).with_variables(self=declaration.type, oldSelf=old)


def _program(found: Checked) -> Program:
    return compile_program(found.expr, ("self", "oldSelf"), found.types, type_names=TYPE_NAMES)


def _cost(found: Checked, declaration: Declaration) -> int:
    def size(path: tuple[str, ...]) -> int | None:
        there = declaration.at(path[1:])
        return None if there is None else there.max_elements

    return estimate(found, size).max


def _field_path(rule: ValidationRule, schema: JSONSchemaProps) -> str:
    if not rule.fieldPath:
        return ""
    try:
        return field_at(schema, rule.fieldPath)[0]
    except InvalidPath:
        return ""


# -- one object -------------------------------------------------------------------------------


class Chain(msgspec.Struct, frozen=True):
    """A value with the one it replaces, and the values around it; `MISSING` replaces what cannot be told."""

    value: Any
    old: Any
    outside: Chain | None

    def is_unchanged(self) -> bool:
        """Whether the value, or the nearest one around it that can be compared, equals the one it replaces."""
        here: Chain | None = self
        while here is not None and here.old is MISSING:
            here = here.outside
        return here is not None and here.old is not None and json_equal(here.value, here.old)


class Evaluation:
    """The evaluation of all rules of one object."""

    __slots__ = ("budget", "errors", "meter", "warnings")

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.budget = BUDGET
        """The cost that is left; negative if no further rules are evaluated."""
        self.errors = FieldErrors()
        self.warnings: list[str] = []

    def evaluate(self, program: Program, current: Any, former: Any) -> Result:
        """The value of one expression. Raises `EvaluationError`, or `TooCostly` where the meter ends before the expression does."""
        meter = self.meter
        limit = min(PER_CALL_LIMIT, meter.left)
        try:
            result = program.evaluate(current, former, limit=limit)
        except EvaluationError as error:
            meter.spend(error.cost)
            raise
        meter.spend(result.cost)
        return result


Convert: TypeAlias = Callable[[Any], Any]


class RuleNode:
    """The rules of a schema, and those of the schemas inside of it that have any."""

    __slots__ = ("_convert", "_fields", "_is_structure", "_items", "_keys", "_others", "_rules", "_type")

    def __init__(
        self,
        schema: JSONSchemaProps,
        rules: tuple[CompiledRule, ...],
        convert: Convert | None,
        fields: Mapping[str, RuleNode],
        others: RuleNode | None,
        items: RuleNode | None,
    ) -> None:
        self._rules = rules
        self._convert = convert
        self._fields = fields
        self._others = others
        self._items = items
        self._type = schema.type
        self._is_structure = schema.type in ("object", "array")
        self._keys = schema.xKubernetesListMapKeys if schema.xKubernetesListType == "map" else ()

    def check(self, document: Any, old: Any, path: str = "") -> tuple[list[FieldError], list[str]]:
        """The errors and the warnings of an object, given as a whole document, with the one it replaces or None."""

        def unit(meter: Meter) -> tuple[list[FieldError], list[str]]:
            state = Evaluation(meter)
            self.validate(document, old, path, Chain(document, MISSING if old is None else old, None), state)
            return state.errors, state.warnings

        return evaluated(unit, lambda: evaluation_key("rules", id(self), path, document, old))

    def validate(self, value: Any, old: Any, path: str, chain: Chain, state: Evaluation) -> None:
        """Evaluates all rules on a value. ``old`` is the value it replaces; None if there is none to compare it with."""
        if value is None:
            return
        if self._rules:
            self._evaluate(value, old, path, chain, state)
            if state.budget < 0:
                return
        if type(value) is dict:
            before = old if type(old) is dict else {}
            if self._others is not None:
                for key, each in value.items():
                    self._others.validate(
                        each, before.get(key), f"{path}[{key}]", _child(chain, key, each), state
                    )
                    if state.budget < 0:
                        return
            if self._fields:
                for key, node in self._fields.items():
                    if key in value:
                        each = value[key]
                        where = f"{path}.{key}" if path else key
                        node.validate(each, before.get(key), where, _child(chain, key, each), state)
                        if state.budget < 0:
                            return
        elif type(value) is list and self._items is not None:
            earlier = _by_keys(old, self._keys) if self._keys and type(old) is list else {}
            for index, each in enumerate(value):
                former = earlier.get(_key(each, self._keys)) if earlier else None
                known = former if former is not None or not self._keys else None
                inner = Chain(each, MISSING if not self._keys else known, chain)
                self._items.validate(each, former, f"{path}[{index}]", inner, state)
                if state.budget < 0:
                    return

    def _evaluate(self, value: Any, old: Any, path: str, chain: Chain, state: Evaluation) -> None:
        where = path or NO_FIELD
        if state.budget <= 0:
            self._out_of_budget(where, state)
            return
        convert = self._convert
        current = value if convert is None else convert(value)
        before = old if convert is None or old is None else convert(old)
        for compiled in self._rules:
            program = compiled.program
            if program is None:
                if compiled.error:
                    state.errors.invalid(where, self._type, f"rule compile error: {compiled.error}")
                continue
            if compiled.optional_old_self:
                former: Any = NONE if old is None else Optional(before, True)
            elif compiled.uses_old_self and old is None:
                continue
            else:
                former = before
            try:
                result, cost = state.evaluate(program, current, former)
            except EvaluationError as error:
                if not self._failed(compiled, error, where, state):
                    return
                continue
            if cost > state.budget:
                self._out_of_budget(where, state)
                return
            state.budget -= cost
            if result is not True and not self._report(compiled, value, current, former, path, chain, state):
                return

    def _out_of_budget(self, where: str, state: Evaluation) -> None:
        detail = (
            "validation failed due to running out of cost budget, no further validation rules will be run"
        )
        state.errors.invalid(where, self._type, detail)
        state.budget = -1

    def _failed(self, compiled: CompiledRule, error: EvaluationError, where: str, state: Evaluation) -> bool:
        """Reports a rule that has no value; False if no further rules may be evaluated."""
        if error.cost > state.budget:
            self._out_of_budget(where, state)
            return False
        state.budget -= error.cost
        rule = _rule_text(compiled.rule)
        if isinstance(error, CostLimitExceeded):
            detail = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
            state.errors.invalid(where, self._type, detail)
            state.budget = -1
            return False
        if str(error).startswith("no such overload"):
            detail = (
                f"'{error}': call arguments did not match a supported operator, function or macro signature "
                f"for rule: {rule}"
            )
        else:
            detail = f"{error} evaluating rule: {rule}"
        state.errors.invalid(where, self._type, detail)
        return True

    def _report(
        self,
        compiled: CompiledRule,
        value: Any,
        current: Any,
        former: Any,
        path: str,
        chain: Chain,
        state: Evaluation,
    ) -> bool:
        """Reports a violation, as an error or a warning; False if no further rules may be evaluated."""
        rule = compiled.rule
        where = ".".join(filter(None, (path, compiled.field_path))) or NO_FIELD
        found = FieldErrors()
        message, fatal = _message(compiled, current, former, state) if compiled.message else ("", "")
        if fatal:
            found.invalid(where, self._type, fatal)
            state.budget = -1
        else:
            detail = message or rule.message.strip() or f"failed rule: {_rule_text(rule)}"
            _add_for_reason(found, rule.reason, where, OMITTED if self._is_structure else value, detail)
        if not compiled.uses_old_self and chain.is_unchanged():
            state.warnings += [f"{error.field}: {error.message}" for error in found]
        else:
            for error in found:
                state.errors.append(error)
        return not fatal


def _add_for_reason(errors: FieldErrors, reason: str | None, where: str, value: Any, detail: str) -> None:
    shown = _shown(value)
    match reason:
        case "FieldValueForbidden":
            errors.forbidden(where, detail)
        case "FieldValueRequired":
            errors.required(where, detail)
        case "FieldValueDuplicate":
            errors.duplicate(where, shown)
        case _:
            errors.invalid(where, shown, detail)


def _shown(value: Any) -> Any:
    return Verbatim(number(value)) if type(value) is float else value


def _message(compiled: CompiledRule, current: Any, former: Any, state: Evaluation) -> tuple[str, str]:
    """The message that an expression makes, empty if it fails; and the error after which no rule is evaluated any more."""
    source = compiled.rule.messageExpression
    assert compiled.message is not None
    exceeded = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
    try:
        text, cost = state.evaluate(compiled.message, current, former)
    except CostLimitExceeded as error:
        if error.cost > state.budget:
            return "", exceeded
        return (
            "",
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
            f"{quote(source)}",
        )
    except EvaluationError as error:
        if error.cost > state.budget:
            return "", exceeded
        state.budget -= error.cost
        return "", ""
    if cost > state.budget:
        return "", exceeded
    state.budget -= cost
    trimmed = text.strip() if isinstance(text, str) else ""
    if "\n" in trimmed or len(trimmed.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        return "", ""
    return trimmed, ""


def _rule_text(rule: ValidationRule) -> str:
    return (rule.message or rule.rule).strip()


def _child(chain: Chain, key: str, value: Any) -> Chain:
    if chain.outside is None and key in ("apiVersion", "kind"):
        # Both objects are of the version of the request, whichever they were written in.
        return Chain(value, MISSING, None)
    if chain.old is MISSING or type(chain.old) is not dict:
        return Chain(value, MISSING, chain)
    return Chain(value, chain.old.get(key), chain)


def _by_keys(items: list[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    return {_key(item, keys): item for item in reversed(items) if isinstance(item, dict)}


def _key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(item, dict):
        return ()
    return tuple((type(value), repr(value)) for value in (item.get(key) for key in keys))


# -- compiling --------------------------------------------------------------------------------


def compile_rules(schema: JSONSchemaProps, *, root: bool = True) -> RuleNode | None:
    """The rules of a schema and of all schemas inside of it; None if there are none."""
    structs = Structs()
    plain = to_builtins(schema)
    declaration = declare(plain, structs, _SELF_TYPE, root=root)
    return _node(schema, plain, declaration, structs, root=root) if declaration is not None else None


def _node(
    schema: JSONSchemaProps, plain: Any, declaration: Declaration, structs: Structs, *, root: bool
) -> RuleNode | None:
    fields: dict[str, RuleNode] = {}
    for name, each in schema.properties.items():
        escaped = escape(name)
        inner = plain["properties"][name]
        declared = (
            declaration.fields.get(escaped) if escaped is not None else declare(inner, structs, f"@{name}")
        )
        if declared is not None:
            node = _node(each, inner, declared, structs, root=each.xKubernetesEmbeddedResource)
            if node is not None:
                fields[name] = node
    others = items = None
    if declaration.element is not None:
        additional = schema.additionalProperties
        if isinstance(additional, JSONSchemaProps):
            others = _node(
                additional,
                plain["additionalProperties"],
                declaration.element,
                structs,
                root=additional.xKubernetesEmbeddedResource,
            )
        elif isinstance(schema.items, JSONSchemaProps):
            items = _node(
                schema.items,
                plain["items"],
                declaration.element,
                structs,
                root=schema.items.xKubernetesEmbeddedResource,
            )
    rules = tuple(compile_rule(rule, schema, declaration, structs) for rule in schema.xKubernetesValidations)
    if not (rules or fields or others or items):
        return None
    convert = compile_conversion(plain, list_types=any(rule.list_types for rule in rules)) if rules else None
    return RuleNode(schema, rules, convert, fields, others, items)
