"""The dashboard as `steersman up` and `steersman run` share it: its paths, its files, and the trace behind an `Api`.

Starting either must stay cheap, so the site itself is imported with the first request for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware
from steersman.dashboard.time_slices import TimeSlices
from steersman.runtime.trace_view import PATH, TraceView

T = TypeVar("T")

PREFIX = "/ui"
API = f"{PREFIX}/api/"


class Page(NamedTuple):
    """A whole response."""

    body: bytes
    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]


def public(method: str, path: str) -> Page | None:
    """A file of the page, or the way to it; None for the paths of its JSON, which need authorization."""
    if f"{path}/".startswith(API):
        return None
    from steersman.dashboard.static_files import STATIC_HEADERS, find

    if path == PREFIX:
        return Page(b"", 301, "text/plain", (("Location", f"{PREFIX}/"), *STATIC_HEADERS))
    found = find(path) if method in ("GET", "HEAD") else None
    if found is None:
        return Page(b"404 page not found\n", 404, "text/plain; charset=utf-8", STATIC_HEADERS)
    return Page(found.body, 200, found.content_type, STATIC_HEADERS)


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
        found: dict[str, Any] = msgspec.json.decode(
            await TimeSlices().run(self._rounds.answer_in_steps(parse_qs(url.query)))
        )
        return found
