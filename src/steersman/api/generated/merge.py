"""How the fields of a struct merge: what strategic merge patch and server-side apply ask of a type.

The generated structs carry the answers as annotations::

    containers: Annotated[tuple[Container, ...], Merge("merge", key="name", list_type="map", keys=("name",))]

and the functions here read them. Fields are named as on the wire (``from``, not ``from_``), because
patches are documents. Answers are cached per struct.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from steersman.api.generated.base import Atomic
from steersman.api.kinds import Struct


class Merge(NamedTuple):
    """How one field merges. What is not said has its default: lists are atomic, maps and objects granular."""

    strategy: str = ""
    """For strategic merge patch: ``merge``, ``replace``, ``retainKeys`` or ``merge,retainKeys``."""
    key: str = ""
    """For strategic merge patch: the field that tells the items of a merged list apart."""
    list_type: str = ""
    """For server-side apply: ``atomic``, ``set`` or ``map``."""
    keys: tuple[str, ...] = ()
    """For server-side apply: the fields that together tell the items of a ``map`` list apart."""
    map_type: str = ""
    """For server-side apply: ``atomic`` or ``granular``."""
    defaults: tuple[tuple[str, str], ...] = ()
    """What a key that an item leaves out counts as: a port without a protocol is a TCP port."""

    @property
    def merges(self) -> bool:
        """Whether strategic merge patch merges the list instead of replacing it."""
        return "merge" in self.strategy.split(",")

    @property
    def retains_keys(self) -> bool:
        """Whether a patch may name the keys to keep, with ``$retainKeys``."""
        return "retainKeys" in self.strategy.split(",")


ATOMIC = Merge(list_type="atomic")
"""A list that is replaced as a whole."""
SET = Merge(list_type="set")
"""A list of scalars, each with its own owners."""


class Field(msgspec.Struct, frozen=True):
    """One field of a struct, as a walk through a document needs it."""

    name: str
    """On the wire."""
    attribute: str
    """In Python."""
    type: Any
    """The resolved type, without ``None`` and without annotations."""
    shape: Literal["value", "object", "list", "map"]
    """``value`` is a scalar, a choice of several shapes, or open JSON."""
    struct: builtins.type[Struct] | None
    """The struct of the object, of the list's items or of the map's values, if those are structs."""
    merge: Merge | None
    """What the definitions say about merging; None where they say nothing."""
    default: Any
    """The default value; ``msgspec.NODEFAULT`` where there is none, or where a factory makes it."""


def _bare(type_: Any) -> Any:
    """The type without ``None``, where one other type is left."""
    if get_origin(type_) in (Union, UnionType):
        rest = tuple(arm for arm in get_args(type_) if arm is not NoneType)
        return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007  # made at run time
    return type_


def _struct(type_: Any) -> type[Struct] | None:
    return type_ if isinstance(type_, type) and issubclass(type_, Struct) else None


def _field(info: msgspec.structs.FieldInfo) -> Field:
    type_, merge = info.type, None
    if get_origin(type_) is Annotated:
        type_, *notes = get_args(type_)
        merge = next((note for note in notes if isinstance(note, Merge)), None)
    type_ = _bare(type_)
    origin, args = get_origin(type_), get_args(type_)
    shape: Literal["value", "object", "list", "map"]
    if origin is tuple:
        shape, struct = "list", _struct(_bare(args[0]))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        shape, struct = "map", _struct(_bare(args[1]))
    elif (struct := _struct(type_)) is not None:
        shape = "object"
        # A struct that is atomic wherever it stands says so itself; the field may say otherwise.
        if issubclass(struct, Atomic) and (merge is None or not merge.map_type):
            merge = (merge or Merge())._replace(map_type="atomic")
    else:
        shape = "value"
    return Field(info.encode_name, info.name, type_, shape, struct, merge, info.default)


_known: dict[type, Mapping[str, Field]] = {}


def fields_of(struct: type[Struct]) -> Mapping[str, Field]:
    """The fields of a struct by their names on the wire."""
    known = _known.get(struct)
    if known is None:
        fields = (_field(info) for info in msgspec.structs.fields(struct))
        known = _known[struct] = MappingProxyType({field.name: field for field in fields})
    return known


def merge_of(struct: type[Struct], field: str) -> Merge | None:
    """How a field merges; None where the definitions say nothing or the struct has no such field."""
    found = fields_of(struct).get(field)
    return found.merge if found else None


def field_type(struct: type[Struct], field: str) -> Any:
    """A field's resolved type, without ``None`` and without annotations.

    Raises `LookupError` where the struct has no such field.
    """
    return fields_of(struct)[field].type


def atomic(struct: type[Struct]) -> bool:
    """Whether server-side apply owns such objects as a whole, wherever they stand."""
    return issubclass(struct, Atomic)
