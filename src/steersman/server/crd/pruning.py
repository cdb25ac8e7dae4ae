"""Pruning of custom resources: removes fields that their schema does not specify.

A schema is compiled once into closures that change a document in place, which must be a copy. They report the
paths of pruned fields on request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps

PruneFunction: TypeAlias = Callable[[Any, str, list[str] | None], None]
"""Prunes an object or list, given its path and the list for pruned paths; the path is empty if there is no list."""

OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
_CONTAINERS = frozenset({dict, list})


def prune(
    compile_pruning: PruneFunction, document: dict[str, Any], *, report: bool = False
) -> tuple[str, ...]:
    """Prunes a document in place; returns the paths of pruned fields if ``report`` is set."""
    pruned_paths: list[str] | None = [] if report else None
    compile_pruning(document, "", pruned_paths)
    return tuple(sorted(pruned_paths or ()))


def compile_pruning(schema: JSONSchemaProps | None, *, root: bool = False) -> PruneFunction:
    """Compiles the pruning of a schema; without one, all fields are pruned. The root has object metadata."""
    if schema is None:
        return _empty
    return _preserving(schema, root) if schema.xKubernetesPreserveUnknownFields else _pruning(schema, root)


def _schema(schema: JSONSchemaProps | tuple[JSONSchemaProps, ...] | bool | None) -> JSONSchemaProps | None:
    return schema if isinstance(schema, JSONSchemaProps) else None


def _fields(
    schema: JSONSchemaProps, root: bool
) -> tuple[dict[str, PruneFunction | None], PruneFunction | None]:
    """The pruning of each known field, None for those that are not pruned; and of all others."""
    known: dict[str, PruneFunction | None] = {
        name: compile_pruning(each) for name, each in schema.properties.items()
    }
    if root or schema.xKubernetesEmbeddedResource:
        known.update(dict.fromkeys(OBJECT_FIELDS))
    additional = schema.additionalProperties
    return known, None if additional is None else compile_pruning(_schema(additional))


def _pruning(schema: JSONSchemaProps, root: bool) -> PruneFunction:
    known, others = _fields(schema, root)
    items = compile_pruning(_schema(schema.items))

    def go(value: Any, path: str, pruned_paths: list[str] | None) -> None:
        if type(value) is list:
            _each(items, value, path, pruned_paths)
            return
        unknown = None
        for name, field in value.items():
            if name in known:
                inner = known[name]
            elif others is not None:
                inner = others
            else:
                unknown = [*unknown, name] if unknown else [name]
                continue
            if type(field) in _CONTAINERS and inner is not None:
                inner(field, "" if pruned_paths is None else _child(path, name, pruned_paths), pruned_paths)
        for name in unknown or ():
            del value[name]
            if pruned_paths is not None and (path or name not in OBJECT_FIELDS):
                pruned_paths.append(_child(path, name, pruned_paths))

    return go


def _preserving(schema: JSONSchemaProps, root: bool) -> PruneFunction:
    """Pruning with preserveUnknownFields: unknown fields stay, known ones are pruned; also in list items."""
    known, others = _fields(schema, root)
    inner_schema = _schema(schema.items)
    items = None if inner_schema is None else _preserving(inner_schema, False)

    def go(value: Any, path: str, pruned_paths: list[str] | None) -> None:
        if type(value) is list:
            if items is not None:
                _each(items, value, path, pruned_paths)
            return
        for name, field in value.items():
            inner = known.get(name) if name in known else others
            if inner is not None and type(field) in _CONTAINERS:
                inner(field, _child(path, name, pruned_paths), pruned_paths)

    return go


def _empty(value: Any, path: str, pruned_paths: list[str] | None) -> None:
    if type(value) is list:
        _each(_empty, value, path, pruned_paths)
        return
    if pruned_paths is not None:
        pruned_paths += [_child(path, name, pruned_paths) for name in value]
    value.clear()


def _each(inner: PruneFunction, items: list[Any], path: str, pruned_paths: list[str] | None) -> None:
    for index, item in enumerate(items):
        if type(item) in _CONTAINERS:
            inner(item, "" if pruned_paths is None else f"{path}[{index}]", pruned_paths)


def _child(path: str, name: str, pruned_paths: list[str] | None) -> str:
    if pruned_paths is None:
        return ""
    return f"{path}.{name}" if path else name
