"""The sockets: pooled, shared by clients of one TLS identity, renewed when certificates change.

Certificate files are looked at once a second at most, when a request is about to go out. When their
content is new, requests go to a new pool and the old one is closed as soon as nobody uses it, so no
request is cut off. Files that are half written keep the old pool in use until they are whole.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import aiohttp
import msgspec
from aiohttp.connector import Connection as Connector

from steersman.client.auth import Credential
from steersman.client.concurrency import Turns
from steersman.client.connection import ConfigError, Connection, Plugin, Tls
from steersman.client.tls import Material, context, files, gather, stamp

log = logging.getLogger(__name__)

CHECK = 1.0
"""Seconds between looks at certificate files."""
CONNECT = 30.0
"""Seconds to reach the server; as upstream's dialer."""
KEEPALIVE = 60.0
"""Seconds an idle socket is kept: less than the 90 after which the server closes it, so that a
request rarely meets a socket that is just being closed."""
UNHEARD = 5.0
"""Seconds that what was sent may go unacknowledged before the socket is given up. The system would go on
sending for a quarter of an hour, and a write must not arrive long after its sender has stopped leading."""

SENDING: ContextVar[Callable[[], None]] = ContextVar("sending", default=lambda: None)
"""Called by a request when its socket is connected and nothing is sent yet; raises if nothing shall be."""


class Identity(msgspec.Struct, frozen=True):
    """What makes two clients' sockets interchangeable."""

    tls: Tls
    plugin: Plugin | None
    """Plugins may hand out certificates, so sockets of two plugins are never mixed."""
    proxy: str
    secure: bool

    @classmethod
    def of(cls, connection: Connection) -> Identity:
        return cls(connection.tls, connection.user.plugin, connection.proxy, connection.secure)


class Pool:
    """Sockets made with one SSL context: some to share for requests, one more for each watch."""

    def __init__(self, identity: Identity, material: Material, limit: int) -> None:
        self.material = material
        self.users = 0
        self.options: dict[str, Any] = {}
        if identity.secure:
            self.options["ssl"] = context(material, identity.tls)
        if identity.tls.server_name:
            self.options["server_hostname"] = identity.tls.server_name
        if identity.proxy:
            self.options["proxy"] = identity.proxy
        self.turns = Turns(most=limit)
        self.requests = _session()
        # Watches last. They take no turns: a hundred kinds would leave none for requests.
        self.watches = _session()

    async def close(self) -> None:
        await self.requests.close()
        await self.watches.close()


class Transport:
    """The current pool of one identity."""

    def __init__(self, identity: Identity, limit: int, reloads: Counter[tuple[str, str]]) -> None:
        self._identity = identity
        self._limit = limit
        self._reloads = reloads
        self._files = files(identity.tls)
        self._stamp = stamp(self._files)
        self._checked = float("-inf")
        self._pool: Pool | None = None
        self._retired: list[Pool] = []
        self.clients = 0

    @asynccontextmanager
    async def pool(self, credential: Credential) -> AsyncIterator[Pool]:
        """The sockets to use now, kept open for as long as they are in use.

        Raises `ConfigError` where the certificates have never been usable.
        """
        pool = self._current(credential)
        pool.users += 1
        try:
            yield pool
        finally:
            pool.users -= 1
            if self._retired:
                await self._sweep()

    async def close(self) -> None:
        """Close everything, also what is in use."""
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired, self._pool = [], None
        for pool in pools:
            await pool.close()

    async def _sweep(self) -> None:
        """Close what was replaced and is no longer used."""
        idle = [pool for pool in self._retired if not pool.users]
        self._retired = [pool for pool in self._retired if pool.users]
        for pool in idle:
            await pool.close()

    def _current(self, credential: Credential) -> Pool:
        pool = self._pool
        if pool is None:
            material = gather(self._identity.tls, credential.cert, credential.key)
            return self._renew(material)
        if not self._changed(pool, credential):
            return pool
        try:
            material = gather(self._identity.tls, credential.cert, credential.key)
            if material == pool.material:
                self._reloads["success", "unchanged"] += 1
                return pool
            renewed = self._renew(material)
        except ConfigError as error:
            # Half written, or gone for a moment: look again soon, and go on with what works.
            self._stamp = ()
            self._reloads["failure", "read_error"] += 1
            log.warning("keeping the certificates in use: %s", error.message)
            return pool
        self._reloads["success", "updated"] += 1
        log.info("certificates changed: new connections use the new ones")
        return renewed

    def _changed(self, pool: Pool, credential: Credential) -> bool:
        if self._identity.plugin is not None and credential.cert != pool.material.cert:
            return True
        if not self._files:
            return False
        now = asyncio.get_running_loop().time()
        if now - self._checked < CHECK:
            return False
        self._checked = now
        current = stamp(self._files)
        if current == self._stamp:
            return False
        self._stamp = current
        return True

    def _renew(self, material: Material) -> Pool:
        pool = Pool(self._identity, material, self._limit)
        old, self._pool = self._pool, pool
        if old is not None:
            self._retired.append(old)
        return pool


class Transports:
    """One transport for each identity, for all clients derived from one another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_identity: dict[Identity, Transport] = {}
        self.hits = 0
        """Clients whose sockets were there already."""
        self.misses = 0
        self.reloads: Counter[tuple[str, str]] = Counter()
        """Certificates that were read anew, by result and reason."""

    def __len__(self) -> int:
        return len(self._by_identity)

    def acquire(self, connection: Connection) -> Transport:
        identity = Identity.of(connection)
        transport = self._by_identity.get(identity)
        if transport is None:
            self.misses += 1
            transport = self._by_identity[identity] = Transport(identity, self._limit, self.reloads)
        else:
            self.hits += 1
        transport.clients += 1
        return transport

    async def release(self, connection: Connection) -> None:
        """One client less; the last one closes the sockets."""
        identity = Identity.of(connection)
        transport = self._by_identity[identity]
        transport.clients -= 1
        if not transport.clients:
            del self._by_identity[identity]
            await transport.close()


class _Request(aiohttp.ClientRequest):
    """Asks once more before it is sent: getting a connection may take long."""

    async def send(self, conn: Connector) -> aiohttp.ClientResponse:
        SENDING.get()()
        return await super().send(conn)


def _session() -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        request_class=_Request,
        connector=aiohttp.TCPConnector(
            # No limit here: aiohttp lets newcomers overtake those who wait.
            limit=0,
            keepalive_timeout=KEEPALIVE,
            socket_factory=_socket,
            ttl_dns_cache=30,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
        # Warnings and audit annotations come in headers, and can be long.
        max_line_size=65536,
        max_field_size=65536,
    )
    # aiohttp would send a PUT or DELETE a second time when the socket breaks, and has no switch
    # for it. Whether a write may be repeated is the caller's to decide.
    session._retry_connection = False
    return session


def _socket(address: Any) -> socket.socket:
    """A socket that notices within a minute or so when the other end is gone without a word."""
    family, type_, protocol = address[:3]
    made = socket.socket(family, type_, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    unheard = ("TCP_USER_TIMEOUT", round(UNHEARD * 1000))
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 2), unheard):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
