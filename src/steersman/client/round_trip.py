"""Sends one request and returns its response: throttled, authenticated, timed, and retried where that is safe.

When a request is retried:

- the response has ``Retry-After`` (429, 5xx), so it was not processed: any request, after that time;
- the response is a 401, so it was not processed either: any request, once, if there is another credential;
- the connection broke during a read: the read, after a pause;
- the connection broke during a write: never. The error tells the caller that the outcome is ``uncertain``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from steersman.api.errors import Unreachable
from steersman.api.token_bucket import TokenBucket
from steersman.client import request_log
from steersman.client.auth import Authenticator, Credential
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.request_errors import (
    NO_RESPONSE,
    connection_broke,
    error_from_response,
    retry_after,
    unreachable,
)
from steersman.client.transport import BEFORE_SEND, CONNECT_TIMEOUT, Transport

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
        headers: CIMultiDict[str],
        *,
        timeout: float,
        on_request: Callable[[RequestAttempt], None] | None,
        sleep: Callable[[float], Awaitable[object]],
        fence: Callable[[], bool] | None = None,
    ) -> None:
        self._server = config.server
        self._fence = fence
        self._transport = transport
        self._auth = auth
        self._bucket = bucket
        self._headers = headers
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        self._max_retry_after = timeout
        self._on_request = on_request
        self._sleep = sleep
        self._open_responses: set[aiohttp.ClientResponse] = set()
        self.closed = False

    def close(self) -> None:
        """Abort requests in progress.

        aiohttp does not wake the reader of a response when it closes the connection, so each is closed here.
        """
        self.closed = True
        for response in tuple(self._open_responses):
            response.close()

    async def send(self, request: ApiRequest) -> bytes:
        """Return the body of a successful response. Raises `ApiError` otherwise."""
        throttled = await self._bucket.acquire()
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            started = asyncio.get_running_loop().time()
            code, size = 0, 0
            received: aiohttp.ClientResponse | None = None
            try:
                async with self._transport.pool(credential) as pool, pool.concurrency:
                    started = asyncio.get_running_loop().time()
                    with self._fenced(request):
                        response = await pool.requests.request(
                            request.method,
                            URL(self._server + request.path, encoded=True),
                            data=request.body,
                            headers=self._request_headers(request, credential),
                            timeout=self._timeout,
                            allow_redirects=False,
                            **pool.options,
                        )
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
    async def open_watch(
        self, request: ApiRequest, timeout: int | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a watch and return its streaming response. Leaving the context closes the connection.

        As upstream, watches are not throttled: they are few, and long.
        """
        # A limit of the whole watch, which the server ends in time: one of each read would set a timer for every event.
        whole = (timeout if timeout is not None else MAX_WATCH) + WATCH_GRACE
        limits = aiohttp.ClientTimeout(total=whole, sock_connect=CONNECT_TIMEOUT)
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            async with AsyncExitStack() as stack:
                try:
                    response = await self._start(stack, request, credential, limits, attempt)
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
        self,
        stack: AsyncExitStack,
        request: ApiRequest,
        credential: Credential,
        limits: aiohttp.ClientTimeout,
        attempt: int,
    ) -> aiohttp.ClientResponse:
        """Send the request that opens a watch. The stack releases its pool and response."""
        pool = await stack.enter_async_context(self._transport.pool(credential))
        started = asyncio.get_running_loop().time()
        code = 0
        received: aiohttp.ClientResponse | None = None
        try:
            received = response = await pool.watches.request(
                request.method,
                URL(self._server + request.path, encoded=True),
                headers=self._request_headers(request, credential),
                timeout=limits,
                allow_redirects=False,
                **pool.options,
            )
            code = response.status
        finally:
            self._report(request, received, code, started, 0, 0.0, attempt)
        stack.enter_context(self._tracked(response))
        return response

    @contextmanager
    def _fenced(self, request: ApiRequest) -> Iterator[None]:
        """Check the fence for a write once it has a connection: it may have waited long for that."""
        fence = self._fence
        if fence is None or not request.is_write:
            yield
            return

        def check() -> None:
            if not fence():
                raise Unreachable(
                    f"{self._server}: {request} was not sent: this process is no longer the leader"
                )

        before = BEFORE_SEND.set(check)
        try:
            yield
        finally:
            BEFORE_SEND.reset(before)

    @contextmanager
    def _tracked(self, response: aiohttp.ClientResponse) -> Iterator[None]:
        """Close the response in the end. Unless it was read completely, this closes its connection too."""
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
        self, request: ApiRequest, attempt: int, response: aiohttp.ClientResponse, body: bytes
    ) -> float:
        """Return the seconds until a refused request is retried. Raises the response's error if it must not be."""
        code = response.status
        delay = retry_after(response.headers) if code == 429 or code >= 500 else None
        # differs: upstream waits however long the server says; here a long wait is raised as an error.
        if delay is None or delay > self._max_retry_after or attempt >= MAX_RETRIES:
            raise error_from_response(request.method, request.path, code, response.headers, body)
        return delay

    def _request_headers(self, request: ApiRequest, credential: Credential) -> CIMultiDict[str]:
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        request_log.log_request(request.method, self._server, request.path, headers)
        return headers

    def _report(
        self,
        request: ApiRequest,
        response: aiohttp.ClientResponse | None,
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
