"""Connections of HTTP/1.1: requests in, answers out, one at a time on each.

Most answers are made without waiting for anything. So a handler is begun where its request was read, and only one that
does wait becomes a task. A client that goes away ends the handler of its request: it is how a watch learns of it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator, Iterable
from http import HTTPStatus
from types import coroutine
from typing import Any, TypeAlias, cast

from steersman.http.body import Body
from steersman.http.head import Fields, Head, Headers, Malformed, parse, read

_LARGEST_HEAD = 256 * 1024
_AHEAD = 64 * 1024
"""How much a client may send of its next requests while one is answered."""
_IDLE = 300.0
"""Seconds a client may be silent that has something to say, or nothing to ask."""
_LINGER = 5.0
"""Seconds in which a client may go on to send what nobody will read; without, it might not read the answer."""
_STATUS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_BODILESS = (204, 304)

Line: TypeAlias = tuple[str, str]


class Request:
    """One request. Its body is read by who wants it."""

    __slots__ = ("_body", "_connection", "_waits", "headers", "method", "raw_path")

    def __init__(self, head: Head, body: Body, connection: Connection) -> None:
        self.method = head.method
        self.raw_path = head.target
        """Path and query as they were sent."""
        self.headers: Headers = head.fields.headers
        self._waits = head.fields.waits
        self._body = body
        self._connection = connection

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._connection.transport

    @property
    def certificate(self) -> bytes | None:
        """The client's certificate as DER, where it has shown one; verified by the connection."""
        return self._connection.certificate

    async def read(self, limit: int) -> bytes | None:
        """The body; None where it is beyond a limit in bytes."""
        body = self._body
        if self._waits and not body.complete and not (body.known and body.size > limit):
            self._waits = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await body.read(limit)

    @property
    def unread(self) -> bool:
        """Whether there is more of it to come."""
        return not self._body.complete

    @property
    def endless(self) -> bool:
        """Whether what is to come may be much, or something else.

        A client that was not told to send its body may send another request instead.
        """
        return self._waits or not self._body.known or self._body.size > _AHEAD


class Reply:
    """A whole answer."""

    __slots__ = ("body", "lines", "status")

    def __init__(self, status: int, lines: Iterable[Line], body: bytes = b"") -> None:
        self.status = status
        self.lines = lines
        self.body = body


class Stream:
    """An answer whose end is not known when it begins."""

    __slots__ = ("_connection", "_modern", "status")

    def __init__(self, request: Request) -> None:
        self._connection = request._connection
        self._modern = self._connection.modern
        self.status = 200

    def begin(self, lines: Iterable[Line]) -> None:
        """Send the head. Raises `ConnectionResetError`."""
        connection = self._connection
        if not self._modern:
            # Who does not know chunks sees the end when the connection ends.
            connection.keeps = False
        framing = (("Transfer-Encoding", "chunked"),) if self._modern else ()
        connection.write(connection.head(200, (*lines, *framing)))

    async def write(self, data: bytes) -> None:
        """Send some of it, and wait for who is slow to read. Raises `ConnectionResetError`."""
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data) if self._modern else data)
        await self._connection.drained()

    def end(self) -> None:
        """Send what says that this was all."""
        if self._modern:
            self._connection.write(b"0\r\n\r\n")


Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, "Reply | Stream"]]


