"""The authorization matrix: users with few rights, and the requests that each of them sends.

A chapter is about one resource. Each of its users sends each of its requests, so a row is a user and a request. A user
has a namespace of its own, and every request that writes has an object of its own in it, so no row depends on the answer to
another. ``<<ns>>`` is the namespace of the user, ``<<user>>`` its name, ``<<name>>`` the object of the request and
``<<version>>`` the resourceVersion of that object. The chapters are in `authorization_chapters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

OWN = "<<ns>>"
"""The namespace of the user, where a grant is a RoleBinding to a Role."""
ELSEWHERE = "elsewhere"
"""A namespace that all users share."""
CLUSTER = ""
"""A grant at the cluster scope: a ClusterRoleBinding."""
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Grant:
    """One rule, and where it is bound."""

    rule: Mapping[str, Sequence[str]]
    namespace: str = OWN


def may(verbs: str, resources: str, group: str = "", *, only: str = "", where: str = OWN) -> Grant:
    """A grant of verbs on resources of one API group; ``only`` are its resourceNames."""
    rule = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return Grant(rule | ({"resourceNames": only.split()} if only else {}), where)


def may_request(verbs: str, *paths: str) -> Grant:
    """A grant of verbs on paths that are no resources."""
    return Grant({"verbs": verbs.split(), "nonResourceURLs": list(paths)}, CLUSTER)


@dataclass(frozen=True)
class User:
    """A user by the rights it has: the title completes "a user with"."""

    title: str
    grants: tuple[Grant, ...] = ()
    anonymous: bool = False


def user(title: str, *grants: Grant) -> User:
    return User(title, grants)


@dataclass(frozen=True)
class Request:
    """One request."""

    title: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    given: tuple[tuple[str, Any], ...] = ()
    """Objects that an administrator creates before: path of the collection, and body."""
    shown: tuple[str, ...] = ()
    """Dotted paths of fields of an answered object that are compared besides its kind and name."""
    quiet: bool = False
    """Whether a successful answer is compared by its code alone: its body is the server's own."""

    @property
    def is_watch(self) -> bool:
        return "timeoutSeconds=1" in self.path

    @property
    def name(self) -> str:
        """The name of the request's object."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-")


def request(
    title: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    type_: str = JSON,
    headers: Mapping[str, str] | None = None,
    given: Sequence[tuple[str, Any]] = (),
    shown: str = "",
    quiet: bool = False,
) -> Request:
    content = {"Content-Type": type_} if body is not None else {}
    return Request(
        title, method, path, body, content | dict(headers or {}), tuple(given), tuple(shown.split()), quiet
    )


@dataclass(frozen=True)
class Chapter:
    """Users times requests."""

    name: str
    users: tuple[User, ...]
    requests: tuple[Request, ...]
    setting: tuple[tuple[str, Any], ...] = ()
    """Objects that an administrator creates for each user: path of the collection, and body."""
    remains: tuple[tuple[str, str], ...] = ()
    """What an administrator lists at the end: a collection, and the dotted path of the field that its writes change.
    It shows that refused requests and dry runs have stored nothing."""

    def user_name(self, user: User) -> str:
        """The name of a user, and of its namespace."""
        return f"{self.name}-{self.users.index(user)}"

    def rows(self) -> Iterator[tuple[User, Request]]:
        for each in self.users:
            for asked in self.requests:
                yield each, asked

    def title(self, user: User, asked: str) -> str:
        """The sentence that names a row."""
        return f"{self.name}: a user with {user.title}: {asked}"


def document(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def collection(plural: str, group: str = "", namespace: str = OWN) -> str:
    """The path of a collection; cluster-scoped without a namespace."""
    root = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def writes(
    path: str, make: Any, change: Mapping[str, Any], json_patch: Sequence[Any], *, strategic: bool = True
) -> Iterator[Request]:
    """Every way to write an object, and the dry run of each.

    ``make`` makes the document of a name. ``change`` is a merge patch of it, ``json_patch`` a JSON patch.
    """
    name, one = "<<name>>", f"{path}/<<name>>"
    new, given = make(name), ((path, make(name)),)
    changed = {**new, **change, "metadata": {**new["metadata"], "resourceVersion": "<<version>>"}}
    ways: list[tuple[str, str, str, Any, str, bool]] = [
        ("POST", "POST", path, new, JSON, False),
        ("PUT that updates", "PUT", one, changed, JSON, True),
        ("PUT of an absent object", "PUT", one, new, JSON, False),
        ("JSON patch", "PATCH", one, list(json_patch), JSON_PATCH, True),
        ("JSON patch of an absent object", "PATCH", one, list(json_patch), JSON_PATCH, False),
        ("merge patch", "PATCH", one, dict(change), MERGE, True),
        ("strategic merge patch", "PATCH", one, dict(change), STRATEGIC, True),
        ("apply that updates", "PATCH", f"{one}?fieldManager=me&force=true", {**new, **change}, APPLY, True),
        ("apply that creates", "PATCH", f"{one}?fieldManager=me", new, APPLY, False),
        ("DELETE", "DELETE", one, None, JSON, True),
        ("DELETE of an absent object", "DELETE", one, None, JSON, False),
        ("DELETE of a collection", "DELETE", f"{path}?labelSelector=app=<<name>>", None, JSON, True),
    ]
    for title, method, where, body, type_, exists in ways:
        if type_ == STRATEGIC and not strategic:
            continue
        yield request(title, method, where, body, type_=type_, given=given if exists else ())
        if "absent" in title and method != "PUT":
            continue
        dry = f"{where}{'&' if '?' in where else '?'}dryRun=All"
        yield request(f"{title}, dry run", method, dry, body, type_=type_, given=given if exists else ())
