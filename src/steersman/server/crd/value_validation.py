"""Values against a schema: compiled once into closures, in upstream's order and words.

A `Check` looks at one value, appends what is wrong with it, and answers how much of it was right: where a
value should match one of several schemas, the complaints told are those of the schema it came closest to.

On an update each value is compared with the one it replaces, and what was wrong already and did not change
is let pass ("ratcheting"). `MISSING` stands for a value that replaces none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import json_equal
from steersman.server.crd import formats
from steersman.server.crd.combinators import junction
from steersman.server.crd.errors import MISSING, Check, Fault, mistyped
from steersman.server.crd.number_validation import is_whole, number_check
from steersman.server.crd.patterns import Unsupported, compile_pattern

_NAMES: Mapping[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
"""What a value's type is called, and the format it has by nature."""


class Node(NamedTuple):
    """A schema, compiled: with what lets most values pass without a closer look."""

    check: Check
    sound: Mapping[type, int]
    """The types of which any value is right, and how much of it then is."""
    bits: int
    """As far as integers go, if they have no more than these."""


def compiled(schema: JSONSchemaProps) -> Check:
    """The check of a schema."""
    return _node(schema).check


def _node(schema: JSONSchemaProps) -> Node:
    types = _types(schema)
    one = types[0] if len(types) == 1 else ""
    format_ = schema.format if schema.format and formats.recognised(schema.format, one) else ""
    accepted = frozenset(type_ for type_, (name, _) in _NAMES.items() if name in types)
    typed = bool(types or format_)
    nullable = schema.nullable or not types
    joined = junction(schema, compiled)
    of_string = _of_string(schema, format_)
    string_count = 1 + bool(format_ and formats.normal(format_) in formats.CHECKS)
    of_number = number_check(schema, one, format_)
    of_array, of_object = _of_array(schema), _of_object(schema)
    choices = _choices(schema.enum)

    def check(value: Any, path: str, out: list[Fault], old: Any) -> int:
        start = len(out)
        if value is None:
            if nullable:
                count = 1
            else:
                count = 0
                out.append(mistyped(path, ",".join(types), "null"))
            if choices is not None:
                choices(value, path, out)
        else:
            count = 4
            kind = type(value)
            if typed:
                count += 1
                fault = None if kind in accepted else _type_fault(value, path, types, format_)
                if fault is None:
                    count += 1
                else:
                    out.append(fault)
            if joined is not None:
                count += joined(value, path, out, old)
            if kind is str:
                count += string_count
                if of_string is not None:
                    of_string(value, path, out)
            elif kind is int or kind is float:
                count += 2
                if of_number is not None:
                    out += [Fault(*each) for each in of_number(value, path)]
            elif kind is list:
                count += 2 + of_array(value, path, out, old)
            if choices is not None:
                choices(value, path, out)
            if kind is dict:
                count += 1 + of_object(value, path, out, old)
        if old is not MISSING and len(out) > start and json_equal(value, old):
            del out[start:]
        return count

    sound: dict[type, int] = {}
    bits = 1 << 62
    if joined is None and choices is None:
        if str in accepted and of_string is None:
            sound[str] = 6 + string_count
        if bool in accepted:
            sound[bool] = 6
        bounded = (schema.minimum, schema.maximum, schema.multipleOf) != (None, None, None)
        if int in accepted and not bounded:
            sound[int] = 8
            bits = 31 if format_ == "int32" else 63
        if float in accepted and of_number is None:
            sound[float] = 8
    return Node(check, sound, bits)


# -- types ------------------------------------------------------------------------------------


def _types(schema: JSONSchemaProps) -> tuple[str, ...]:
    if schema.xKubernetesIntOrString:
        return ("integer", "string")
    return (schema.type,) if schema.type else ()


def _type_fault(value: Any, path: str, types: tuple[str, ...], format_: str) -> Fault | None:
    """What is wrong with a value whose type is not plainly one of these."""
    name, natural = _NAMES[type(value)]
    whole = name == "number" and "integer" in types and is_whole(value)
    widened = name == "integer" and "number" in types
    fits = name in types or whole or widened
    if format_ and name not in ("string", "array") and not fits and natural != format_:
        return mistyped(path, format_, natural)
    if format_ and name in ("string", "array") and not {"number", "integer"} & {*types}:
        # Upstream leaves it to the format; it does so for lists, too, which have none.
        return None
    return None if fits else mistyped(path, ",".join(types), name)


# -- strings and choices ----------------------------------------------------------------------


