"""Field sets and schemas: the field set of a document, and field sets adapted to a schema."""

from __future__ import annotations

from typing import Any

from steersman.server.apply.compare import items_by_element
from steersman.server.apply.field_set import LEAF, FieldSet
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, TypedSchema, deduce


def to_field_set(value: Any, schema: TypedSchema) -> FieldSet:
    """The field set of a document: leaves, list items and map keys, without the objects around them."""
    typed = deduce(schema, value)
    if isinstance(typed, Map):
        return LEAF if typed.atomic else _members(typed, value if type(value) is dict else {})
    if isinstance(typed, List):
        return LEAF if typed.atomic else _items(typed, value if type(value) is list else [])
    return LEAF


def _members(typed: Map, value: dict[str, Any]) -> FieldSet:
    made: FieldSet = {}
    for name, part in value.items():
        inner = to_field_set(part, typed.at(name))
        if "." not in inner and (part is None or part == {} or not typed.declares(name)):
            inner = {".": {}, **inner}
        if inner:
            made[f"f:{name}"] = inner
    return made


def _items(typed: List, value: list[Any]) -> FieldSet:
    made: FieldSet = {}
    for element, items in items_by_element(typed, value).items():
        inner = to_field_set(items[0], typed.item) if len(items) == 1 else LEAF
        made[element] = inner if "." in inner else {".": {}, **inner}
    return made


def ensure_named_fields(fields: FieldSet, schema: TypedSchema) -> FieldSet:
    """A set with all named fields that are prefixes of its paths (``EnsureNamedFieldsAreMembers``)."""
    made: FieldSet = {}
    for element, node in fields.items():
        if element == ".":
            made["."] = node
            continue
        inner = ensure_named_fields(node, _child(schema, element))
        if (
            "." not in inner
            and schema.map is not None
            and element[0] == "f"
            and schema.map.declares(element[2:])
        ):
            inner = {".": {}, **inner}
        made[element] = inner
    return made


def reconcile_with_schema(fields: FieldSet, schema: TypedSchema) -> FieldSet:
    """A set adapted to the current schema: a field that became atomic is owned as a whole."""
    made: FieldSet = {}
    for element, node in fields.items():
        if element == "." or not _is_declared(schema, element):
            made[element] = node
            continue
        inner = _child(schema, element)
        if node is LEAF or (len(node) == 1 and "." in node):
            made[element] = node
        elif _is_atomic(inner):
            made[element] = LEAF
        elif _is_open(inner):
            made[element] = node
        else:
            made[element] = reconcile_with_schema(node, inner)
    return made


def _is_atomic(schema: TypedSchema) -> bool:
    if schema.map is not None:
        return schema.map.atomic
    return not schema.scalar and schema.list is not None and schema.list.atomic


def _is_open(schema: TypedSchema) -> bool:
    """Whether a map declares no fields and accepts values of any type."""
    return schema.map is not None and not schema.map.names and schema.map.values in (DEDUCED, UNTYPED)


def _is_declared(schema: TypedSchema, element: str) -> bool:
    if element[0] == "f":
        return schema.map is not None and schema.map.allows(element[2:])
    return schema.list is not None


def _child(schema: TypedSchema, element: str) -> TypedSchema:
    """The schema of the value at a path element."""
    if element[0] == "f" and schema.map is not None:
        return schema.map.at(element[2:])
    if element[0] == "k" and schema.list is not None:
        return schema.list.item
    return DEDUCED if element[0] == "f" else TypedSchema("untyped")
