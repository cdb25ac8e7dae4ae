"""`Around`: an `Api` around another, in which every request passes one place.

What stands between a client and its server (rights, faults) says in `_pass` and `_stream` what becomes of a
request; the verbs are written once, here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, UndecodableObject, WatchEvent

if TYPE_CHECKING:
    from steersman.api.discovery import Discovered

T = TypeVar("T")


class Asked(NamedTuple):
    """A request about a resource."""

    method: str
    """What is called: ``update_status``."""
    verb: str
    """What that is to RBAC: ``update``."""
    kind: Kind[Any]
    namespace: str
    name: str = ""
    part: str = ""
    """The subresource."""
    fields: str = ""
    """The field selector."""


class Around(ABC):
    """The ten verbs, passed on."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @abstractmethod
    def _pass(self, asked: Asked, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """What becomes of a request: ``send`` sends it."""

    @abstractmethod
    def _stream(
        self, asked: Asked, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        """What becomes of a watch: ``begin`` begins it."""

    # -- reading ------------------------------------------------------------------------------

    def get(self, kind: Kind[T], namespace: str, name: str) -> Coroutine[Any, Any, T]:
        asked = Asked("get", "get", kind, namespace, name)
        return self._pass(asked, lambda: self._api.get(kind, namespace, name))

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
        return self._pass(
            Asked("list", "list", kind, namespace, fields=field_selector),
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
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        return self._stream(
            Asked("watch", "watch", kind, namespace, fields=field_selector),
            send_initial_events,
            lambda: self._api.watch(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                resource_version=resource_version,
                send_initial_events=send_initial_events,
                timeout_seconds=timeout_seconds,
            ),
        )

    # -- writing ------------------------------------------------------------------------------

    def create(self, kind: Kind[T], namespace: str, body: object) -> Coroutine[Any, Any, T]:
        asked = Asked("create", "create", kind, namespace)
        return self._pass(asked, lambda: self._api.create(kind, namespace, body))

    def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        asked = Asked("update", "update", kind, namespace, name)
        return self._pass(asked, lambda: self._api.update(kind, namespace, name, body))

    def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        asked = Asked("update_status", "update", kind, namespace, name, "status")
        return self._pass(asked, lambda: self._api.update_status(kind, namespace, name, body))

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
        return self._pass(
            Asked("patch", "patch", kind, namespace, name, subresource),
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
        return self._pass(
            Asked("delete", "delete", kind, namespace, name),
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
        return self._pass(
            Asked("delete_collection", "deletecollection", kind, namespace, fields=field_selector),
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
        return self._pass(
            Asked(method, verb, kind, namespace, name, subresource),
            lambda: self._api.subresource(kind, namespace, name, subresource, body, verb=verb),
        )

    # -- what is no resource ------------------------------------------------------------------

    async def discover(self) -> Discovered:
        return await self._api.discover()

    async def document(self, path: str) -> dict[str, Any]:
        return await self._api.document(path)
