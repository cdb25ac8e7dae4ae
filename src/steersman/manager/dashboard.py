"""The dashboard of ``steersman up``: connects the site under ``/ui`` to the API server, its users and its nodes.

Starting a control plane must stay cheap, so the site itself is imported with the first request for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from steersman import __version__
from steersman.api.clock import Clock
from steersman.api.errors import Conflict
from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware
from steersman.http.response import StreamingResponse
from steersman.runtime.trace_view import PATH, TraceView
from steersman.server.auth.attributes import Attributes, authorize
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.users import User
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.http.context import Context
from steersman.server.http.responses import Response
from steersman.server.local import LocalApi
from steersman.server.server import Server

if TYPE_CHECKING:
    from steersman.dashboard.site import ClockControl, Site

T = TypeVar("T")

PREFIX = "/ui"
API = f"{PREFIX}/api/"
MANAGER = "steersman-dashboard"
"""The field manager of writes, and the user whose token ``up`` prints."""


def public(method: str, path: str) -> Response | None:
    """A file of the page, or the way to it; None for the paths of its JSON, which need authorization."""
    if f"{path}/".startswith(API):
        return None
    from steersman.dashboard.static_files import STATIC_HEADERS, find

    if path == PREFIX:
        return Response(b"", 301, "text/plain", (("Location", f"{PREFIX}/"), *STATIC_HEADERS))
    found = find(path) if method in ("GET", "HEAD") else None
    if found is None:
        return Response(b"404 page not found\n", 404, "text/plain; charset=utf-8", STATIC_HEADERS)
    return Response(found.body, 200, found.content_type, STATIC_HEADERS)


class TracedApi(Middleware):
    """An `Api` whose ``/debug/rounds`` is the trace of this process, for users with the right to read it."""

    def __init__(self, api: Api, rounds: TraceView, check: Callable[[str], Awaitable[None]]) -> None:
        """``check`` raises `Forbidden` where the user may not get a path."""
        super().__init__(api)
        self.capabilities = api.capabilities
        self._rounds = rounds
        self._check = check

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return send()

    def _handle_watch(
        self, request: ApiCall, send_initial_events: bool, watch: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        return watch()

    async def document(self, path: str) -> dict[str, Any]:
        url = urlsplit(path)
        if url.path != PATH:
            return await super().document(path)
        await self._check(PATH)
        found: dict[str, Any] = msgspec.json.decode(self._rounds.answer(parse_qs(url.query)))
        return found


class ControlPlane:
    """The control plane as the dashboard shows it."""

    name = "up"
    version = __version__

    def __init__(self, clock: Clock, rounds: TraceView, *, simulated: bool) -> None:
        self.clock = clock
        self.simulated = simulated
        self.time: ClockControl | None = None
        """Steers the clock, where it can be steered."""
        self._rounds = rounds

    @property
    def controllers(self) -> int:
        return sum(len(group.runners) for group in self._rounds.groups)

    async def act_on_node(self, api: Api, name: str, action: str) -> None:
        """What ``steersman node fail`` and ``recover`` do."""
        from steersman.sim.nodes import NODES, fail, recover, simulated

        if not simulated(await api.get(NODES, "", name)):
            raise Conflict(
                f"{name} is not a simulated node: it cannot fail or recover on request", reason="Conflict"
            )
        await (fail if action == "fail" else recover)(api, name, output=lambda line: None)


class ControlPlaneSite:
    """The site of a control plane, for its API server."""

    prefix = PREFIX
    public = staticmethod(public)

    def __init__(
        self, plane: ControlPlane, server: Server, authorizer: RBACAuthorizer, rounds: TraceView
    ) -> None:
        self.plane = plane
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        """Waits in real time."""
        self._server = server
        self._authorizer = authorizer
        self._rounds = rounds
        self._site: Site | None = None

    async def answer(self, ctx: Context) -> Response | StreamingResponse:
        """Answer a request whose path is authorized."""
        from steersman.dashboard.site import Reply, Site, SiteRequest

        if self._site is None:
            self._site = Site(self.plane, sleep=self.sleep)
        http, streams = ctx.http, ctx.state.streams
        path = ctx.info.path.removeprefix(API)
        request = SiteRequest(http.method, path, ctx.query, ctx.content_type, http.read)
        # A handler becomes a task when it first waits. The server ends those that last when it closes.
        await asyncio.sleep(0)
        task = asyncio.current_task()
        streams[task] = None
        try:
            found = await self._site.answer(
                request, self._viewer(ctx.user), lambda: StreamingResponse(http.writer)
            )
        finally:
            streams.pop(task, None)
        if not isinstance(found, Reply):
            assert isinstance(found, StreamingResponse)
            return found
        if http.method == "POST" and ctx.state.durable is not None:
            await ctx.state.durable()
        return Response(found.body, found.status, found.content_type, found.headers)

    def _viewer(self, user: User) -> Any:
        from steersman.dashboard.site import Viewer

        async def check(path: str) -> None:
            authorize(self._authorizer, Attributes(user, "get", path=path))

        api = AuthorizedApi(LocalApi(self._server, user, MANAGER), self._authorizer)
        identity = (user.name, user.uid, user.groups, tuple(sorted(user.extra.items())))
        return Viewer(user.name, identity, TracedApi(api, self._rounds, check))

    async def close(self) -> None:
        """End all streams."""
        if self._site is not None:
            await self._site.close()
