"""Times with microseconds, as Go clients insist on them: always six digits, also where all are zero."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated.merge import fields_of
from steersman.api.kinds import Struct


def exact(obj: Any) -> Any:
    """An object ready to be encoded: its times with microseconds are written out where JSON would lose them.

    Itself where there are none, which is nearly always. Where nobody owns anything, nothing is said of owners.
    """
    kind: type[Struct] = type(obj)
    for path in paths(kind):
        obj = _written(obj, path)
    meta: Any = getattr(obj, "metadata", None)
    owners = () if meta is None else meta.managedFields
    if type(owners) is not tuple and not len(owners):
        # They had to be looked at to know that there are none.
        obj = replace(obj, metadata=replace(meta, managedFields=()))
    return obj


def _written(obj: Any, path: tuple[str, ...]) -> Any:
    value = getattr(obj, path[0])
    if len(path) > 1:
        if value is None:
            return obj
        made = _written(value, path[1:])
    elif type(value) is datetime and not value.microsecond:
        made = msgspec.Raw(f'"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000000Z"'.encode())
    else:
        return obj
    return obj if made is value else replace(obj, **{path[0]: made})


@cache
def paths(type_: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Where in a struct such times are: ``("spec", "renewTime")``."""
    return tuple(_find(type_, ()))


def _find(type_: type[Struct], within: tuple[type, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for field in fields_of(type_).values():
        if field.type is datetime and _is_micro(type_, field.attribute):
            found.append((field.attribute,))
        elif field.struct is not None and field.shape == "object" and field.struct not in within:
            below = _find(field.struct, (*within, type_))
            found += [(field.attribute, *path) for path in below]
    return found


def _is_micro(owner: type, name: str) -> bool:
    """Both sorts of times are datetimes, so only the declaration tells."""
    for cls in owner.__mro__:
        note = inspect.get_annotations(cls).get(name)
        if note is not None:
            return "MicroTime" in str(note)
    return False
