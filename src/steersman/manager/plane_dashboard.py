"""The dashboard of ``steersman up``: connects the site under ``/ui`` to the API server, its users and its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from steersman import __version__
from steersman.api.clock import Clock
from steersman.api.errors import Conflict
from steersman.client.api import Api
from steersman.http.response import StreamingResponse
from steersman.manager.dashboard import API, PREFIX, TracedApi, public
from steersman.runtime.trace_view import TraceView
from steersman.server.auth.attributes import Attributes, authorize
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.users import User
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.http.context import Context
from steersman.server.http.responses import Response
from steersman.server.local import LocalApi
from steersman.server.server import Server

if TYPE_CHECKING:
    from steersman.dashboard.site import ClockControl, Site, Viewer

USER = "steersman-dashboard"
"""The user whose token ``up`` prints, and the field manager of what viewers write."""


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
        """Fail or recover a node, as ``steersman node fail`` and ``recover`` do."""
        from steersman.sim.kubelet.node import is_simulated
        from steersman.sim.nodes import NODES, fail, recover

        if not is_simulated(await api.get(NODES, "", name)):
            raise Conflict(
                f"{name} is not a simulated node: it cannot fail or recover on request", reason="Conflict"
            )
        await (fail if action == "fail" else recover)(api, name, output=lambda line: None)


class ControlPlaneSite:
    """The site of a control plane, for its API server."""

    prefix = PREFIX

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

    def public(self, method: str, path: str) -> Response | None:
        """A file of the page; None for the paths of its JSON, which need authorization."""
        found = public(method, path)
        return None if found is None else Response(*found)

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

    def _viewer(self, user: User) -> Viewer:
        from steersman.dashboard.site import Viewer

        async def check(path: str) -> None:
            authorize(self._authorizer, Attributes(user, "get", path=path))

        api = AuthorizedApi(LocalApi(self._server, user, USER), self._authorizer)
        identity = (user.name, user.uid, user.groups, tuple(sorted(user.extra.items())))
        return Viewer(user.name, identity, TracedApi(api, self._rounds, check))

    async def close(self) -> None:
        """End all streams."""
        if self._site is not None:
            await self._site.close()
