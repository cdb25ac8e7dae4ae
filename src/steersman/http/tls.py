"""TLS on the server's side of a connection, in little memory.

asyncio and uvloop have TLS of their own. It holds a buffer of 256 KiB for each connection, keeps the largest write of a
connection in memory for as long as it lives, and begins a handshake for each client that connects. Here a connection
holds nothing before its client has sent a byte, input and output pass in pieces of a TLS record, and few handshakes are
carried out in each iteration of the event loop, so that a flood of new clients does not hold up the others. Neither do
clients that send faster than their requests are handled: there is one large read in each iteration.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from steersman.http.limits import Wait, client_time

_log = logging.getLogger(__name__)

_RECORD = 16 * 1024
"""Bytes of plaintext in a TLS record. An SSL object keeps buffers of the largest input and output it was given."""
_MAX_HANDSHAKE = 64 * 1024
"""Bytes of input before the handshake is done: a chain of client certificates takes some."""
_LARGE_READ = 64 * 1024
"""Bytes of a read after which a connection waits for its turn to read on.

Otherwise libuv reads up to 32 times 250 KiB at once from a client that keeps its socket full.
"""
HANDSHAKES_AT_ONCE = 8
"""Handshakes to advance in one iteration of the event loop. A step takes up to a millisecond."""


class Turns:
    """Work that would hold up other connections if all of it was done at once: some is done in each iteration of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at_once: int) -> None:
        self._loop = loop
        self._at_once = at_once
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def wait(self, act: Callable[[], None]) -> None:
        """Call a function when it is its turn."""
        self._waiting.append(act)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        for _ in range(min(self._at_once, len(self._waiting))):
            self._waiting.popleft()()
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            self._loop.call_soon(self._run)


class Handshakes:
    """The connections of one server whose handshake is not done, and the turns of all its connections."""

    def __init__(
        self,
        context: ssl.SSLContext,
        make: Callable[[], asyncio.Protocol],
        opened: Callable[[], None],
    ) -> None:
        """``make`` makes the protocol over TLS once a handshake is done; ``opened`` is called for each connection."""
        self.context = context
        self.make = make
        self.opened = opened
        self.pending: dict[TlsConnection, None] = {}
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(self.loop, HANDSHAKES_AT_ONCE)
        self.reading_turns = Turns(self.loop, 1)


