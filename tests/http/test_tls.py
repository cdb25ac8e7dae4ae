"""TLS connections, tested with Python's own TLS on the other side and through a transport that counts."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from steersman.http.connection import HttpServer
from steersman.http.limits import TIMEOUTS, Limits, Wait
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse
from steersman.http.tls import HANDSHAKES_AT_ONCE, TlsConnection
from tests.harness.ca import CertificateAuthority

MIB = 1024 * 1024


async def handle(request: HttpRequest) -> HttpResponse:
    if request.raw_path == "/large":
        return HttpResponse(200, (), b"x" * (3 * MIB))
    if request.raw_path == "/certificate":
        return HttpResponse(200, (), b"%d" % len(request.certificate or b""))
    body = await request.read(4 * MIB)
    return HttpResponse(200, (), b"%d" % len(body or b""))


class Site:
    """A server over TLS, and the contexts of its clients."""

    def __init__(self, directory: Path) -> None:
        authority = CertificateAuthority("test")
        self.server = HttpServer(handle, lambda: "now", Limits(connections=100))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(context, directory, authority.serving(("localhost",), ("127.0.0.1",)))
        context.load_verify_locations(cadata=authority.pair.cert.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        self.server.secure(context)
        self.client = ssl.create_default_context(cadata=authority.pair.cert.decode())
        self.known = ssl.create_default_context(cadata=authority.pair.cert.decode())
        _load(self.known, directory, authority.client("known", ()))
        self.port = 0

    @property
    def pending(self) -> int:
        """How many connections are in their handshake."""
        handshakes = self.server._handshakes
        assert handshakes is not None
        return len(handshakes.pending)


def _load(context: ssl.SSLContext, directory: Path, pair: Any) -> None:
    cert, key = directory / "cert", directory / "key"
    cert.write_bytes(pair.cert)
    key.write_bytes(pair.key)
    context.load_cert_chain(cert, key)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    listening = await asyncio.get_running_loop().create_server(made.server, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()
    await made.server.shutdown(1)


async def ask(site: Site, context: ssl.SSLContext, data: bytes, answers: int = 1) -> list[bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=context)
    writer.write(data)
    bodies = []
    for _ in range(answers):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        bodies.append(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    return bodies


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_and_responses_of_any_size_pass(site: Site, version: ssl.TLSVersion) -> None:
    site.client.minimum_version = site.client.maximum_version = version
    data = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b"y" * 3_000_000
    data += b"GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
    assert await ask(site, site.client, data, 3) == [b"3000000", b"x" * (3 * MIB), b"0"]


async def test_a_client_certificate_is_seen(site: Site) -> None:
    request = b"GET /certificate HTTP/1.1\r\nHost: x\r\n\r\n"
    assert await ask(site, site.client, request) == [b"0"]
    assert int((await ask(site, site.known, request))[0]) > 100


async def test_the_end_of_the_connection_is_the_end_of_tls(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=site.client)
    writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    # Without the closing alert, this would raise: data might have been cut off.
    assert (await reader.read()).endswith(b"x" * (3 * MIB))
    writer.close()


async def test_a_client_that_ends_tls_is_disconnected(site: Site) -> None:
    await ask(site, site.client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    while site.server.connections:
        await asyncio.sleep(0)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x00" * 5000])
async def test_a_client_that_does_not_speak_tls_is_disconnected(site: Site, data: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(data)
    await reader.read()
    writer.close()
    assert site.pending == 0


async def test_an_untrusted_client_certificate_is_refused(site: Site, tmp_path: Path) -> None:
    _load(site.client, tmp_path, CertificateAuthority("other").client("stranger", ()))
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await ask(site, site.client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


@pytest.mark.parametrize("part", [0, 0.5, 1])
async def test_a_handshake_that_is_not_finished_is_given_up(site: Site, part: float) -> None:
    hello = client_hello(site)
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(hello[: int(len(hello) * part)])
    while not site.pending:
        await asyncio.sleep(0)
    now = asyncio.get_running_loop().time()
    site.server.sweep(now + TIMEOUTS[Wait.HANDSHAKE] - 1)
    assert site.pending == 1
    site.server.sweep(now + TIMEOUTS[Wait.HANDSHAKE] + 1)
    with suppress(ConnectionResetError):
        await reader.read()
    assert site.pending == 0
    writer.close()


async def test_handshakes_make_room_for_a_new_client(site: Site) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(150)]
    assert await ask(site, site.client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") == [b"0"]
    assert 0 < site.pending <= 100
    for _, writer in silent:
        writer.close()


# -- a transport that counts --------------------------------------------------------------------


class Socket(asyncio.Transport):
    """The server's side of a socket, without one."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.sent = bytearray()
        self.closed = False
        self.reading = True
        made = site.server()
        assert isinstance(made, TlsConnection)
        self.protocol: TlsConnection = made
        made.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.reading = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.protocol.connection_lost(None)

    abort = close


