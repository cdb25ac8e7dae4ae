"""Builds URL paths, query strings, Accept headers and DeleteOptions for requests of one kind."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from steersman.api.errors import BadRequest
from steersman.api.partial_object import metadata_only
from steersman.api.scheme import Kind

_METADATA = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


def accept_header(kind: Kind[Any], *, many: bool = False) -> str:
    """Return the Accept header: PartialObjectMetadata for a kind decoded as its metadata only."""
    if metadata_only(kind):
        return _METADATA.format(list="List" if many else "")
    return "application/json"


def writable_collection_path(kind: Kind[Any], namespace: str) -> str:
    """Return the path of a collection to write to. Raises `BadRequest` for that of all namespaces."""
    if kind.namespaced and not namespace:
        raise BadRequest(f"{kind.resource} are namespaced: a namespace is required")
    return resource_path(kind, namespace)


def resource_path(kind: Kind[Any], namespace: str, name: str | None = None, subresource: str = "") -> str:
    """Return the path of a collection or, with a name, of an object.

    Raises `BadRequest` for an empty name, which would address the whole collection, and for one with a slash, which
    would address another object.
    """
    if name is None:
        return kind.path(_segment(kind, namespace) if namespace else "")
    if kind.namespaced and not namespace:
        raise BadRequest(f'{kind.resource} "{name}": a namespace is required')
    space = _segment(kind, namespace) if namespace else ""
    return kind.path(space, _segment(kind, name), quote(subresource, safe="/"))


def _segment(kind: Kind[Any], name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f'{kind.resource}: "{name}" cannot be a name')
    return quote(name, safe=":")


def query_string(**parameters: str) -> str:
    """Return the non-empty parameters as a query string, with the question mark."""
    present = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(present)}" if present else ""


def delete_options(
    uid: str, resource_version: str, propagation: str | None, grace: int | None
) -> bytes | None:
    """Return the body of a delete, or None if the server's defaults apply."""
    options: dict[str, Any] = {}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if uid or resource_version:
        options["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if not options:
        return None
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})
