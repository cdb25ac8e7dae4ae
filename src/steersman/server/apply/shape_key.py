"""ShapeKey identifies new objects that have the same field set.

The values of labels and the name do not matter; label keys do. Larger parts, such as a spec, are identified
by their addresses: the pods of one template share one spec struct.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import EMPTY
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec.convert import CODECS


class ShapeKey(msgspec.Struct, frozen=True):
    """A key that is equal for objects with the same field set."""

    key: tuple[Any, ...]
    parts: tuple[Any, ...]
    """The parts the key identifies by address; hold them for as long as the key."""


def shape_key(obj: Any, blank: Any) -> ShapeKey | None:
    """The shape key of an object; None for kinds with their own encoding, such as custom resources."""
    if type(obj) in CODECS:
        return None
    key: list[Any] = [_metadata(obj.metadata)]
    parts: list[Any] = []
    for name, by_keys in _fields(type(obj)):
        part, nothing = getattr(obj, name), getattr(blank, name)
        if part is nothing:
            key.append(None)
        elif isinstance(part, (str, int, float)):
            # A scalar that is set is owned, whatever its value.
            key.append(part == nothing)
        elif by_keys:
            key.append(tuple(part))
        elif part == nothing:
            key.append(None)
        else:
            key.append(id(part))
            parts.append(part)
    return ShapeKey(tuple(key), tuple(parts))


def _metadata(meta: ObjectMeta) -> tuple[Any, ...]:
    """The metadata fields that can have a manager; the others identify the object or are set by the server."""
    return (
        # A map that was sent empty is a field; an omitted map is not.
        None if meta.labels is EMPTY else tuple(meta.labels),
        None if meta.annotations is EMPTY else tuple(meta.annotations),
        meta.finalizers,
        meta.ownerReferences,
        meta.generateName == "",
        meta.deletionTimestamp is None,
        meta.deletionGracePeriodSeconds is None,
    )


_known: dict[type, tuple[tuple[str, bool], ...]] = {}


def _fields(type_: type[Any]) -> tuple[tuple[str, bool], ...]:
    """The fields of a kind except metadata, and whether each is a map of which only the keys matter."""
    known = _known.get(type_)
    if known is None:
        names = zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
        known = _known[type_] = tuple(
            (name, _by_keys(type_, wire)) for name, wire in names if name != "metadata"
        )
    return known


def _by_keys(type_: type[Any], name: str) -> bool:
    whole = typed_schema_of(type_).map
    field = whole.at(name).map if whole is not None else None
    values = field.values if field is not None and not field.names else None
    return values is not None and values.map is None and values.list is None
