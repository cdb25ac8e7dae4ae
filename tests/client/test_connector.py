"""The way to a server: its addresses, and the proxy before it."""

from __future__ import annotations

import asyncio
import base64
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from steersman.api.errors import Unreachable
from steersman.api.kinds import PODS
from steersman.client.config import ClientConfig, ConfigError, TlsConfig
from steersman.client.connection import Connection, NotConnected
from steersman.client.connector import Connector, host_of, port_of
from steersman.client.http import HttpApi
from steersman.client.round_trip import header_lines, host_header

POD = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "5"}}


def ignore(connection: Connection) -> None:
    pass


def client(url: str, **more: Any) -> HttpApi:
    return HttpApi(ClientConfig(url, **more), qps=-1)


async def ask(api: HttpApi, server: Any) -> Any:
    """One request; what the server saw of it."""
    server.answer(POD)
    await api.get(PODS, "n", "a")
    return server.asked[-1]


# -- addresses --------------------------------------------------------------------------------


def resolving(monkeypatch: pytest.MonkeyPatch, *found: str | OSError) -> list[str]:
    """Let names have these addresses. Returns the names that were asked for."""
    asked: list[str] = []
    loop = asyncio.get_running_loop()
    resolve = loop.getaddrinfo

    async def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        if host != "api.example":
            return await resolve(host, port, **options)  # uvloop asks about addresses, too
        asked.append(host)
        for each in found:
            if isinstance(each, OSError):
                raise each
        return [
            (
                socket.AF_INET6 if ":" in str(each) else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (each, port),
            )
            for each in found
        ]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    return asked


async def test_an_address_at_which_nothing_listens_is_followed_by_the_next(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, "127.9.9.9", "127.0.0.1")
    async with client(server.url.replace("127.0.0.1", "api.example")) as api:
        assert (await ask(api, server)).headers["Host"].startswith("api.example:")


