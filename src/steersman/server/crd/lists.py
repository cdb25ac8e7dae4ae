"""Lists that are sets or maps: no value, and no key, may be there twice."""

from __future__ import annotations

from typing import Any

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.crd.visits import Visit, visitor
from steersman.server.validation.found import Found, json


def lists_check(schema: JSONSchemaProps) -> Visit | None:
    """What looks for duplicates; None where the schema has no sets or maps."""
    return visitor(schema, lambda each: each.xKubernetesListType in ("set", "map"), _check)


def _check(schema: JSONSchemaProps, value: Any, path: str, found: Found) -> None:
    if type(value) is not list:
        return
    if schema.xKubernetesListType == "set":
        for index in _repeated(value):
            found.duplicate(f"{path}[{index}]", value[index])
        return
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            found.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [
        {name: item[name] for name in schema.xKubernetesListMapKeys if name in item} if item else {}
        for item in value
    ]
    for index in _repeated(keys):
        found.duplicate(f"{path}[{index}]", keys[index])


def _repeated(values: list[Any]) -> list[int]:
    """Where values are for the second time; a third time is not told again."""
    times: dict[tuple[type, str], int] = {}
    second = []
    for index, value in enumerate(values):
        key = type(value), json(value)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            second.append(index)
    return second
