"""Defaults: fields that are not there get the value the schema gives them, also inside of other defaults.

A null where none is allowed counts as not there: it is replaced by the default, and goes where there is
none. Compiled once into closures that change a document in place: the caller's own copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import copied

Fill: TypeAlias = Callable[[Any], None]
"""Fills in an object or a list."""


def filler(schema: JSONSchemaProps) -> Fill:
    """What fills in values of a schema."""
    properties = {name: filler(each) for name, each in schema.properties.items()}
    defaults = [(name, each.default) for name, each in schema.properties.items() if each.default is not None]
    nullable = frozenset(name for name, each in schema.properties.items() if each.nullable)
    additional = schema.additionalProperties
    others = additional if isinstance(additional, JSONSchemaProps) else None
    fill_others = None if others is None else filler(others)
    items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    fill_items = None if items is None else filler(items)

    def fill(value: Any) -> None:
        if type(value) is dict:
            _fill_fields(value)
        elif items is not None and fill_items is not None:
            for index, item in enumerate(value):
                if item is None and not items.nullable:
                    item = value[index] = copied(items.default)
                if type(item) in (dict, list):
                    fill_items(item)

    def _fill_fields(value: dict[str, Any]) -> None:
        null = [name for name, field in value.items() if field is None]
        for name in null:
            if name in properties:
                if name not in nullable:
                    del value[name]
            elif others is not None and not others.nullable:
                if others.default is None:
                    del value[name]
                else:
                    value[name] = copied(others.default)
        for name, default in defaults:
            if name not in value:
                value[name] = copied(default)
        for name, field in value.items():
            if type(field) in (dict, list):
                inner = properties.get(name, fill_others)
                if inner is not None:
                    inner(field)

    return fill
