"""Opens connections to one server: resolves its name, tries its addresses, passes its proxy and shakes hands.

Every socket has TCP keepalive, which detects a dead peer within about a minute.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from steersman.client.connection import Connection, NotConnected, system_error
from steersman.client.http1 import MAX_HEAD, MalformedResponse, read_head

CONNECT_TIMEOUT = 30.0
"""Seconds until a connection is established, as upstream's dialer allows."""
RESOLVED_FOR = 30.0
"""Seconds for which the addresses of a name are used again."""
NEXT_ADDRESS = 0.25
"""Seconds after which the next address of a name is tried beside the last one (RFC 8305)."""
USER_TIMEOUT = 5.0
"""Seconds that sent bytes may stay unacknowledged before the connection is closed (TCP_USER_TIMEOUT).

The system's default is a quarter of an hour, and a write must not arrive long after its sender lost the lease.
"""

AddressInfo: TypeAlias = tuple[int, int, int, str, Any]
"""An address as ``socket.getaddrinfo`` returns it."""


class Connector:
    """Opens connections to the server of a URL, through a proxy if there is one."""

    def __init__(
        self, server: str, context: ssl.SSLContext | None, server_name: str = "", proxy: str = ""
    ) -> None:
        """``context``: None for plain HTTP; ``server_name``: the name that the certificate must hold, if not the URL's."""
        self._server = urlsplit(server)
        self._context = context
        self._name = server_name or host_of(self._server)
        self._proxy = urlsplit(proxy) if proxy else None
        self._addresses: Sequence[AddressInfo] = ()
        self._resolved = float("-inf")
        self._resolving: asyncio.Future[Sequence[AddressInfo]] | None = None

    @property
    def relays(self) -> bool:
        """Requests are sent to the proxy, as plain HTTP is: their target is a whole URL."""
        return self._proxy is not None and self._context is None

    @property
    def proxy_authorization(self) -> str:
        """The Proxy-Authorization header; empty without a password in the proxy's URL."""
        if self._proxy is None or self._proxy.username is None:
            return ""
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    async def connect(self, released: Callable[[Connection], None]) -> Connection:
        """Return a new connection. Raises `NotConnected`."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._connect(released)
        except TimeoutError:
            raise NotConnected("timed out while connecting") from None

    async def _connect(self, released: Callable[[Connection], None]) -> Connection:
        peer = self._proxy or self._server
        try:
            found = await self._open_socket(peer)
        except NotConnected:
            raise
        except OSError as error:
            _refuse(error, "the proxy cannot be reached" if self._proxy else "")
        loop = asyncio.get_running_loop()
        if self._proxy is None or self._context is None:
            secure = self._context is not None
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(released),
                    sock=found,
                    ssl=self._context,
                    server_hostname=self._name if secure else None,
                )
            except OSError as error:
                _refuse(error)
            return connection
        return await self._tunnel(found, self._proxy, self._context, released)

    # -- addresses ----------------------------------------------------------------------------

    async def _open_socket(self, peer: SplitResult) -> socket.socket:
        addresses = await self._resolve(host_of(peer), port_of(peer))
        loop = asyncio.get_running_loop()
        if len(addresses) > 1:
            # Imported where it is needed: most servers have one address.
            from aiohappyeyeballs import start_connection

            return await start_connection(
                cast("Any", addresses),
                happy_eyeballs_delay=NEXT_ADDRESS,
                interleave=1,
                loop=loop,
                socket_factory=_make_socket,
            )
        [address] = addresses
        made = _make_socket(address)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, address[4])
        except BaseException:
            made.close()
            raise
        return made

    async def _resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Return the addresses of a host. Raises `NotConnected` if its name cannot be resolved."""
        numeric = _numeric(host, port)
        if numeric is not None:
            return (numeric,)
        loop = asyncio.get_running_loop()
        if self._addresses and loop.time() - self._resolved < RESOLVED_FOR:
            return self._addresses
        if self._resolving is None:
            # A hundred connections that are opened at once ask once.
            self._resolving = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            self._resolving.add_done_callback(self._take_addresses)
        try:
            addresses = await asyncio.shield(self._resolving)
        except OSError:
            raise NotConnected("the host name cannot be resolved") from None
        if not addresses:
            raise NotConnected("the host name cannot be resolved")
        return addresses

    def _take_addresses(self, resolved: asyncio.Future[Sequence[AddressInfo]]) -> None:
        self._resolving = None
        if not resolved.cancelled() and resolved.exception() is None:
            self._addresses = resolved.result()
            self._resolved = asyncio.get_running_loop().time()

    # -- proxies ------------------------------------------------------------------------------

    async def _tunnel(
        self,
        found: socket.socket,
        proxy: SplitResult,
        context: ssl.SSLContext,
        released: Callable[[Connection], None],
    ) -> Connection:
        """Let a proxy connect to the server, and speak TLS with the server through it."""
        loop = asyncio.get_running_loop()
        secure = proxy.scheme == "https"
        try:
            transport, tunnel = await loop.create_connection(
                _Tunnel,
                sock=found,
                # As upstream, the server's authorities are those of its proxy.
                ssl=context if secure else None,
                server_hostname=host_of(proxy) if secure else None,
            )
        except OSError as error:
            _refuse(error, "the proxy cannot be reached")
        try:
            status = await tunnel.ask(host_of(self._server), port_of(self._server), self.proxy_authorization)
            if status != 200:
                raise NotConnected(f"the proxy answered with status {status}")
            connection = Connection(released)
            established = await loop.start_tls(transport, connection, context, server_hostname=self._name)
        except OSError as error:
            transport.abort()
            _refuse(error)
        except BaseException:
            transport.abort()
            raise
        assert established is not None
        connection.connection_made(established)
        return connection


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy until it has answered CONNECT."""

    def __init__(self) -> None:
        self._answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._head = b""
        self._transport: asyncio.Transport | None = None

    async def ask(self, host: str, port: int, authorization: str) -> int:
        """Ask for a connection to a server; return the status of the answer. Raises `NotConnected`."""
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
        if authorization:
            lines.append(f"Proxy-Authorization: {authorization}")
        assert self._transport is not None
        self._transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        return await self._answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if self._answered.done() or (end < 0 and len(self._head) <= MAX_HEAD):
            return
        try:
            if end < 0:
                raise MalformedResponse("the head is too long")
            self._answered.set_result(read_head(self._head[:end]).status)
        except MalformedResponse:
            self._answered.set_exception(NotConnected("the answer of the proxy is not HTTP"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(NotConnected("the proxy closed the connection"))


def host_of(url: SplitResult) -> str:
    """Return the host of a URL as it is resolved: names with other letters than ASCII's as IDNA writes them."""
    host = url.hostname or ""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def port_of(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _numeric(host: str, port: int) -> AddressInfo | None:
    """Return the address of a host that is one, with nothing to resolve."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return None
    if ip.version == 4:
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)
    if ip.scope_id is not None:
        return None  # the index of the interface has to be resolved
    return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0)


def _make_socket(address: AddressInfo) -> socket.socket:
    family, type_, protocol = address[:3]
    made = socket.socket(family, type_, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    user_timeout = ("TCP_USER_TIMEOUT", round(USER_TIMEOUT * 1000))
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 2), user_timeout):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _refuse(error: OSError, reason: str = "") -> NoReturn:
    """Raise the `NotConnected` of an error; that of TLS keeps it as its cause."""
    raise NotConnected(reason or system_error(error, "cannot connect")) from error
