"""AuthorizedApi: an in-process `Api` with the rights that RBAC gives to a user, and no others.

Controllers that run beside their server would otherwise have all rights, and one that lacks a right on a real
cluster would not show it::

    api = AuthorizedApi(LocalApi(server, user), authorizer)

Allowed requests are remembered until a role or a binding changes, so a check costs one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import Forbidden
from steersman.api.scheme import Kind
from steersman.client.api import WatchEvent
from steersman.client.capabilities import Capabilities, EmptyKind
from steersman.client.middleware import ApiCall, Middleware
from steersman.server.auth.attributes import Attributes, authorize
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.local import LocalApi
from steersman.server.rest.selection import requested_name

T = TypeVar("T")


class AuthorizedCapabilities(Capabilities):
    """The capabilities of the server, for the kinds the user may watch. A refusal is the same every time."""

    def __init__(self, inner: Capabilities, may_watch: Callable[[Kind[Any]], bool]) -> None:
        super().__init__(steady=inner.steady)
        self._inner = inner
        self._may_watch = may_watch

    def when_not_empty(self, kind: Kind[Any], wake: Callable[[], None]) -> EmptyKind | None:
        return self._inner.when_not_empty(kind, wake) if self._may_watch(kind) else None


class AuthorizedApi(Middleware):
    """A `LocalApi` that refuses what its user may not do, as over HTTP."""

    def __init__(self, api: LocalApi, authorizer: RBACAuthorizer) -> None:
        super().__init__(api)
        self.user = api.user
        self._authorizer = authorizer
        self._generation = authorizer.generation
        self._granted: BoundedCache[tuple[str, str, str, str, str], bool] = BoundedCache(4096)
        """Group, resource, verb, namespace and subresource of requests that are allowed for every name."""
        self.capabilities = AuthorizedCapabilities(api.capabilities, self._may_watch)

    def _may_watch(self, kind: Kind[Any]) -> bool:
        return self._refusal(ApiCall("watch", "watch", kind, "", field_selector=kind.fields)) is None

    def _refusal(self, request: ApiCall) -> Forbidden | None:
        """The refusal of a request; None if it is allowed."""
        kind, verb, namespace, subresource = (
            request.kind,
            request.verb,
            request.namespace,
            request.subresource,
        )
        key = (kind.group, kind.plural, verb, namespace, subresource)
        if self._granted.get(key) and self._generation == self._authorizer.generation:
            return None
        if self._generation != self._authorizer.generation:
            self._generation = self._authorizer.generation
            self._granted.clear()
        name = requested_name(verb, request.name, request.field_selector)
        # A namespace is within itself, so roles there may be about it.
        is_namespace = not kind.namespaced and kind.resource == "namespaces"
        scope = name if is_namespace else namespace if kind.namespaced else ""
        attributes = Attributes(self.user, verb, kind.group, kind.plural, subresource, scope)
        if self._authorizer.authorize(attributes).allowed:
            if not is_namespace:
                self._granted.put(key, True)
            return None
        try:
            selector = request.field_selector
            authorize(self._authorizer, attributes._replace(name=name, field_selector=selector))
        except Forbidden as refusal:
            return refusal
        return None

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(request)
        return send() if refusal is None else _raise(refusal)

    def _handle_watch(
        self, request: ApiCall, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        refusal = self._refusal(request)
        return begin() if refusal is None else _refused_watch(refusal)


async def _raise(error: Forbidden) -> Any:
    raise error


async def _refused_watch(error: Forbidden) -> AsyncIterator[WatchEvent[Any]]:
    raise error
    yield
