"""A server connection without a socket: feeds it bytes in packets and collects what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from steersman.http.connection import Handler, HttpConnection, HttpServer

DATE = "Thu, 01 Jan 1970 00:00:00 GMT"
_STEPS = 4
"""Rounds of the event loop without a response: enough for a handler that waits for nothing but its body."""


class MemoryTransport(asyncio.Transport):
    """The transport of a connection whose peer reads everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed, "written after closing"
        self.written += data

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


async def exchange(handler: Handler, packets: Sequence[bytes]) -> MemoryTransport:
    """Return the transport of a connection that has received all packets, or closed before."""
    server = HttpServer(handler, lambda: DATE)
    connection = HttpConnection(server)
    transport = MemoryTransport()
    connection.connection_made(transport)
    for packet in packets:
        if transport.closed:
            break
        assert not transport.paused, "reading is paused while no handler is at work"
        if packet:
            connection.data_received(packet)
        await _answered(transport)
    closed = transport.closed
    connection.connection_lost(None)
    await asyncio.sleep(0)
    transport.closed = closed
    return transport


async def _answered(transport: MemoryTransport) -> None:
    """Let the connection answer all it has received: it handles a few of many pipelined requests in a round of the loop."""
    written = -1
    while len(transport.written) > written:
        written = len(transport.written)
        for _ in range(_STEPS):
            await asyncio.sleep(0)
