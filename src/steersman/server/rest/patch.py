"""Patch: JSON, merge and strategic merge patches of stored objects; applies are handed to `apply`.

Only the top-level fields that a patch touches are converted to plain data and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, Invalid, ServerError, TooLarge
from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.generated.merge import fields_of
from steersman.api.kinds import Struct
from steersman.api.patch import PatchError, TooManyOperations, json, merge, schema_of, strategic
from steersman.api.patch.values import format_as_go
from steersman.server import status_errors
from steersman.server.apply.options import APPLY_YAML
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec import field_validation, go_conversion
from steersman.server.codec.convert import CODECS, micro_time_paths, to_builtins, to_document, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.registry.resources import Resource
from steersman.server.rest.apply import apply
from steersman.server.rest.request import Request, Result, check_identity
from steersman.server.rest.update import change
from steersman.server.server import Server

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
PATCH_TYPES = (JSON, MERGE, STRATEGIC, APPLY_YAML)

_TYPES = frozenset({"apiVersion", "kind"})

S = TypeVar("S", bound=Struct)


def patch(server: Server, request: Request, body: Any) -> Result:
    """Patches an object or its subresource; returns the object."""
    if request.patch_type == APPLY_YAML:
        return apply(server, request, body if isinstance(body, Mapping) else {})
    resource, patch_type = request.resource, request.patch_type
    new: Any = None

    def make(old: Any) -> Any:
        nonlocal new
        new = patched(resource, old, body, patch_type, subresource=request.subresource)
        check_identity(request, new.metadata.namespace, new.metadata.name)
        return new

    try:
        return Result(change(server, request, make))
    except status_errors.MalformedObject as error:
        if patch_type == STRATEGIC:
            raise field_validation.invalid_patch(
                format_as_go(body), go_conversion.malformed(error.why)
            ) from None
        raise _refused(to_document(resource.api_version, resource.kind, new), error.why) from None


# -- patches of documents ---------------------------------------------------------------------


def patched_document(type_: type[Struct], document: Any, body: object, content_type: str) -> Any:
    """A plain document with a patch applied. Raises what the server refuses a bad patch with."""
    patch = msgspec.json.decode(bytes(body)) if isinstance(body, (bytes, msgspec.Raw)) else body
    try:
        if content_type == MERGE:
            return merge.apply(document, _mapping(patch))
        if content_type == STRATEGIC:
            return strategic.apply(document, _mapping(patch), schema_of(type_))
        if content_type == JSON:
            return json.apply(document, patch)  # type: ignore[arg-type]  # it checks for itself
    except TooManyOperations as error:
        raise TooLarge(str(error), reason="RequestEntityTooLarge") from None
    except PatchError as error:
        raise _refusal(error, content_type) from None
    raise status_errors.unsupported_media_type(JSON, MERGE, STRATEGIC)


def _with_reset(made: Any) -> Any:
    """A patched document in which an empty list of managedFields, which resets them, is the entry that does so."""
    meta = made.get("metadata") if isinstance(made, Mapping) else None
    if isinstance(meta, Mapping) and meta.get("managedFields") == []:
        return {**made, "metadata": {**meta, "managedFields": [{}]}}
    return made


def patched_struct(
    obj: S, body: object, content_type: str, api_version: str = "autoscaling/v1", kind: str = "Scale"
) -> S:
    """A struct with a patch applied. ``api_version`` and ``kind`` are for error messages."""
    made = patched_part(obj, body, content_type, api_version, kind)
    if not isinstance(made, dict):
        raise status_errors.bad_request("the patch does not leave an object")
    if content_type != STRATEGIC:
        given = str(made.get("apiVersion") or api_version), str(made.get("kind") or kind)
        group = api_version.rpartition("/")[0]
        if given != (api_version, kind) and (
            why := field_validation.kind_mismatch(group, kind, given[0], given[1])
        ):
            raise _refused(made, why)
    try:
        return _decoded(type(obj), made, body, content_type)
    except ValueError as error:
        if content_type == STRATEGIC:
            raise field_validation.invalid_patch(format_as_go(body), str(error)) from None
        raise _refused(made, str(error)) from None


def patched_part(
    obj: Struct, body: object, content_type: str, api_version: str = "autoscaling/v1", kind: str = "Scale"
) -> Any:
    """A struct with a patch applied, as a plain document."""
    whole = {"apiVersion": api_version, "kind": kind, **to_builtins(obj)}
    body = _without_type(body) if content_type == STRATEGIC else body
    return patched_document(type(obj), whole, body, content_type)


def patched(resource: Resource, old: Any, body: object, content_type: str, *, subresource: str = "") -> Any:
    """A stored object with a patch applied: a full struct that shares the fields the patch did not touch."""
    type_: type[Struct] = resource.type
    if type_ in CODECS:
        return _patched_custom(resource, old, body, content_type, subresource)
    fields = fields_of(type_)
    touched = [name for name in _touched(body, content_type, list(fields)) if name in fields]
    # managedFields are computed when first read, which most patches do not need.
    aside = "metadata" in touched and not _touches_managed_fields(body)
    bare = replace(old, metadata=replace(old.metadata, managedFields=())) if aside else old
    parts = {name: to_builtins(getattr(bare, fields[name].attribute)) for name in touched}
    parts = {name: value for name, value in parts.items() if value is not None}
    for way in micro_time_paths(type_):
        _pad_micro_time(parts, way)
    if content_type != STRATEGIC:
        parts |= {"apiVersion": resource.api_version, "kind": resource.kind}
    made = _with_reset(patched_document(type_, parts, body, content_type))
    if not isinstance(made, Mapping):
        raise status_errors.bad_request("the patch does not leave an object")
    if content_type != STRATEGIC:
        _check_kind(resource, old, made)
    document = {name: value for name, value in made.items() if name in fields}
    try:
        full = _decoded(type_, document, body, content_type)
    except ValueError as error:
        if content_type == STRATEGIC:
            raise field_validation.invalid_patch(format_as_go(body), str(error)) from None
        whole = to_document(resource.api_version, resource.kind, old)
        meta = made.get("metadata")
        if aside and isinstance(meta, Mapping):
            made = {**made, "metadata": {**meta, "managedFields": whole["metadata"].get("managedFields", [])}}
        raise _refused({**whole, **made}, str(error)) from None
    attributes = [fields[name].attribute for name in touched]
    new = replace(old, **{name: getattr(full, name) for name in attributes})
    if aside:
        new = replace(new, metadata=replace(new.metadata, managedFields=old.metadata.managedFields))
    return new


def _decoded(type_: type[S], document: Mapping[str, Any], body: object, content_type: str) -> S:
    """A patched document as a struct, decoded as Go does it. Raises `ValueError` in Go's words."""
    try:
        made: S = to_struct(type_, document)
    except ValueError as error:
        if content_type == STRATEGIC:
            made = to_struct(type_, go_conversion.converted(type_, document))
            return made
        raise ValueError(go_decode_error(type_, document) or str(error)) from None
    if not micro_time_paths(type_) and not go_conversion.is_ambiguous(body):
        return made
    if content_type == STRATEGIC:
        made = to_struct(type_, go_conversion.converted(type_, document))
    elif fault := go_decode_error(type_, document):
        raise ValueError(fault)
    return made


