"""Value validation: a schema compiled once into closures, with upstream's order and texts.

A `Check` validates one value, appends its violations, and returns how many checks passed: for a value that matches
none of several schemas, the violations of the schema it came closest to are reported.

On an update each value is compared with its old value, and violations of unchanged values are tolerated
("ratcheting"). `MISSING` is the old value of a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.go_regexp import compile_pattern
from steersman.api.patch.values import json_equal
from steersman.server.crd import formats
from steersman.server.crd.combinators import combinator_check
from steersman.server.crd.errors import MISSING, Check, SchemaViolation, type_violation
from steersman.server.crd.number_validation import is_whole, number_check
from steersman.server.crd.structural_schema import Walk, compile_walk
from steersman.server.validation.field_errors import FieldErrors, go_json

_NAMES: Mapping[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
"""The OpenAPI type of a Python type, and its natural format."""


class Node(NamedTuple):
    """A compiled schema, with the types of values that need no check."""

    check: Check
    always_valid: Mapping[type, int]
    """The types of which every value is valid, and how many checks such a value passes."""
    int_bits: int
    """Integers are always valid only up to this many bits."""


def compile_schema(schema: JSONSchemaProps) -> Check:
    """Compiles a schema to a check."""
    return _node(schema).check


def _node(schema: JSONSchemaProps) -> Node:
    types = _accepted_types(schema)
    one = types[0] if len(types) == 1 else ""
    format_ = schema.format if schema.format and formats.is_supported(schema.format, one) else ""
    accepted = frozenset(type_ for type_, (name, _) in _NAMES.items() if name in types)
    typed = bool(types or format_)
    nullable = schema.nullable or not types
    combined = combinator_check(schema, compile_schema)
    of_string = _string_check(schema, format_)
    string_count = 1 + bool(format_ and formats.normalize(format_) in formats.FORMAT_CHECKS)
    of_number = number_check(schema, one, format_)
    of_array, of_object = _array_check(schema), _object_check(schema)
    choices = _enum_check(schema.enum)

    def check(value: Any, path: str, out: list[SchemaViolation], old: Any) -> int:
        start = len(out)
        if value is None:
            if nullable:
                count = 1
            else:
                count = 0
                out.append(type_violation(path, ",".join(types), "null"))
            if choices is not None:
                choices(value, path, out)
        else:
            count = 4
            kind = type(value)
            if typed:
                count += 1
                violation = None if kind in accepted else _type_violation(value, path, types, format_)
                if violation is None:
                    count += 1
                else:
                    out.append(violation)
            if combined is not None:
                count += combined(value, path, out, old)
            if kind is str:
                count += string_count
                if of_string is not None:
                    of_string(value, path, out)
            elif kind is int or kind is float:
                count += 2
                if of_number is not None:
                    out += [SchemaViolation(*each) for each in of_number(value, path)]
            elif kind is list:
                count += 2 + of_array(value, path, out, old)
            if choices is not None:
                choices(value, path, out)
            if kind is dict:
                count += 1 + of_object(value, path, out, old)
        if old is not MISSING and len(out) > start and json_equal(value, old):
            del out[start:]
        return count

    always_valid: dict[type, int] = {}
    int_bits = 1 << 62
    if combined is None and choices is None:
        if str in accepted and of_string is None:
            always_valid[str] = 6 + string_count
        if bool in accepted:
            always_valid[bool] = 6
        bounded = (schema.minimum, schema.maximum, schema.multipleOf) != (None, None, None)
        if int in accepted and not bounded:
            always_valid[int] = 8
            int_bits = 31 if format_ == "int32" else 63
        if float in accepted and of_number is None:
            always_valid[float] = 8
    return Node(check, always_valid, int_bits)


# -- types ------------------------------------------------------------------------------------


def _accepted_types(schema: JSONSchemaProps) -> tuple[str, ...]:
    if schema.xKubernetesIntOrString:
        return ("integer", "string")
    return (schema.type,) if schema.type else ()


def _type_violation(value: Any, path: str, types: tuple[str, ...], format_: str) -> SchemaViolation | None:
    """The violation by a value whose type is not one of the schema's; None if it is convertible."""
    name, natural = _NAMES[type(value)]
    whole = name == "number" and "integer" in types and is_whole(value)
    widened = name == "integer" and "number" in types
    fits = name in types or whole or widened
    if format_ and name not in ("string", "array") and not fits and natural != format_:
        return type_violation(path, format_, natural)
    if format_ and name in ("string", "array") and not {"number", "integer"} & {*types}:
        # Upstream leaves the check to the format, also for arrays, which have none.
        return None
    return None if fits else type_violation(path, ",".join(types), name)


