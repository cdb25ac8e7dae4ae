"""Patches of stored objects: only the parts a patch speaks of are taken apart and put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, Invalid, ServerError, TooLarge, UnsupportedMediaType
from steersman.api.generated.merge import fields_of
from steersman.api.kinds import Struct
from steersman.api.patch import PatchError, TooManyOperations, json, merge, schema_of, strategic
from steersman.api.patch.values import printed
from steersman.server import status_errors
from steersman.server.codec import field_validation
from steersman.server.codec.convert import FORMS, adopt, document, moments, plain
from steersman.server.codec.go_decode_errors import mistake
from steersman.server.registry.resources import Resource

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

_TYPES = frozenset({"apiVersion", "kind"})

S = TypeVar("S", bound=Struct)


def apply(type_: type[Struct], document: Any, body: object, content_type: str) -> Any:
    """A plain document with a patch applied. Raises what the server refuses a bad patch with."""
    patch = msgspec.json.decode(bytes(body)) if isinstance(body, (bytes, msgspec.Raw)) else body
    try:
        if content_type == MERGE:
            return merge.apply(document, _object(patch))
        if content_type == STRATEGIC:
            return strategic.apply(document, _object(patch), schema_of(type_))
        if content_type == JSON:
            return json.apply(document, patch)  # type: ignore[arg-type]  # it checks for itself
    except TooManyOperations as error:
        raise TooLarge(str(error), reason="RequestEntityTooLarge") from None
    except PatchError as error:
        raise _refusal(error, content_type) from None
    raise unknown(JSON, MERGE, STRATEGIC)


def unknown(*known: str) -> UnsupportedMediaType:
    """The refusal of a patch of a sort nobody knows."""
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}",
        reason="UnsupportedMediaType",
    )


def applied(
    obj: S, body: object, content_type: str, api_version: str = "autoscaling/v1", kind: str = "Scale"
) -> S:
    """A struct with a patch applied; what it is called where it is shown."""
    made = apply(type(obj), plain(obj), _bare(body), content_type)
    if not isinstance(made, dict):
        raise status_errors.bad_request("the patch does not leave an object")
    try:
        full: S = adopt(type(obj), made)
    except ValueError as error:
        whole = {"apiVersion": api_version, "kind": kind, **made}
        raise _unfit(type(obj), whole, body, content_type, str(error)) from None
    return full


def patched(resource: Resource, old: Any, body: object, content_type: str) -> Any:
    """A stored object with a patch applied: a full struct that shares what the patch left alone."""
    type_: type[Struct] = resource.type
    if type_ in FORMS:
        return _patched_whole(resource, old, body, content_type)
    _meant(resource, old, body, content_type)
    fields = fields_of(type_)
    touched = [name for name in _touched(body, content_type, list(fields)) if name in fields]
    # Who owns what is worked out when somebody looks at it, which most patches do not.
    aside = "metadata" in touched and not _about_owners(body)
    bare = replace(old, metadata=replace(old.metadata, managedFields=())) if aside else old
    parts = {name: plain(getattr(bare, fields[name].attribute)) for name in touched}
    parts = {name: value for name, value in parts.items() if value is not None}
    for way in moments(type_):
        _write_out(parts, way)
    made = apply(type_, parts, _bare(body), content_type)
    if not isinstance(made, Mapping):
        raise status_errors.bad_request("the patch does not leave an object")
    try:
        full = adopt(type_, {name: value for name, value in made.items() if name in fields})
    except ValueError as error:
        whole = {**document(resource.api_version, resource.kind, old), **made}
        raise _unfit(type_, whole, body, content_type, str(error)) from None
    if moments(type_) and (fault := mistake(type_, made)):
        raise _shown({**document(resource.api_version, resource.kind, old), **made}, fault)
    attributes = [fields[name].attribute for name in touched]
    new = replace(old, **{name: getattr(full, name) for name in attributes})
    if aside:
        new = replace(new, metadata=replace(new.metadata, managedFields=old.metadata.managedFields))
    return new


def _patched_whole(resource: Resource, old: Any, body: object, content_type: str) -> Any:
    """The same for what is no struct all through: nobody knows how its lists would merge."""
    if content_type not in (JSON, MERGE):
        raise unknown(JSON, MERGE, APPLY)
    made = apply(resource.type, document(resource.api_version, resource.kind, old), _bare(body), content_type)
    try:
        return adopt(resource.type, made)
    except ValueError as error:
        raise status_errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        ) from None


def _write_out(parts: Any, way: tuple[str, ...]) -> None:
    """Give a time its six digits, where it has microseconds and happens to have none: a patch must have them."""
    name, *rest = way
    if not isinstance(parts, dict) or name not in parts:
        return
    if rest:
        _write_out(parts[name], tuple(rest))
    elif isinstance(parts[name], str) and "." not in parts[name]:
        parts[name] = parts[name].replace("Z", ".000000Z")


def _about_owners(body: object) -> bool:
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


def _bare(body: object) -> object:
    """The patch without the words that only say what it is a patch of."""
    if isinstance(body, Mapping) and not _TYPES.isdisjoint(body):
        return {name: value for name, value in body.items() if name not in _TYPES}
    return body


def _object(patch: object) -> dict[str, Any]:
    if not isinstance(patch, Mapping):
        raise PatchError("Invalid JSON Patch")
    return dict(patch)


def _meant(resource: Resource, old: Any, body: object, content_type: str) -> None:
    """A merge must not make something else of an object."""
    if content_type != MERGE or not isinstance(body, Mapping):
        return
    version, kind = body.get("apiVersion", resource.api_version), body.get("kind", resource.kind)
    if (version, kind) == (resource.api_version, resource.kind):
        return
    whole = {**document(resource.api_version, resource.kind, old), "apiVersion": version, "kind": kind}
    raise _shown(whole, field_validation.other_kind(resource.group, resource.kind, version, kind))


def _unfit(type_: type[Any], whole: Mapping[str, Any], body: object, content_type: str, why: str) -> ApiError:
    """The refusal of a patch that leaves something which is no such object."""
    why = mistake(type_, whole) or why
    if content_type == STRATEGIC:
        # It is read in another way, which says less.
        return field_validation.refused_patch(
            printed(body), f"unrecognized type: {why.rpartition(' of type ')[2]}"
        )
    return _shown(whole, why)


def shown(resource: Resource, old: Any, body: object, content_type: str) -> str:
    """What a patch would make of an object, as the refusal of it shows it."""
    if content_type == STRATEGIC:
        return printed(body)
    whole = document(resource.api_version, resource.kind, old)
    return msgspec.json.encode(apply(resource.type, whole, _bare(body), content_type)).decode()


def _shown(whole: Mapping[str, Any], why: str) -> ApiError:
    # differs: upstream has the fields in the order of its structs.
    return field_validation.refused_patch(msgspec.json.encode(whole).decode(), why)


_MISFORMED = (
    "invalid JSON document",
    "invalid patch format of primitive list",
    "invalid patch format of retainKeys",
    "invalid patch format of setElementOrder list",
    "strategic merge patch format is not supported",
)
_MISUSED = ("lists of lists are not supported", "patch content doesn't match retainKeys list")


def _refusal(error: PatchError, content_type: str) -> ApiError:
    said = str(error)
    if content_type == STRATEGIC and said in _MISUSED:
        return Invalid(said)
    if content_type == STRATEGIC and said not in _MISFORMED:
        # Upstream does not tell whose mistake it is.
        return ServerError(said)
    if content_type != JSON:
        return status_errors.bad_request(said)
    return Invalid(
        "the server rejected our request due to an error in our request",
        reason="Invalid",
    )
