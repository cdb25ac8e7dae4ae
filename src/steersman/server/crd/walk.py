"""Walks through a document along its schema, stopping only where a schema asks for it.

Most schemas have no embedded resources and no sets; for those there is no walk at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.validation.field_errors import FieldErrors

Stop: TypeAlias = Callable[[JSONSchemaProps, Any, str, FieldErrors], None]
"""What is done at a stop: the schema, the value, its path, and where to tell what is wrong with it."""

Visit: TypeAlias = Callable[[Any, str, FieldErrors], None]


def visitor(schema: JSONSchemaProps, wanted: Callable[[JSONSchemaProps], bool], stop: Stop) -> Visit | None:
    """A walk through values of a schema that stops at all that is wanted; None where nothing is."""
    fields = {
        name: inner
        for name, each in schema.properties.items()
        if (inner := visitor(each, wanted, stop)) is not None
    }
    additional, items = schema.additionalProperties, schema.items
    others = visitor(additional, wanted, stop) if isinstance(additional, JSONSchemaProps) else None
    each_item = visitor(items, wanted, stop) if isinstance(items, JSONSchemaProps) else None
    stops = wanted(schema)
    if not (fields or others or each_item or stops):
        return None

    def go(value: Any, path: str, errors: FieldErrors) -> None:
        if stops:
            stop(schema, value, path, errors)
        if type(value) is dict:
            for name, field in value.items():
                if name in fields:
                    fields[name](field, f"{path}.{name}" if path else name, errors)
                elif others is not None and name not in schema.properties:
                    others(field, f"{path}[{name}]", errors)
        elif type(value) is list and each_item is not None:
            for index, item in enumerate(value):
                each_item(item, f"{path}[{index}]", errors)

    return go
