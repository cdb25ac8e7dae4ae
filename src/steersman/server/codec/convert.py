"""Conversion of request bodies to full structs, and of full structs to documents.

A body is a document, raw JSON, a view of `steersman.api.kinds` (whose parts may be raw or full structs), or
the full struct itself. Parts that are full structs already are shared, never copied.

Like upstream this keeps `Time` in whole seconds and in UTC, and decodes null as Go does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import is_
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import NODEFAULT

from steersman.api.generated.core_v1 import PodSpec
from steersman.api.generated.merge import Field, fields_of
from steersman.api.kinds import EMPTY, Struct
from steersman.api.scheme import encode_hook

Converter: TypeAlias = Callable[[Any], Any]


class Codec(msgspec.Struct, frozen=True):
    """The conversions of a type that is not a struct throughout, such as a custom resource."""

    decode: Callable[[object], Any]
    document: Callable[[str, str, Any], dict[str, Any]]
    """Makes a document of an ``apiVersion``, a ``kind`` and the object."""
    view: Callable[[type[Any], str, str, Any], Any]
    """Converts the object to another type, the first argument."""
    encode: Callable[[str, str, Any], bytes]
    """The JSON of an object, from an ``apiVersion``, a ``kind`` and the object."""


CODECS: dict[type, Codec] = {}
"""The codecs by type; all other types are structs throughout."""

# The hook encodes the shared empty map, which is no dict, and deferred managedFields, which are no tuple.
_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_normalizers: dict[type, Converter] = {}
_builders: dict[type, dict[type, Converter]] = {}
"""Functions that make a full struct of a view, by the struct's type and the view's type."""


def to_struct(type_: type[Any], body: object) -> Any:
    """The full struct of a body. Raises `ValueError` where the body does not fit the type."""
    codec = CODECS.get(type_)
    if codec is not None:
        return codec.decode(body)
    if type(body) is type_:
        return _normalize(body)
    if isinstance(body, msgspec.Struct):
        return _from_view(type_, body)
    if isinstance(body, (msgspec.Raw, bytes)):
        raw = bytes(body)
        result = _normalize(_decode_json(type_, raw))
        return _drop_empty_maps(result) if _EMPTY_OBJECT.search(raw) else result
    if isinstance(body, Mapping):
        return _drop_empty_maps(_normalize(_convert_document(type_, body)))
    raise ValueError(f"Expected `object`, got `{type(body).__name__}`")


def to_builtins(value: Any) -> Any:
    """A full struct, or a part of one, as plain data: dicts, lists and scalars as in JSON."""
    return msgspec.json.decode(_encoder.encode(value))


def to_document(api_version: str, kind: str, obj: Any) -> dict[str, Any]:
    """A full struct as a plain document, with its ``apiVersion`` and ``kind``."""
    codec = CODECS.get(type(obj))
    if codec is not None:
        return codec.document(api_version, kind, obj)
    return {"apiVersion": api_version, "kind": kind, **to_builtins(obj)}


# -- documents --------------------------------------------------------------------------------


def _convert_document(type_: type[Any], body: Mapping[str, Any]) -> Any:
    try:
        return msgspec.convert(body, type_)
    except msgspec.ValidationError:
        # Few documents have nulls, so they are replaced on failure only.
        return msgspec.convert(_zero_nulls(type_, body), type_)


def _decode_json(type_: type[Any], raw: bytes) -> Any:
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        return _convert_document(type_, msgspec.json.decode(raw))


def _zero_nulls(struct: type[Struct], document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as Go decodes it: a null field is absent, a null item of a list or map is the zero of its type."""
    fields = fields_of(struct)
    return {
        name: _zero_nulls_of(fields[name], value) if name in fields else value
        for name, value in document.items()
        if value is not None
    }


