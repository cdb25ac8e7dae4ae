"""Actions on objects by where they are, and not by a copy of them: for resources without a type of their own.

All of them go to the server itself, past any cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from steersman.api.discovery import Discovered
from steersman.api.scheme import Kind
from steersman.intent.actions import Action, PatchType, Propagation, Write

T = TypeVar("T")


class Discover(Action[Discovered], frozen=True):
    """What the server serves now. Raises where it does not say; says which parts it could not learn."""


class Consult(Action[dict[str, Any]], frozen=True):
    """What the server says of itself at a path that is no resource: ``/openapi/v3/apis/apps/v1``.

    Raises `NotFound` where it says nothing.
    """

    path: str


class Read(Action[T], frozen=True):
    """One object as it is now. Raises `NotFound` when there is none of that name."""

    kind: Kind[T]
    namespace: str
    name: str


class ReadPart(Action[dict[str, Any]], frozen=True):
    """A subresource (``scale``, say) as a plain document, as it is now."""

    kind: Kind[Any]
    namespace: str
    name: str
    subresource: str


class Latest(Action[str], frozen=True):
    """The resourceVersion that a resource has reached."""

    kind: Kind[Any]


class Survey(Action[list[T]], frozen=True):
    """All objects of a kind in a namespace as they are now; at most ``limit`` of them, where there is one."""

    kind: Kind[T]
    namespace: str
    limit: int = 0
    selector: str = ""
    """Only those with such labels."""
    shared: bool = False
    """Read as the manager fills its caches, not with the controller's own rights: for what is needed too
    rarely to keep."""


class Remove(Write[None], frozen=True):
    """Delete the object of that name, where it is the one that is meant."""

    kind: Kind[Any]
    namespace: str
    name: str
    uid: str = ""
    """Only where this is its uid."""
    version: str = ""
    """Only where this is its resourceVersion, so that a change nobody looked at is never deleted."""
    propagation: Propagation | None = None


class RemoveAll(Write[None], frozen=True):
    """Delete all objects of a kind in a namespace, in one request."""

    kind: Kind[Any]
    namespace: str
    propagation: Propagation | None = None


class Alter(Write[T], frozen=True):
    """Change some fields of the object of that name; answers with what it is then.

    A list of operations is a JSON patch: its ``test`` operations say of what object it is a change.
    """

    kind: Kind[T]
    namespace: str
    name: str
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    type: PatchType = PatchType.MERGE
    manager: str = ""
    """The field manager; an applied patch needs one."""


class Replace(Write[dict[str, Any]], frozen=True):
    """Put a whole document in the place of the object of that name, or of a subresource of it."""

    kind: Kind[Any]
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
