"""Lists that are sets or maps: no value, and no key, may be there twice."""

from __future__ import annotations

from typing import Any

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.crd.walk import Visit, visitor
from steersman.server.validation.field_errors import FieldErrors, go_json

_ABSENT = object()


def lists_check(schema: JSONSchemaProps) -> Visit | None:
    """What looks for duplicates; None where the schema has no sets or maps."""
    return visitor(schema, lambda each: each.xKubernetesListType in ("set", "map"), _check)


def _check(schema: JSONSchemaProps, value: Any, path: str, errors: FieldErrors) -> None:
    if type(value) is not list:
        return
    if schema.xKubernetesListType == "set":
        for index in _repeated([_token(item) for item in value]):
            errors.duplicate(f"{path}[{index}]", value[index])
        return
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            errors.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = schema.xKubernetesListMapKeys
    for index in _repeated([tuple(_token((item or {}).get(key, _ABSENT)) for key in keys) for item in value]):
        item = value[index] or {}
        errors.duplicate(f"{path}[{index}]", {key: item[key] for key in keys if key in item})


def _token(value: Any) -> Any:
    """What two values have in common only if they are the same JSON: true is not 1."""
    return type(value), go_json(value) if type(value) in (dict, list) else value


def _repeated(tokens: list[Any]) -> list[int]:
    """Where something is for the second time; a third time is not told again."""
    times: dict[Any, int] = {}
    second = []
    for index, token in enumerate(tokens):
        times[token] = times.get(token, 0) + 1
        if times[token] == 2:
            second.append(index)
    return second
