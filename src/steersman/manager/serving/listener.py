"""The socket, and the way of a request: who asks, may they, what is answered."""

from __future__ import annotations

import asyncio
import errno
import gzip
import logging
import socket
from ipaddress import ip_address

from steersman.api.errors import ApiError
from steersman.api.jwt import Untrusted
from steersman.http.connection import HttpServer
from steersman.http.head import http_date
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.manager.flags import UsageError
from steersman.manager.serving.authentication import Authenticator, Shown
from steersman.manager.serving.authorization import Authorizer
from steersman.manager.serving.client_certs import secured
from steersman.manager.serving.metrics import Counts
from steersman.manager.serving.responses import UNAUTHORIZED, Answer, denied, formed, problem, undecided
from steersman.manager.serving.routes import Asked, Routes
from steersman.manager.serving.tls import Contexts
from steersman.runtime.clock import Clock
from steersman.server.http.request_info import for_people, split

log = logging.getLogger(__name__)

_CACHE = ("Cache-Control", "no-cache, private")
_SQUEEZED = 16 * 1024
"""Bytes of an answer beyond which it is compressed for who takes that: metrics are long, and alike."""
_LARGEST = 1024
"""Bytes of a body that are read."""
_GRACE = 1.0
"""Seconds requests under way are given when the door closes."""


def bound(
    address: str, port: int, *, shares_port: bool = False, shares_address: bool = False
) -> socket.socket:
    """A socket at an address; all interfaces of both families where that is unspecified. Raises `UsageError`."""
    where = ip_address(address)
    both = where.is_unspecified and socket.has_dualstack_ipv6()
    made = socket.socket(socket.AF_INET6 if both or where.version == 6 else socket.AF_INET)
    try:
        if both:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Go sets it on every socket that listens, so --permit-address-sharing changes nothing there either.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(("::" if both else address, port))
        # Only who listens learns that somebody else does.
        made.listen(128)
    except OSError as error:
        made.close()
        why = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
        host = f"[{address}]" if where.version == 6 else address
        raise UsageError(f"failed to create listener: listen tcp {host}:{port}: bind: {why}") from None
    return made


class Door:
    """Where clients come in."""

    def __init__(
        self,
        listening: socket.socket,
        contexts: Contexts,
        authenticator: Authenticator,
        authorizer: Authorizer,
        routes: Routes,
        clock: Clock,
        counts: Counts,
    ) -> None:
        self._socket = listening
        self._contexts = contexts
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._routes = routes
        self._clock = clock
        self._counts = counts
        self._http = HttpServer(self._handle, lambda: http_date(clock.now()))
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def open(self) -> None:
        """Let them in."""
        self._server = await asyncio.get_running_loop().create_server(
            self._http, sock=self._socket, ssl=self._contexts.door()
        )
        log.info("Serving securely on port %d", self.port)

    async def close(self) -> None:
        """Listen no more, and let the requests under way come to their end."""
        if self._server is not None:
            self._server.close()
            self._server = None
            await self._http.shutdown(_GRACE)
        self._socket.close()

    async def _handle(self, request: HttpRequest) -> HttpResponse | StreamingResponse:
        path, query = split(request.raw_path)
        asked = Asked(request.method, path, query, request.headers.get("Accept"))
        try:
            answer = await self._answer(request, asked)
        except (asyncio.CancelledError, ConnectionError):
            # The client is gone.
            raise
        except Exception:
            log.exception("%s %s failed", asked.method, path)
            answer = problem(500, "This request caused the manager to fail: see its log")
        answer = formed(answer, asked.accept, for_people(request.headers.get("User-Agent"), query))
        if len(answer.body) > _SQUEEZED and "gzip" in request.headers.get("Accept-Encoding"):
            headers = (*answer.headers, ("Content-Encoding", "gzip"))
            answer = answer._replace(body=gzip.compress(answer.body, 1, mtime=0), headers=headers)
        lines = (("Content-Type", answer.content_type), _CACHE, *answer.headers)
        return HttpResponse(answer.status, lines, answer.body)

    async def _answer(self, request: HttpRequest, asked: Asked) -> Answer:
        tls = secured(request.transport)
        shown = Shown(request.headers, self._contexts.chains.of(tls) if tls is not None else ())
        start = self._clock.monotonic()
        try:
            user = await self._authenticator.authenticate(shown)
        except Untrusted as error:
            log.warning("Unable to authenticate the request: %s", "; ".join(error.errors))
            self._counts.recognised(None, self._clock.monotonic() - start)
            return UNAUTHORIZED
        verb, known = asked.method.lower(), self._clock.monotonic()
        self._counts.recognised(user.name, known - start)
        try:
            decision = await self._authorizer.authorize(user, verb, asked.path)
        except ApiError as error:
            log.error("Failed to make webhook authorizer request: %s", error)
            self._counts.decided(None, self._clock.monotonic() - known)
            return undecided(request.raw_path, str(error))
        self._counts.decided(decision.allowed, self._clock.monotonic() - known)
        if not decision.allowed:
            return denied(user, verb, asked.path, decision.reason)
        if asked.method == "PUT":
            asked = asked._replace(body=await request.read(_LARGEST) or b"")
        return await self._routes.answer(asked)
