"""`Api` in process as somebody in particular: what RBAC does not let them do is refused, as over HTTP.

Control loops that live with their server would have all rights, and one that lacks a right on a real cluster
would not show it. Behind this each has those of its own account::

    api = Acting(LocalApi(server, who.name), who, authorizer)

What was allowed once is remembered until a role or a binding changes, so a request costs little more than
without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from steersman.api.errors import Forbidden
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, Unreadable, WatchEvent
from steersman.client.steady import is_steady
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.rbac import GROUP, Authorizer
from steersman.server.auth.requester import REQUESTER
from steersman.server.auth.users import User
from steersman.server.edge.requests import selected

if TYPE_CHECKING:
    from steersman.api.discovery import Discovered

T = TypeVar("T")

_MOST = 4096
"""How much is remembered before it is all forgotten."""
_ASKED = frozenset({GROUP, "certificates.k8s.io"})
"""Where what somebody may write depends on who they are: nobody grants rights they lack, or signs for another."""


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

    def _refusal(
        self, kind: Kind[Any], verb: str, namespace: str, name: str = "", below: str = ""
    ) -> Forbidden | None:
        """Why somebody may not do something; None where they may."""
        key = (kind.group, kind.plural, verb, namespace, below)
        if key in self._granted and self._epoch == self._authorizer.epoch:
            return None
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
            return None
        asked = asked._replace(name=name)
        decision = self._authorizer.authorize(asked)
        return None if decision.allowed else forbidden(asked, decision.reason)

    def _known(self, kind: Kind[Any], work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """A write, with who asks for it known to those who must know."""
        return self._named(work) if kind.group in _ASKED else work

    async def _named(self, work: Coroutine[Any, Any, T]) -> T:
        token = REQUESTER.set(self.user)
        try:
            return await work
        finally:
            REQUESTER.reset(token)

    # -- reading ------------------------------------------------------------------------------

    def get(self, kind: Kind[T], namespace: str, name: str) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(kind, "get", namespace, name)
        return _raised(refusal) if refusal is not None else self._api.get(kind, namespace, name)

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
        refusal = self._refusal(kind, "list", namespace, selected(field_selector))
        if refusal is not None:
            raise refusal
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
        refusal = self._refusal(kind, "watch", namespace, selected(field_selector))
        if refusal is not None:
            return _refused(refusal)
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

    def create(self, kind: Kind[T], namespace: str, body: object) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(kind, "create", namespace)
        if refusal is not None:
            return _raised(refusal)
        return self._known(kind, self._api.create(kind, namespace, body))

    def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(kind, "update", namespace, name)
        if refusal is not None:
            return _raised(refusal)
        return self._known(kind, self._api.update(kind, namespace, name, body))

    def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(kind, "update", namespace, name, "status")
        if refusal is not None:
            return _raised(refusal)
        return self._known(kind, self._api.update_status(kind, namespace, name, body))

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
        refusal = self._refusal(kind, "patch", namespace, name, subresource)
        if refusal is not None:
            return _raised(refusal)
        work = self._api.patch(
            kind,
            namespace,
            name,
            body,
            content_type=content_type,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return self._known(kind, work)

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
        refusal = self._refusal(kind, "delete", namespace, name)
        if refusal is not None:
            raise refusal
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
        refusal = self._refusal(kind, "deletecollection", namespace, selected(field_selector))
        if refusal is not None:
            raise refusal
        await self._api.delete_collection(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            propagation=propagation,
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
        refusal = self._refusal(kind, verb, namespace, name, subresource)
        if refusal is not None:
            return _raised(refusal)
        return self._known(kind, self._api.subresource(kind, namespace, name, subresource, body, verb=verb))

    async def discover(self) -> Discovered:
        # Everybody who is recognised may look around.
        return await self._api.discover()

    async def document(self, path: str) -> dict[str, Any]:
        return await self._api.document(path)


async def _raised(error: Forbidden) -> Any:
    raise error


async def _refused(error: Forbidden) -> AsyncIterator[WatchEvent[Any]]:
    raise error
    yield
