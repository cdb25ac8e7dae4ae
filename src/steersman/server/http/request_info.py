"""RequestInfo: the verb, resource, namespace and name of a URL, parsed as upstream does."""

from __future__ import annotations

from typing import NamedTuple

from steersman.http.target import Query, first, flag
from steersman.server.rest.selection import requested_name

_VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
"""The subresources of namespaces: every other word after a namespace's name is a resource in it."""


class RequestInfo(NamedTuple):
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


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Parses a request's method, path and query."""
    parts = path.strip("/").split("/") if not path.startswith("//") else [""]
    least = 3 if parts[0] == "api" else 4 if parts[0] == "apis" else 0
    if not least or len(parts) < least:
        return RequestInfo(method.lower(), path, False)
    group, version = ("", parts[1]) if least == 3 else (parts[1], parts[2])
    parts = parts[least - 1 :]
    verb = _VERBS.get(method, "")
    if parts[0] == "watch" and len(parts) > 1:
        # The deprecated way to ask for a watch.
        verb, parts = "watch", parts[1:]
    namespace, scoped = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts, scoped = parts[2:], True
    plural, name, subresource = (*parts[:3], "", "")[:3]
    if not name:
        if verb == "get":
            verb = "watch" if flag(query, "watch") else "list"
            if query:
                name = requested_name(verb, name, first(query, "fieldSelector"))
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        verb, path, True, group, version, namespace, plural, name, subresource, scoped, tuple(parts[3:])
    )