def _zero_nulls_of(field: Field, value: Any) -> Any:
    struct = field.struct
    if field.shape == "value" or (struct is None and field.shape == "object"):
        return _without_nulls(value)
    if field.shape == "object":
        return _zero_nulls(struct, value) if struct is not None and isinstance(value, Mapping) else value

    def item(given: Any) -> Any:
        if given is None:
            inner = get_args(field.type)[0 if field.shape == "list" else 1]
            return {} if struct is not None else _zero(inner)
        return _zero_nulls(struct, given) if struct is not None and isinstance(given, Mapping) else given

    if field.shape == "list" and isinstance(value, (list, tuple)):
        return list(map(item, value))
    if field.shape == "map" and isinstance(value, Mapping):
        return {key: item(given) for key, given in value.items()}
    return value


def _zero(type_: Any) -> Any:
    """Go's zero of a scalar type; None where there is none."""
    types = frozenset(get_args(type_)) or frozenset({type_})
    if len(types) > 1:
        # A quantity is a text or a number.
        return 0 if types == {int, str, float} else None
    return type_() if type_ in (str, int, float, bool) else None


def _without_nulls(value: Any) -> Any:
    """Open JSON without nulls, except those that are items of lists."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return value


# -- structs ----------------------------------------------------------------------------------


class _FieldPlan(msgspec.Struct, frozen=True):
    """A field of a full struct, with the function that converts its values."""

    name: str
    converter: Converter | None
    default: Any
    """The default value; ``NODEFAULT`` where a factory makes it."""


def _normalize(obj: Any) -> Any:
    """A full struct with full structs as its parts, and with its times in UTC and in whole seconds.

    Controllers put parts of views into full structs, such as a condition into a status. Returns the same
    object where nothing changes.
    """
    type_ = type(obj)
    normalize = _normalizers.get(type_)
    if normalize is None:
        normalize = _normalizers[type_] = _compile_normalizer(type_)
    return normalize(obj)


def _from_view(type_: type[Any], body: msgspec.Struct) -> Any:
    """The full struct of a view, from the fields both have."""
    builders = _builders.setdefault(type_, {})
    view = type(body)
    build = builders.get(view)
    if build is None:
        build = builders[view] = _compile_builder(type_, view)
    return build(body)


# These functions visit every field of every written object, so they are compiled for each type: a loop over the
# fields takes three times as long.


def _compile_normalizer(type_: type[Struct]) -> Converter:
    """Compiles a function that converts the structs, maps and times of a struct.

    Pod specs are left out: those in a full struct were normalized before.
    """
    candidates = () if type_ is PodSpec else _field_plans(type_)
    plans = [plan for plan in candidates if plan.converter is not None and plan.converter is not tuple]
    lines = ["changes = None"]
    for number, plan in enumerate(plans):
        lines += [
            f"value = obj.{plan.name}",
            f"if {_is_set_expression(number, plan)}:",
            f"    converted = convert{number}(value)",
            "    if converted is not value:",
            "        if changes is None: changes = {}",
            f"        changes[{plan.name!r}] = converted",
        ]
    lines.append("return obj if changes is None else replace(obj, **changes)")
    return _compile("obj", lines, plans, {"replace": msgspec.structs.replace})


def _compile_builder(type_: type[Struct], view: type) -> Converter:
    """Compiles a function that makes a struct from the fields it shares with a view."""
    plans = [plan for plan in _field_plans(type_) if hasattr(view, plan.name)]
    lines = ["values = {}"]
    for number, plan in enumerate(plans):
        value = "value" if plan.converter is None else f"convert{number}(value)"
        lines += [
            f"value = body.{plan.name}",
            f"if {_is_set_expression(number, plan)}: values[{plan.name!r}] = {value}",
        ]
    lines.append("return type_(**values)")
    return _compile("body", lines, plans, {"type_": type_})


def _is_set_expression(number: int, plan: _FieldPlan) -> str:
    """The source of the test whether a value is set."""
    return "value is not None" + (
        f" and value is not default{number}" if plan.default is not NODEFAULT else ""
    )


def _compile(
    argument: str, lines: Sequence[str], plans: Sequence[_FieldPlan], names: dict[str, Any]
) -> Converter:
    for number, plan in enumerate(plans):
        names |= {f"convert{number}": plan.converter, f"default{number}": plan.default}
    exec("\n    ".join((f"def compiled({argument}):", *lines)), names)
    result: Converter = names["compiled"]
    return result


def _field_plans(type_: type[Struct]) -> tuple[_FieldPlan, ...]:
    return tuple(
        _FieldPlan(
            field.attribute,
            _converter_of(type_, field),
            field.default,
        )
        for field in fields_of(type_).values()
    )


def _converter_of(owner: type, field: Field) -> Converter | None:
    """The function that converts any value of a field to the type in the full struct."""
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

    def convert(value: Any) -> Any:
        kind = type(value)
        if kind is struct:
            return _normalize(value)
        build = builders.get(kind)
        return to_struct(struct, value) if build is None else build(value)

    if field.shape == "object":
        return convert
    if field.shape == "list":
        return lambda items: _map_items(convert, items)
    return lambda items: {key: convert(item) for key, item in items.items()} or EMPTY


_EMPTY_OBJECT = re.compile(rb"\{\s*\}")


def _drop_empty_maps(obj: Any) -> Any:
    """A struct with the shared empty map for each empty one, also in pod specs."""
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
            result = _drop_empty_maps(value)
            if result is not value:
                changes[name] = result
    for name in lists:
        value = getattr(obj, name)
        if value:
            result = _map_items(_drop_empty_maps, value)
            if result is not value:
                changes[name] = result
    return msgspec.structs.replace(obj, **changes) if changes else obj


@cache
def _fields_with_maps(type_: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """The fields of a struct that may hold empty maps: maps, objects and lists of objects."""
    fields: dict[str, list[str]] = {"map": [], "object": [], "list": []}
    for field in fields_of(type_).values():
        has_maps = (
            field.struct is not None and field.struct is not type_ and any(_fields_with_maps(field.struct))
        )
        if field.shape == "map" or (field.shape in fields and has_maps):
            fields[field.shape].append(field.attribute)
    return tuple(tuple(names) for names in fields.values())


def _normalize_map(value: Mapping[str, Any]) -> Mapping[str, Any]:
    # An empty map and an absent one are the same, and neither is encoded.
    return value or EMPTY


def _decode_raw(value: Any) -> Any:
    """A value of any type as plain data, where a view holds it as raw JSON."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _map_items(converter: Converter, items: Sequence[Any]) -> Sequence[Any]:
    if not isinstance(items, (tuple, list)):
        return items  # deferred managedFields
    converted = tuple([converter(item) for item in items])
    unchanged = type(items) is tuple and all(map(is_, converted, items))
    return items if unchanged else converted


# -- times ------------------------------------------------------------------------------------


def _to_utc(value: Any) -> datetime | None:
    """A time in UTC, from a datetime or a string; an empty string is None."""
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
    """Whether a field is a MicroTime. Both kinds of time are datetimes, so the annotation decides."""
    for cls in owner.__mro__:
        annotation = inspect.get_annotations(cls).get(attribute)
        if annotation is not None:
            return "MicroTime" in str(annotation)
    return False


@cache
def micro_time_paths(type_: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """The paths of the MicroTime fields in a struct: ``("spec", "renewTime")``."""
    return tuple(_micro_time_paths(type_, ()))


def _micro_time_paths(type_: type[Struct], ancestors: tuple[type, ...]) -> list[tuple[str, ...]]:
    fields: list[tuple[str, ...]] = []
    for field in fields_of(type_).values():
        if field.type is datetime and is_micro_time(type_, field.attribute):
            fields.append((field.attribute,))
        elif field.struct is not None and field.shape == "object" and field.struct not in ancestors:
            nested = _micro_time_paths(field.struct, (*ancestors, type_))
            fields += [(field.attribute, *path) for path in nested]
    return fields
