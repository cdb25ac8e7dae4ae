"""UpgradedConnection: passes a connection that leaves HTTP on to another server, byte by byte, as the aggregator does for WebSocket and SPDY."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable

import msgspec

from steersman.http.head import Headers
from steersman.http.request import HttpRequest
from steersman.http.response import StreamingResponse

MAX_HEAD = 64 * 1024
"""Bytes of the other server's response head."""
MAX_WAITING = 256 * 1024
"""Bytes of the client that wait for the other server; then the client is not read any more."""
_CHUNK = 64 * 1024
_MALFORMED = "malformed HTTP response"
_STATUS = re.compile(rb"HTTP/1\.[01] (101|[2-9][0-9][0-9])[ \r]").match
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n").fullmatch


class Upstream(msgspec.Struct, frozen=True):
    """A connection to another server that has answered a request for an upgrade."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes
    """Its response head, with the empty line."""
    status: int

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").split("\r\n")[1:-2]
        return [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    async def read_body(self, limit: int) -> bytes:
        """Reads the body of a response that is no upgrade. Raises `OSError`, and `ValueError` for one that is too large."""
        headers = Headers(self.headers)
        length = headers.get("Content-Length")
        try:
            if headers.get("Transfer-Encoding").lower() == "chunked":
                return await self._read_chunks(limit)
            if not length:
                # Up to the end of the connection, and one byte more than may be.
                body = await self._read_to_end(limit + 1)
                return _limited(body, len(body), limit)
            if not (length.isascii() and length.isdigit() and len(length) < 20):
                raise ValueError(_MALFORMED)
            _limited(b"", int(length), limit)
            return await self.reader.readexactly(int(length))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ValueError(_MALFORMED) from error

    async def _read_to_end(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size and (data := await self.reader.read(min(_CHUNK, size - len(body)))):
            body += data
        return bytes(body)

    async def _read_chunks(self, limit: int) -> bytes:
        body = bytearray()
        while True:
            line = _SIZE(await self.reader.readuntil(b"\r\n"))
            if line is None:
                raise ValueError(_MALFORMED)
            size = int(line[1], 16)
            if not size:
                # The connection is closed: trailers are not read.
                return bytes(body)
            _limited(b"", len(body) + size, limit)
            body += await self.reader.readexactly(size)
            if await self.reader.readexactly(2) != b"\r\n":
                raise ValueError(_MALFORMED)


def _limited(body: bytes, size: int, limit: int) -> bytes:
    if size > limit:
        raise ValueError(f"the response has more than {limit} bytes")
    return body


async def request_upgrade(
    address: str,
    context: ssl.SSLContext,
    server_name: str,
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]],
) -> Upstream:
    """Sends a request for an upgrade, and reads the head of the response. Raises `OSError` and `ValueError`."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(
        host.strip("[]"), int(port), ssl=context, server_hostname=server_name, limit=MAX_HEAD
    )
    try:
        writer.write("\r\n".join((*lines, "", "")).encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ValueError(_MALFORMED) from error
        status = _STATUS(head)
        if status is None:
            raise ValueError(_MALFORMED)
        return Upstream(reader, writer, head, int(status[1]))
    except BaseException:
        writer.close()
        raise


class UpgradedConnection(StreamingResponse):
    """The connection of a client, joined to that of another server. It is the response of its request."""

    __slots__ = ("_moved", "_upstream", "_waiting")

    def __init__(self, http: HttpRequest, upstream: Upstream) -> None:
        super().__init__(http.writer)
        self.status = 101
        self._upstream = upstream
        self._waiting = bytearray()
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Passes bytes on until either side closes its connection."""
        writer = self._writer
        writer.keep_alive = False
        writer.upgraded = self._receive
        writer.write(self._upstream.head)
        sending = asyncio.create_task(self._send())
        try:
            while data := await self._upstream.reader.read(_CHUNK):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one of both has gone
        finally:
            sending.cancel()
            self._upstream.writer.close()

    def _receive(self, data: bytes) -> None:
        """Takes the bytes that the client sent."""
        self._waiting += data
        if len(self._waiting) > MAX_WAITING:
            self._writer.pause_reading()
        self._moved.set()

    async def _send(self) -> None:
        upstream = self._upstream.writer
        try:
            while True:
                await self._moved.wait()
                self._moved.clear()
                data, self._waiting = bytes(self._waiting), bytearray()
                upstream.write(data)
                await upstream.drain()
                self._writer.resume_reading()
        except OSError:
            pass  # reading finds it, too

    def end(self) -> None:
        """The connection closes; there is no last chunk."""
        self._writer.upgraded = None
