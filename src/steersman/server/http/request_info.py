"""From a URL to what is asked for: verb, resource, namespace and name, as upstream takes a path apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote

Query: TypeAlias = Mapping[str, list[str]]

_VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_NAMESPACES = ("status", "finalize")
"""What may follow the name of a namespace and is no resource in it."""


class Asked(NamedTuple):
    """One request, taken apart."""

    verb: str
    path: str
    resource: bool
    """Whether it is for a resource; the rest is empty where it is not."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    """Of a namespace itself, its own name."""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    scoped: bool = False
    """Whether the path goes through a namespace."""
    rest: tuple[str, ...] = ()
    """What follows the subresource."""


def split(target: str) -> tuple[str, Query]:
    """The path of a request's target, and its query."""
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
    """A boolean of the query: absent, ``false`` and ``0`` are false, all else is true."""
    values = query.get(name)
    return bool(values) and values[0] != "0" and values[0].lower() != "false"  # type: ignore[index]


def first(query: Query, name: str) -> str:
    """A text of the query; empty where there is none."""
    values = query.get(name)
    return values[0] if values else ""


_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
"""What people use who do not say that they want to read the answer."""


def for_people(agent: str, query: Query) -> bool:
    """Whether a person is to read the answer, by the client's name for itself and what it says."""
    if "pretty" in query:
        return flag(query, "pretty") and first(query, "pretty") != ""
    return agent.startswith(_PEOPLE)


def ask(method: str, path: str, query: Query) -> Asked:
    """What a request is for."""
    parts = path.strip("/").split("/") if not path.startswith("//") else [""]
    least = 3 if parts[0] == "api" else 4 if parts[0] == "apis" else 0
    if not least or len(parts) < least:
        return Asked(method.lower(), path, False)
    group, version = ("", parts[1]) if least == 3 else (parts[1], parts[2])
    parts = parts[least - 1 :]
    verb = _VERBS.get(method, "")
    if parts[0] == "watch" and len(parts) > 1:
        # The old way to ask for a watch.
        verb, parts = "watch", parts[1:]
    namespace, scoped = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            parts, scoped = parts[2:], True
    plural, name, subresource = (*parts[:3], "", "")[:3]
    if not name:
        if verb == "get":
            verb = "watch" if flag(query, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
        if verb in ("list", "watch", "deletecollection"):
            name = selected(first(query, "fieldSelector"))
    return Asked(
        verb, path, True, group, version, namespace, plural, name, subresource, scoped, tuple(parts[3:])
    )


def selected(selector: str) -> str:
    """The one name a field selector allows: roles may be for that alone."""
    for term in selector.split(",") if "metadata.name=" in selector else ():
        field, _, value = term.partition("=")
        if field == "metadata.name" and "!" not in field:
            return value.lstrip("=")
    return ""
