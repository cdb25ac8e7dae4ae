"""HTTP/1.1 server connections: parses requests, runs their handlers and sends the responses, one at a time.

Most handlers finish without waiting. A handler therefore starts in the same step in which its request was parsed,
and becomes a task only when it waits. When a client disconnects, the handler of its request is cancelled: this is
how a watch ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import coroutine
from typing import Any, TypeAlias, cast

from steersman.http.head import HeaderBlock, Headers, MalformedRequest, parse_header_block, parse_request_line
from steersman.http.limits import SWEEP, Limits, Wait, client_time, overdue, share, to_evict
from steersman.http.request import NO_BODY, HttpRequest, RequestBody
from steersman.http.response import HttpResponse, ResponseWriter, StreamingResponse
from steersman.http.tls import Handshakes, TlsConnection

_MAX_HEAD = 256 * 1024
"""Bytes of request line and headers."""
_MAX_HELD = 64 * 1024
"""Bytes of input to hold while a request is handled or responses wait to be sent; then reading pauses.

Input is an unread body, or further requests. While a response streams, the connection closes instead.
"""
_UNCOUNTED = 16 * 1024
"""Bytes that a connection may hold without being counted among those that hold much."""
_LARGE_HEAD = 8 * 1024
"""Bytes of a header block from which it is counted, and not kept for the next request."""
_DECODED = 3
"""Bytes that a parsed header block takes for each of its own."""
_PIPELINED_AT_ONCE = 4
"""Requests of one client to handle before others have their turn."""
_LINGER = 0.5
"""Seconds to discard what a client still sends after its response, as Go's net/http does.

