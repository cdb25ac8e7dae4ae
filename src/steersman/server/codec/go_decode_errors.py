"""The error of Go's JSON decoder for a document that does not fit a struct: its first value of a wrong type.

Called only after decoding has failed.
differs: most named string and number types (``v1.RestartPolicy``) are reported as ``string`` and ``int32``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, get_args

from steersman.api import go_base64
from steersman.api.generated.merge import Field, fields_of
from steersman.api.kinds import Struct
from steersman.server.codec.convert import is_micro_time

_INT64_FIELDS = frozenset(
    {
        "activeDeadlineSeconds",
        "capacity",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gid",
        "gracePeriodSeconds",
        "int",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "nodeAllocatableUpdatePeriodSeconds",
        "observedGeneration",
        "remainingItemCount",
        "resourceSliceCount",
        "revision",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "sizeBytes",
        "startingDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "uid",
    }
)
"""The fields of type int64; all other integers are int32."""

_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"(\d{4})(-)(\d\d)(-)(\d\d)(T)(\d\d)(:)(\d\d)(:)(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TIME_PARTS = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00")
_TIME_SHAPES = (r"\d{4}", "-", r"\d\d", "-", r"\d\d", "T", r"\d\d", ":", r"\d\d", ":", r"\d\d(\.\d+)?")


def go_decode_error(type_: type[Any], document: Any) -> str:
    """Go's error for a document; empty where it fits the type."""
    if not isinstance(document, Mapping):
        return f"json: cannot unmarshal {json_type(document)} into Go value of type {_go_struct_name(type_)}"
    return next(_object_errors(type_, document, ()), "")


def go_value_error(owner: type[Struct], type_: Any, value: Any, path: tuple[str, ...]) -> str:
    """Go's error for a single value that is decoded by itself, and not as a field; empty where it fits the type."""
    return _FIELD.sub("Go value", next(_scalar_errors(owner, type_, value, path), ""))


_FIELD = re.compile(r"Go struct field \S+")