class TlsConnection(asyncio.Transport, asyncio.Protocol):
    """The protocol of a socket, and the transport of the protocol over TLS."""

    __slots__ = (
        "_application",
        "_closing",
        "_early",
        "_handshakes",
        "_incoming",
        "_outgoing",
        "_queued",
        "_read_early",
        "_reading_paused",
        "_socket",
        "_tls",
        "_yielding",
        "since",
    )

    authenticated = False
    wait = Wait.HANDSHAKE

    def __init__(self, handshakes: Handshakes) -> None:
        super().__init__()
        self._handshakes = handshakes
        self.since = client_time(handshakes.loop)
        """The loop's time at which the connection was made, in seconds."""
        self._application: asyncio.Protocol | None = None
        self._socket: asyncio.Transport | None = None
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._early = b""
        """Input before the handshake is done."""
        self._read_early = 0
        """Bytes of the handshake."""
        self._queued = False
        """The handshake waits for its turn."""
        self._reading_paused = False
        """Input is left in the socket until it is wanted again."""
        self._yielding = False
        """Input is left in the socket until it is this connection's turn to read."""
        self._closing = False

    def time_out(self) -> None:
        """End a handshake that takes too long."""
        self.abort()

    # -- asyncio.Protocol: the socket ---------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast("asyncio.Transport", transport)
        self._handshakes.pending[self] = None
        self._handshakes.opened()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._application is not None:
            if len(data) >= _LARGE_READ:
                self._yield_turn()
            self._receive(data)
            return
        if self._incoming is None:
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            context = self._handshakes.context
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # Behind the handshake the first request may follow at once.
        self._early += data
        if len(self._early) > _MAX_HANDSHAKE:
            self.pause_reading()
        if not self._queued:
            self._queued = True
            self._handshakes.turns.wait(self.advance_handshake)

    def _yield_turn(self) -> None:
        """Leave further input in the socket until it is this connection's turn to read."""
        if self._socket is not None and not self._yielding:
            self._yielding = True
            self._socket.pause_reading()
            self._handshakes.reading_turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._yielding = False
        if not self._reading_paused:
            self.resume_reading()

    def pause_writing(self) -> None:
        if self._application is not None:
            self._application.pause_writing()

    def resume_writing(self) -> None:
        if self._application is not None:
            self._application.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._socket = None
        self._handshakes.pending.pop(self, None)
        if self._application is not None:
            self._application.connection_lost(exc)

    # -- TLS ----------------------------------------------------------------------------------

    def advance_handshake(self) -> None:
        """Go on with the handshake, as far as the client's input allows."""
        self._queued = False
        tls, incoming = self._tls, self._incoming
        if self._closing or tls is None or incoming is None:
            return
        early, self._early = self._early, b""
        at, done = 0, False
        try:
            while at < len(early) and not done:
                piece = early[at : at + _RECORD]
                incoming.write(piece)
                at += len(piece)
                try:
                    tls.do_handshake()
                    done = True
                except ssl.SSLWantReadError:
                    pass
        except (ssl.SSLError, OSError, ValueError) as error:
            # The alert for the client is in the output.
            self._flush()
            self._fail(error)
            return
        self._flush()
        self._read_early += at
        if done:
            self._handshakes.pending.pop(self, None)
            self._application = self._handshakes.make()
            self._application.connection_made(self)
            if len(early) > _MAX_HANDSHAKE:
                # Before the application sees the input: it may want to pause again.
                self.resume_reading()
            self._receive(early[at:])
        elif self._read_early > _MAX_HANDSHAKE:
            self.abort()

    def _receive(self, data: bytes) -> None:
        """Decrypt input and hand it to the application."""
        incoming, tls, application = self._incoming, self._tls, self._application
        assert incoming is not None
        assert tls is not None
        assert application is not None
        at, size = 0, len(data)
        try:
            while True:
                if size <= _RECORD:
                    incoming.write(data)
                else:
                    incoming.write(memoryview(data)[at : at + _RECORD])
                at += _RECORD
                try:
                    while (incoming.pending or tls.pending()) and not self._closing:
                        plain = tls.read(_RECORD)
                        if not plain:
                            self.close()
                            return
                        application.data_received(plain)
                except ssl.SSLWantReadError:
                    pass
                if at >= size or self._closing:
                    break
        except ssl.SSLError as error:
            self._flush()
            self._fail(error)
            return
        self._flush()

    def _flush(self) -> None:
        outgoing = self._outgoing
        if outgoing is not None and outgoing.pending and self._socket is not None:
            self._socket.write(outgoing.read())

    def _fail(self, error: Exception) -> None:
        _log.debug("TLS: %s", error)
        self._closing = True
        if self._socket is not None:
            self._socket.close()

    # -- asyncio.Transport: the application ---------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Encrypt and send. The caller gives large data in pieces, and waits in between where it is told to."""
        if self._closing or self._socket is None:
            return
        tls, outgoing = self._tls, self._outgoing
        assert tls is not None
        assert outgoing is not None
        try:
            size = len(data)
            sent = tls.write(data)
            while sent < size:
                # OpenSSL writes one record at a time.
                sent += tls.write(memoryview(data)[sent:])
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._socket.write(outgoing.read())

    def get_write_buffer_size(self) -> int:
        return 0 if self._socket is None else self._socket.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._reading_paused = True
        if self._socket is not None and not self._closing:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        if self._socket is not None and not self._closing and not self._yielding:
            self._socket.resume_reading()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Close the connection once everything written is sent, with the alert that ends TLS."""
        if self._closing:
            return
        self._closing = True
        if self._socket is None:
            return
        if self._application is not None and self._tls is not None:
            try:
                self._tls.unwrap()
            except (ssl.SSLError, OSError):
                pass  # the client's own alert is not waited for
            self._flush()
        self._socket.close()

    def abort(self) -> None:
        self._closing = True
        if self._socket is not None:
            self._socket.abort()
