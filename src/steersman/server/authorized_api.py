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
from steersman.client.capabilities import Resting, is_steady, rests
from steersman.client.middleware import Around, Asked
from steersman.server.auth.attributes import Attributes, authorize
from steersman.server.auth.rbac import Authorizer
from steersman.server.local import LocalApi
from steersman.server.rest.selection import selected_name

T = TypeVar("T")


class AuthorizedApi(Around):
    """A `LocalApi` that refuses what its user may not do, as over HTTP."""

    def __init__(self, api: LocalApi, authorizer: Authorizer) -> None:
        super().__init__(api)
        self.user = api.user
        self._authorizer = authorizer
        self._epoch = authorizer.epoch
        self._granted: BoundedCache[tuple[str, str, str, str, str], bool] = BoundedCache(4096)
        """Group, resource, verb, namespace and subresource of requests that are allowed for every name."""

    @property
    def steady(self) -> bool:
        """Whether a refused request is refused every time."""
        return is_steady(self._api)

    def rests(self, kind: Kind[Any], wake: Callable[[], None]) -> Resting | None:
        """See `steersman.client.capabilities.rests`. None where the watch itself would be refused."""
        if self._refusal(Asked("watch", "watch", kind, "", fields=kind.fields)) is not None:
            return None
        return rests(self._api, kind, wake)

    def _refusal(self, request: Asked) -> Forbidden | None:
        """The refusal of a request; None if it is allowed."""
        kind, verb, namespace, subresource = request.kind, request.verb, request.namespace, request.part
        key = (kind.group, kind.plural, verb, namespace, subresource)
        if self._granted.get(key) and self._epoch == self._authorizer.epoch:
            return None
        if self._epoch != self._authorizer.epoch:
            self._epoch = self._authorizer.epoch
            self._granted.clear()
        name = request.name or selected_name(request.fields)
        # A namespace is within itself, so roles there may be about it.
        is_namespace = not kind.namespaced and kind.resource == "namespaces"
        scope = name if is_namespace else namespace if kind.namespaced else ""
        attributes = Attributes(self.user, verb, kind.group, kind.plural, subresource, scope)
        if self._authorizer.authorize(attributes).allowed:
            if not is_namespace:
                self._granted.put(key, True)
            return None
        try:
            authorize(self._authorizer, attributes._replace(name=name))
        except Forbidden as refusal:
            return refusal
        return None

    def _pass(self, asked: Asked, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(asked)
        return send() if refusal is None else _raise(refusal)

    def _stream(
        self, asked: Asked, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        refusal = self._refusal(asked)
        return begin() if refusal is None else _refused_watch(refusal)


async def _raise(error: Forbidden) -> Any:
    raise error


async def _refused_watch(error: Forbidden) -> AsyncIterator[WatchEvent[Any]]:
    raise error
    yield
