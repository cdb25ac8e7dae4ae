"""The HTTPS listener: authenticates, authorizes and routes each request."""

from __future__ import annotations

import asyncio
import errno
import gzip
import logging
import socket
from ipaddress import ip_address

from steersman.api.clock import Clock
from steersman.api.errors import ApiError
from steersman.api.jwt import InvalidCredential
from steersman.http.client_certs import secured
from steersman.http.connection import HttpServer
from steersman.http.head import MalformedRequest, http_date
from steersman.http.limits import Limits
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.http.target import parse_target, wants_pretty
from steersman.manager.flags import UsageError
from steersman.manager.serving.authentication import Authenticator, Credentials
from steersman.manager.serving.authorization import Authorizer
from steersman.manager.serving.dashboard import ManagerSite
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.responses import (
    UNAUTHORIZED,
    Response,
    error_response,
    forbidden_response,
    negotiated,
    review_failed,
)
from steersman.manager.serving.routes import RouteRequest, Routes
from steersman.manager.serving.tls import TlsContexts
from steersman.server.auth.users import ANONYMOUS

log = logging.getLogger(__name__)

_CACHE = ("Cache-Control", "no-cache, private")
_GZIP_THRESHOLD = 16 * 1024
"""Bytes of a response beyond which it is compressed where the client accepts gzip."""
LIMITS = Limits(connections=500, buffered=16 * 1024 * 1024)
"""Limits of the metrics, health and debug endpoints, which few clients use."""
_MAX_BODY = 1024
"""Bytes of a request body that are read."""
_GRACE = 1.0
"""Seconds that requests in flight are given at shutdown."""


def listen(
    address: str, port: int, *, shares_port: bool = False, shares_address: bool = False
) -> socket.socket:
    """A listening socket; an unspecified address listens on all interfaces, IPv4 and IPv6. Raises `UsageError`."""
    parsed = ip_address(address)
    both = parsed.is_unspecified and socket.has_dualstack_ipv6()
    made = socket.socket(socket.AF_INET6 if both or parsed.version == 6 else socket.AF_INET)
    try:
        if both:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Go sets it on every listening socket, so --permit-address-sharing changes nothing there either.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(("::" if both else address, port))
        # Only listen() reports a port that another process listens on.
        made.listen(128)
    except OSError as error:
        made.close()
        why = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
        host = f"[{address}]" if parsed.version == 6 else address
        raise UsageError(f"failed to create listener: listen tcp {host}:{port}: bind: {why}") from None
    return made


class HttpsListener:
    """Serves the routes of a manager over HTTPS."""

    def __init__(
        self,
        listening: socket.socket,
        contexts: TlsContexts,
        authenticator: Authenticator,
        authorizer: Authorizer,
        routes: Routes,
        clock: Clock,
        metrics: ServingMetrics,
        site: ManagerSite | None = None,
    ) -> None:
        self._site = site
        self._socket = listening
        self._contexts = contexts
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._routes = routes
        self._clock = clock
        self._metrics = metrics
        self._http = HttpServer(self._handle, lambda: http_date(clock.now()), LIMITS)
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def open(self) -> None:
        """Start to accept connections."""
        self._http.secure(self._contexts.listening())
        self._server = await asyncio.get_running_loop().create_server(self._http, sock=self._socket)
        log.info("Serving securely on port %d", self.port)

    async def close(self) -> None:
        """Stop accepting connections, and wait for the requests in flight."""
        if self._server is not None:
            self._server.close()
            self._server = None
            await self._http.shutdown(_GRACE)
        self._socket.close()

    async def _handle(self, request: HttpRequest) -> HttpResponse | StreamingResponse:
        path, query = parse_target(request.raw_path)
        route_request = RouteRequest(request.method, path, query, request.headers.get("Accept"))
        try:
            answer = await self._answer(request, route_request)
            if isinstance(answer, StreamingResponse):
                return answer
        except (asyncio.CancelledError, ConnectionError, MalformedRequest):
            # The client has disconnected, or its body cannot be parsed, which the connection answers.
            raise
        except Exception:
            log.exception("%s %s failed", route_request.method, path)
            answer = error_response(500, "This request caused the manager to fail: see its log")
        answer = negotiated(
            answer, route_request.accept, wants_pretty(request.headers.get("User-Agent"), query)
        )
        if len(answer.body) > _GZIP_THRESHOLD and "gzip" in request.headers.get("Accept-Encoding"):
            headers = (*answer.headers, ("Content-Encoding", "gzip"))
            answer = answer._replace(body=gzip.compress(answer.body, 1, mtime=0), headers=headers)
        lines = {"Content-Type": answer.content_type, **dict((_CACHE, *answer.headers))}
        return HttpResponse(answer.status, lines.items(), answer.body)

    async def _answer(
        self, request: HttpRequest, route_request: RouteRequest
    ) -> Response | StreamingResponse:
        path, site = route_request.path, self._site
        if site is not None and not f"{path}/".startswith(f"{site.prefix}/"):
            site = None
        if site is not None and (page := site.public(request.method, path)) is not None:
            return page
        tls = secured(request.transport)
        credentials = Credentials(request.headers, self._contexts.peers.of(tls) if tls is not None else ())
        start = self._clock.monotonic()
        try:
            user = await self._authenticator.authenticate(credentials)
        except InvalidCredential as error:
            log.warning("Unable to authenticate the request: %s", "; ".join(error.errors))
            self._metrics.authenticated(None, self._clock.monotonic() - start)
            return UNAUTHORIZED
        request.writer.authenticated = user.name != ANONYMOUS.name
        verb, known = route_request.method.lower(), self._clock.monotonic()
        self._metrics.authenticated(user.name, known - start)
        try:
            decision = await self._authorizer.authorize(user, verb, route_request.path)
        except ApiError as error:
            log.error("Failed to make webhook authorizer request: %s", error)
            self._metrics.authorized(None, self._clock.monotonic() - known)
            return review_failed(request.raw_path, str(error))
        self._metrics.authorized(decision.allowed, self._clock.monotonic() - known)
        if not decision.allowed:
            if site is not None and user.name == ANONYMOUS.name:
                # The page asks its user for a credential then.
                return UNAUTHORIZED
            return forbidden_response(user, verb, route_request.path, decision.reason)
        if route_request.method == "PUT":
            route_request = route_request._replace(body=await request.read(_MAX_BODY) or b"")
        if site is not None:
            return await site.answer(request, path, route_request.query, user, self._authorizer)
        return await self._routes.answer(route_request)