def _patched_custom(
    resource: Resource, old: Any, body: object, content_type: str, subresource: str = ""
) -> Any:
    """A patched custom resource. Its lists have no merge keys, so strategic merge is refused."""
    if content_type not in (JSON, MERGE):
        raise status_errors.unsupported_media_type(JSON, MERGE, APPLY_YAML)
    whole = to_document(resource.api_version, resource.kind, old)
    made = _with_reset(patched_document(resource.type, whole, body, content_type))
    if isinstance(made, Mapping):
        _check_custom_kind(resource, old, made, subresource)
    try:
        return to_struct(resource.type, made)
    except ValueError as error:
        raise _refused(made, str(error)) from None


def _check_custom_kind(resource: Resource, old: Any, made: Mapping[str, Any], subresource: str) -> None:
    """Refuses a custom resource that lost its type by a patch, or got another; a subresource may have another."""
    for name, said in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not made.get(name):
            text = msgspec.json.encode(made).decode()
            raise _refused(made, f"Object '{said}' is missing in '{text}'")
    if subresource:
        return
    given = str(made["apiVersion"]), str(made["kind"])
    expected = resource.api_version, resource.kind
    wrong = [
        status_errors.field_invalid(name, value, f"must be {wanted}")
        for name, value, wanted in zip(("apiVersion", "kind"), given, expected, strict=True)
        if value != wanted
    ]
    if wrong:
        raise status_errors.invalid(given[0].rpartition("/")[0], given[1], old.metadata.name, wrong)


def _pad_micro_time(parts: Any, way: tuple[str, ...]) -> None:
    """Writes a MicroTime at ``way`` with six digits, as clients see it, so that a patch can compare it."""
    name, *rest = way
    if not isinstance(parts, dict) or name not in parts:
        return
    if rest:
        _pad_micro_time(parts[name], tuple(rest))
    elif isinstance(parts[name], str) and "." not in parts[name]:
        parts[name] = parts[name].replace("Z", ".000000Z")


def _touches_managed_fields(body: object) -> bool:
    """Whether a patch may read or change ``managedFields``."""
    if not isinstance(body, Mapping) or not isinstance(meta := body.get("metadata"), Mapping):
        return True
    # Of the directives of a strategic merge these two are about all that is beside them.
    return any(name in ("$patch", "$retainKeys") or name.endswith("managedFields") for name in (*body, *meta))


