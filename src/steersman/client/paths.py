"""Where requests go: paths, queries, and what to accept, for one kind."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from steersman.api.errors import BadRequest
from steersman.api.partial_object import metadata_only
from steersman.api.scheme import Kind

_METADATA = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


def accept(kind: Kind[Any], *, many: bool = False) -> str:
    """A type that has nothing but metadata is asked for as such: the server sends no more."""
    if metadata_only(kind):
        return _METADATA.format(list="List" if many else "")
    return "application/json"


def within(kind: Kind[Any], namespace: str) -> str:
    """The path of a collection to write to: never the one of all namespaces."""
    if kind.namespaced and not namespace:
        raise BadRequest(f"{kind.resource} are namespaced: a namespace is needed")
    return path(kind, namespace)


def path(kind: Kind[Any], namespace: str, name: str | None = None, subresource: str = "") -> str:
    """The path of a collection or, with a name, of an object.

    An empty name would be the whole collection, and one with a slash another object: neither is
    ever sent.
    """
    if name is None:
        return kind.path(_segment(kind, namespace) if namespace else "")
    if kind.namespaced and not namespace:
        raise BadRequest(f'{kind.resource} "{name}": a namespace is needed')
    space = _segment(kind, namespace) if namespace else ""
    return kind.path(space, _segment(kind, name), quote(subresource, safe="/"))


def _segment(kind: Kind[Any], name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f'{kind.resource}: "{name}" cannot be a name')
    return quote(name, safe=":")


def query(**parameters: str) -> str:
    """The parameters that are given, encoded, with the question mark."""
    given = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(given)}" if given else ""


def delete_options(
    uid: str, resource_version: str, propagation: str | None, grace: int | None
) -> bytes | None:
    """The body of a delete, or None where all is as the server would do it anyway."""
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
