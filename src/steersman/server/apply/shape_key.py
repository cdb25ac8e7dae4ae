"""Whether two new objects are alike in all that decides which fields they have.

The values of labels do not matter, nor does a name; keys do. Larger parts, such as a spec, are told apart by
their addresses: those of one template are one and the same struct, and what is not is walked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import EMPTY
from steersman.server.apply.structs import shape_of
from steersman.server.codec.convert import FORMS


class Likeness(NamedTuple):
    """What an object has in common with those whose fields are the same."""

    key: tuple[Any, ...]
    parts: tuple[Any, ...]
    """Those the key tells apart by their addresses; to be held for as long as the key is."""


def likeness(obj: Any, blank: Any) -> Likeness | None:
    """What a struct is like; None for what has a form of its own, as custom resources do."""
    if type(obj) in FORMS:
        return None
    key: list[Any] = [_metadata(obj.metadata)]
    parts: list[Any] = []
    for name, by_keys in _fields(type(obj)):
        part, nothing = getattr(obj, name), getattr(blank, name)
        if part is nothing:
            key.append(None)
        elif isinstance(part, (str, int, float)):
            # What is there is owned, whatever it is.
            key.append(part == nothing)
        elif by_keys:
            key.append(tuple(part))
        elif part == nothing:
            key.append(None)
        else:
            key.append(id(part))
            parts.append(part)
    return Likeness(tuple(key), tuple(parts))


def _metadata(meta: ObjectMeta) -> tuple[Any, ...]:
    """All that can be owned of it; the rest says which object it is, or is the server's."""
    return (
        # A map that somebody left empty is there, and one that nobody spoke of is not.
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
    """The fields of a kind but its metadata, and whether they are maps of which only the keys matter."""
    known = _known.get(type_)
    if known is None:
        names = zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
        known = _known[type_] = tuple(
            (name, _by_keys(type_, wire)) for name, wire in names if name != "metadata"
        )
    return known


def _by_keys(type_: type[Any], name: str) -> bool:
    whole = shape_of(type_).map
    below = whole.at(name).map if whole is not None else None
    other = below.other if below is not None and not below.names else None
    return other is not None and other.map is None and other.list is None