def _of_string(schema: JSONSchemaProps, format_: str) -> Callable[[str, str, list[Fault]], None] | None:
    most, least, pattern = schema.maxLength, schema.minLength, schema.pattern
    fits = formats.CHECKS.get(formats.normal(format_)) if format_ else None
    search = None
    if pattern:
        try:
            search = compile_pattern(pattern).search
        except Unsupported:
            pass  # told by `steersman.server.crd.warnings`
    if most is None and least is None and search is None and fits is None:
        return None

    def check(value: str, path: str, out: list[Fault]) -> None:
        if most is not None and len(value) > most:
            out.append(
                Fault("long", path, f"{path} in body should be at most {most} chars long", value, most)
            )
        elif least is not None and len(value) < least:
            says = f"{path} in body should be at least {least} chars long"
            out.append(Fault("invalid", path, says, value))
        elif search is not None and search(value) is None:
            out.append(Fault("invalid", path, f"{path} in body should match '{pattern}'", value))
        if fits is not None and not fits(value):
            out.append(mistyped(path, format_, value))

    return check


def _choices(enum: Sequence[Any]) -> Callable[[Any, str, list[Fault]], None] | None:
    if not enum:
        return None
    words = frozenset(choice for choice in enum if isinstance(choice, str))

    def check(value: Any, path: str, out: list[Fault]) -> None:
        if value in words if type(value) is str else any(_chosen(value, choice) for choice in enum):
            return
        out.append(Fault("enum", path, f"{path} in body should be one of {enum}", value, enum))

    return check


def _chosen(value: Any, choice: Any) -> bool:
    if value is None or choice is None:
        return False
    if {type(value), type(choice)} == {int, float}:
        # Upstream converts to the choice's type first, so that 1.5 counts as 1.
        return bool(type(choice)(value) == choice)
    return json_equal(value, choice)


# -- arrays and objects -----------------------------------------------------------------------


def _of_array(schema: JSONSchemaProps) -> Check:
    node = _node(schema.items) if isinstance(schema.items, JSONSchemaProps) else None
    least, most, unique = schema.minItems, schema.maxItems, schema.uniqueItems
    keys = schema.xKubernetesListMapKeys if schema.xKubernetesListType == "map" else ()

    def check(value: list[Any], path: str, out: list[Fault], old: Any) -> int:
        count = 0
        if node is not None:
            item, sound, bits = node
            before = _by_keys(old, keys) if keys and type(old) is list else {}
            for index, each in enumerate(value):
                right = sound.get(type(each))
                if right is not None and (type(each) is not int or each.bit_length() <= bits):
                    count += right
                    continue
                replaced = before.get(_key(each, keys), MISSING) if before else MISSING
                count += item(each, f"{path}[{index}]", out, replaced)
        size = len(value)
        if least is not None and size < least:
            out.append(Fault("invalid", path, f"{path} in body should have at least {least} items", size))
        if most is not None and size > most:
            out.append(Fault("many", path, f"{path} in body should have at most {most} items", size, most))
        if unique and any(json_equal(each, other) for at, each in enumerate(value) for other in value[:at]):
            out.append(Fault("invalid", path, f"{path} in body shouldn't contain duplicates"))
        return count

    return check


def _by_keys(items: list[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    return {_key(item, keys): item for item in reversed(items) if isinstance(item, dict)}


def _key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """What tells an item of a list apart from the others; with types, since true is not 1."""
    if not isinstance(item, dict):
        return ()
    return tuple((type(value), repr(value)) for value in (item.get(key) for key in keys))


def _of_object(schema: JSONSchemaProps) -> Check:
    properties = {name: _node(each) for name, each in schema.properties.items()}
    additional = schema.additionalProperties
    other = _node(additional) if isinstance(additional, JSONSchemaProps) else None
    closed = additional is False
    least, most, required = schema.minProperties, schema.maxProperties, schema.required

    def check(value: dict[str, Any], path: str, out: list[Fault], old: Any) -> int:
        count = 0
        size = len(value)
        if least is not None and size < least:
            out.append(
                Fault("invalid", path, f"{path} in body should have at least {least} properties", size)
            )
        if most is not None and size > most:
            out.append(
                Fault("many", path, f"{path} in body should have at most {most} properties", size, most)
            )
        before = old if type(old) is dict else {}
        prefix = f"{path}." if path else ""
        for name, each in value.items():
            node = properties.get(name)
            if node is not None:
                inside, sound, bits = node
            elif other is not None:
                inside, sound, bits = other
            else:
                if closed:
                    says = f"{path}.{name} in body is a forbidden property"
                    out.append(Fault("invalid", path, says, name))
                continue
            right = sound.get(type(each))
            if right is not None and (type(each) is not int or each.bit_length() <= bits):
                count += right
            else:
                # What has a name in the schema is told without the dot at the root.
                where = prefix + name if node is not None else f"{path}.{name}"
                count += inside(each, where, out, before.get(name, MISSING))
        for name in required:
            if name not in value:
                out.append(Fault("required", f"{path}.{name}", f"{path}.{name} in body is required"))
        return count

    return check
