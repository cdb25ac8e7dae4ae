"""`Api` in process as somebody in particular: what RBAC does not let them do is refused, as over HTTP.

Control loops that live with their server would have all rights, and one that lacks a right on a real cluster
would not show it. Behind this each has those of its own account::

    api = Acting(LocalApi(server, who.name), who, authorizer)

What was allowed once is remembered until a role or a binding changes, so a request costs little more than
without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import Forbidden
from steersman.api.generated.authorization_v1 import SubjectAccessReview
from steersman.api.scheme import Kind, encode
from steersman.client.api import Api, WatchEvent
from steersman.client.capabilities import Resting, is_steady, rests
from steersman.client.middleware import Around, Asked
from steersman.server.auth import access_reviews
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.rbac import GROUP, Authorizer
from steersman.server.auth.requester import REQUESTER
from steersman.server.auth.users import User
from steersman.server.http.request_info import selected

T = TypeVar("T")

_KNOWING = frozenset({GROUP, "certificates.k8s.io"})
"""Where what somebody may write depends on who they are: nobody grants rights they lack, or signs for another."""


class Acting(Around):
    """An `Api` that does for somebody what they may do."""

    def __init__(self, api: Api, user: User, authorizer: Authorizer) -> None:
        """``api`` carries requests out under the same name."""
        super().__init__(api)
        self.user = user
        self._authorizer = authorizer
        self._epoch = authorizer.epoch
        self._granted: BoundedCache[tuple[str, str, str, str, str], bool] = BoundedCache(4096)
        """Group, resource, verb, namespace and subresource: what is allowed whatever the object's name."""

    @property
    def steady(self) -> bool:
        """What is refused is refused every time."""
        return is_steady(self._api)

    def rests(self, kind: Kind[Any], wake: Callable[[], None]) -> Resting | None:
        """See `steersman.client.capabilities.rests`. Who may not watch is told so when they try."""
        if self._refusal(Asked("watch", "watch", kind, "", fields=kind.fields)) is not None:
            return None
        return rests(self._api, kind, wake)

    def _refusal(self, asked: Asked) -> Forbidden | None:
        """Why somebody may not do something; None where they may."""
        kind, verb, namespace, below = asked.kind, asked.verb, asked.namespace, asked.part
        key = (kind.group, kind.plural, verb, namespace, below)
        if self._granted.get(key) and self._epoch == self._authorizer.epoch:
            return None
        if self._epoch != self._authorizer.epoch:
            self._epoch = self._authorizer.epoch
            self._granted.clear()
        name = asked.name or selected(asked.fields)
        within = namespace if kind.namespaced else ""
        itself = not kind.namespaced and kind.resource == "namespaces"
        if itself:
            # A namespace is within itself, so roles there may be about it.
            within = name
        attributes = Attributes(self.user, verb, kind.group, kind.plural, below, within)
        if self._authorizer.authorize(attributes).allowed:
            if not itself:
                self._granted.put(key, True)
            return None
        attributes = attributes._replace(name=name)
        decision = self._authorizer.authorize(attributes)
        return None if decision.allowed else forbidden(attributes, decision.reason)

    def _pass(self, asked: Asked, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        refusal = self._refusal(asked)
        if refusal is not None:
            return _raised(refusal)
        return self._named(send) if asked.kind.group in _KNOWING else send()

    def _stream(
        self, asked: Asked, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        refusal = self._refusal(asked)
        return _refused(refusal) if refusal is not None else begin()

    def create(self, kind: Kind[T], namespace: str, body: object) -> Coroutine[Any, Any, T]:
        if (kind.group, kind.plural) == (access_reviews.GROUP, "subjectaccessreviews"):
            # Nothing is kept of a question, so there is nothing for the store to do.
            return self._pass(
                Asked("create", "create", kind, namespace), lambda: _reviewed(kind, body, self._authorizer)
            )
        return super().create(kind, namespace, body)

    async def _named(self, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send a request with who asks known to those who must know."""
        token = REQUESTER.set(self.user)
        try:
            return await send()
        finally:
            REQUESTER.reset(token)


async def _reviewed(kind: Kind[T], body: object, authorizer: Authorizer) -> T:
    """The answer to whether somebody may do something."""
    asked = msgspec.json.decode(encode(kind, body), type=SubjectAccessReview)
    answer = access_reviews.subject_access_review(asked, authorizer)
    return msgspec.json.decode(encode(kind, answer), type=kind.type)


async def _raised(error: Forbidden) -> Any:
    raise error


async def _refused(error: Forbidden) -> AsyncIterator[WatchEvent[Any]]:
    raise error
    yield
