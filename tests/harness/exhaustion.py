"""Attacks that try to use up the memory or the time of an API server, over loopback, bounded in count and time.

Each opens connections as clients with the administrator's certificate or without credentials, and leaves them as a
hostile client would: unread, unfinished or flooding. An attack returns its sockets; it lasts until they are closed.
"""

from __future__ import annotations

import json
import resource
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit

from steersman.client.config import ClientConfig
from tests.harness.raw_http import context

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CONNECT_TIMEOUT = 10.0
"""Seconds to connect, or to wait for an answer."""
SMALL_WINDOW = 4096
"""Bytes of the receive buffer of a client that does not read."""
MIB = 1024 * 1024


class Target(NamedTuple):
    """The API server under attack."""

    address: tuple[str, int]
    admin: ssl.SSLContext
    """TLS with the administrator's certificate."""
    anonymous: ssl.SSLContext

    @classmethod
    def of(cls, config: ClientConfig) -> Target:
        """The server of a kubeconfig."""
        url = urlsplit(config.server)
        anonymous = ssl.create_default_context(cadata=config.tls.ca.data.decode())
        return cls((url.hostname or "", url.port or 443), context(config), anonymous)

    def dial(self) -> socket.socket:
        """A TCP connection with a small receive buffer."""
        made = socket.socket()
        made.settimeout(CONNECT_TIMEOUT)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
        try:
            made.connect(self.address)
        except BaseException:
            made.close()
            raise
        return made

    def connect(self, tls: ssl.SSLContext | None = None) -> ssl.SSLSocket:
        """A TLS connection, by default the administrator's."""
        return (tls or self.admin).wrap_socket(self.dial(), server_hostname=self.address[0])

    def ask(self, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
        """The response to one request on a connection of its own."""
        with self.connect() as connection:
            connection.sendall(request(method, path, body, f"Connection: close\r\n{headers}"))
            received = bytearray()
            while piece := connection.recv(65536):
                received += piece
            return bytes(received)


def request(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """A whole request. ``headers`` are whole lines."""
    if body and "Content-Length" not in headers:
        headers += f"Content-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode() + body


def configmap(name: str, **data: str) -> bytes:
    """A ConfigMap as JSON."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return json.dumps(made).encode()


def seed(target: Target, count: int, size: int) -> None:
    """Create ConfigMaps of ``size`` bytes, which lists and watches are then full of."""
    with target.connect() as connection:
        for number in range(count):
            connection.sendall(request("POST", CONFIGMAPS, configmap(f"c-{number}", key="x" * size)))
            # All of it, in however many packets it comes: the rest of one would be taken for the next response.
            response = HTTPResponse(connection)
            response.begin()
            answer = response.read()
            assert response.status == 201, answer


def raise_file_limit() -> None:
    """Allow this process as many sockets as it may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# -- many connections -------------------------------------------------------------------------


Sockets = list[socket.socket]


def _each(count: int, act: Callable[[int], socket.socket | None]) -> Sockets:
    """Do something many times, eight at once. A connection that the server refuses is no failure."""

    def one(number: int) -> socket.socket | None:
        with suppress(OSError):
            return act(number)
        return None

    with ThreadPoolExecutor(8) as pool:
        return [made for made in pool.map(one, range(count)) if made is not None]


def _sent(target: Target, data: bytes, tls: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """A connection on which a request was sent whose response is never read."""
    connection = target.connect(tls)
    connection.setblocking(False)
    _push(connection, data)
    return connection


def _push(connection: socket.socket, data: bytes) -> int:
    """Send as much as the server takes; the bytes that were sent."""
    sent = 0
    # The server may pause, or close the connection.
    with suppress(OSError):
        while sent < len(data):
            sent += connection.send(data[sent : sent + 16384])
    return sent


def _drain(connection: ssl.SSLSocket) -> None:
    connection.setblocking(False)
    with suppress(ssl.SSLWantReadError):
        while connection.recv(65536):
            pass
    connection.settimeout(CONNECT_TIMEOUT)


def _flood(connections: Sequence[socket.socket], piece: bytes, rounds: int) -> None:
    """Send a piece on each connection, again and again."""
    for _ in range(rounds):
        for connection in connections:
            _push(connection, piece)


def close(sockets: Iterable[socket.socket]) -> None:
    """End an attack."""
    for each in sockets:
        each.close()


# -- attacks ----------------------------------------------------------------------------------


def unread_lists(target: Target, count: int) -> Sockets:
    """Clients that list everything and read nothing."""
    return _each(count, lambda _: _sent(target, request("GET", CONFIGMAPS)))


def unread_watches(target: Target, count: int) -> Sockets:
    """Clients that watch from the current objects on and read nothing, while objects change."""
    held = _each(count, lambda _: _sent(target, request("GET", f"{CONFIGMAPS}?watch=1")))
    _write(target, 50)
    return held


def watches(target: Target, count: int) -> Sockets:
    """Clients that watch, while objects change."""
    path = f"{CONFIGMAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    held = _each(count, lambda _: _sent(target, request("GET", path)))
    _write(target, 5)
    return held


def _write(target: Target, count: int) -> None:
    with suppress(OSError), target.connect() as connection:
        for number in range(count):
            body = configmap("c-0", key="y" * 1000, number=str(number))
            connection.sendall(request("PUT", f"{CONFIGMAPS}/c-0", body))
            connection.recv(65536)


def pipelines(target: Target, count: int) -> Sockets:
    """Clients that send thousands of requests and read no response."""
    many = request("GET", f"{CONFIGMAPS}/c-1") * 200 + request("GET", "/readyz") * 2000
    held = _each(count, lambda _: _sent(target, many))
    _flood(held, many, 3)
    return held


def silent_connections(target: Target, count: int) -> Sockets:
    """Clients that connect and send nothing."""
    return _each(count, lambda _: target.dial())


def unfinished_handshakes(target: Target, count: int) -> Sockets:
    """Clients that begin a TLS handshake and do not finish it."""
    hello = _client_hello(target)

    def begin(number: int) -> socket.socket:
        made = target.dial()
        # Half of them get an answer that they do not go on with.
        made.sendall(hello if number % 2 else hello[: len(hello) // 2])
        return made

    return _each(count, begin)


def _client_hello(target: Target) -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = target.anonymous.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=target.address[0])
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def unfinished_heads(target: Target, count: int) -> Sockets:
    """Clients without credentials that send 200 KiB of headers and never the last line."""
    head = request("GET", "/readyz", headers=_headers(200))[:-4]
    return _each(count, lambda _: _sent(target, head, target.anonymous))


def _headers(kib: int) -> str:
    return "".join(f"X-{number}: {'h' * 1000}\r\n" for number in range(kib))


def large_heads(target: Target, count: int) -> Sockets:
    """Clients that watch, with 200 KiB of headers."""
    head = request("GET", f"{CONFIGMAPS}?watch=1", headers=_headers(200))
    return _each(count, lambda _: _sent(target, head))


def unfinished_bodies(target: Target, count: int) -> Sockets:
    """Clients that send nearly all of a body of 2.9 MB, and then nothing."""
    body = request("POST", CONFIGMAPS, b"x" * 2_900_000)[:-1000]
    held = _each(count, lambda _: _sent(target, body))
    _flood(held, b"x" * 100, 2)
    return held


def endless_bodies(target: Target, count: int) -> Sockets:
    """Clients that send bodies without end, to paths that want one, want none, or stream."""
    paths = (
        ("POST", CONFIGMAPS),
        ("GET", "/readyz"),
        ("GET", f"{CONFIGMAPS}?watch=1"),
        ("DELETE", f"{CONFIGMAPS}/none"),
        ("POST", "/nowhere"),
    )

    def begin(number: int) -> socket.socket:
        method, path = paths[number % len(paths)]
        framing = "Transfer-Encoding: chunked" if number % 2 else "Content-Length: 999999999999999999"
        return _sent(target, request(method, path, headers=f"{framing}\r\n"))

    held = _each(count, begin)
    _flood(held, b"4000\r\n" + b"x" * 0x4000 + b"\r\n", 20)
    return held


def large_bodies(target: Target, count: int) -> Sockets:
    """Clients that send whole bodies of 2.9 MB, all at once, and read no response."""
    body = request("POST", f"{CONFIGMAPS}?dryRun=All", configmap("large", key="x" * 2_900_000))
    return _each(count, lambda _: _sent_slowly(target, body))


def _sent_slowly(target: Target, data: bytes) -> ssl.SSLSocket:
    """A connection on which all of a request was sent, as fast as the server takes it."""
    connection = target.connect()
    with suppress(OSError):
        connection.sendall(data)
    return connection


def large_yaml(target: Target, count: int) -> Sockets:
    """Clients that send YAML of 2.9 MB, of as many nodes as are allowed."""
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n" + b"".join(
        b"  key-%d: %s\n" % (number, b"v" * 20) for number in range(80_000)
    )
    body = request("POST", f"{CONFIGMAPS}?dryRun=All", text, "Content-Type: application/yaml\r\n")
    return _each(count, lambda _: _sent_slowly(target, body))


def churn(target: Target, count: int) -> Sockets:
    """Clients that connect, ask for nothing, and leave."""

    def once(_: int) -> None:
        target.connect(target.anonymous).close()

    return _each(count, once)


def _asked(target: Target, requests: Iterator[bytes], tls: ssl.SSLContext | None = None) -> None:
    """Send requests on a few connections and read what comes back."""
    with suppress(OSError), target.connect(tls) as connection:
        for each in requests:
            connection.sendall(each)
            connection.recv(65536)
            _drain(connection)


def distinct_selectors(target: Target, count: int) -> Sockets:
    """Lists with selectors, field selectors and Accept headers that are all different and long."""

    def each(number: int) -> Iterator[bytes]:
        for n in range(number, count, 8):
            values = ",".join(f"v{n}-{i}" for i in range(400))
            accept = f"Accept: application/json;x={n}{'a' * 5000}\r\n"
            yield request("GET", f"{CONFIGMAPS}?limit=1&labelSelector=k{n}%20in%20({values})", headers=accept)
            yield request("GET", f"{CONFIGMAPS}?limit=1&fieldSelector=metadata.name%3D{n}{'f' * 5000}")

    return _each(8, lambda number: _asked(target, each(number)))


def refused_requests(target: Target, count: int) -> Sockets:
    """Requests without credentials, and with wrong ones, for paths and resources that are all different and long."""

    def each(number: int) -> Iterator[bytes]:
        for n in range(number, count, 8):
            yield request("GET", f"/p{n}/{'p' * 200_000}")
            yield request("GET", f"/apis/g{n}{'g' * 200_000}/v1/things")
            yield request("GET", f"/api/v1/namespaces/n{n}/pods/p/{'s' * 200_000}")
            yield request("GET", "/api/v1/pods", headers=f"Authorization: Bearer {n}{'t' * 5000}\r\n")

    return _each(8, lambda number: _asked(target, each(number), target.anonymous))


def long_names(target: Target, count: int) -> Sockets:
    """Writes of objects that are refused, with labels of a megabyte that are all different."""

    def each(number: int) -> Iterator[bytes]:
        for n in range(number, count, 8):
            metadata = {"generateName": f"g{n}{'g' * MIB}", "labels": {f"k{n}": f"{n}{'v' * MIB}"}}
            body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).encode()
            yield request("POST", f"{CONFIGMAPS}?dryRun=All", body)

    return _each(8, lambda number: _asked(target, each(number)))


class Attack(NamedTuple):
    """One attack, and its size."""

    run: Callable[[Target, int], Sockets]
    size: int
    """How many connections or requests at full size."""
    reduced: int
    """The same in the test suite."""

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ")


ATTACKS = (
    Attack(unread_lists, 500, 60),
    Attack(unread_watches, 500, 60),
    Attack(watches, 10_000, 200),
    Attack(pipelines, 500, 30),
    Attack(silent_connections, 10_000, 3000),
    Attack(unfinished_handshakes, 10_000, 3000),
    Attack(unfinished_heads, 2000, 250),
    Attack(large_heads, 1000, 200),
    Attack(unfinished_bodies, 500, 60),
    Attack(endless_bodies, 1000, 100),
    Attack(large_bodies, 200, 40),
    Attack(large_yaml, 50, 3),
    Attack(churn, 3000, 100),
    Attack(distinct_selectors, 5000, 200),
    Attack(refused_requests, 2000, 300),
    Attack(long_names, 1000, 80),
)


def ceiling(idle: int) -> int:
    """Bytes of memory that an API server may take under any attack, given those it takes at rest."""
    return 2 * idle + 64 * MIB
