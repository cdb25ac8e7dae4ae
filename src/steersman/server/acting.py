"""`Api` in process as somebody in particular: what RBAC does not let them do is refused, as over HTTP.

Control loops that live with their server would have all rights, and one that lacks a right on a real cluster
would not show it. Behind this each has those of its own account::

    api = Acting(LocalApi(server, who.name), who, authorizer)

What was allowed once is remembered until a role or a binding changes, so a request costs little more than
without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from steersman.api.errors import Forbidden
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, Unreadable, WatchEvent
from steersman.client.steady import is_steady
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.rbac import Authorizer
from steersman.server.auth.requester import REQUESTER
from steersman.server.auth.users import User
from steersman.server.edge.requests import selected

if TYPE_CHECKING:
    from steersman.api.discovery import Discovered

T = TypeVar("T")

_MOST = 4096
"""How much is remembered before it is all forgotten."""


class Acting:
    """An `Api` that does for somebody what they may do."""

    def __init__(self, api: Api, user: User, authorizer: Authorizer) -> None:
        """``api`` carries requests out under the same name."""
        self.user = user
        self._api = api
        self._authorizer = authorizer
        self._epoch = authorizer.epoch
        self._granted: dict[tuple[str, str, str, str, str], None] = {}
        """Group, resource, verb, namespace and subresource: what is allowed whatever the object's name."""

    @property
    def steady(self) -> bool:
        """What is refused is refused every time."""
        return is_steady(self._api)

    def _may(self, kind: Kind[Any], verb: str, namespace: str, name: str = "", below: str = "") -> None:
        """Raises `Forbidden`."""
        key = (kind.group, kind.plural, verb, namespace, below)
        if key in self._granted and self._epoch == self._authorizer.epoch:
            return
        if self._epoch != self._authorizer.epoch or len(self._granted) >= _MOST:
            self._epoch = self._authorizer.epoch
            self._granted.clear()
        within = namespace if kind.namespaced else ""
        itself = not kind.namespaced and kind.resource == "namespaces"
        if itself:
            # A namespace is within itself, so roles there may be about it.
            within = name
        asked = Attributes(self.user, verb, kind.group, kind.plural, below, within)
        if self._authorizer.authorize(asked).allowed:
            if not itself:
                self._granted[key] = None
            return
        asked = asked._replace(name=name)
        decision = self._authorizer.authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)

    # -- reading ------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        self._may(kind, "get", namespace, name)
        return await self._api.get(kind, namespace, name)

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
    ) -> Page[T | Unreadable]:
        self._may(kind, "list", namespace, selected(field_selector))
        return await self._api.list(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_=continue_,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
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
    ) -> AsyncIterator[WatchEvent[T | Unreadable]]:
        try:
            self._may(kind, "watch", namespace, selected(field_selector))
        except Forbidden as error:
            return _refused(error)
        return self._api.watch(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            send_initial_events=send_initial_events,
            timeout_seconds=timeout_seconds,
        )

    # -- writing ------------------------------------------------------------------------------

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        self._may(kind, "create", namespace)
        token = REQUESTER.set(self.user)
        try:
            return await self._api.create(kind, namespace, body)
        finally:
            REQUESTER.reset(token)

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        self._may(kind, "update", namespace, name)
        token = REQUESTER.set(self.user)
        try:
            return await self._api.update(kind, namespace, name, body)
        finally:
            REQUESTER.reset(token)

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        self._may(kind, "update", namespace, name, "status")
        token = REQUESTER.set(self.user)
        try:
            return await self._api.update_status(kind, namespace, name, body)
        finally:
            REQUESTER.reset(token)

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
    ) -> T:
        self._may(kind, "patch", namespace, name, subresource)
        token = REQUESTER.set(self.user)
        try:
            return await self._api.patch(
                kind,
                namespace,
                name,
                body,
                content_type=content_type,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
            )
        finally:
            REQUESTER.reset(token)

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
    ) -> None:
        self._may(kind, "delete", namespace, name)
        await self._api.delete(
            kind,
            namespace,
            name,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace=grace,
        )

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        self._may(kind, "deletecollection", namespace, selected(field_selector))
        await self._api.delete_collection(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            propagation=propagation,
        )

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
        self._may(kind, verb, namespace, name, subresource)
        token = REQUESTER.set(self.user)
        try:
            return await self._api.subresource(kind, namespace, name, subresource, body, verb=verb)
        finally:
            REQUESTER.reset(token)

    async def discover(self) -> Discovered:
        # Everybody who is recognised may look around.
        return await self._api.discover()


async def _refused(error: Forbidden) -> AsyncIterator[WatchEvent[Any]]:
    raise error
    yield
