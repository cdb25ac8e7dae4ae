"""Defaulting of custom resources: missing fields get the default of their schema, also inside of other defaults.

A null in a field that is not nullable counts as missing: it is replaced by the default, or removed if there is
none. In what is applied it stays if there is none, and validation refuses it. A schema is compiled once into closures that
change a document in place, which must be a copy.
"""

from __future__ import annotations

from typing import Any, Protocol

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import deep_copy


class ApplyDefaults(Protocol):
    """Applies defaults to an object or a list, in place."""

    def __call__(self, value: Any, keep_nulls: bool = False) -> None:
        """``keep_nulls`` is whether nulls without a default stay."""


_CONTAINERS = frozenset({dict, list})


def compile_defaulting(schema: JSONSchemaProps) -> ApplyDefaults:
    """Compiles the defaults of a schema."""
    properties = {name: compile_defaulting(each) for name, each in schema.properties.items()}
    defaults = {
        name: _with_nested_defaults(each.default, properties[name])
        for name, each in schema.properties.items()
        if each.default is not None
    }
    nullable = frozenset(name for name, each in schema.properties.items() if each.nullable)
    additional = schema.additionalProperties
    others = additional if isinstance(additional, JSONSchemaProps) else None
    fill_others = None if others is None else compile_defaulting(others)
    items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    fill_items = None if items is None else compile_defaulting(items)

    def fill(value: Any, keep_nulls: bool = False) -> None:
        if type(value) is dict:
            fill_fields(value, keep_nulls)
        elif items is not None and fill_items is not None:
            for index, item in enumerate(value):
                if item is None and not items.nullable:
                    item = value[index] = deep_copy(items.default)
                if type(item) in _CONTAINERS:
                    fill_items(item, keep_nulls)

    def fill_fields(value: dict[str, Any], keep_nulls: bool) -> None:
        null = None
        for name, field in value.items():
            if field is None:
                null = [*null, name] if null else [name]
            elif type(field) in _CONTAINERS:
                inner = properties.get(name, fill_others)
                if inner is not None:
                    inner(field, keep_nulls)
        if null:
            drop(value, null, keep_nulls)
        for name, default in defaults.items():
            if name not in value:
                value[name] = deep_copy(default) if type(default) in _CONTAINERS else default

    def drop(value: dict[str, Any], null: list[str], keep_nulls: bool) -> None:
        for name in null:
            if name in properties:
                if name not in nullable and (name in defaults or not keep_nulls):
                    del value[name]
            elif others is not None and fill_others is not None and not others.nullable:
                if others.default is None:
                    if not keep_nulls:
                        del value[name]
                else:
                    value[name] = _with_nested_defaults(others.default, fill_others)

    return fill


def _with_nested_defaults(default: Any, fill: ApplyDefaults) -> Any:
    """A copy of a default, with nested defaults applied."""
    made = deep_copy(default)
    if type(made) in _CONTAINERS:
        fill(made)
    return made
