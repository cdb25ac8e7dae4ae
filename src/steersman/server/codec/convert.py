"""Bodies to full structs, and full structs to documents.

A body may be a document, raw JSON, a view of `steersman.api.kinds` (whose parts may again be raw or
full structs) or the full struct itself. What is a full struct already is kept as it is and shared, never
copied; what has to be built is built once.

Like the real server this keeps `Time` in whole seconds and in UTC, and takes null for absent.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.generated.core_v1 import PodSpec
from steersman.api.generated.merge import Field, fields_of
from steersman.api.kinds import EMPTY, Struct
from steersman.api.scheme import encode_hook

Converter: TypeAlias = Callable[[Any], Any]


class Codec(NamedTuple):
    """How objects are read and shown that are no structs all through."""

    read: Callable[[object], Any]
    document: Callable[[str, str, Any], dict[str, Any]]
    """From an ``apiVersion``, a ``kind`` and the object."""
    view: Callable[[type[Any], str, str, Any], Any]
    """The same as another type, the first argument."""
    encode: Callable[[str, str, Any], bytes]
    """The JSON of an object, from an ``apiVersion``, a ``kind`` and the object."""


CODECS: dict[type, Codec] = {}
"""By type. The others are structs all through."""

# The shared empty map is no dict, and what stands for managedFields is no tuple.
_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_normalizers: dict[type, Converter] = {}
_builders: dict[type, dict[type, Converter]] = {}
"""By the type to be made, and by that of the view."""


def to_struct(type_: type[Any], body: object) -> Any:
    """The body as a full struct. Raises `ValueError` for what is no such object."""
    form = CODECS.get(type_)
    if form is not None:
        return form.read(body)
    if type(body) is type_:
        return _normalize(body)
    if isinstance(body, msgspec.Struct):
        return _from_view(type_, body)
    if isinstance(body, (msgspec.Raw, bytes)):
        raw = bytes(body)
        made = _normalize(_decode_json(type_, raw))
        return _drop_empty_maps(made) if _EMPTY_OBJECT.search(raw) else made
    if isinstance(body, Mapping):
        return _drop_empty_maps(_normalize(_convert_document(type_, body)))
    raise ValueError(f"Expected `object`, got `{type(body).__name__}`")


def to_builtins(value: Any) -> Any:
    """A full struct, or any part of one, as it looks on the wire: dicts, lists and scalars."""
    return msgspec.json.decode(_encoder.encode(value))


def to_document(api_version: str, kind: str, obj: Any) -> dict[str, Any]:
    """A full struct as a plain document, with its ``apiVersion`` and ``kind``."""
    form = CODECS.get(type(obj))
    if form is not None:
        return form.document(api_version, kind, obj)
    return {"apiVersion": api_version, "kind": kind, **to_builtins(obj)}


# -- documents --------------------------------------------------------------------------------


def _convert_document(type_: type[Any], body: Mapping[str, Any]) -> Any:
    try:
        return msgspec.convert(body, type_)
    except msgspec.ValidationError:
        # Null is absent everywhere in the API. Few documents have any, so look only when one does not fit.
        return msgspec.convert(without_nulls(body), type_)


def _decode_json(type_: type[Any], raw: bytes) -> Any:
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        return _convert_document(type_, msgspec.json.decode(raw))


def without_nulls(value: Any) -> Any:
    """A document without its nulls; those in lists stay, since removing them would move the others."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [without_nulls(item) for item in value]
    return value


# -- structs ----------------------------------------------------------------------------------


class _FieldPlan(NamedTuple):
    """A field of a full struct, and what makes any value into the one it has there."""

    name: str
    turn: Converter | None
    default: Any
    """What it has when nobody says anything; `_NO_DEFAULT` where that is made anew each time."""


_NO_DEFAULT = object()


def _normalize(obj: Any) -> Any:
    """A full struct whose parts are full structs too and whose times are as the server keeps them.

    Controllers put parts of views into full structs they were given (a condition into a status).
    Itself where there is nothing to change.
    """
    type_ = type(obj)
    settle = _normalizers.get(type_)
    if settle is None:
        settle = _normalizers[type_] = _compile_normalizer(type_)
    return settle(obj)


def _from_view(type_: type[Any], body: msgspec.Struct) -> Any:
    """A full struct from a view: from the fields both have."""
    known = _builders.setdefault(type_, {})
    view = type(body)
    build = known.get(view)
    if build is None:
        build = known[view] = _compile_builder(type_, view)
    return build(body)


# What goes through every field of every object written is compiled for its type: a loop over the fields takes
# three times as long.


def _compile_normalizer(type_: type[Struct]) -> Converter:
    """Looks at the fields of a struct that may need a turn: structs, maps and times.

    Pod specs are never looked into: whoever passes one on got it from here.
    """
    parts = () if type_ is PodSpec else _field_plans(type_)
    turned = [part for part in parts if part.turn is not None and part.turn is not tuple]
    lines = ["changes = None"]
    for number, part in enumerate(turned):
        lines += [
            f"value = obj.{part.name}",
            f"if {_is_set_expression(number, part)}:",
            f"    turned = turn{number}(value)",
            "    if turned is not value:",
            "        if changes is None: changes = {}",
            f"        changes[{part.name!r}] = turned",
        ]
    lines.append("return obj if changes is None else replace(obj, **changes)")
    return _compile("obj", lines, turned, {"replace": msgspec.structs.replace})