# -- strings and choices ----------------------------------------------------------------------


def _string_check(
    schema: JSONSchemaProps, format_: str
) -> Callable[[str, str, list[SchemaViolation]], None] | None:
    maximum, minimum, pattern = schema.maxLength, schema.minLength, schema.pattern
    fits = formats.FORMAT_CHECKS.get(formats.normalize(format_)) if format_ else None
    search = compile_pattern(pattern).search if pattern else None
    if maximum is None and minimum is None and search is None and fits is None:
        return None

    def check(value: str, path: str, out: list[SchemaViolation]) -> None:
        if maximum is not None and len(value) > maximum:
            out.append(
                SchemaViolation(
                    "long", path, f"{path} in body should be at most {maximum} chars long", value, maximum
                )
            )
        elif minimum is not None and len(value) < minimum:
            detail = f"{path} in body should be at least {minimum} chars long"
            out.append(SchemaViolation("invalid", path, detail, value))
        elif search is not None and search(value) is None:
            out.append(SchemaViolation("invalid", path, f"{path} in body should match '{pattern}'", value))
        if fits is not None and not fits(value):
            out.append(type_violation(path, format_, value))

    return check


def _enum_check(enum: Sequence[Any]) -> Callable[[Any, str, list[SchemaViolation]], None] | None:
    if not enum:
        return None
    words = frozenset(choice for choice in enum if isinstance(choice, str))

    def check(value: Any, path: str, out: list[SchemaViolation]) -> None:
        if value in words if type(value) is str else any(_equals_choice(value, choice) for choice in enum):
            return
        out.append(SchemaViolation("enum", path, f"{path} in body should be one of {enum}", value, enum))

    return check


def _equals_choice(value: Any, choice: Any) -> bool:
    if value is None or choice is None:
        return False
    if {type(value), type(choice)} == {int, float}:
        # Upstream converts to the choice's type first, so 1.5 matches 1.
        return bool(type(choice)(value) == choice)
    return json_equal(value, choice)


# -- arrays and objects -----------------------------------------------------------------------


def _array_check(schema: JSONSchemaProps) -> Check:
    node = _node(schema.items) if isinstance(schema.items, JSONSchemaProps) else None
    minimum, maximum, unique = schema.minItems, schema.maxItems, schema.uniqueItems
    keys = schema.xKubernetesListMapKeys if schema.xKubernetesListType == "map" else ()

    def check(value: list[Any], path: str, out: list[SchemaViolation], old: Any) -> int:
        count = 0
        if node is not None:
            item, always_valid, int_bits = node
            before = _by_keys(old, keys) if keys and type(old) is list else {}
            for index, each in enumerate(value):
                valid_count = always_valid.get(type(each))
                if valid_count is not None and (type(each) is not int or each.bit_length() <= int_bits):
                    count += valid_count
                    continue
                replaced = before.get(_key(each, keys), MISSING) if before else MISSING
                count += item(each, f"{path}[{index}]", out, replaced)
        size = len(value)
        if minimum is not None and size < minimum:
            out.append(
                SchemaViolation("invalid", path, f"{path} in body should have at least {minimum} items", size)
            )
        if maximum is not None and size > maximum:
            out.append(
                SchemaViolation(
                    "many", path, f"{path} in body should have at most {maximum} items", size, maximum
                )
            )
        if unique and any(json_equal(each, other) for at, each in enumerate(value) for other in value[:at]):
            out.append(SchemaViolation("invalid", path, f"{path} in body shouldn't contain duplicates"))
        return count

    return check