def client_hello(site: Site) -> bytes:
    outgoing = ssl.MemoryBIO()
    wrapped = site.client.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        wrapped.do_handshake()
    return outgoing.read()


async def test_few_handshakes_are_carried_out_before_others_have_their_turn(site: Site) -> None:
    hello = client_hello(site)
    clients = [Socket(site) for _ in range(50)]
    for each in clients:
        each.protocol.data_received(hello)
    answered = [sum(bool(each.sent) for each in clients)]
    while answered[-1] < len(clients):
        await asyncio.sleep(0)
        answered.append(sum(bool(each.sent) for each in clients))
        assert answered[-1] - answered[-2] <= HANDSHAKES_AT_ONCE
    assert answered[0] == 0
    for each in clients:
        each.close()


async def test_nothing_is_made_for_a_client_that_sends_nothing(site: Site) -> None:
    client = Socket(site)
    assert client.protocol.get_extra_info("ssl_object") is None
    client.protocol.data_received(b"\x16")
    assert client.protocol.get_extra_info("ssl_object") is not None
    client.close()


async def test_input_before_the_handshake_is_limited(site: Site) -> None:
    client = Socket(site)
    received = 0
    while client.reading:
        client.protocol.data_received(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + b"x" * 4096)
        received += 4096
        assert received < 100_000
    while not client.closed:
        await asyncio.sleep(0)


# -- turns --------------------------------------------------------------------------------------


def test_a_client_that_fills_its_socket_leaves_others_their_turn(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")  # asyncio's own loop reads once in each iteration
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sent, before_other = runner.run(flood(tmp_path))
    assert sent > 20
    assert before_other <= 3


async def flood(directory: Path) -> tuple[int, int]:
    """Send many large requests on one connection, and one on another while they are handled.

    Returns how many large ones were sent, and how many of them were handled between sending and handling the other.
    """
    site, handled = Site(directory), list[str]()
    begun = 10  # the first reads are smaller

    async def record(request: HttpRequest) -> HttpResponse:
        handled.append(request.raw_path[:6])
        if handled.count("/flood") == begun:
            other.sendall(b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
        return HttpResponse(200, (), b"")

    site.server.handler = record
    listening = await asyncio.get_running_loop().create_server(site.server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    flooding, other = await connected(port, site.client), await connected(port, site.client)
    request, sent = b"GET /flood" + b"d" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 0
    # The event loop does nothing while this is sent: all of it waits in the socket.
    with suppress(ssl.SSLWantWriteError):
        while sent < 40:
            flooding.sendall(request)
            sent += 1
    handled.clear()
    while len(handled) < sent + 1:
        await asyncio.sleep(0)
    flooding.close()
    other.close()
    listening.close()
    await site.server.shutdown(1)
    return sent, handled.index("/other") - begun


async def connected(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection that has had its first response, and on which only the caller sends from now on."""
    raw = socket.create_connection(("127.0.0.1", port))
    raw.setblocking(False)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MIB)
    made = context.wrap_socket(raw, server_hostname="localhost", do_handshake_on_connect=False)
    await until_ready(made.do_handshake)
    made.sendall(b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
    await until_ready(lambda: made.recv(4096))
    return made


async def until_ready(act: Callable[[], object]) -> None:
    """Do what a connection that does not block can do only once the server has sent something."""
    while True:
        try:
            act()
            return
        except ssl.SSLWantReadError:
            await asyncio.sleep(0)
