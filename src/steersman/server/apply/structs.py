"""The shapes of built-in kinds, from the merge metadata of their generated structs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec

from steersman.api.generated.merge import Field, Merge, atomic, fields_of
from steersman.api.kinds import Struct
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, Shape

_SCALARS = {
    frozenset({str}): Shape("string"),
    frozenset({bool}): Shape("boolean"),
    frozenset({int}): Shape("numeric"),
    frozenset({int, float}): Shape("numeric"),
    frozenset({datetime}): Shape("untyped"),
    frozenset({int, str, float}): Shape("untyped"),  # a quantity
}

_RAW = frozenset(
    {
        ("AllocatedDeviceStatus", "data"),
        ("ControllerRevision", "data"),
        ("OpaqueDeviceConfiguration", "parameters"),
    }
)
"""Embedded objects of any kind, owned as a whole; what else has no type is owned by what it holds."""

_TEXT_KEYS = frozenset({"LocalObjectReference"})
"""Structs whose name counts as empty where it is left out, although servers leave it out too."""


_known: dict[type, Shape] = {}


def shape_of(type_: type[Any]) -> Shape:
    """The shape of a kind's documents, with ``apiVersion`` and ``kind``."""
    shape = _known.get(type_)
    if shape is None:
        shape = _known[type_] = Shape(map=Map({"apiVersion": _text, "kind": _text, **_fields(type_)}))
    return shape


def _text() -> Shape:
    return _SCALARS[frozenset({str})]


def _deduced() -> Shape:
    return DEDUCED


def _fields(type_: type[Struct]) -> dict[str, Callable[[], Shape]]:
    return {name: partial(_field, type_, field) for name, field in fields_of(type_).items()}


@cache
def part_of(struct: type[Struct], atomic: bool = False) -> Shape:
    """The shape of what stands inside documents, such as their metadata."""
    fields = _fields(struct)
    # An object of which nothing is said takes anything.
    return Shape(map=Map(fields, others=None if fields else _deduced, atomic=atomic))


def _field(owner: type[Struct], field: Field) -> Shape:
    merge = field.merge or Merge()
    struct = field.struct
    if field.shape == "object" and struct is not None:
        return part_of(struct, merge.map_type == "atomic")
    if field.shape == "map":
        inner = partial(_inner, struct, get_args(field.type)[1])
        return Shape(map=Map(others=inner, atomic=merge.map_type == "atomic"))
    if field.shape == "list":
        item = partial(_inner, struct, get_args(field.type)[0])
        return Shape(list=_list(item, struct, merge))
    if (owner.__name__, field.name) in _RAW:
        return UNTYPED
    return _scalar(field.type)


def _inner(struct: type[Struct] | None, type_: Any) -> Shape:
    """The shape of a list's items or a map's values."""
    if struct is not None:
        return part_of(struct, atomic(struct))
    return _scalar(type_)


def _scalar(type_: Any) -> Shape:
    arms = frozenset(arm for arm in get_args(type_) if arm is not NoneType) or frozenset({type_})
    if len(arms) == 1 and get_origin(next(iter(arms))) is tuple:
        return Shape(list=List(_text, atomic=True))
    return _SCALARS.get(arms, DEDUCED)


def _list(item: Callable[[], Shape], struct: type[Struct] | None, merge: Merge) -> List:
    """How a list is owned; where only strategic merge patch says something, that counts."""
    keys: tuple[str, ...] = ()
    if merge.list_type:
        keys = merge.keys
        granular = merge.list_type in ("set", "map")
    else:
        granular = merge.merges
        keys = (merge.key,) if granular and merge.key else ()
    defaults = {} if struct is None else _defaults(struct, keys)
    return List(item, keys=keys, defaults={**defaults, **dict(merge.defaults)}, atomic=not granular)


def _defaults(struct: type[Struct], keys: tuple[str, ...]) -> dict[str, Any]:
    """What keys count as that an item leaves out: zero, where servers never leave them out."""
    found: dict[str, Any] = {}
    for info in msgspec.structs.fields(struct):
        if info.encode_name not in keys:
            continue
        if info.default_factory in (str, int):
            found[info.encode_name] = info.default_factory()
        elif struct.__name__ in _TEXT_KEYS:
            found[info.encode_name] = ""
    return found