class Listener:
    """All connections of a server."""

    def __init__(self, handler: Handler, date: Callable[[], str]) -> None:
        """``date`` is the time as HTTP writes it."""
        self.handler = handler
        self.connections: dict[Connection, None] = {}
        self.closing = False
        self._date = date
        self._told = (-1, "")
        self._awaited: dict[Connection, None] | None = None
        """When it shuts down: those that have something to finish."""
        self._ended = asyncio.Event()

    def __call__(self) -> Connection:
        """A connection that is just being made."""
        return Connection(self)

    def date(self, now: float) -> str:
        """The time, worked out once a second."""
        second = int(now)
        if self._told[0] != second:
            self._told = (second, self._date())
        return self._told[1]

    def gone(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.pop(connection, None)
        if self._awaited is not None:
            self._awaited.pop(connection, None)
            if not self._awaited:
                self._ended.set()

    async def shutdown(self, grace: float) -> None:
        """End all connections: those that rest at once, the others with their answer, or when time is up."""
        self.closing = True
        self._awaited = {connection: None for connection in self.connections if connection.busy}
        for connection in tuple(self.connections):
            connection.shut()
        if self._awaited:
            try:
                await asyncio.wait_for(self._ended.wait(), grace)
            except TimeoutError:
                pass  # whoever is not done by now is cut off
        for connection in tuple(self.connections):
            connection.abort()


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_body",
        "_buffer",
        "_certificate",
        "_drained",
        "_fields",
        "_full",
        "_idle_since",
        "_lingers",
        "_listener",
        "_loop",
        "_paused",
        "_task",
        "_timer",
        "bodiless",
        "busy",
        "keeps",
        "modern",
        "transport",
    )

    def __init__(self, listener: Listener) -> None:
        self.transport: asyncio.Transport | None = None
        self.keeps = True
        """Whether there may be another request after this one."""
        self.modern = True
        self.bodiless = False
        """Whether the answer to the request is sent without its body."""
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self.busy = False
        """Whether a request is being answered."""
        self._body: Body | None = None
        """Of the request that is being answered, until all of it has come."""
        self._task: asyncio.Task[Reply | Stream] | None = None
        self._fields: tuple[bytes, Fields] = (b"\0", Fields(Headers(), 0, False, False, None))
        """The last headers as they came: clients send the same ones again and again."""
        self._certificate: tuple[bytes | None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._paused = False
        self._full = False
        """Whether enough has been sent ahead."""
        self._lingers = False
        self._idle_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def certificate(self) -> bytes | None:
        """What the client has shown of itself, asked for once."""
        if self._certificate is None:
            secured = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self._certificate = (secured.getpeercert(True) if secured is not None else None,)
        return self._certificate[0]

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._listener.closing:
            self.transport.abort()
            return
        self._listener.connections[self] = None
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._body is not None:
            self._body.lose()
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ConnectionResetError("the client is gone"))
        if self._task is not None:
            self._task.cancel()
        self._listener.gone(self)

    def data_received(self, data: bytes) -> None:
        try:
            if self._body is not None:
                data = self._body.feed(data)
                self._idle_since = self._loop.time()
                if not self._body.complete:
                    return
                self._body = None
                if self._lingers:
                    self._close()
                    return
            if self._lingers:
                return
            if data:
                self._buffer = self._buffer + data if self._buffer else data
                self._advance()
        except Malformed as error:
            self._reject(error)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # -- requests -----------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer what has come, as far as that goes without waiting. Raises `Malformed`."""
        while self._buffer and not self.busy:
            data = self._buffer
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _LARGEST_HEAD:
                    raise Malformed(431, "Request Header Fields Too Large")
                return
            if data.startswith(b"\r\n"):
                # Some clients end a body with a line too many.
                self._buffer = data[2:]
                continue
            line, _, block = data[:end].partition(b"\r\n")
            if block == self._fields[0]:
                fields = self._fields[1]
            else:
                fields = read(block)
                self._fields = (block, fields)
            head = parse(line, fields)
            body = Body(fields.length, chunked=fields.chunked)
            rest = data[end + 4 :]
            self._buffer = body.feed(rest) if rest and not body.complete else rest
            self._body = None if body.complete else body
            self.keeps, self.modern, self.bodiless = head.keeps, head.modern, head.method == "HEAD"
            self._serve(Request(head, body, self))
        if len(self._buffer) > _AHEAD and self.transport is not None and not self._full:
            self._full = True
            self.transport.pause_reading()

    def _serve(self, request: Request) -> None:
        """Begin the handler of a request. What it sets in its context is its own."""
        self.busy = True
        context = contextvars.copy_context()
        work = self._listener.handler(request)
        try:
            waited = context.run(work.send, None)
        except StopIteration as done:
            self._finish(request, done.value)
            return
        except ConnectionError:
            self.abort()
            return
        self._task = self._loop.create_task(_go_on(work, waited), context=context)
        self._task.add_done_callback(lambda task: self._done(request, task))

    def _done(self, request: Request, task: asyncio.Task[Reply | Stream]) -> None:
        self._task = None
        if task.cancelled() or self.transport is None:
            self.abort()
            return
        failure = task.exception()
        if failure is not None:
            if not isinstance(failure, ConnectionError):
                # Handlers answer for their errors; this one could not.
                self._loop.call_exception_handler(
                    {"message": "a request was not answered", "exception": failure, "protocol": self}
                )
            self.abort()
            return
        self._finish(request, task.result())
        try:
            self._advance()
        except Malformed as error:
            self._reject(error)

    def _finish(self, request: Request, reply: Reply | Stream) -> None:
        """Send an answer, and be ready for the next request."""
        self.busy = False
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        unread = request.unread
        if unread and request.endless:
            self.keeps = False
        keeps = self.keeps and not self._listener.closing
        if isinstance(reply, Stream):
            reply.end()
        else:
            self._answer(reply, keeps)
        if unread and self._body is not None:
            self._body.drop()
        if keeps:
            self._rest()
            if self._full:
                self._full = False
                transport.resume_reading()
        elif unread:
            self._lingers = True
            self._loop.call_later(_LINGER, self._close)
        else:
            transport.close()

    def _answer(self, reply: Reply, keeps: bool) -> None:
        lines = [*reply.lines]
        if not keeps:
            lines.append(("Connection", "close"))
        elif not self.modern:
            lines.append(("Connection", "keep-alive"))
        body = reply.body
        if reply.status in _BODILESS:
            body = b""
        else:
            lines.append(("Content-Length", str(len(body))))
        self.write(self.head(reply.status, lines) + (b"" if self.bodiless else body))

    def head(self, status: int, lines: Iterable[Line]) -> bytes:
        """The head of an answer."""
        each = [f"{name}: {value}\r\n" for name, value in lines]
        told = "".join(each)
        if told.count("\n") != len(each) or told.count("\r") != len(each):
            # A value with a line end in it would be a header, or an answer, of its own.
            told = "".join(f"{_one_line(line[:-2])}\r\n" for line in each)
        date = self._listener.date(self._loop.time())
        return f"{_STATUS[status]}{told}Date: {date}\r\n\r\n".encode("utf-8", "surrogateescape")

    # -- bytes --------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `ConnectionResetError` where nobody is there any more."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.transport.write(data)

    async def drained(self) -> None:
        """Wait until a slow client has read enough. Raises `ConnectionResetError`."""
        if self._paused:
            self._drained = self._loop.create_future()
            await self._drained

    def _reject(self, error: Malformed) -> None:
        """Answer what is no request, as net/http does, and hang up."""
        self._buffer = b""
        if self.busy or self.transport is None:
            self.abort()
            return
        self.keeps = self.bodiless = False
        lines = (("Content-Type", "text/plain; charset=utf-8"),)
        self._answer(Reply(error.code, lines, str(error).encode()), False)
        self._lingers = True
        self._loop.call_later(_LINGER, self._close)

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Hang up at once."""
        if self.transport is not None:
            self.transport.abort()

    def shut(self) -> None:
        """Hang up where nothing is under way."""
        if not self.busy:
            self._close()

    # -- silence ------------------------------------------------------------------------------

    def _rest(self) -> None:
        """There is nothing to do until the client says something. One timer sees to many requests."""
        self._idle_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(_IDLE, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.busy and not (self._body is not None and self._body.wanted):
            return
        left = self._idle_since + _IDLE - self._loop.time()
        if left <= 0:
            self._close()
        else:
            self._timer = self._loop.call_later(left, self._look)


def _one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")


async def _go_on(work: Coroutine[Any, Any, Reply | Stream], waited: Any) -> Reply | Stream:
    made: Reply | Stream = await _resumed(work, waited)
    return made


@coroutine
def _resumed(work: Coroutine[Any, Any, Any], waited: Any) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that was begun elsewhere and waits for something."""
    while True:
        try:
            sent = yield waited
        except BaseException as error:
            thrown: BaseException | None = error
        else:
            thrown = None
        try:
            waited = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value
