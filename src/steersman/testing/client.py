"""The client of a cluster: an `Api` whose verbs take a kind by any of its names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from steersman.api.scheme import Kind
from steersman.client.api import Api, UndecodableObject, WatchEvent
from steersman.client.capabilities import Capabilities
from steersman.testing.generated.client import TypedClient

if TYPE_CHECKING:
    from steersman.api.discovery import DiscoveryResult

T = TypeVar("T")


class Client(TypedClient):
    """The verbs of the API, for coroutines that run in the cluster: ``await client.list("widgets")``.

    A kind is one of its names, a struct type or a `Kind`, as for `Cluster`. Objects of built-in kinds are frozen structs,
    custom ones plain dicts. ``namespace=""`` stands for all namespaces, or for a cluster-scoped kind. It is an `Api`, so code
    that is written for one takes it.
    """

    def __init__(self, api: Api, kind: Callable[[object], Kind[Any]]) -> None:
        self._api = api
        self._kind = kind

    @property
    def capabilities(self) -> Capabilities:
        """The promises of this server beyond its verbs."""
        return self._api.capabilities

    # -- reading ------------------------------------------------------------------------------

    def _get(self, kind: object, namespace: str, name: str) -> Coroutine[Any, Any, Any]:
        return self._api.get(self._kind(kind), namespace, name)

    def _list(self, kind: object, namespace: str, options: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        return self._api.list(self._kind(kind), namespace, **options)

    def watch(
        self,
        kind: Kind[T] | type[T] | str,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
        level_triggered: bool = False,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        """Stream the changes of a kind, with bookmarks; with ``send_initial_events`` its objects come first."""
        return self._api.watch(
            self._kind(kind),
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            send_initial_events=send_initial_events,
            timeout_seconds=timeout_seconds,
            level_triggered=level_triggered,
        )

    async def discover(self) -> DiscoveryResult:
        """The resources that the server serves."""
        return await self._api.discover()

    async def document(self, path: str) -> dict[str, Any]:
        """A document that is not a resource, such as ``/openapi/v3/apis/apps/v1``. Raises `NotFound`."""
        return await self._api.document(path)

    # -- writing ------------------------------------------------------------------------------

    async def create(self, kind: Kind[T] | type[T] | str, namespace: str, body: object) -> T:
        """Create an object. Raises `AlreadyExists`."""
        made: T = await self._api.create(self._kind(kind), namespace, body)
        return made

    async def update(self, kind: Kind[T] | type[T] | str, namespace: str, name: str, body: object) -> T:
        """Replace an object. Raises `Conflict` if its resourceVersion is not the latest."""
        made: T = await self._api.update(self._kind(kind), namespace, name, body)
        return made

    async def update_status(
        self, kind: Kind[T] | type[T] | str, namespace: str, name: str, body: object
    ) -> T:
        """Replace the status of an object."""
        made: T = await self._api.update_status(self._kind(kind), namespace, name, body)
        return made

    async def patch(
        self,
        kind: Kind[T] | type[T] | str,
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Patch an object; by default with a JSON merge patch."""
        made: T = await self._api.patch(
            self._kind(kind),
            namespace,
            name,
            body,
            content_type=content_type,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return made

    async def delete(
        self,
        kind: Kind[Any] | type[Any] | str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace: int | None = None,
    ) -> None:
        """Delete an object."""
        await self._api.delete(
            self._kind(kind),
            namespace,
            name,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace=grace,
        )

    async def delete_collection(
        self,
        kind: Kind[Any] | type[Any] | str,
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        """Delete the objects of a namespace that selectors match."""
        await self._api.delete_collection(
            self._kind(kind),
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            propagation=propagation,
        )

    async def subresource(
        self,
        kind: Kind[Any] | type[Any] | str,
        namespace: str,
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        verb: Literal["get", "create", "update"] = "create",
    ) -> dict[str, Any]:
        """Read or write a subresource as a plain document: ``token``, ``scale``, ``eviction`` …"""
        return await self._api.subresource(self._kind(kind), namespace, name, subresource, body, verb=verb)
