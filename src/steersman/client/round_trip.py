"""Sends one request and returns its response: throttled, authenticated, timed, and retried where that is safe.

When a request is retried:

- the response has ``Retry-After`` (429, 5xx), so it was not processed: any request, after that time;
- the response is a 401, so it was not processed either: any request, once, if there is another credential;
- the connection broke during a read: the read, after a pause;
- the connection broke during a write: never. The error tells the caller that the outcome is ``uncertain``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import msgspec

from steersman.api.errors import Unreachable
from steersman.api.token_bucket import TokenBucket
from steersman.client import request_log
from steersman.client.auth import Authenticator, Credential
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.connection import Response
from steersman.client.connector import host_of
from steersman.client.request_errors import (
    NO_RESPONSE,
    connection_broke,
    error_from_response,
    retry_after,
    unreachable,
)
from steersman.client.transport import ConnectionPool, Transport

MAX_RETRIES = 10
"""Retries of one request, as upstream limits them."""
WATCH_GRACE = 30.0
"""Seconds a watch may last after the server should have ended it."""
MAX_WATCH = 3600
"""Seconds after which a server ends a watch without timeoutSeconds, at the latest."""


class RequestAttempt(msgspec.Struct, frozen=True):
    """One attempt of a request, reported for metrics. Each retry is another attempt."""

    verb: str
    """The RBAC verb: ``get``, ``list``, ``watch``, ``create`` …"""
    method: str
    resource: str
    code: int
    """The HTTP status, or 0 without a response."""
    seconds: float
    """Duration of the attempt."""
    sent: int
    """Bytes of the request body."""
    received: int
    """Bytes of the response body after decompression; 0 for a watch, which is reported when it opens."""
    throttled: float
    """Seconds spent waiting for the client-side rate limit before this attempt."""
    attempt: int
    """0 for the first."""


class ApiRequest(msgspec.Struct, frozen=True):
    """One request to the API server."""

    verb: str
    method: str
    resource: str
    path: str
    """Path and query, percent-encoded."""
    accept: str = "application/json"
    body: bytes | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def is_write(self) -> bool:
        """The request may change something on the server."""
        return self.method != "GET"


class RoundTripper:
    """Sends the requests of one client. Other clients may share its transport."""

    def __init__(
        self,
        config: ClientConfig,
        transport: Transport,
        auth: Authenticator,
        bucket: TokenBucket,
        headers: Sequence[tuple[str, str]],
        *,
        timeout: float,
        on_request: Callable[[RequestAttempt], None] | None,
        sleep: Callable[[float], Awaitable[object]],
        fence: Callable[[], bool] | None = None,
    ) -> None:
        """``headers`` are those of every request."""
        self._server = config.server
        self._prefix = urlsplit(config.server).path
        self._fence = fence
        self._transport = transport
        self._auth = auth
        self._bucket = bucket
        self._headers = (("Host", host_header(config.server)), *headers)
        self._constant_lines = header_lines(self._headers)
        self._timeout = timeout
        self._max_retry_after = timeout
        self._on_request = on_request
        self._sleep = sleep
        self._open_responses: set[Response] = set()
        self.closed = False

    def close(self) -> None:
        """Abort requests in progress."""
        self.closed = True
        for response in tuple(self._open_responses):
            response.close()

    async def send(self, request: ApiRequest) -> bytes:
        """Return the body of a successful response. Raises `ApiError` otherwise."""
        throttled = await self._bucket.acquire()
        loop = asyncio.get_running_loop()
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            started = loop.time()
            code, size = 0, 0
            received: Response | None = None
            try:
                with self._transport.pool(credential) as pool:
                    async with pool.concurrency:
                        started = loop.time()
                        response = await self._begin(pool, request, credential, started + self._timeout)
                        with self._tracked(response):
                            body = await response.read()
                received, code, size = response, response.status, len(body)
            except NO_RESPONSE as error:
                wait = self._retry_delay_after_failure(request, attempt, error)
            except ConfigError as error:
                raise Unreachable(f"{self._server}: {error.message}") from error
            else:
                if 200 <= code < 300:
                    return body
                if code == 401 and not renewed and await self._auth.renew(credential):
                    renewed, wait = True, 0.0
                else:
                    wait = self._retry_delay_after_response(request, attempt, response, body)
            finally:
                self._report(request, received, code, started, size, throttled, attempt)
            attempt += 1
            await self._sleep(wait)
            throttled = await self._bucket.acquire()

    @asynccontextmanager
    async def open_watch(self, request: ApiRequest, timeout: int | None) -> AsyncIterator[Response]:
        """Open a watch and return its streaming response. Leaving the context closes the connection.

        As upstream, watches are not throttled: they are few, and long.
        """
        # A limit of the whole watch, which the server ends in time: one of each read would set a timer for every event.
        whole = (timeout if timeout is not None else MAX_WATCH) + WATCH_GRACE
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            with ExitStack() as stack:
                try:
                    response = await self._start(stack, request, credential, whole, attempt)
                    body = b"" if response.status == 200 else await response.read()
                except NO_RESPONSE as error:
                    wait = self._retry_delay_after_failure(request, attempt, error)
                except ConfigError as error:
                    raise Unreachable(f"{self._server}: {error.message}") from error
                else:
                    if response.status == 200:
                        yield response
                        return
                    if response.status == 401 and not renewed and await self._auth.renew(credential):
                        renewed, wait = True, 0.0
                    else:
                        wait = self._retry_delay_after_response(request, attempt, response, body)
            attempt += 1
            await self._sleep(wait)

    async def _start(
        self, stack: ExitStack, request: ApiRequest, credential: Credential, whole: float, attempt: int
    ) -> Response:
        """Send the request that opens a watch. The stack releases its pool and response."""
        pool = stack.enter_context(self._transport.pool(credential))
        started = asyncio.get_running_loop().time()
        response: Response | None = None
        try:
            response = await self._begin(pool, request, credential, started + whole)
        finally:
            code = response.status if response is not None else 0
            self._report(request, response, code, started, 0, 0.0, attempt)
        stack.enter_context(self._tracked(response))
        return response

    async def _begin(
        self, pool: ConnectionPool, request: ApiRequest, credential: Credential, deadline: float
    ) -> Response:
        """Send a request over a connection of its own and return its response once the head is there."""
        connection = await pool.connection()
        # It may have waited long for the connection.
        if self._fence is not None and request.is_write and not self._fence():
            pool.take_back(connection)
            raise Unreachable(f"{self._server}: {request} was not sent: this process is no longer the leader")
        return await connection.send(self._head(request, credential, pool), request.body, deadline)

    @contextmanager
    def _tracked(self, response: Response) -> Iterator[None]:
        """Close the response in the end. Unless it was received completely, this closes its connection, too."""
        self._open_responses.add(response)
        try:
            yield
        finally:
            self._open_responses.discard(response)
            response.close()

    async def _credential(self) -> Credential:
        if self.closed:
            raise Unreachable(f"{self._server}: the client is closed")
        return await self._auth.credential()

    def _retry_delay_after_failure(self, request: ApiRequest, attempt: int, error: Exception) -> float:
        """Return the seconds until a request without a response is retried. Raises `Unreachable` if it must not be."""
        if request.is_write or not connection_broke(error) or attempt >= MAX_RETRIES:
            raise unreachable(self._server, str(request), error, is_write=request.is_write) from error
        # The first time it is most likely a pooled connection that the server had just closed.
        return 1.0 if attempt else 0.0

    def _retry_delay_after_response(
        self, request: ApiRequest, attempt: int, response: Response, body: bytes
    ) -> float:
        """Return the seconds until a refused request is retried. Raises the response's error if it must not be."""
        code = response.status
        delay = retry_after(response.headers) if code == 429 or code >= 500 else None
        # differs: upstream waits however long the server says; here a long wait is raised as an error.
        if delay is None or delay > self._max_retry_after or attempt >= MAX_RETRIES:
            raise error_from_response(request.method, request.path, code, response.headers, body)
        return delay

    def _head(self, request: ApiRequest, credential: Credential, pool: ConnectionPool) -> bytes:
        """Return request line and headers."""
        own = [("Accept", request.accept)]
        if credential.authorization:
            own.append(("Authorization", credential.authorization))
        if request.body is not None:
            own.append(("Content-Type", request.content_type))
            own.append(("Content-Length", str(len(request.body))))
        target = self._prefix + request.path
        if pool.connector.relays:
            target = self._server + request.path
            if pool.connector.proxy_authorization:
                own.append(("Proxy-Authorization", pool.connector.proxy_authorization))
        if not _is_target(target):
            raise Unreachable(f"{self._server}: {request} was not sent: its path is not one of a URL")
        request_log.log_request(request.method, self._server, request.path, (*self._headers, *own))
        return f"{request.method} {target} HTTP/1.1\r\n{self._constant_lines}{header_lines(own)}\r\n".encode()

    def _report(
        self,
        request: ApiRequest,
        response: Response | None,
        code: int,
        started: float,
        size: int,
        throttled: float,
        attempt: int,
    ) -> None:
        seconds = asyncio.get_running_loop().time() - started
        headers = response.headers if response is not None else None
        request_log.log_response(request.method, self._server, request.path, code, headers, seconds)
        if self._on_request is not None:
            self._on_request(
                RequestAttempt(
                    verb=request.verb,
                    method=request.method,
                    resource=request.resource,
                    code=code,
                    seconds=seconds,
                    sent=len(request.body or b""),
                    received=size,
                    throttled=throttled,
                    attempt=attempt,
                )
            )


_is_target = re.compile("[!-~]+").fullmatch
"""Whether a request line can hold a path: with a blank or a line break in it, it would be another request."""


def header_lines(headers: Iterable[tuple[str, str]]) -> str:
    """Return headers as they are sent. Raises `ConfigError` for a value that would be more than one header."""
    for name, value in headers:
        if not value.isprintable():
            raise ConfigError(f"the header {name} would contain a line break or another control character")
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


def host_header(server: str) -> str:
    """Return the Host header of a server's URL."""
    parts = urlsplit(server)
    host = host_of(parts)
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if parts.port is None else f"{bracketed}:{parts.port}"
