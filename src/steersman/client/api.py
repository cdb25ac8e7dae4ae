"""`Api`: the ten verbs. The seam between control loops and whatever serves them.

`steersman.client.http` speaks to any Kubernetes API server; `steersman.server.local` is the
embedded one in the same process. Faults and throttles wrap an `Api`. All failures are raised as
`steersman.api.errors.ApiError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from steersman.api.discovery import Discovered
from steersman.api.kinds import ObjectMeta
from steersman.api.scheme import Kind

T = TypeVar("T")


class EventType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One line of a watch. An ERROR line is never an event: it is raised as the error it carries."""

    type: EventType
    obj: T | None
    """None for a bookmark."""
    resource_version: str
    initial_end: bool = False
    """A bookmark that ends the initial events of a streamed list."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: list[T]
    resource_version: str
    continue_: str = ""


class UndecodableObject(msgspec.Struct, frozen=True):
    """An object that could not be read as its type: what is known of it, and what is wrong.

    It is never dropped (a pod we cannot read is still a pod) and never a reason to stop reading
    the others.
    """

    metadata: ObjectMeta
    error: str


class Api(Protocol):
    """Ten verbs, and what there is to use them on. ``namespace=""`` is all namespaces, or a cluster-scoped kind."""

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T: ...

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: Literal["", "Exact", "NotOlderThan"] = "",
    ) -> Page[T | UndecodableObject]:
        """One page; all of it when ``limit`` is 0."""
        ...

    def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        """Changes since a resourceVersion, with bookmarks. Ends when the server ends it.

        With ``send_initial_events`` it first streams what is there (`WatchList`), then a bookmark
        with ``initial_end``; `Invalid`/`BadRequest` when the server does not know how.
        """
        ...

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T: ...

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T: ...

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T: ...

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T: ...

    async def delete(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace: int | None = None,
    ) -> None: ...

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None: ...

    async def subresource(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        verb: Literal["get", "create", "update"] = "create",
    ) -> dict[str, Any]:
        """A subresource as plain documents: ``token``, ``scale``, ``eviction``, ``binding`` …"""
        ...

    async def discover(self) -> Discovered:
        """What the server serves. Raises where it does not say: no answer is not "nothing"."""
        ...

    async def document(self, path: str) -> dict[str, Any]:
        """What is no resource: ``/openapi/v3/apis/apps/v1``, say. `NotFound` where there is nothing."""
        ...