def _compile_builder(type_: type[Struct], view: type) -> Converter:
    """Makes a struct from the fields it has in common with a view of it."""
    shared = [part for part in _field_plans(type_) if hasattr(view, part.name)]
    lines = ["values = {}"]
    for number, part in enumerate(shared):
        value = "value" if part.turn is None else f"turn{number}(value)"
        lines += [
            f"value = body.{part.name}",
            f"if {_is_set_expression(number, part)}: values[{part.name!r}] = {value}",
        ]
    lines.append("return type_(**values)")
    return _compile("body", lines, shared, {"type_": type_})


def _is_set_expression(number: int, part: _FieldPlan) -> str:
    """Whether a value says anything."""
    return "value is not None" + (
        f" and value is not default{number}" if part.default is not _NO_DEFAULT else ""
    )


def _compile(
    argument: str, lines: Sequence[str], parts: Sequence[_FieldPlan], names: dict[str, Any]
) -> Converter:
    for number, part in enumerate(parts):
        names |= {f"turn{number}": part.turn, f"default{number}": part.default}
    exec("\n    ".join((f"def compiled({argument}):", *lines)), names)
    made: Converter = names["compiled"]
    return made


def _field_plans(type_: type[Struct]) -> tuple[_FieldPlan, ...]:
    defaults = {info.name: info.default for info in msgspec.structs.fields(type_)}
    return tuple(
        _FieldPlan(
            field.attribute,
            _converter_of(type_, field),
            _NO_DEFAULT if defaults[field.attribute] is msgspec.NODEFAULT else defaults[field.attribute],
        )
        for field in fields_of(type_).values()
    )


def _converter_of(owner: type, field: Field) -> Converter | None:
    """What makes any value of a field into the one a full struct has there."""
    struct = field.struct
    if struct is None:
        if field.type is datetime:
            return _to_utc if is_micro_time(owner, field.attribute) else _to_whole_seconds
        if field.shape == "map":
            return _normalize_map
        if field.type is Any and field.shape == "value":
            return _decode_raw
        return tuple if field.shape == "list" else None

    builders = _builders.setdefault(struct, {})

    def one(value: Any) -> Any:
        kind = type(value)
        if kind is struct:
            return _normalize(value)
        build = builders.get(kind)
        return to_struct(struct, value) if build is None else build(value)

    if field.shape == "object":
        return one
    if field.shape == "list":
        return lambda items: _map_items(one, items)
    return lambda items: {key: one(item) for key, item in items.items()} or EMPTY


_EMPTY_OBJECT = re.compile(rb"\{\s*\}")


def _drop_empty_maps(obj: Any) -> Any:
    """A struct without maps of nothing, also in pod specs; itself where there are none."""
    changes: dict[str, Any] = {}
    kind: type[Struct] = type(obj)
    maps, objects, lists = _fields_with_maps(kind)
    for name in maps:
        value = getattr(obj, name)
        if value is not EMPTY and value is not None and not value:
            changes[name] = EMPTY
    for name in objects:
        value = getattr(obj, name)
        if value is not None:
            made = _drop_empty_maps(value)
            if made is not value:
                changes[name] = made
    for name in lists:
        value = getattr(obj, name)
        if value:
            made = _map_items(_drop_empty_maps, value)
            if made is not value:
                changes[name] = made
    return msgspec.structs.replace(obj, **changes) if changes else obj


@cache
def _fields_with_maps(type_: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """The fields of a struct in which maps of nothing may be: maps, objects and lists of objects."""
    found: dict[str, list[str]] = {"map": [], "object": [], "list": []}
    for field in fields_of(type_).values():
        inside = (
            field.struct is not None and field.struct is not type_ and any(_fields_with_maps(field.struct))
        )
        if field.shape == "map" or (field.shape in found and inside):
            found[field.shape].append(field.attribute)
    return tuple(tuple(names) for names in found.values())


def _normalize_map(value: Mapping[str, Any]) -> Mapping[str, Any]:
    # An empty map is not told from none at all, and is not written.
    return value or EMPTY


def _decode_raw(value: Any) -> Any:
    """What the API leaves open is plain data here, also where a view has it raw."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _map_items(turn: Converter, items: Sequence[Any]) -> Sequence[Any]:
    if not isinstance(items, (tuple, list)):
        return items  # managedFields that nobody has worked out yet
    turned = tuple([turn(item) for item in items])
    same = type(items) is tuple and all(map(is_, turned, items))
    return items if same else turned


# -- time -------------------------------------------------------------------------------------


def _to_utc(value: Any) -> datetime | None:
    """An instant in UTC, from a datetime or from text; empty text is none."""
    if isinstance(value, str):
        value = msgspec.convert(value, datetime) if value else None
    if value is not None and value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return value  # type: ignore[no-any-return]


def _to_whole_seconds(value: Any) -> datetime | None:
    if type(value) is datetime and value.tzinfo is UTC and not value.microsecond:
        return value
    instant = _to_utc(value)
    return instant.replace(microsecond=0) if instant is not None and instant.microsecond else instant


@cache
def is_micro_time(owner: type, attribute: str) -> bool:
    """Whether a field keeps microseconds. Both sorts are datetimes, so only the declaration tells."""
    for cls in owner.__mro__:
        note = inspect.get_annotations(cls).get(attribute)
        if note is not None:
            return "MicroTime" in str(note)
    return False


@cache
def micro_time_paths(type_: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Where in a struct there are times with microseconds: ``("spec", "renewTime")``."""
    return tuple(_micro_time_paths(type_, ()))


def _micro_time_paths(type_: type[Struct], within: tuple[type, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for field in fields_of(type_).values():
        if field.type is datetime and is_micro_time(type_, field.attribute):
            found.append((field.attribute,))
        elif field.struct is not None and field.shape == "object" and field.struct not in within:
            below = _micro_time_paths(field.struct, (*within, type_))
            found += [(field.attribute, *path) for path in below]
    return found
