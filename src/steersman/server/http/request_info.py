"""RequestInfo: the verb, resource, namespace and name of a URL, parsed as upstream does."""

from __future__ import annotations

import msgspec

from steersman.http.target import Query, first, flag
from steersman.server.http.query_options import list_options_decode
from steersman.server.rest.selection import requested_name

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_PATH_VERBS = ("proxy", "watch")
"""Verbs that a path can begin with."""
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
"""The subresources of namespaces: every other word after a namespace's name is a resource in it."""


class RequestInfo(msgspec.Struct, frozen=True):
    """The parts of a request's method and URL."""

    verb: str
    path: str
    resource: bool
    """Whether it is for a resource. The fields below are empty for other paths."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    """For a Namespace, its own name."""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    scoped: bool = False
    """Whether the path goes through a namespace."""
    rest: tuple[str, ...] = ()
    """The segments after the subresource."""
    verb_in_path: bool = False
    """Whether the path begins with the verb, which is the deprecated way to ask for a watch."""
    routed: bool = True
    """Whether the path can be one that is served. A path with two slashes at its beginning is authorized as if it had
    one, and not found."""


class UnknownRequest(ValueError):
    """The path begins with a verb, and nothing follows."""


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Parses a request's method, path and query. Raises `UnknownRequest`."""
    parts, routed = path.strip("/").split("/"), not path.startswith("//")
    least = 3 if parts[0] == "api" else 4 if parts[0] == "apis" else 0
    if not least or len(parts) < least:
        return RequestInfo(method.lower(), path, False, routed=routed)
    group, version = ("", parts[1]) if least == 3 else (parts[1], parts[2])
    parts = parts[least - 1 :]
    verb = _VERBS.get(method, "")
    verb_in_path = parts[0] in _PATH_VERBS
    if verb_in_path:
        if len(parts) < 2:
            raise UnknownRequest("unable to determine kind and namespace from url")
        verb, *parts = parts
    namespace, scoped = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts, scoped = parts[2:], True
    plural, name, subresource = (*parts[:3], "", "")[:3]
    if verb == "proxy":
        subresource = ""
    if not name:
        if verb == "get":
            verb = "watch" if flag(query, "watch") else "list"
            if query:
                name = requested_name(verb, name, first(query, "fieldSelector"))
                if name and not list_options_decode(query):
                    name = ""
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        verb,
        path,
        True,
        group,
        version,
        namespace,
        plural,
        name,
        subresource,
        scoped,
        tuple(parts[3:]),
        verb_in_path,
        routed,
    )
