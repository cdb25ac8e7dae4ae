"""Connection pools, shared by clients of one TLS identity and replaced when certificates change.

Certificate files are checked when a request is about to be sent, at most once a second. When their content has
changed, new requests use a new pool, and the old pool is closed once its last request is done, so that no request
is cut off. While a file is half written, the old pool stays in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from steersman.client.auth import Credential
from steersman.client.config import ClientConfig, ConfigError, ExecPlugin, TlsConfig
from steersman.client.connection import Connection
from steersman.client.connector import Connector
from steersman.client.tls import TlsMaterial, client_context, file_versions, load_material, pem_files

log = logging.getLogger(__name__)

RELOAD_INTERVAL = 1.0
"""Seconds between checks of the certificate files."""
IDLE_TIMEOUT = 60.0
"""Seconds an idle connection is kept.

The server closes idle connections after 90 seconds; closing them earlier makes it rare that a request is sent on a
connection that is just being closed.
"""


class TransportKey(msgspec.Struct, frozen=True):
    """The settings that two clients must share to use the same connections."""

    server: str
    tls: TlsConfig
    plugin: ExecPlugin | None
    """Plugins may provide client certificates, so connections of two plugins are never mixed."""
    proxy: str
    secure: bool

    @classmethod
    def of(cls, config: ClientConfig) -> TransportKey:
        return cls(config.server, config.tls, config.user.plugin, config.proxy, config.secure)


class ConcurrencyLimit:
    """At most ``limit`` requests at once, first come, first served; starting from ``initial`` after each idle period.

    A socket is opened for every request that finds none idle. A hundred requests out of the blue would mean a
    hundred TLS handshakes at once, to a server that may just be coming back. So the limit starts low, and each
    request that completes while others wait raises it by one. A burst of a hundred then gets by with half the
    sockets; a lasting load still reaches the full limit.
    """

    def __init__(self, initial: int = 8, limit: int = 100) -> None:
        self._initial = initial
        self._limit = limit
        self._allowed = initial
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._active < self._allowed and not self._waiting:
            self._active += 1
            return
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.append(admitted)
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                # Admitted and cancelled in the same step: the slot goes to the next in line.
                self._active -= 1
                self._admit()
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._active -= 1
        if self._waiting:
            self._allowed = min(self._allowed + 1, self._limit)
            self._admit()
        elif not self._active:
            self._allowed = self._initial

    def _admit(self) -> None:
        while self._waiting and self._active < self._allowed:
            admitted = self._waiting.popleft()
            if not admitted.done():
                admitted.set_result(None)
                self._active += 1


class ConnectionPool:
    """Connections to one server with one SSL context. Idle ones are used again, the latest first."""

    def __init__(self, key: TransportKey, material: TlsMaterial, limit: int) -> None:
        self.material = material
        self.users = 0
        context = client_context(material, key.tls) if key.secure else None
        self.connector = Connector(key.server, context, key.tls.server_name, key.proxy)
        # Watches are long and do not count: those of a hundred kinds would leave no room for requests.
        self.concurrency = ConcurrencyLimit(limit=limit)
        self.closed = False
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        """In the order in which they became idle."""
        self._sweep: asyncio.TimerHandle | None = None

    async def connection(self) -> Connection:
        """Return a connection for one request. Raises `NotConnected`."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        connection = await self.connector.connect(self.take_back)
        if self.closed:
            connection.abort()
        else:
            self._open.add(connection)
        return connection

    def close(self) -> None:
        """Close all connections. Requests that are under way fail."""
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in tuple(self._open):
            connection.abort()
        self._open.clear()

    def take_back(self, connection: Connection) -> None:
        """Take back a connection whose response is complete; forget one that is lost."""
        if connection.usable and not self.closed:
            self._idle.append(connection)
            if self._sweep is None:
                self._sweep = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._close_idle)
            return
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _close_idle(self) -> None:
        """Close the connections that were idle for long."""
        self._sweep = None
        loop = asyncio.get_running_loop()
        longest = loop.time() - IDLE_TIMEOUT
        for connection in [each for each in self._idle if each.idle_since <= longest]:
            connection.abort()
        if self._idle:
            self._sweep = loop.call_at(self._idle[0].idle_since + IDLE_TIMEOUT, self._close_idle)


