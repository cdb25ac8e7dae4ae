"""A plain HTTP listener on loopback for one site, for browsers, which do not trust the certificate authority of a control plane.

Whatever a request wants, it needs the same credential as over TLS. Two things are checked first: its path belongs to the site,
and its Host names this machine. Without the latter, a page of another origin whose name is made to resolve to 127.0.0.1 (DNS rebinding) would count
as the same origin.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from steersman.http.connection import Handler, HttpServer
from steersman.http.head import http_date
from steersman.http.limits import Limits
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.http.target import parse_target

ADDRESS = "127.0.0.1"
LIMITS = Limits(connections=200, buffered=16 * 1024 * 1024)
"""Of a listener for the browsers of one machine."""
_NAMES = (ADDRESS, "localhost")
_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
_GRACE = 1.0
"""Seconds that requests under way are given when the listener closes."""


class LoopbackListener:
    """Listens on 127.0.0.1, and passes requests below one path on."""

    def __init__(self, handler: Handler, prefix: str) -> None:
        self.port = 0
        self._handler = handler
        self._prefix = prefix
        self._http = HttpServer(self._handle, lambda: http_date(datetime.now(UTC)), LIMITS)
        self._listener: asyncio.Server | None = None

    async def open(self, port: int) -> None:
        """Begin to listen; 0 is any free port. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._http, ADDRESS, port, reuse_address=True)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, and wait for the requests under way."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            await self._http.shutdown(_GRACE)

    async def _handle(self, http: HttpRequest) -> HttpResponse | StreamingResponse:
        host, _, port = http.headers.get("Host", "").partition(":")
        if host.lower() not in _NAMES or port != str(self.port):
            message = f"this listener is for {ADDRESS}:{self.port} alone\n"
            return HttpResponse(421, _TEXT, message.encode())
        path, _ = parse_target(http.raw_path)
        if path == "/":
            return HttpResponse(302, (*_TEXT, ("Location", f"{self._prefix}/")), b"")
        if not f"{path}/".startswith(f"{self._prefix}/"):
            return HttpResponse(404, _TEXT, b"404 page not found\n")
        return await self._handler(http)
