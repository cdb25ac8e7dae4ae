"""The typed schemas of built-in kinds, from the merge metadata of their generated structs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec

from steersman.api.generated.merge import Field, Merge, atomic, fields_of
from steersman.api.kinds import Struct
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, TypedSchema

_SCALARS = {
    frozenset({str}): TypedSchema("string"),
    frozenset({bool}): TypedSchema("boolean"),
    frozenset({int}): TypedSchema("numeric"),
    frozenset({int, float}): TypedSchema("numeric"),
    frozenset({datetime}): TypedSchema("untyped"),
    frozenset({int, str, float}): TypedSchema("untyped"),  # a quantity
}

_RAW = frozenset(
    {
        ("AllocatedDeviceStatus", "data"),
        ("ControllerRevision", "data"),
        ("OpaqueDeviceConfiguration", "parameters"),
    }
)
"""Embedded objects of any kind (RawExtension), which are atomic; other untyped fields are granular."""

_TEXT_KEYS = frozenset({"LocalObjectReference"})
"""Structs whose omitted name is the empty key, although servers omit it too."""


_known: dict[type, TypedSchema] = {}


def typed_schema_of(type_: type[Any]) -> TypedSchema:
    """The schema of a kind's documents, with ``apiVersion`` and ``kind``."""
    schema = _known.get(type_)
    if schema is None:
        schema = _known[type_] = TypedSchema(map=Map({"apiVersion": _text, "kind": _text, **_fields(type_)}))
    return schema


def _text() -> TypedSchema:
    return _SCALARS[frozenset({str})]


def _deduced() -> TypedSchema:
    return DEDUCED


def _fields(type_: type[Struct]) -> dict[str, Callable[[], TypedSchema]]:
    return {name: partial(_field, type_, field) for name, field in fields_of(type_).items()}


@cache
def struct_schema(struct: type[Struct], atomic: bool = False) -> TypedSchema:
    """The schema of a struct inside documents, such as their metadata."""
    fields = _fields(struct)
    # An object without declared fields accepts any.
    return TypedSchema(map=Map(fields, others=None if fields else _deduced, atomic=atomic))


def _field(owner: type[Struct], field: Field) -> TypedSchema:
    merge = field.merge or Merge()
    struct = field.struct
    if field.shape == "object" and struct is not None:
        return struct_schema(struct, merge.map_type == "atomic")
    if field.shape == "map":
        inner = partial(_inner, struct, get_args(field.type)[1])
        return TypedSchema(map=Map(others=inner, atomic=merge.map_type == "atomic"))
    if field.shape == "list":
        item = partial(_inner, struct, get_args(field.type)[0])
        return TypedSchema(list=_list(item, struct, merge))
    if (owner.__name__, field.name) in _RAW:
        return UNTYPED
    return _scalar(field.type)


def _inner(struct: type[Struct] | None, type_: Any) -> TypedSchema:
    """The schema of a list's items or a map's values."""
    if struct is not None:
        return struct_schema(struct, atomic(struct))
    return _scalar(type_)


def _scalar(type_: Any) -> TypedSchema:
    arms = frozenset(arm for arm in get_args(type_) if arm is not NoneType) or frozenset({type_})
    if len(arms) == 1 and get_origin(next(iter(arms))) is tuple:
        return TypedSchema(list=List(_text, atomic=True))
    return _SCALARS.get(arms, DEDUCED)


def _list(item: Callable[[], TypedSchema], struct: type[Struct] | None, merge: Merge) -> List:
    """The schema of a list; its patch strategy decides if it has no list type."""
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
    """Default values of omitted key fields: the zero value, if servers never omit the field."""
    found: dict[str, Any] = {}
    for info in msgspec.structs.fields(struct):
        if info.encode_name not in keys:
            continue
        if info.default_factory in (str, int):
            found[info.encode_name] = info.default_factory()
        elif struct.__name__ in _TEXT_KEYS:
            found[info.encode_name] = ""
    return found
