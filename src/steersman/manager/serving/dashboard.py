"""The dashboard of ``steersman run``: connects the site under ``/ui`` to the manager's delegated authorization.

A viewer is shown what a SubjectAccessReview allows the viewer to get or list. Only then the manager's own credentials read it, with
list and watch alone, which are the rights that the API server's bootstrap role gives to a manager. Nothing is read while there is no viewer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from steersman import __version__
from steersman.api.clock import Clock
from steersman.api.errors import Conflict, NotFound
from steersman.api.scheme import Kind
from steersman.client.api import Api, UndecodableObject, WatchEvent
from steersman.client.config import ClientConfig
from steersman.client.http import HttpApi
from steersman.client.middleware import ApiCall, Middleware
from steersman.client.round_trip import RequestAttempt
from steersman.http.request import HttpRequest
from steersman.http.response import StreamingResponse
from steersman.manager.dashboard import API, PREFIX, TracedApi, public
from steersman.manager.serving.authorization import Authorizer
from steersman.manager.serving.responses import Response
from steersman.manager.version import user_agent
from steersman.runtime.trace_view import TraceView
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.users import User

if TYPE_CHECKING:
    from steersman.dashboard.site import ClockControl, Site

T = TypeVar("T")

QPS, BURST = 20.0, 60
"""Client rate limits of the dashboard, apart from those of the controllers."""
_READS = ("get", "list", "watch")


class ReviewedApi(Middleware):
    """A manager's own `Api` for the eyes of a user: reads that a SubjectAccessReview allows to that user, and no writes."""

    def __init__(self, api: Api, user: User, authorizer: Authorizer) -> None:
        super().__init__(api)
        self._user = user
        self._authorizer = authorizer

    async def check(self, request: ApiCall) -> None:
        """Raises `Forbidden` where the user may not do what is asked for."""
        kind = request.kind
        # The right to list is the right to see every state: a watch shows no more than lists one after the other would.
        verb = "list" if request.verb == "watch" else request.verb
        namespace = request.namespace if kind.namespaced else ""
        attributes = Attributes(
            self._user, verb, kind.group, kind.plural, request.subresource, namespace, request.name
        )
        if request.verb not in _READS or request.subresource:
            raise forbidden(attributes, "the dashboard of a manager only reads")
        decision = await self._authorizer.authorize_resource(attributes, kind.version)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    async def check_path(self, path: str) -> None:
        """Raises `Forbidden` where the user may not get a path."""
        decision = await self._authorizer.authorize(self._user, "get", path)
        if not decision.allowed:
            raise forbidden(Attributes(self._user, "get", path=path), decision.reason)

    async def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await self.check(request)
        return await send()

    async def _handle_watch(
        self, request: ApiCall, send_initial_events: bool, watch: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        await self.check(request)
        stream = watch()
        try:
            async for event in stream:
                yield event
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        """An object, by a list of it: a manager may list every kind, but get only few."""
        await self.check(ApiCall("get", "get", kind, namespace, name))
        page = await self._api.list(kind, namespace, field_selector=f"metadata.name={name}")
        for item in page.items:
            if not isinstance(item, UndecodableObject):
                if isinstance(item, dict):
                    # Items of a list lack both.
                    item.update({"apiVersion": kind.api_version, "kind": kind.name, **item})
                return item
        raise NotFound(f'{kind.resource} "{name}" not found', reason="NotFound")


class Manager:
    """The manager as the dashboard shows it."""

    name = "run"
    version = __version__
    simulated = False
    time: ClockControl | None = None

    def __init__(self, clock: Clock, rounds: TraceView) -> None:
        self.clock = clock
        self._rounds = rounds

    @property
    def controllers(self) -> int:
        return sum(len(group.runners) for group in self._rounds.groups)

    async def act_on_node(self, api: Api, name: str, action: str) -> None:
        raise Conflict("this manager has no simulated nodes", reason="Conflict")


class ManagerSite:
    """The site of a manager, for its listener. The client is made for the first viewer."""

    prefix = PREFIX

    def __init__(
        self,
        connection: ClientConfig,
        clock: Clock,
        rounds: TraceView,
        on_request: Callable[[RequestAttempt], None] | None = None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._rounds = rounds
        self._on_request = on_request
        self._api: HttpApi | None = None
        self._site: Site | None = None

    def public(self, method: str, path: str) -> Response | None:
        """A file of the page; None for the paths of its JSON, which need authorization."""
        found = public(method, path)
        return None if found is None else Response(*found)

    async def answer(
        self, request: HttpRequest, path: str, query: Any, user: User, authorizer: Authorizer
    ) -> Response | StreamingResponse:
        """Answer a request whose path is authorized."""
        from steersman.dashboard.site import Reply, Site, SiteRequest, Viewer

        if self._api is None:
            self._api = HttpApi(
                self._connection,
                qps=QPS,
                burst=BURST,
                user_agent=user_agent("dashboard"),
                on_request=self._on_request,
            )
        if self._site is None:
            self._site = Site(Manager(self._clock, self._rounds))
        reviewed = ReviewedApi(self._api, user, authorizer)
        identity = (user.name, user.uid, user.groups, tuple(sorted(user.extra.items())))
        viewer = Viewer(user.name, identity, TracedApi(reviewed, self._rounds, reviewed.check_path))
        content_type = request.headers.get("Content-Type", "")
        asked = SiteRequest(request.method, path.removeprefix(API), query, content_type, request.read)
        found = await self._site.answer(asked, viewer, lambda: StreamingResponse(request.writer))
        if isinstance(found, Reply):
            return Response(found.body, found.status, found.content_type, found.headers)
        assert isinstance(found, StreamingResponse)
        return found

    async def close(self) -> None:
        """End all streams, and close the client."""
        if self._site is not None:
            await self._site.close()
        if self._api is not None:
            await self._api.close()