class Transport:
    """The current connection pool of one `TransportKey`."""

    def __init__(self, key: TransportKey, limit: int, reloads: Counter[tuple[str, str]]) -> None:
        self._key = key
        self._limit = limit
        self._reloads = reloads
        self._files = pem_files(key.tls)
        self._stamp = file_versions(self._files)
        self._checked = float("-inf")
        self._pool: ConnectionPool | None = None
        self._retired: list[ConnectionPool] = []
        self.clients = 0

    @contextmanager
    def pool(self, credential: Credential) -> Iterator[ConnectionPool]:
        """Return the current pool, which stays open until the context is left.

        Raises `ConfigError` if the certificates have never been usable.
        """
        pool = self._current(credential)
        pool.users += 1
        try:
            yield pool
        finally:
            pool.users -= 1
            if self._retired:
                self._sweep()

    def close(self) -> None:
        """Close all pools, including those in use."""
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired, self._pool = [], None
        for pool in pools:
            pool.close()

    def _sweep(self) -> None:
        """Close replaced pools that are no longer in use."""
        idle = [pool for pool in self._retired if not pool.users]
        self._retired = [pool for pool in self._retired if pool.users]
        for pool in idle:
            pool.close()

    def _current(self, credential: Credential) -> ConnectionPool:
        pool = self._pool
        if pool is None:
            material = load_material(self._key.tls, credential.cert, credential.key)
            return self._renew(material)
        if not self._changed(pool, credential):
            return pool
        try:
            material = load_material(self._key.tls, credential.cert, credential.key)
            if material == pool.material:
                self._reloads["success", "unchanged"] += 1
                return pool
            renewed = self._renew(material)
        except ConfigError as error:
            # A file is half written, or missing for a moment: keep the current pool, and check again soon.
            self._stamp = ()
            self._reloads["failure", "read_error"] += 1
            log.warning("keeping the certificates in use: %s", error.message)
            return pool
        self._reloads["success", "updated"] += 1
        log.info("certificates changed: new connections use the new ones")
        return renewed

    def _changed(self, pool: ConnectionPool, credential: Credential) -> bool:
        if self._key.plugin is not None and credential.cert != pool.material.cert:
            return True
        if not self._files:
            return False
        now = asyncio.get_running_loop().time()
        if now - self._checked < RELOAD_INTERVAL:
            return False
        self._checked = now
        current = file_versions(self._files)
        if current == self._stamp:
            return False
        self._stamp = current
        return True

    def _renew(self, material: TlsMaterial) -> ConnectionPool:
        pool = ConnectionPool(self._key, material, self._limit)
        old, self._pool = self._pool, pool
        if old is not None:
            self._retired.append(old)
        return pool


class TransportCache:
    """The transports of all clients derived from one another, one for each `TransportKey`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_key: dict[TransportKey, Transport] = {}
        self.hits = 0
        """Clients that found an existing transport."""
        self.misses = 0
        self.reloads: Counter[tuple[str, str]] = Counter()
        """Reloads of certificate files, by result and reason."""

    def __len__(self) -> int:
        return len(self._by_key)

    def acquire(self, config: ClientConfig) -> Transport:
        """Return the transport of a client, creating it for the first one."""
        key = TransportKey.of(config)
        transport = self._by_key.get(key)
        if transport is None:
            self.misses += 1
            transport = self._by_key[key] = Transport(key, self._limit, self.reloads)
        else:
            self.hits += 1
        transport.clients += 1
        return transport

    def release(self, config: ClientConfig) -> None:
        """Release the transport of a client; the last client closes it."""
        key = TransportKey.of(config)
        transport = self._by_key[key]
        transport.clients -= 1
        if not transport.clients:
            del self._by_key[key]
            transport.close()
