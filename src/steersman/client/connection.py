"""One HTTP/1.1 connection to an API server: sends a request, and receives its response.

::

    response = await connection.send(head, body, deadline)
    content = await response.read()            # all of it; or, as it arrives: await response.read_some()
    response.close()                           # a connection is kept for another request only if its response was complete

A `RequestFailed` is raised where there is no whole response::

    RequestFailed                              the request may have been received
    ├── NotConnected                           there was no connection, so nothing was sent
    ├── ConnectionBroke                        an established connection broke
    └── NotHttp                                the bytes are not an HTTP response
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import cast

from steersman.client.http1 import MAX_HEAD, Body, Gunzip, Head, MalformedResponse, read_head

_HIGH_WATER = 128 * 1024
"""Bytes of a streamed body that wait to be read; with more of them, reading from the socket pauses."""


class RequestFailed(Exception):
    """A request without a whole response. The text says why, in a few words."""


class NotConnected(RequestFailed):
    """There was no connection to the server, so nothing was sent. The cause may be an `ssl.SSLError`."""


class ConnectionBroke(RequestFailed):
    """An established connection broke, as happens when a server restarts. The cause may be an `ssl.SSLError`."""


class NotHttp(RequestFailed):
    """The bytes that arrived are not an HTTP response."""

    def __init__(self) -> None:
        super().__init__("the response is not HTTP")


def system_error(error: OSError, otherwise: str) -> str:
    """Return the system's error message: asyncio's own messages contain addresses."""
    return os.strerror(error.errno).lower() if error.errno else otherwise


class Response:
    """The response to one request. Its body arrives while it is read."""

    __slots__ = (
        "_body",
        "_connection",
        "_error",
        "_gunzip",
        "_pieces",
        "_size",
        "_waiter",
        "_whole",
        "headers",
        "status",
    )

    def __init__(self, connection: Connection, head: Head) -> None:
        """Raises `MalformedResponse`."""
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        """By their names in lower case."""
        self._connection = connection
        self._body: Body = head.body()
        self._gunzip = Gunzip() if head.compressed else None
        self._pieces: list[bytes] = []
        """Content that was not read yet."""
        self._size = 0
        """Bytes of that content."""
        self._whole = False
        """The reader waits for the whole body, not for a part of it."""
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    # -- for the reader -----------------------------------------------------------------------

    async def read(self) -> bytes:
        """Return all of the body that was not read yet."""
        self._whole = True
        while not self._ended:
            self._connection.resume_reading()
            await self._wait()
        if self._error is not None:
            raise self._error
        return self._take()

    async def read_some(self) -> bytes:
        """Return what has arrived, at least one byte; at the end of the body, nothing."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._body.done:
                return b""
            self._connection.resume_reading()
            await self._wait()
        return self._take()

    async def gather(self, seconds: float) -> None:
        """Leave what the server sends in the socket for a while."""
        if self._ended:
            return
        self._connection.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._connection.resume_reading()

    def close(self) -> None:
        """End the response. Unless it is complete, this closes its connection and fails a reader."""
        if not self._ended:
            self._connection.abort()

    # -- for the connection -------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes of the connection; at the end of the body, return those after it. Raises `MalformedResponse`."""
        content = self._body.feed(data)
        if self._gunzip is not None and content:
            content = self._gunzip.feed(content)
        if content:
            self._pieces.append(content)
            self._size += len(content)
        done = self._body.done
        if done and self._gunzip is not None and not self._gunzip.done:
            raise MalformedResponse("incomplete gzip")
        if done or not self._whole:
            self._wake()
        if not done and not self._whole and self._size > _HIGH_WATER:
            self._connection.pause_reading()
        return self._body.rest if done else None

    def end(self) -> bool:
        """Note the end of the connection; return whether the response is complete with it."""
        self._body.end()
        complete = self._body.done and (self._gunzip is None or self._gunzip.done)
        if complete:
            self._wake()
        return complete

    def fail(self, error: Exception) -> None:
        """Raise an error to the reader, after what has arrived."""
        self._error = error
        self._wake()

    @property
    def _ended(self) -> bool:
        return self._body.done or self._error is not None

    def _take(self) -> bytes:
        pieces = self._pieces
        content = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._size = 0
        return content

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """An established connection, on which one request at a time is under way."""

    __slots__ = (
        "_head",
        "_loop",
        "_paused",
        "_persistent",
        "_released",
        "_response",
        "_sent",
        "_timer",
        "_transport",
        "idle_since",
    )

    def __init__(self, released: Callable[[Connection], None]) -> None:
        """``released`` is called when a response is complete, and when the connection is lost."""
        self._loop = asyncio.get_running_loop()
        self._released = released
        self._transport: asyncio.Transport | None = None
        self._sent: asyncio.Future[Response] | None = None
        """The request waits for the head of its response."""
        self._head = b""
        """The beginning of a head."""
        self._response: Response | None = None
        """The response whose body is being received."""
        self._persistent = True
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self.idle_since = 0.0
        """The loop's time at which the last response was complete."""

    @property
    def usable(self) -> bool:
        """The connection can take a request."""
        return self._persistent and self._transport is not None and not self._transport.is_closing()

    async def send(self, head: bytes, body: bytes | None, deadline: float) -> Response:
        """Send a request and return its response once the head is there.

        At ``deadline``, by the loop's clock, the whole exchange fails with a `TimeoutError`.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionBroke("the server closed the connection")
        sent: asyncio.Future[Response] = self._loop.create_future()
        self._sent = sent
        self._timer = self._loop.call_at(deadline, self._expire)
        transport.write(head if body is None else head + body)
        try:
            return await sent
        except asyncio.CancelledError:
            if self._sent is sent:
                self.abort()
            elif not sent.cancelled() and sent.exception() is None:
                # A response that is complete has left the connection to another request.
                sent.result().close()
            raise

    def abort(self) -> None:
        """Close the connection at once. A request that is under way fails."""
        self._fail(ConnectionBroke("the connection was closed"))

    def pause_reading(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            if self._response is None:
                self._receive_head(data)
            else:
                self._receive_body(self._response, data)
        except MalformedResponse:
            self._fail(NotHttp())

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._response is not None and exc is None and self._response.end():
            self._complete()
            return
        within = self._response is not None
        reason = "the response was cut off" if within else "the server closed the connection"
        if isinstance(exc, OSError):
            reason = system_error(exc, reason)
        error = ConnectionBroke(reason)
        error.__cause__ = exc
        self._fail(error)

    # -- receiving ----------------------------------------------------------------------------

    def _receive_head(self, data: bytes) -> None:
        if self._sent is None:
            # An answer without a question: nothing that follows can be trusted to belong to the next request.
            raise MalformedResponse("unexpected bytes")
        data = self._head + data if self._head else data
        while True:
            end = data.find(b"\r\n\r\n")
            if max(end, 0) > MAX_HEAD or (end < 0 and len(data) > MAX_HEAD):
                raise MalformedResponse("the head is too long")
            if end < 0:
                self._head = data
                return
            head, data = read_head(data[:end]), data[end + 4 :]
            if head.status >= 200:
                break
            if head.status == 101:
                raise MalformedResponse("unexpected switch of protocols")
        self._head = b""
        self._persistent = head.persistent
        self._response = response = Response(self, head)
        sent, self._sent = self._sent, None
        if not sent.done():
            sent.set_result(response)
        self._receive_body(response, data)

    def _receive_body(self, response: Response, data: bytes) -> None:
        rest = response.feed(data)
        if rest is None:
            return
        if rest:
            self._persistent = False
        self._complete()

    def _complete(self) -> None:
        """The response is complete: the connection can take another request, or is closed."""
        self._response = None
        self._stop_timer()
        self.resume_reading()
        if not self.usable and self._transport is not None:
            self._transport.close()
        self.idle_since = self._loop.time()
        self._released(self)

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        """Close the connection; what is under way fails."""
        self._stop_timer()
        self._persistent = False
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        sent, self._sent = self._sent, None
        response, self._response = self._response, None
        if sent is not None and not sent.done():
            sent.set_exception(error)
        if response is not None:
            response.fail(error)
        self._released(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