def _by_keys(items: list[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    return {_key(item, keys): item for item in reversed(items) if isinstance(item, dict)}


def _key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """The key of an item of a list map; with types, since true is not 1."""
    if not isinstance(item, dict):
        return ()
    return tuple((type(value), repr(value)) for value in (item.get(key) for key in keys))


def _object_check(schema: JSONSchemaProps) -> Check:
    properties = {name: _node(each) for name, each in schema.properties.items()}
    additional = schema.additionalProperties
    other = _node(additional) if isinstance(additional, JSONSchemaProps) else None
    closed = additional is False
    minimum, maximum, required = schema.minProperties, schema.maxProperties, schema.required

    def check(value: dict[str, Any], path: str, out: list[SchemaViolation], old: Any) -> int:
        count = 0
        size = len(value)
        if minimum is not None and size < minimum:
            out.append(
                SchemaViolation(
                    "invalid", path, f"{path} in body should have at least {minimum} properties", size
                )
            )
        if maximum is not None and size > maximum:
            out.append(
                SchemaViolation(
                    "many", path, f"{path} in body should have at most {maximum} properties", size, maximum
                )
            )
        before = old if type(old) is dict else {}
        prefix = f"{path}." if path else ""
        for name, each in value.items():
            node = properties.get(name)
            if node is not None:
                inside, always_valid, int_bits = node
            elif other is not None:
                inside, always_valid, int_bits = other
            else:
                if closed:
                    detail = f"{path}.{name} in body is a forbidden property"
                    out.append(SchemaViolation("invalid", path, detail, name))
                continue
            valid_count = always_valid.get(type(each))
            if valid_count is not None and (type(each) is not int or each.bit_length() <= int_bits):
                count += valid_count
            else:
                # The path of a declared property has no leading dot at the root.
                where = prefix + name if node is not None else f"{path}.{name}"
                count += inside(each, where, out, before.get(name, MISSING))
        for name in required:
            if name not in value:
                out.append(
                    SchemaViolation("required", f"{path}.{name}", f"{path}.{name} in body is required")
                )
        return count

    return check


# -- list types -------------------------------------------------------------------------------

_ABSENT = object()


def compile_list_type_check(schema: JSONSchemaProps) -> Walk | None:
    """A walk that reports duplicate items of sets and list maps; None if the schema has none."""
    return compile_walk(schema, lambda each: each.xKubernetesListType in ("set", "map"), _check_list_type)


def _check_list_type(schema: JSONSchemaProps, value: Any, path: str, errors: FieldErrors) -> None:
    if type(value) is not list:
        return
    if schema.xKubernetesListType == "set":
        for index in _duplicate_indexes([_comparable(item) for item in value]):
            errors.duplicate(f"{path}[{index}]", value[index])
        return
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            errors.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = schema.xKubernetesListMapKeys
    for index in _duplicate_indexes(
        [tuple(_comparable((item or {}).get(key, _ABSENT)) for key in keys) for item in value]
    ):
        item = value[index] or {}
        errors.duplicate(f"{path}[{index}]", {key: item[key] for key in keys if key in item})


def _comparable(value: Any) -> Any:
    """A hashable that is equal for the same JSON value; true is not 1."""
    return type(value), go_json(value) if type(value) in (dict, list) else value


def _duplicate_indexes(tokens: list[Any]) -> list[int]:
    """The indexes of second occurrences; later ones are not reported, as upstream."""
    times: dict[Any, int] = {}
    second = []
    for index, token in enumerate(tokens):
        times[token] = times.get(token, 0) + 1
        if times[token] == 2:
            second.append(index)
    return second
