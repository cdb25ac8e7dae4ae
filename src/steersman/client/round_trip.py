"""One request and its answer: throttled, authenticated, timed, repeated only where that is safe.

What may be sent again, and when:

- an answer with ``Retry-After`` (429, 5xx) was not processed: any request, after that time;
- a 401 was not processed either: any request, once, if there is another credential;
- a connection that broke under a read: the read, after a moment;
- a connection that broke under a write: never. The caller is told it is ``uncertain``.
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
from steersman.client import request_log
from steersman.client.auth import Authenticator, Credential
from steersman.client.connection import ConfigError, Connection
from steersman.client.request_errors import FAILURES, broke, refusal, retry_after, unreachable
from steersman.client.throttle import Bucket
from steersman.client.transport import CONNECT, SENDING, Transport

ATTEMPTS = 10
"""How often a request is sent again at most; upstream's number."""
GRACE = 30.0
"""Seconds a watch may be silent after the server should have ended it."""
LONGEST_WATCH = 3600
"""Seconds after which a server ends a watch that asked for no time of its own, at the latest."""


class RequestDone(msgspec.Struct, frozen=True):
    """One attempt, for metrics. Repeated requests are reported each time."""

    verb: str
    """As RBAC has it: ``get``, ``list``, ``watch``, ``create`` …"""
    method: str
    resource: str
    code: int
    """The HTTP status, or 0 where no answer came."""
    seconds: float
    sent: int
    received: int
    """Bytes of the body, after decompression. A watch reports only that it was opened."""
    throttled: float
    """Seconds spent waiting for the client's own rate limit before this attempt."""
    attempt: int
    """0 for the first."""


class Request(msgspec.Struct, frozen=True):
    """What to ask."""

    verb: str
    method: str
    resource: str
    path: str
    """Path and query, encoded."""
    accept: str = "application/json"
    body: bytes | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def write(self) -> bool:
        return self.method != "GET"