def _object_errors(struct: type[Struct], document: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    fields = fields_of(struct)
    for name, value in document.items():
        field = fields.get(name)
        if field is not None and value is not None:
            yield from _field_errors(struct, field, value, (*path, name))


def _field_errors(owner: type[Struct], field: Field, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    struct = field.struct
    if field.shape == "object" and struct is not None:
        if isinstance(value, Mapping):
            yield from _object_errors(struct, value, path)
        else:
            yield _type_error(owner, path, value, _go_struct_name(struct))
        return
    if field.shape == "value":
        yield from _scalar_errors(owner, field.type, value, path)
        return
    inner = get_args(field.type)[0 if field.shape == "list" else 1]
    container = list if field.shape == "list" else Mapping
    if not isinstance(value, container):
        prefix = "[]" if field.shape == "list" else "map[string]"
        yield _type_error(
            owner,
            path,
            value,
            prefix + (_go_struct_name(struct) if struct else go_scalar_name(owner, inner, path)),
        )
        return
    for item in value if isinstance(value, list) else value.values():
        if item is None:
            continue
        if struct is None:
            yield from _scalar_errors(owner, inner, item, path)
        elif isinstance(item, Mapping):
            yield from _object_errors(struct, item, path)
        else:
            yield _type_error(owner, path, item, _go_struct_name(struct))


def _scalar_errors(owner: type[Struct], type_: Any, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The errors of a scalar, or of a type with its own decoding such as a time."""
    types = frozenset(arm for arm in get_args(type_) if arm is not NoneType) or frozenset({type_})
    found = json_type(value)
    if types == {str} and found != "string":
        yield _type_error(owner, path, value, go_scalar_name(owner, str, path))
    elif types == {str} and is_bytes(owner, path):
        yield from _base64_errors(value)
    elif types == {bool} and found != "bool":
        yield _type_error(owner, path, value, "bool")
    elif types == {int}:
        yield from _integer_errors(owner, value, path)
    elif types == {int, float} and found != "number":
        yield _type_error(owner, path, value, "float64")
    elif types == {int, str} and found != "string":
        yield from _integer_errors(owner, value, path)
    elif types == {int, str, float} and found not in ("string", "number"):
        yield _QUANTITY
    elif types == {datetime}:
        if found != "string":
            yield _type_error(owner, path, value, "string")
        elif is_micro_time(owner, path[-1]):
            yield from _micro_time_errors(value)
        elif not _TIME.fullmatch(value):
            yield _time_error(value)


def _integer_errors(owner: type[Struct], value: Any, path: tuple[str, ...]) -> Iterator[str]:
    go_type = go_scalar_name(owner, int, path)
    if json_type(value) != "number":
        yield _type_error(owner, path, value, go_type)
        return
    limit = 2**63 if go_type == "int64" else 2**31
    if isinstance(value, float) or not -limit <= value < limit:
        yield _unmarshal_error(
            # The text of the number is not known any more.
            f"number {value!r}",
            owner,
            path,
            go_type,
        )


def _type_error(owner: type[Struct], path: tuple[str, ...], value: Any, go_type: str) -> str:
    return _unmarshal_error(json_type(value), owner, path, go_type)


def _unmarshal_error(value_text: str, owner: type[Struct], path: tuple[str, ...], go_type: str) -> str:
    name = owner.__name__.removeprefix("Nested")
    return (
        f"json: cannot unmarshal {value_text} into Go struct field {name}.{'.'.join(path)} of type {go_type}"
    )


def json_type(value: Any) -> str:
    """The JSON type of a value, as Go names it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def _go_struct_name(struct: type[Any]) -> str:
    """A struct's name in Go, with its package: ``v1.Container``."""
    version = struct.__module__.rpartition("_")[2]
    return f"{version}.{struct.__name__.removeprefix('Nested')}"


def go_scalar_name(owner: type[Struct], type_: Any, path: tuple[str, ...]) -> str:
    """A scalar type's name in Go."""
    types = frozenset(arm for arm in get_args(type_) if arm is not NoneType) or frozenset({type_})
    if types == {str}:
        if is_bytes(owner, path):
            return "[]uint8"
        return _NAMED_TEXTS.get((owner.__name__.removeprefix("Nested"), path[-1] if path else ""), "string")
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64" if path and path[-1] in _INT64_FIELDS else "int32"
    if types == {int, str}:
        return "intstr.IntOrString"
    if types == {int, str, float}:
        return "resource.Quantity"
    return "v1.Time" if types == {datetime} else "float64" if types == {int, float} else "interface {}"


_NAMED_TEXTS: Mapping[tuple[str, str], str] = {
    ("DeleteOptions", "propagationPolicy"): "v1.DeletionPropagation",
    ("Preconditions", "uid"): "types.UID",
    ("ObjectMeta", "uid"): "types.UID",
    ("OwnerReference", "uid"): "types.UID",
}
"""The fields whose texts have a type of their own, by struct."""

_BYTES = frozenset(
    {
        ("APIServiceSpec", "caBundle"),
        ("CertificateSigningRequestSpec", "request"),
        ("CertificateSigningRequestStatus", "certificate"),
        ("ConfigMap", "binaryData"),
        ("Secret", "data"),
        ("WebhookClientConfig", "caBundle"),
    }
)
"""The fields whose texts are base64, by struct."""


def is_bytes(owner: type[Struct], path: tuple[str, ...]) -> bool:
    return bool(path) and (owner.__name__, path[-1]) in _BYTES


def _base64_errors(text: str) -> Iterator[str]:
    try:
        go_base64.canonical(text)
    except go_base64.CorruptBase64 as error:
        yield str(error)


def _micro_time_errors(text: str) -> Iterator[str]:
    """The error of a MicroTime, which has exactly six digits of a second."""
    match = _TIME.fullmatch(text)
    if match is not None and len(match[12] or "") == 7:
        return
    message = _time_error(text)
    if match is not None:
        rest = text[match.start(12) if match[12] else match.start(13) :]
        message = f'parsing time "{text}" as "": cannot parse "{rest}" as ".000000"'
    yield message.replace('as "2006-01-02T15:04:05Z07:00"', 'as ""', 1).replace(
        'as ""', 'as "2006-01-02T15:04:05.000000Z07:00"', 1
    )


def _time_error(text: str) -> str:
    rest, part = text, _TIME_PARTS[-1]
    for shape, name in zip(_TIME_SHAPES, _TIME_PARTS, strict=False):
        match = re.match(shape, rest)
        if match is None:
            part = name
            break
        rest = rest[match.end() :]
    return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{rest}" as "{part}"'