Closing at once would reset the connection, and the client might never read the response.
"""

Handler: TypeAlias = Callable[[HttpRequest], Coroutine[Any, None, "HttpResponse | StreamingResponse"]]


class HttpServer:
    """All connections of one HTTP server; the protocol factory for ``loop.create_server``."""

    def __init__(self, handler: Handler, date: Callable[[], str], limits: Limits = Limits()) -> None:
        """``date`` returns the current time as HTTP formats it."""
        self.handler = handler
        self.connections: dict[HttpConnection, None] = {}
        """Open connections, except for those in a TLS handshake."""
        self.closing = False
        self.buffered = 0
        """Bytes of unfinished requests and unsent responses, of connections that hold many."""
        self._limits = limits
        self._holding: dict[HttpConnection, None] = {}
        """The connections that hold many bytes, those first whose client has not moved for the longest."""
        self._handshakes: Handshakes | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._date = date
        self._cached_date = (-1, "")
        self._draining: dict[HttpConnection, None] | None = None
        """During shutdown: connections that still handle a request."""
        self._drained = asyncio.Event()

    def __call__(self) -> HttpConnection | TlsConnection:
        """Create the protocol of a new connection."""
        return HttpConnection(self) if self._handshakes is None else TlsConnection(self._handshakes)

    def secure(self, context: ssl.SSLContext) -> None:
        """Serve over TLS."""
        self._handshakes = Handshakes(context, lambda: HttpConnection(self), self._opened)

    # -- limits -------------------------------------------------------------------------------

    def _opened(self) -> None:
        """Make room for a connection that was opened, and look after all of them from now on."""
        handshaking = {} if self._handshakes is None else self._handshakes.pending
        if self.closing:
            for each in tuple(handshaking):
                each.abort()
            return
        limits = self._limits
        if len(handshaking) > limits.handshakes:
            self._evict(to_evict(handshaking, share(limits.handshakes)))
        if len(self.connections) + len(handshaking) > limits.connections:
            self._evict(to_evict(self._everyone(), share(limits.connections)))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _evict(self, evicted: Sequence[HttpConnection | TlsConnection]) -> None:
        for connection in evicted:
            # It is told that it is lost later, and must not be counted until then.
            if isinstance(connection, HttpConnection):
                self.connections.pop(connection, None)
            elif self._handshakes is not None:
                self._handshakes.pending.pop(connection, None)
            connection.abort()

    def _sweep(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        self.sweep(client_time(loop))
        if self.connections or (self._handshakes is not None and self._handshakes.pending):
            self._timer = loop.call_later(SWEEP, self._sweep)

    def sweep(self, now: float) -> None:
        """Give up on the clients that have kept the server waiting for too long. ``now`` is their `client_time`."""
        for connection in overdue(self._everyone(), now):
            connection.time_out()

    def _everyone(self) -> list[HttpConnection | TlsConnection]:
        handshaking = () if self._handshakes is None else self._handshakes.pending
        return [*handshaking, *self.connections]

    def hold(self, connection: HttpConnection, size: int) -> None:
        """Note the bytes that a connection holds, after its client has moved.

        Where all hold too much together, the connections of clients that have not moved for the longest are closed.
        """
        self.buffered += size - connection.counted
        connection.counted = size
        holding = self._holding
        holding.pop(connection, None)
        if size:
            holding[connection] = None
        while self.buffered > self._limits.buffered and len(holding) > 1:
            slowest = next(iter(holding))
            self.hold(slowest, 0)
            slowest.abort()

    # -- connections --------------------------------------------------------------------------

    def date(self, now: float) -> str:
        """Return the ``Date`` header, formatted once a second. ``now`` is the loop's time in seconds."""
        second = int(now)
        if self._cached_date[0] != second:
            self._cached_date = (second, self._date())
        return self._cached_date[1]

    def connection_made(self, connection: HttpConnection) -> None:
        """Remember an open connection."""
        self.connections[connection] = None
        if self._handshakes is None:
            self._opened()

    def connection_lost(self, connection: HttpConnection) -> None:
        """Forget a closed connection."""
        self.connections.pop(connection, None)
        if connection.counted:
            self.hold(connection, 0)
        if self._draining is not None:
            self._draining.pop(connection, None)
            if not self._draining:
                self._drained.set()

    async def shutdown(self, grace: float) -> None:
        """Close all connections: idle ones at once, busy ones after their response or ``grace`` seconds."""
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._handshakes is not None:
            for handshaking in tuple(self._handshakes.pending):
                handshaking.abort()
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
        "_at",
        "_body",
        "_buffer",
        "_head_size",
        "_header_block",
        "_ignoring",
        "_loop",
        "_scanned",
        "_server",
        "_task",
        "_turn",
        "_unanswered",
        "_writer",
        "busy",
        "counted",
        "since",
    )

    def __init__(self, server: HttpServer) -> None:
        self.busy = False
        """A request is being handled."""
        self.counted = 0
        """Bytes held, as the server counts them."""
        self.since = 0.0
        """The time since which the client has not moved, in seconds of `client_time`."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._writer = ResponseWriter(self._loop, server.date)
        self._buffer = b""
        """Received bytes. Those before offset ``_at`` are parsed."""
        self._at = 0
        self._scanned = 0
        """Offset in the buffer before which no head ends."""
        self._body: RequestBody | None = None
        """The body of the request in progress, and of one that was answered before its body arrived.

        It receives all input meanwhile.
        """
        self._task: asyncio.Task[HttpResponse | StreamingResponse] | None = None
        self._header_block: tuple[bytes, HeaderBlock] = (b"\0", HeaderBlock(Headers(), 0, False, False, None))
        """The previous header block, raw and parsed: clients repeat the same headers in every request."""
        self._ignoring = False
        """The connection is about to close: input is dropped."""
        self._unanswered = True
        """A head is expected soon: its first bytes are there, or the connection is new."""
        self._head_size = 0
        """Bytes that the head of the request in progress takes, if they are many."""
        self._turn: asyncio.Handle | None = None
        """The turn in which the next of many pipelined requests are handled."""

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer.transport = cast("asyncio.Transport", transport)
        if self._server.closing:
            self._writer.abort()
            return
        self.since = client_time(self._loop)
        self._server.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._body is not None:
            self._body.connection_lost()
        self._writer.connection_lost()
        self._ignore_input()
        if self._task is not None:
            self._task.cancel()
        self._server.connection_lost(self)

    def data_received(self, data: bytes) -> None:
        upgraded = self._writer.upgraded
        if upgraded is not None:
            if self._at < len(self._buffer):
                # The client did not wait for the answer to its upgrade.
                data = self._buffer[self._at :] + data
                self._buffer, self._at = b"", 0
            upgraded(data)
            return
        body = self._body
        if body is not None:
            body.receive(data)
            if self.busy:
                self._limit_input()
                return
            body.skip()
            if not body.complete:
                return
            if self._ignoring:
                self._writer.close()
                return
            self._body = None
            self._buffer, self._at = body.rest
        elif self._ignoring:
            return
        elif self._at < len(self._buffer):
            if self._at:
                self._buffer = self._buffer[self._at :]
                self._scanned, self._at = max(self._scanned - self._at, 0), 0
            self._buffer += data
        else:
            self._buffer, self._at, self._scanned = data, 0, 0
        self._process_buffer()

    def pause_writing(self) -> None:
        self._writer.pause()
        self.since = client_time(self._loop)
        self._count()

    def resume_writing(self) -> None:
        self.since = client_time(self._loop)
        self._writer.resume()
        self._count()
        # Not at once: TLS may call this within a write.
        self._loop.call_soon(self._process_buffer)

    # -- requests -----------------------------------------------------------------------------

    def _process_buffer(self) -> None:
        """Handle buffered requests until one has to wait, or the client has to read its responses first."""
        writer = self._writer
        handled = 0
        try:
            while not self.busy and not writer.paused and self._at < len(self._buffer):
                if handled == _PIPELINED_AT_ONCE or self._turn is not None:
                    self._turn = self._turn or self._loop.call_soon(self._take_turn)
                    break
                request = self._parse_head()
                if request is None:
                    break
                handled += 1
                self._handle(request)
        except MalformedRequest as error:
            self._reject(error)
        if self._at < len(self._buffer) or self._body is not None or writer.reading_paused:
            self._limit_input()

    def _take_turn(self) -> None:
        self._turn = None
        self._process_buffer()

    def _parse_head(self) -> HttpRequest | None:
        """Take the next request from the buffer; None if its head is incomplete. Raises `MalformedRequest`."""
        data, at = self._buffer, self._at
        while data.startswith(b"\r\n", at):
            # Some clients send an extra line end after a body.
            at += 2
        end = data.find(b"\r\n\r\n", max(at, self._scanned))
        if end < 0:
            if len(data) - at > _MAX_HEAD:
                raise MalformedRequest(431, "Request Header Fields Too Large")
            self._at, self._scanned = at, max(at, len(data) - 3)
            if not self._unanswered:
                self._unanswered = True
                self.since = client_time(self._loop)
            return None
        line, _, raw_block = data[at:end].partition(b"\r\n")
        if raw_block == self._header_block[0]:
            block = self._header_block[1]
        else:
            block = parse_header_block(raw_block)
            if len(raw_block) < _LARGE_HEAD:
                self._header_block = (raw_block, block)
            else:
                self._head_size = _DECODED * len(raw_block)
                self._count()
        head = parse_request_line(line, block)
        body = NO_BODY
        at = end + 4
        if block.content_length or block.chunked:
            self._body = body = RequestBody(block.content_length, chunked=block.chunked)
            self.since = client_time(self._loop)
            body.receive(data, at)
            self._buffer, self._at = b"", 0
        elif at == len(data):
            self._buffer, self._at = b"", 0
        else:
            self._at = at
        self._scanned = 0
        writer = self._writer
        writer.keep_alive, writer.http11, writer.head_only = (
            head.keep_alive,
            head.http11,
            head.method == "HEAD",
        )
        return HttpRequest(head, body, writer)

    @property
    def held(self) -> int:
        """Bytes received and not parsed."""
        return len(self._buffer) - self._at + (0 if self._body is None else self._body.held)

    def _count(self) -> None:
        """Tell the server how many bytes are held, where they are many."""
        body = self._body
        size = self._head_size + self.held + self._writer.buffered + (0 if body is None else body.parsed)
        if size <= _UNCOUNTED:
            size = 0
        if size or self.counted:
            self._server.hold(self, size)

    @property
    def wait(self) -> Wait:
        """The thing that the connection waits for."""
        writer, body = self._writer, self._body
        if writer.paused or (writer.closing and not self.busy):
            return Wait.READER
        if self.busy:
            return Wait.BODY if body is not None and body.awaited else Wait.NOTHING
        if body is not None:
            return Wait.BODY
        return Wait.HEAD if self._unanswered else Wait.NEXT

    @property
    def authenticated(self) -> bool:
        """Whether a request on this connection was authenticated."""
        return self._writer.authenticated

    def _limit_input(self) -> None:
        """Stop reading while much input is held that cannot be parsed yet."""
        writer = self._writer
        self._count()
        if self.held <= _MAX_HELD or not (self.busy or writer.paused or self._turn):
            writer.resume_reading()
        elif writer.streaming:
            self.abort()
        else:
            writer.pause_reading()

    def _handle(self, request: HttpRequest) -> None:
        """Start the handler of a request, in a context of its own."""
        self.busy = True
        context = contextvars.copy_context()
        work = self._server.handler(request)
        try:
            awaited = context.run(work.send, None)
        except StopIteration as done:
            if isinstance(done.value, HttpResponse) and done.value.after_events:
                # Two turns: woken tasks write in the first, and uvloop sends what they wrote, in any order, at its end.
                self._loop.call_soon(self._loop.call_soon, self._finish_after_events, request, done.value)
            else:
                self._finish(request, done.value)
            return
        except MalformedRequest as error:
            self.busy = False
            self._reject(error)
            return
        except ConnectionError:
            self.abort()
            return
        except Exception as error:
            self._fail(error)
            return
        self._task = self._loop.create_task(_continue(work, awaited), context=context)
        self._task.add_done_callback(lambda task: self._task_done(request, task))

    def _finish_after_events(self, request: HttpRequest, response: HttpResponse) -> None:
        if self._writer.transport is None:
            self.abort()
            return
        self._finish(request, response)
        self._process_buffer()

    def _task_done(self, request: HttpRequest, task: asyncio.Task[HttpResponse | StreamingResponse]) -> None:
        self._task = None
        if task.cancelled() or self._writer.transport is None:
            self.abort()
            return
        failure = task.exception()
        if isinstance(failure, MalformedRequest):
            self.busy = False
            self._reject(failure)
            return
        if failure is not None:
            self._fail(failure)
            return
        self._finish(request, task.result())
        self._process_buffer()

    def _fail(self, failure: BaseException) -> None:
        """Close the connection of a request that has no response, or one that cannot be written. Report why."""
        if not isinstance(failure, ConnectionError):
            # Handlers turn their errors into responses; this one did not.
            self._loop.call_exception_handler(
                {"message": "an HTTP handler failed", "exception": failure, "protocol": self}
            )
        self._ignore_input()
        self.abort()

    def _finish(self, request: HttpRequest, response: HttpResponse | StreamingResponse) -> None:
        """Send a response and prepare for the next request. The client of one that cannot be sent must not wait for it."""
        try:
            self._respond(request, response)
        except Exception as failure:
            self._fail(failure)

    def _respond(self, request: HttpRequest, response: HttpResponse | StreamingResponse) -> None:
        self.busy = self._unanswered = False
        writer = self._writer
        if writer.closing:
            self._ignore_input()
            return
        body = self._body
        if body is not None:
            if not body.complete:
                body.skip()
            if body.complete:
                self._body = None
                self._buffer, self._at = body.rest
            elif not request.discardable:
                writer.keep_alive = False
        keep_alive = writer.keep_alive and not self._server.closing
        if isinstance(response, StreamingResponse):
            response.end()
        else:
            writer.write_response(response, keep_alive=keep_alive)
        self.since = client_time(self._loop)
        self._head_size = 0
        if writer.unsent or self.counted:
            self._count()
        if keep_alive:
            return
        if self._body is not None:
            self._linger()
        else:
            self._close()

    def _reject(self, error: MalformedRequest) -> None:
        """Answer a malformed request as Go's net/http does, and close the connection."""
        self._body = None
        if self._writer.closing:
            return
        self._writer.keep_alive = self._writer.head_only = False
        headers = (("Content-Type", "text/plain; charset=utf-8"),)
        self._writer.write_response(HttpResponse(error.code, headers, str(error).encode()), keep_alive=False)
        self._linger()

    # -- closing ------------------------------------------------------------------------------

    def abort(self) -> None:
        """Close the connection at once."""
        if self._body is not None:
            self._body.connection_lost()
        self._writer.abort()

    def close_if_idle(self) -> None:
        """Close the connection unless a request is being handled."""
        if not self.busy:
            self._close()

    def _close(self) -> None:
        """Close the connection once everything written is sent."""
        self._ignore_input()
        self._writer.close()

    def _ignore_input(self) -> None:
        """Drop the requests that are not handled yet, and all further input."""
        self._ignoring = True
        self._buffer, self._at = b"", 0

    def _linger(self) -> None:
        """Discard further input, and close the connection at the end of the body or after a while."""
        self._ignore_input()
        if self._body is not None and not self._body.has_length:
            # Only parsing would find the end of a chunked body.
            self._body = None
        self._writer.resume_reading()
        self._loop.call_later(_LINGER, self._writer.close)

    def time_out(self) -> None:
        """End a wait for the client that took too long."""
        wait = self.wait
        if wait is Wait.BODY and self.busy and self._body is not None:
            self._body.fail(MalformedRequest(408, "Request Timeout"))
        elif wait is Wait.NEXT:
            self._close()
        else:
            self.abort()


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