def _touched(body: object, content_type: str, everything: list[str]) -> list[str]:
    """The top-level fields a patch may change."""
    names: dict[str, None] = {}
    if isinstance(body, Mapping):
        for name in body:
            if name.startswith("$"):
                return everything
            names[name] = None
        return list(names)
    if content_type == JSON and isinstance(body, (list, tuple)):
        for operation in body:
            pointers = (
                (operation.get("path"), operation.get("from")) if isinstance(operation, Mapping) else ()
            )
            for pointer in pointers:
                if isinstance(pointer, str):
                    first = pointer[1:].partition("/")[0]
                    if not first:
                        return everything
                    names[first] = None
        return list(names)
    return everything


def _without_type(body: object) -> object:
    """The patch without ``apiVersion`` and ``kind``."""
    if isinstance(body, Mapping) and not _TYPES.isdisjoint(body):
        return {name: value for name, value in body.items() if name not in _TYPES}
    return body


def _mapping(patch: object) -> dict[str, Any]:
    if not isinstance(patch, Mapping):
        raise PatchError("Invalid JSON Patch")
    return dict(patch)


def _check_kind(resource: Resource, old: Any, made: Mapping[str, Any]) -> None:
    """Refuses an object that got another type by a patch; one without a type keeps its own."""
    version, kind = made.get("apiVersion") or resource.api_version, made.get("kind") or resource.kind
    if (version, kind) == (resource.api_version, resource.kind):
        return
    why = field_validation.kind_mismatch(resource.group, resource.kind, str(version), str(kind))
    if why:
        raise _refused({**to_document(resource.api_version, resource.kind, old), **made}, why)


def unknown_fields(
    resource: Resource, old: Any, body: object, content_type: str
) -> tuple[tuple[str, ...], Callable[[], str]]:
    """The unknown fields of an object with a patch applied, and the text of that object for a refusal."""
    custom = resource.strategy.unknown_fields

    def find(document: Any) -> tuple[str, ...]:
        if custom is None:
            return field_validation.unknown_fields(document, typed_schema_of(resource.type))
        return field_validation.unknown_field_errors(
            custom(document) if isinstance(document, Mapping) else ()
        )

    def text() -> str:
        return format_as_go(body) if content_type == STRATEGIC else msgspec.json.encode(made()).decode()

    @cache
    def made() -> Any:
        whole = to_document(resource.api_version, resource.kind, old)
        patched = patched_document(resource.type, whole, body, content_type)
        return _in_order(patched) if content_type == MERGE else patched

    # Most merge patches have known fields only: the object need not be patched to know that.
    return find(made()) if content_type == JSON or find(body) else (), text


def _in_order(document: Any) -> Any:
    """A document with the fields of all objects in order, as upstream encodes a merged one before it looks for unknown fields."""
    if isinstance(document, dict):
        return {name: _in_order(document[name]) for name in sorted(document)}
    return [_in_order(item) for item in document] if isinstance(document, list) else document


def unknown_scale_fields(
    scale: Callable[[], Scale], body: object, content_type: str
) -> tuple[tuple[str, ...], Callable[[], str]]:
    """The unknown fields of a scale with a patch applied, and the text of that scale for a refusal."""

    def find(document: Any) -> tuple[str, ...]:
        return field_validation.unknown_fields(document, typed_schema_of(Scale))

    def text() -> str:
        return format_as_go(body) if content_type == STRATEGIC else msgspec.json.encode(made()).decode()

    @cache
    def made() -> Any:
        return patched_part(scale(), body, content_type)

    return find(made()) if content_type == JSON or find(body) else (), text


def _refused(whole: Mapping[str, Any], why: str) -> ApiError:
    # differs: upstream has the fields in the order of its structs.
    return field_validation.invalid_patch(msgspec.json.encode(whole).decode(), why)


_MISFORMED = (
    "invalid JSON document",
    "invalid patch format of primitive list",
    "invalid patch format of retainKeys",
    "invalid patch format of setElementOrder list",
    "strategic merge patch format is not supported",
)
_MISUSED = ("lists of lists are not supported", "patch content doesn't match retainKeys list")


def _refusal(error: PatchError, content_type: str) -> ApiError:
    message = str(error)
    if content_type == STRATEGIC and message in _MISUSED:
        return Invalid(message)
    if content_type == STRATEGIC and message not in _MISFORMED:
        # Upstream does not tell whose mistake it is.
        return ServerError(message)
    if content_type != JSON:
        return status_errors.bad_request(message)
    return Invalid(
        "the server rejected our request due to an error in our request",
        reason="Invalid",
    )
