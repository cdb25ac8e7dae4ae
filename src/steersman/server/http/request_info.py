"""RequestInfo: the verb, resource, namespace and name of a URL, parsed as upstream does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote

from steersman.server.rest.selection import selected_name

Query: TypeAlias = Mapping[str, list[str]]

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


def parse_target(target: str) -> tuple[str, Query]:
    """The path and the query of a request's target."""
    path, mark, query = target.partition("?")
    if "%" in path:
        path = unquote(path)
    if not mark or not query:
        return path, {}
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return path, found


def flag(query: Query, name: str) -> bool:
    """A boolean of the query: absent, ``false`` and ``0`` are false, everything else is true."""
    values = query.get(name)
    return bool(values) and values[0] != "0" and values[0].lower() != "false"  # type: ignore[index]


def first(query: Query, name: str) -> str:
    """A string of the query; empty if absent."""
    values = query.get(name)
    return values[0] if values else ""


_INTERACTIVE_AGENTS = ("curl", "Wget", "Mozilla/5.0")
"""User agents that are given indented JSON unless they say otherwise."""


def wants_pretty(agent: str, query: Query) -> bool:
    """Whether to indent JSON, by the ``pretty`` option or the User-Agent."""
    if "pretty" in query:
        return flag(query, "pretty") and first(query, "pretty") != ""
    return agent.startswith(_INTERACTIVE_AGENTS)


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
        elif verb == "delete":
            verb = "deletecollection"
        if verb in ("list", "watch", "deletecollection"):
            name = selected_name(first(query, "fieldSelector"))
    return RequestInfo(
        verb, path, True, group, version, namespace, plural, name, subresource, scoped, tuple(parts[3:])
    )
