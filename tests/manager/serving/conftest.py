"""A manager's door on loopback, an API server behind it, and somebody who asks."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from steersman.api.clock import RealClock
from steersman.api.prometheus import Registry
from steersman.client.certificates import load_certificate
from steersman.client.config import AuthInfo, ClientConfig, Pem, TlsConfig
from steersman.client.http import HttpApi
from steersman.client.round_trip import RequestAttempt
from steersman.manager.serving import serving_certs
from steersman.manager.serving.authentication import Authenticator
from steersman.manager.serving.authorization import AllowedPaths, Authorizer
from steersman.manager.serving.listener import HttpsListener, listen
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.routes import Routes
from steersman.manager.serving.tls import TlsContexts
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed
from steersman.server.auth.users import User
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.http.app import ApiServer
from steersman.server.server import Server


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Answered:
    """An answer as a client sees it."""

    status: int
    headers: Any
    body: str


@dataclass
class Client:
    """Asks at a port of this machine."""

    port: int
    session: aiohttp.ClientSession
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    """The newest that it speaks."""

    async def get(
        self,
        path: str,
        *,
        pair: CertificatePair | None = None,
        method: str = "GET",
        data: str = "",
        **headers: str,
    ) -> Answered:
        """Each time on a connection of its own, with a certificate where one is given."""
        context = ssl._create_unverified_context()
        context.maximum_version = self.version
        if pair is not None:
            load_certificate(context, pair.cert, pair.key)
        async with self.session.request(
            method,
            f"https://127.0.0.1:{self.port}{path}",
            headers={key.replace("_", "-"): value for key, value in headers.items()},
            ssl=context,
            data=data or None,
            allow_redirects=False,
        ) as answer:
            return Answered(answer.status, answer.headers, (await answer.read()).decode(errors="replace"))


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=("Accept",)) as session:
        yield session


@pytest.fixture
def asker(session: aiohttp.ClientSession) -> Callable[[int], Client]:
    """Who asks at a port."""
    return lambda port: Client(port, session)


@pytest.fixture
def authority() -> CertificateAuthority:
    """Whom clients are recognised by."""
    return CertificateAuthority(self_signed("clients", now()), now)


@pytest.fixture
def stranger() -> CertificateAuthority:
    """An authority nobody here trusts."""
    return CertificateAuthority(self_signed("strangers", now()), now)


@pytest.fixture
def routes() -> Routes:
    return Routes(metrics=lambda: b"a_metric 1\n", configz=dict, pages={}, profiling=True)


class Wound(RealClock):
    """A clock that somebody winds."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def wound() -> Wound:
    return Wound()


Opened = Callable[..., Awaitable[Client]]


@pytest.fixture
async def opened(routes: Routes, session: aiohttp.ClientSession) -> AsyncIterator[Opened]:
    """Opens a door, and answers with who asks at it."""
    doors: list[HttpsListener] = []
    clock = RealClock()

    async def open(
        authenticator: Authenticator | None = None,
        authorizer: Authorizer | None = None,
        contexts: TlsContexts | None = None,
    ) -> Client:
        authenticator = authenticator or Authenticator(clock)
        authorizer = authorizer or Authorizer(AllowedPaths(["/healthz"]))
        source = serving_certs.StaticCert(serving_certs.generate("127.0.0.1", now()))
        contexts = contexts or TlsContexts(source, request_certificates=authenticator.requests_certificates)
        listener = HttpsListener(
            listen("127.0.0.1", 0),
            contexts,
            authenticator,
            authorizer,
            routes,
            clock,
            ServingMetrics(Registry()),
        )
        doors.append(listener)
        await listener.open()
        return Client(listener.port, session)

    yield open
    for listener in doors:
        await listener.close()


@dataclass
class Plane:
    """An embedded API server with RBAC at a socket."""

    boot: Bootstrap
    edge: ApiServer
    asked: list[RequestAttempt] = field(default_factory=list)
    """What clients have asked of it."""

    def api(self, token: str) -> HttpApi:
        """A client of a token's holder."""
        tls = TlsConfig(ca=Pem(data=self.boot.authority.pair.cert))
        connection = ClientConfig(server=self.edge.url, tls=tls, user=AuthInfo(token=token))
        return HttpApi(connection, qps=0, on_request=self.asked.append)


TOKENS = {
    "admin": User("admin", groups=("system:masters",)),
    "manager": User("system:kube-controller-manager"),
    "monitor": User("monitor", groups=("system:monitoring",)),
    "nobody": User("nobody"),
}
"""Who has which token."""


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    boot = Bootstrap.generate(now)
    server = Server(RealClock())
    authorizer = bootstrap_server(server, client_ca=boot.authority.pair.cert)
    async with await boot.serve(server, authorizer, tokens=TOKENS) as edge:
        yield Plane(boot, edge)


@pytest.fixture
def expired() -> CertificateAuthority:
    """An authority whose certificates ended yesterday."""
    then = now() - timedelta(days=3)
    return CertificateAuthority(self_signed("clients", then), lambda: then, timedelta(days=2))
