"""Middleware: an `Api` around another, through which every request passes in one place.

A subclass (authorization, injected faults) says in `_handle` and `_handle_watch` what becomes of a request; the verbs
are written once, here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import REMOTE, Capabilities

if TYPE_CHECKING:
    from steersman.api.discovery import DiscoveryResult

T = TypeVar("T")


class ApiCall(msgspec.Struct, frozen=True):
    """A request for a resource."""

    method: str
    """The method of `Api`: ``update_status``."""
    verb: str
    """The RBAC verb: ``update``."""
    kind: Kind[Any]
    namespace: str
    name: str = ""
    subresource: str = ""
    field_selector: str = ""


class Middleware(ABC):
    """An `Api` that passes requests on to another."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.capabilities: Capabilities = REMOTE
        """By default nothing is promised: a middleware may fail requests."""

    @abstractmethod
    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """Handle a request; ``send`` passes it on."""

    @abstractmethod
    def _handle_watch(
        self,
        request: ApiCall,
        send_initial_events: bool,
        watch: Callable[[], AsyncIterator[WatchEvent[T]]],
    ) -> AsyncIterator[WatchEvent[T]]:
        """Handle a watch; ``watch`` passes it on."""

    # -- reading ------------------------------------------------------------------------------

    def get(self, kind: Kind[T], namespace: str, name: str) -> Coroutine[Any, Any, T]:
        request = ApiCall("get", "get", kind, namespace, name)
        return self._handle(request, lambda: self._api.get(kind, namespace, name))

    def list(
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
    ) -> Coroutine[Any, Any, Page[T | UndecodableObject]]:
        return self._handle(
            ApiCall("list", "list", kind, namespace, field_selector=field_selector),
            lambda: self._api.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_=continue_,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            ),
        )

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
        return self._handle_watch(
            ApiCall("watch", "watch", kind, namespace, field_selector=field_selector),
            send_initial_events,
            lambda: self._api.watch(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                resource_version=resource_version,
                send_initial_events=send_initial_events,
                timeout_seconds=timeout_seconds,
                level_triggered=level_triggered,
            ),
        )

    # -- writing ------------------------------------------------------------------------------

    def create(self, kind: Kind[T], namespace: str, body: object) -> Coroutine[Any, Any, T]:
        request = ApiCall("create", "create", kind, namespace)
        return self._handle(request, lambda: self._api.create(kind, namespace, body))

    def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        request = ApiCall("update", "update", kind, namespace, name)
        return self._handle(request, lambda: self._api.update(kind, namespace, name, body))

    def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        request = ApiCall("update_status", "update", kind, namespace, name, "status")
        return self._handle(request, lambda: self._api.update_status(kind, namespace, name, body))

    def patch(
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
    ) -> Coroutine[Any, Any, T]:
        return self._handle(
            ApiCall("patch", "patch", kind, namespace, name, subresource),
            lambda: self._api.patch(
                kind,
                namespace,
                name,
                body,
                content_type=content_type,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
            ),
        )

    def delete(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        return self._handle(
            ApiCall("delete", "delete", kind, namespace, name),
            lambda: self._api.delete(
                kind,
                namespace,
                name,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace=grace,
            ),
        )

    def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> Coroutine[Any, Any, None]:
        return self._handle(
            ApiCall("delete_collection", "deletecollection", kind, namespace, field_selector=field_selector),
            lambda: self._api.delete_collection(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                propagation=propagation,
            ),
        )

    def subresource(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        verb: Literal["get", "create", "update"] = "create",
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        method = "get" if verb == "get" else "subresource"
        return self._handle(
            ApiCall(method, verb, kind, namespace, name, subresource),
            lambda: self._api.subresource(kind, namespace, name, subresource, body, verb=verb),
        )

    # -- beyond resources ------------------------------------------------------------------

    async def discover(self) -> DiscoveryResult:
        return await self._api.discover()

    async def document(self, path: str) -> dict[str, Any]:
        return await self._api.document(path)
