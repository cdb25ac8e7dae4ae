"""A client that costs little and never tries again: one connection, one request at a time.

What is measured with it is the server, and who was not answered knows it.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from steersman.client.config import ClientConfig

_HEAD_END = b"\r\n\r\n"


def context(connection: ClientConfig) -> ssl.SSLContext:
    """TLS as a kubeconfig wants it, with the client's certificate."""
    made = ssl.create_default_context(cadata=connection.tls.ca.data.decode())
    with tempfile.TemporaryDirectory() as where:
        cert, key = Path(where, "cert"), Path(where, "key")
        cert.write_bytes(connection.tls.cert.data)
        key.write_bytes(connection.tls.key.data)
        made.load_cert_chain(cert, key)
    return made


class Line(asyncio.Protocol):
    """A connection that is kept. Answers must have a Content-Length, but for those that are followed."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._got = bytearray()
        self._wanted = 0
        self._host = ""
        self._heard: Callable[[bytes], None] | None = None

    @classmethod
    async def open(cls, server: str, tls: ssl.SSLContext | None) -> Line:
        """Connect to a server by its URL."""
        at = urlsplit(server)
        line = cls()
        line._host = at.netloc
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: line, at.hostname or "", at.port or 443, ssl=tls)
        return line

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "application/json",
        headers: str = "",
    ) -> asyncio.Future[tuple[int, bytes]]:
        """Send a request; the answer's status and body. Raises `ConnectionError` where none comes.

        ``headers`` are whole lines.
        """
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            self._answer.set_exception(ConnectionResetError("no connection"))
            return self._answer
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: load/1\r\n{headers}"
        if body:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        self._transport.write(f"{head}\r\n".encode() + body)
        return self._answer

    def follow(self, path: str, heard: Callable[[bytes], None]) -> asyncio.Future[tuple[int, bytes]]:
        """Begin a watch: the answer comes with its first bytes, and all bytes are told as they come."""
        self._heard = heard
        return self.ask("GET", path)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the connection is gone"))

    def data_received(self, data: bytes) -> None:
        if self._heard is not None:
            self._heard(data)
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
