"""Pruning: fields no schema speaks of go, as they would from a struct.

Compiled once into closures that change a document in place: the caller's own copy. Where somebody wants to
know, they tell which fields went.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps

Prune: TypeAlias = Callable[[Any, str, list[str] | None], None]
"""An object or list, its path, and where to tell what went: the path may be left empty if nowhere."""

META = ("apiVersion", "kind", "metadata")
_CONTAINERS = frozenset({dict, list})


def prune(pruner: Prune, document: dict[str, Any], *, tell: bool = False) -> tuple[str, ...]:
    """Prune a document; answers with the paths of the fields that went, if asked to."""
    gone: list[str] | None = [] if tell else None
    pruner(document, "", gone)
    return tuple(sorted(gone or ()))


def pruner(schema: JSONSchemaProps | None, *, root: bool = False) -> Prune:
    """What prunes values of a schema; of none, all fields go. The root is an object with metadata."""
    if schema is None:
        return _empty
    return _preserving(schema, root) if schema.xKubernetesPreserveUnknownFields else _pruning(schema, root)


def _schema(said: JSONSchemaProps | tuple[JSONSchemaProps, ...] | bool | None) -> JSONSchemaProps | None:
    return said if isinstance(said, JSONSchemaProps) else None


def _fields(schema: JSONSchemaProps, root: bool) -> tuple[dict[str, Prune | None], Prune | None]:
    """What prunes each known field, None for those that are left alone; and what prunes all others."""
    known: dict[str, Prune | None] = {name: pruner(each) for name, each in schema.properties.items()}
    if root or schema.xKubernetesEmbeddedResource:
        known.update(dict.fromkeys(META))
    additional = schema.additionalProperties
    return known, None if additional is None else pruner(_schema(additional))


def _pruning(schema: JSONSchemaProps, root: bool) -> Prune:
    known, others = _fields(schema, root)
    items = pruner(_schema(schema.items))

    def go(value: Any, path: str, gone: list[str] | None) -> None:
        if type(value) is list:
            _each(items, value, path, gone)
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
                inner(field, "" if gone is None else _child(path, name, gone), gone)
        for name in unknown or ():
            del value[name]
            if gone is not None and (path or name not in META):
                gone.append(_child(path, name, gone))

    return go


def _preserving(schema: JSONSchemaProps, root: bool) -> Prune:
    """Unknown fields stay; known ones are pruned again. In a list this holds for its items."""
    known, others = _fields(schema, root)
    inner_schema = _schema(schema.items)
    items = None if inner_schema is None else _preserving(inner_schema, False)

    def go(value: Any, path: str, gone: list[str] | None) -> None:
        if type(value) is list:
            if items is not None:
                _each(items, value, path, gone)
            return
        for name, field in value.items():
            inner = known.get(name) if name in known else others
            if inner is not None and type(field) in _CONTAINERS:
                inner(field, _child(path, name, gone), gone)

    return go


def _empty(value: Any, path: str, gone: list[str] | None) -> None:
    if type(value) is list:
        _each(_empty, value, path, gone)
        return
    if gone is not None:
        gone += [_child(path, name, gone) for name in value]
    value.clear()


def _each(inner: Prune, items: list[Any], path: str, gone: list[str] | None) -> None:
    for index, item in enumerate(items):
        if type(item) in _CONTAINERS:
            inner(item, "" if gone is None else f"{path}[{index}]", gone)


def _child(path: str, name: str, gone: list[str] | None) -> str:
    if gone is None:
        return ""
    return f"{path}.{name}" if path else name
