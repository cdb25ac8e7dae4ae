"""`Api`: the verbs of the Kubernetes API, the interface between control loops and an API server.

`steersman.client.http` implements it for any Kubernetes API server, `steersman.server.local` for the embedded one in
the same process. Fault injection and authorization wrap an `Api`. All failures are raised as
`steersman.api.errors.ApiError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.kinds import ObjectMeta
from steersman.api.scheme import Kind
from steersman.client.capabilities import Capabilities

T = TypeVar("T")


class EventType(Enum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One event of a watch. An ERROR event is raised as the error it carries."""

    type: EventType
    obj: T | None
    """None for a bookmark."""
    resource_version: str
    initial_end: bool = False
    """The bookmark that ends the initial events of a streamed list."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: list[T]
    resource_version: str
    continue_: str = ""


class UndecodableObject(msgspec.Struct, frozen=True):
    """An object that could not be decoded as its type: its metadata, and the decoding error.

    It stays in the list, because the object exists, and does not keep other objects from being decoded.
    """

    metadata: ObjectMeta
    error: str


class Api(Protocol):
    """The verbs of the API, and discovery.

    ``namespace=""`` stands for all namespaces, or for a cluster-scoped kind.
    """

    @property
    def capabilities(self) -> Capabilities:
        """The promises of this server beyond its verbs."""
        ...

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
        """Return one page; the whole list when ``limit`` is 0."""
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
        level_triggered: bool = False,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        """Stream changes since a resourceVersion, with bookmarks, until the server ends the watch.

        With ``send_initial_events`` (WatchList) the existing objects come first, then a bookmark with
        ``initial_end``. Raises `Invalid` or `BadRequest` if the server does not support it. ``level_triggered``: the
        reader needs the latest state of each object, but not every state in between; a server may ignore that.
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
        """Read or write a subresource as a plain document: ``token``, ``scale``, ``eviction``, ``binding`` …"""
        ...

    async def discover(self) -> DiscoveryResult:
        """Return the resources that the server serves. Raises if it does not answer: this never means "none"."""
        ...

    async def document(self, path: str) -> dict[str, Any]:
        """Return a document that is not a resource, such as ``/openapi/v3/apis/apps/v1``. Raises `NotFound`."""
        ...
