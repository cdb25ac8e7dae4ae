"""A client that costs little, so that what is measured is the server: one connection, one request at a time."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from steersman.client.connection import Connection

_HEAD_END = b"\r\n\r\n"


def context(connection: Connection) -> ssl.SSLContext:
    """TLS as a kubeconfig wants it, with the client's certificate."""
    made = ssl.create_default_context(cadata=connection.tls.ca.data.decode())
    with tempfile.TemporaryDirectory() as where:
        cert, key = Path(where, "cert"), Path(where, "key")
        cert.write_bytes(connection.tls.cert.data)
        key.write_bytes(connection.tls.key.data)
        made.load_cert_chain(cert, key)
    return made


class Wire(asyncio.Protocol):
    """A connection that is kept. Answers must have a Content-Length, but for those that are followed."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._got = bytearray()
        self._wanted = 0
        self._host = ""
        self.lines: int | None = None
        """Of a watch: how many lines have come."""

    @classmethod
    async def open(cls, server: str, tls: ssl.SSLContext | None) -> Wire:
        """Connect to a server by its URL."""
        at = urlsplit(server)
        wire = cls()
        wire._host = at.netloc
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: wire, at.hostname, at.port, ssl=tls)
        return wire

    def ask(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> asyncio.Future[tuple[int, bytes]]:
        """Send a request; the answer's status and body. Raises `ConnectionError` where none comes."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            self._answer.set_exception(ConnectionResetError("no connection"))
            return self._answer
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: load/1\r\n"
        if body:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        self._transport.write(f"{head}\r\n".encode() + body)
        return self._answer

    def follow(self, path: str) -> asyncio.Future[tuple[int, bytes]]:
        """Begin a watch: the answer comes with its first bytes, and then lines are counted."""
        self.lines = 0
        return self.ask("GET", path)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the connection is gone"))

    def data_received(self, data: bytes) -> None:
        if self.lines is not None:
            self.lines += data.count(b"}\n")
            if self._answer is not None and not self._answer.done():
                self._answer.set_result((int(data[9:12]), b""))
            return
        got = self._got
        got += data
        if not self._wanted:
            end = got.find(_HEAD_END)
            if end < 0:
                return
            head = bytes(got[:end]).lower()
            at = head.index(b"content-length:") + 15
            self._wanted = end + 4 + int(head[at:].partition(b"\r")[0])
        if len(got) >= self._wanted:
            whole, self._wanted = bytes(got[: self._wanted]), 0
            got.clear()
            assert self._answer is not None
            if not self._answer.done():
                self._answer.set_result((int(whole[9:12]), whole[whole.index(_HEAD_END) + 4 :]))