async def test_connections_that_are_opened_at_once_resolve_a_name_once(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolving(monkeypatch, "127.0.0.1")
    connector = Connector(server.url.replace("127.0.0.1", "api.example"), None)
    for connection in await asyncio.gather(*(connector.connect(ignore) for _ in range(5))):
        connection.abort()
    (await connector.connect(ignore)).abort()
    assert asked == ["api.example"]


@pytest.mark.parametrize("found", [(socket.gaierror(socket.EAI_NONAME, "x"),), ()])
async def test_a_name_without_an_address_is_asked_for_again_by_the_next_connection(
    monkeypatch: pytest.MonkeyPatch, found: tuple[OSError, ...]
) -> None:
    asked = resolving(monkeypatch, *found)
    connector = Connector("http://api.example", None)
    for _ in range(2):
        with pytest.raises(NotConnected, match="the host name cannot be resolved"):
            await connector.connect(ignore)
    assert asked == ["api.example"] * 2


async def test_an_error_of_the_system_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sock_connect(made: socket.socket, address: object) -> None:
        raise OSError(errno.EHOSTUNREACH, "[Errno 113] Connect call failed ('10.0.0.1', 443)")

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", sock_connect)
    with pytest.raises(NotConnected, match=r"^no route to host$"):
        await Connector("http://10.0.0.1", None).connect(ignore)


async def test_a_server_that_does_not_take_a_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sock_connect(made: socket.socket, address: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", sock_connect)
    monkeypatch.setattr("steersman.client.connector.CONNECT_TIMEOUT", 0.01)
    with pytest.raises(NotConnected, match="timed out while connecting"):
        await Connector("http://10.0.0.1", None).connect(ignore)


async def test_a_dead_peer_is_noticed() -> None:
    listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        connection = await Connector(f"http://127.0.0.1:{port}", None).connect(ignore)
        assert connection._transport is not None
        made = connection._transport.get_extra_info("socket")
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 5000
        connection.abort()


@pytest.mark.parametrize(
    ("url", "host", "port", "header"),
    [
        ("https://a", "a", 443, "a"),
        ("http://a/prefix", "a", 80, "a"),
        ("https://A.example:6443", "a.example", 6443, "a.example:6443"),
        ("https://[::1]:6443", "::1", 6443, "[::1]:6443"),
        ("https://bücher.example", "xn--bcher-kva.example", 443, "xn--bcher-kva.example"),
    ],
)
def test_a_url_names_its_host(url: str, host: str, port: int, header: str) -> None:
    parts = urlsplit(url)
    assert (host_of(parts), port_of(parts), host_header(url)) == (host, port, header)


# -- requests ---------------------------------------------------------------------------------


async def test_a_path_that_would_be_another_request_is_not_sent(server: Any) -> None:
    async with client(server.url) as api:
        for path in ("/a b", "/a\r\nX: y", "/é"):
            with pytest.raises(Unreachable, match="was not sent: its path is not one of a URL"):
                await api.document(path)
    assert server.asked == []


def test_a_header_that_would_be_two_is_refused() -> None:
    assert header_lines([("A", "b"), ("A", "ü")]) == "A: b\r\nA: ü\r\n"
    with pytest.raises(ConfigError, match="line break"):
        header_lines([("A", "b\r\nC: d")])


# -- proxies ----------------------------------------------------------------------------------


class Proxy:
    """An HTTP proxy that connects to any server."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[str] = []
        """The heads of the requests to it."""
        self.url = ""

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        writer.write(self.answer)
        if self.answer.startswith(b"HTTP/1.1 200"):
            host, port = head.split()[1].rsplit(":", 1)
            there, back = await asyncio.open_connection(host, int(port))
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
        writer.close()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()


@asynccontextmanager
async def proxying(
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
    context: ssl.SSLContext | None = None,
    login: str = "",
) -> AsyncIterator[Proxy]:
    proxy = Proxy(answer)
    listening = await asyncio.start_server(proxy.relay, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    proxy.url = f"{'https' if context else 'http'}://{login}127.0.0.1:{port}"
    async with listening:
        yield proxy


async def test_a_proxy_gets_the_password_of_its_url_and_none_of_our_credentials(
    pki: Any, serve: Callable[..., Any]
) -> None:
    async with proxying(login="me:p%40ss@") as proxy, serve(pki.server_context()) as server:
        async with client(server.url, tls=pki.tls("jane"), proxy=proxy.url) as api:
            assert (await ask(api, server)).certificate == "jane"
        to = server.url.removeprefix("https://")
    [head] = proxy.heads
    assert head.splitlines() == [
        f"CONNECT {to} HTTP/1.1",
        f"Host: {to}",
        f"Proxy-Authorization: Basic {base64.b64encode(b'me:p@ss').decode()}",
        "",
    ]


async def test_a_proxy_may_speak_tls_itself(pki: Any, serve: Callable[..., Any]) -> None:
    async with (
        proxying(context=pki.server_context()) as proxy,
        serve(pki.server_context()) as server,
        client(server.url, tls=pki.tls("jane"), proxy=proxy.url) as api,
    ):
        assert (await ask(api, server)).certificate == "jane"
        assert len(proxy.heads) == 1


async def test_plain_http_is_relayed(server: Any) -> None:
    # This server takes the place of the proxy, which sees whole requests.
    async with client("http://api.example/prefix", proxy=server.url.replace("//", "//me:x@")) as api:
        asked = await ask(api, server)
    assert asked.path == "/prefix/api/v1/namespaces/n/pods/a"
    assert asked.headers["Host"] == "api.example"
    assert asked.headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'me:x').decode()}"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy answered with status 407"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "the answer of the proxy is not HTTP"),
        (b"A" * 300_000, "the answer of the proxy is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n", "the proxy closed the connection"),
        (b"", "the proxy closed the connection"),
    ],
)
async def test_a_proxy_that_does_not_connect_is_named_and_nothing_was_sent(
    pki: Any, answer: bytes, says: str
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with (
        listening,
        client("https://api.example", proxy=f"http://127.0.0.1:{port}", tls=pki.tls()) as api,
    ):
        with pytest.raises(Unreachable, match=says) as caught:
            await api.create(PODS.untyped, "n", POD)
    assert not caught.value.uncertain


async def test_a_proxy_that_is_not_there_is_named(unused_tcp_port: int) -> None:
    proxy = f"http://127.0.0.1:{unused_tcp_port}"
    async with client("https://api.example", proxy=proxy, tls=TlsConfig(insecure=True)) as api:
        with pytest.raises(Unreachable, match="the proxy cannot be reached"):
            await api.get(PODS, "n", "a")