class Exchange:
    """A client's way to its server. Other clients may use the same sockets."""

    def __init__(
        self,
        connection: Connection,
        transport: Transport,
        auth: Authenticator,
        bucket: Bucket,
        headers: CIMultiDict[str],
        *,
        timeout: float,
        on_request: Callable[[RequestDone], None] | None,
        sleep: Callable[[float], Awaitable[object]],
        permit: Callable[[], bool] | None = None,
    ) -> None:
        self._server = connection.server
        self._permit = permit
        self._transport = transport
        self._auth = auth
        self._bucket = bucket
        self._headers = headers
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT)
        self._longest_wait = timeout
        self._on_request = on_request
        self._sleep = sleep
        self._answering: set[aiohttp.ClientResponse] = set()
        self.closed = False

    def close(self) -> None:
        """End what is under way. (aiohttp, closing a socket, forgets to wake who reads from it.)"""
        self.closed = True
        for response in tuple(self._answering):
            response.close()

    async def ask(self, request: Request) -> bytes:
        """The body of a good answer. Raises `ApiError` for everything else."""
        throttled = await self._bucket.take()
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            started = asyncio.get_running_loop().time()
            code, size = 0, 0
            answer: aiohttp.ClientResponse | None = None
            try:
                async with self._transport.pool(credential) as pool, pool.turns:
                    started = asyncio.get_running_loop().time()
                    with self._checking(request):
                        response = await pool.requests.request(
                            request.method,
                            URL(self._server + request.path, encoded=True),
                            data=request.body,
                            headers=self._with(request, credential),
                            timeout=self._timeout,
                            allow_redirects=False,
                            **pool.options,
                        )
                    with self._reading(response):
                        body = await response.read()
                    answer, code, size = response, response.status, len(body)
            except FAILURES as error:
                wait = self._retry(request, attempt, error)
            except ConfigError as error:
                raise Unreachable(f"{self._server}: {error.message}") from error
            else:
                if 200 <= code < 300:
                    return body
                if code == 401 and not renewed and await self._auth.renew(credential):
                    renewed, wait = True, 0.0
                else:
                    wait = self._wait(request, attempt, response, body)
            finally:
                self._report(request, answer, code, started, size, throttled, attempt)
            attempt += 1
            await self._sleep(wait)
            throttled = await self._bucket.take()

    @asynccontextmanager
    async def open(self, request: Request, timeout: int | None) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that goes on: a watch. Leaving closes its socket.

        As upstream, watches are not throttled: they are few, and long.
        """
        silence = (timeout if timeout is not None else LONGEST_WATCH) + GRACE
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silence)
        attempt = 0
        renewed = False
        while True:
            credential = await self._credential()
            async with AsyncExitStack() as stack:
                try:
                    response = await self._start(stack, request, credential, limits, attempt)
                    body = b"" if response.status == 200 else await response.read()
                except FAILURES as error:
                    wait = self._retry(request, attempt, error)
                except ConfigError as error:
                    raise Unreachable(f"{self._server}: {error.message}") from error
                else:
                    if response.status == 200:
                        yield response
                        return
                    if response.status == 401 and not renewed and await self._auth.renew(credential):
                        renewed, wait = True, 0.0
                    else:
                        wait = self._wait(request, attempt, response, body)
            attempt += 1
            await self._sleep(wait)

    async def _start(
        self,
        stack: AsyncExitStack,
        request: Request,
        credential: Credential,
        limits: aiohttp.ClientTimeout,
        attempt: int,
    ) -> aiohttp.ClientResponse:
        """Send what opens a watch. Whatever is to be let go of afterwards is in the stack."""
        pool = await stack.enter_async_context(self._transport.pool(credential))
        started = asyncio.get_running_loop().time()
        code = 0
        answer: aiohttp.ClientResponse | None = None
        try:
            answer = response = await pool.watches.request(
                request.method,
                URL(self._server + request.path, encoded=True),
                headers=self._with(request, credential),
                timeout=limits,
                allow_redirects=False,
                **pool.options,
            )
            code = response.status
        finally:
            self._report(request, answer, code, started, 0, 0.0, attempt)
        stack.enter_context(self._reading(response))
        return response

    @contextmanager
    def _checking(self, request: Request) -> Iterator[None]:
        """Have a write ask whether it may be sent once it has its socket: it may have waited long for that."""
        permit = self._permit
        if permit is None or not request.write:
            yield
            return

        def check() -> None:
            if not permit():
                raise Unreachable(f"{self._server}: {request} was not sent: not leading any more")

        before = SENDING.set(check)
        try:
            yield
        finally:
            SENDING.reset(before)

    @contextmanager
    def _reading(self, response: aiohttp.ClientResponse) -> Iterator[None]:
        """An answer that is not read to its end takes its socket with it."""
        self._answering.add(response)
        try:
            yield
        finally:
            self._answering.discard(response)
            response.close()

    async def _credential(self) -> Credential:
        if self.closed:
            raise Unreachable(f"{self._server}: the client is closed")
        return await self._auth.credential()

    def _retry(self, request: Request, attempt: int, error: Exception) -> float:
        """Seconds until a request that got no answer may be sent again; raises where it may not."""
        if request.write or not broke(error) or attempt >= ATTEMPTS:
            raise unreachable(self._server, str(request), error, write=request.write) from error
        # The first time it is most likely a pooled socket the server had just given up.
        return 1.0 if attempt else 0.0

    def _wait(self, request: Request, attempt: int, response: aiohttp.ClientResponse, body: bytes) -> float:
        """Seconds until a request that was refused may be sent again; raises where it may not."""
        code = response.status
        asked = retry_after(response.headers) if code == 429 or code >= 500 else None
        # differs: upstream waits however long it is told to; here the caller hears of a long wait.
        if asked is None or asked > self._longest_wait or attempt >= ATTEMPTS:
            raise refusal(str(request), code, response.headers, body, write=request.write)
        return asked

    def _with(self, request: Request, credential: Credential) -> CIMultiDict[str]:
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        request_log.asking(request.method, self._server, request.path, headers)
        return headers

    def _report(
        self,
        request: Request,
        answer: aiohttp.ClientResponse | None,
        code: int,
        started: float,
        size: int,
        throttled: float,
        attempt: int,
    ) -> None:
        seconds = asyncio.get_running_loop().time() - started
        headers = answer.headers if answer is not None else None
        request_log.answered(request.method, self._server, request.path, code, headers, seconds)
        if self._on_request is not None:
            self._on_request(
                RequestDone(
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
