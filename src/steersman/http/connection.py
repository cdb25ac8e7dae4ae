"""HTTP/1.1 server connections: parses requests, runs their handlers and sends the responses, one at a time.

Most handlers finish without waiting. A handler therefore starts in the same step in which its request was parsed,
and becomes a task only when it waits. When a client disconnects, the handler of its request is cancelled: this is
how a watch ends.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeAlias, cast

from steersman.http.head import HeaderBlock, Headers, MalformedRequest, parse_header_block, parse_request_line
from steersman.http.request import HttpRequest, RequestBody
from steersman.http.response import HttpResponse, ResponseWriter, StreamingResponse

_MAX_HEAD = 256 * 1024
"""Bytes of request line and headers."""
_MAX_PIPELINED = 64 * 1024
"""Bytes of further requests to buffer while one is handled; then reading pauses."""
_IDLE_TIMEOUT = 300.0
"""Seconds without a byte from the client, between requests or within a body, after which the connection closes."""
_LINGER = 5.0
"""Seconds to discard what a client still sends after its response.

Closing at once would reset the connection, and the client might never read the response.
"""

Handler: TypeAlias = Callable[[HttpRequest], Coroutine[Any, None, "HttpResponse | StreamingResponse"]]


class HttpServer:
    """All connections of one HTTP server; the protocol factory for ``loop.create_server``."""

    def __init__(self, handler: Handler, date: Callable[[], str]) -> None:
        """``date`` returns the current time as HTTP formats it."""
        self.handler = handler
        self.connections: dict[HttpConnection, None] = {}
        self.closing = False
        self._date = date
        self._cached_date = (-1, "")
        self._draining: dict[HttpConnection, None] | None = None
        """During shutdown: connections that still handle a request."""
        self._drained = asyncio.Event()

    def __call__(self) -> HttpConnection:
        """Create the protocol of a new connection."""
        return HttpConnection(self)

    def date(self, now: float) -> str:
        """Return the ``Date`` header, formatted once a second. ``now`` is the loop's time in seconds."""
        second = int(now)
        if self._cached_date[0] != second:
            self._cached_date = (second, self._date())
        return self._cached_date[1]

    def connection_lost(self, connection: HttpConnection) -> None:
        """Forget a closed connection."""
        self.connections.pop(connection, None)
        if self._draining is not None:
            self._draining.pop(connection, None)
            if not self._draining:
                self._drained.set()

    async def shutdown(self, grace: float) -> None:
        """Close all connections: idle ones at once, busy ones after their response or ``grace`` seconds."""
        self.closing = True
        self._draining = {connection: None for connection in self.connections if connection.busy}
        for connection in tuple(self.connections):
            connection.close_if_idle()
        if self._draining:
            try:
                await asyncio.wait_for(self._drained.wait(), grace)
            except TimeoutError:
                pass  # the connections that are left are aborted below
        for connection in tuple(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_body",
        "_buffer",
        "_header_block",
        "_idle_since",
        "_lingering",
        "_loop",
        "_reading_paused",
        "_server",
        "_task",
        "_timer",
        "_writer",
        "busy",
    )

    def __init__(self, server: HttpServer) -> None:
        self.busy = False
        """A request is being handled."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._writer = ResponseWriter(self._loop, server.date)
        self._buffer = b""
        """Received bytes that are not parsed yet."""
        self._body: RequestBody | None = None
        """The body of the request in progress, until it is complete."""
        self._task: asyncio.Task[HttpResponse | StreamingResponse] | None = None
        self._header_block: tuple[bytes, HeaderBlock] = (b"\0", HeaderBlock(Headers(), 0, False, False, None))
        """The previous header block, raw and parsed: clients repeat the same headers in every request."""
        self._reading_paused = False
        self._lingering = False
        self._idle_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer.transport = cast("asyncio.Transport", transport)
        if self._server.closing:
            self._writer.abort()
            return
        self._server.connections[self] = None
        self._start_idle_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._body is not None:
            self._body.connection_lost()
        self._writer.connection_lost()
        if self._task is not None:
            self._task.cancel()
        self._server.connection_lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            if self._body is not None:
                data = self._body.feed(data)
                self._idle_since = self._loop.time()
                if not self._body.complete:
                    return
                self._body = None
                if self._lingering:
                    self._writer.close()
                    return
            if self._lingering:
                return
            if data:
                self._buffer = self._buffer + data if self._buffer else data
                self._process_buffer()
        except MalformedRequest as error:
            self._reject(error)

    def pause_writing(self) -> None:
        self._writer.pause()

    def resume_writing(self) -> None:
        self._writer.resume()

    # -- requests -----------------------------------------------------------------------------

    def _process_buffer(self) -> None:
        """Handle buffered requests until one has to wait. Raises `MalformedRequest`."""
        while self._buffer and not self.busy:
            data = self._buffer
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _MAX_HEAD:
                    raise MalformedRequest(431, "Request Header Fields Too Large")
                return
            if data.startswith(b"\r\n"):
                # Some clients send an extra line end after a body.
                self._buffer = data[2:]
                continue
            line, _, raw_block = data[:end].partition(b"\r\n")
            if raw_block == self._header_block[0]:
                block = self._header_block[1]
            else:
                block = parse_header_block(raw_block)
                self._header_block = (raw_block, block)
            head = parse_request_line(line, block)
            body = RequestBody(block.content_length, chunked=block.chunked)
            rest = data[end + 4 :]
            self._buffer = body.feed(rest) if rest and not body.complete else rest
            self._body = None if body.complete else body
            writer = self._writer
            writer.keep_alive, writer.http11, writer.head_only = (
                head.keep_alive,
                head.http11,
                head.method == "HEAD",
            )
            self._handle(HttpRequest(head, body, writer))
        transport = self._writer.transport
        if len(self._buffer) > _MAX_PIPELINED and transport is not None and not self._reading_paused:
            self._reading_paused = True
            transport.pause_reading()

    def _handle(self, request: HttpRequest) -> None:
        """Start the handler of a request, in a context of its own."""
        self.busy = True
        context = contextvars.copy_context()
        work = self._server.handler(request)
        try:
            awaited = context.run(work.send, None)
        except StopIteration as done:
            self._finish(request, done.value)
            return
        except ConnectionError:
            self.abort()
            return
        self._task = self._loop.create_task(_continue(work, awaited), context=context)
        self._task.add_done_callback(lambda task: self._task_done(request, task))

    def _task_done(self, request: HttpRequest, task: asyncio.Task[HttpResponse | StreamingResponse]) -> None:
        self._task = None
        if task.cancelled() or self._writer.transport is None:
            self.abort()
            return
        failure = task.exception()
        if failure is not None:
            if not isinstance(failure, ConnectionError):
                # Handlers turn their errors into responses; this one did not.
                self._loop.call_exception_handler(
                    {"message": "an HTTP handler failed", "exception": failure, "protocol": self}
                )
            self.abort()
            return
        self._finish(request, task.result())
        try:
            self._process_buffer()
        except MalformedRequest as error:
            self._reject(error)

    def _finish(self, request: HttpRequest, response: HttpResponse | StreamingResponse) -> None:
        """Send a response and prepare for the next request."""
        self.busy = False
        writer = self._writer
        transport = writer.transport
        if transport is None or transport.is_closing():
            return
        unread = request.has_unread_body
        if unread and not request.discardable:
            writer.keep_alive = False
        keep_alive = writer.keep_alive and not self._server.closing
        if isinstance(response, StreamingResponse):
            response.end()
        else:
            writer.write_response(response, keep_alive=keep_alive)
        if unread and self._body is not None:
            self._body.discard()
        if keep_alive:
            self._start_idle_timer()
            if self._reading_paused:
                self._reading_paused = False
                transport.resume_reading()
        elif unread:
            self._linger()
        else:
            transport.close()

    def _reject(self, error: MalformedRequest) -> None:
        """Answer a malformed request as Go's net/http does, and close the connection."""
        self._buffer = b""
        if self.busy or self._writer.transport is None:
            self.abort()
            return
        self._writer.keep_alive = self._writer.head_only = False
        headers = (("Content-Type", "text/plain; charset=utf-8"),)
        self._writer.write_response(HttpResponse(error.code, headers, str(error).encode()), keep_alive=False)
        self._linger()

    # -- closing ------------------------------------------------------------------------------

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.abort()

    def close_if_idle(self) -> None:
        """Close the connection unless a request is being handled."""
        if not self.busy:
            self._writer.close()

    def _linger(self) -> None:
        self._lingering = True
        self._loop.call_later(_LINGER, self._writer.close)

    def _start_idle_timer(self) -> None:
        """Note the start of an idle period. One timer serves many requests."""
        self._idle_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(_IDLE_TIMEOUT, self._check_idle)

    def _check_idle(self) -> None:
        self._timer = None
        if self.busy and not (self._body is not None and self._body.awaited):
            return
        left = self._idle_since + _IDLE_TIMEOUT - self._loop.time()
        if left <= 0:
            self._writer.close()
        else:
            self._timer = self._loop.call_later(left, self._check_idle)


async def _continue(
    work: Coroutine[Any, None, HttpResponse | StreamingResponse], awaited: Any
) -> HttpResponse | StreamingResponse:
    response: HttpResponse | StreamingResponse = await _resume(work, awaited)
    return response


@coroutine
def _resume(work: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """Drive a coroutine that was started outside a task and has yielded ``awaited``."""
    while True:
        try:
            sent = yield awaited
        except BaseException as error:
            thrown: BaseException | None = error
        else:
            thrown = None
        try:
            awaited = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value
