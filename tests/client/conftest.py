"""An API server that answers what a test tells it to, over real sockets."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from steersman.client.config import ClientConfig, Pem, TlsConfig
from steersman.client.http import HttpApi
from tests.harness.ca import CertificateAuthority, CertificatePair

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """A request as the server got it."""

    method: str
    path: str
    query: dict[str, str]
    headers: Any
    body: bytes
    certificate: str
    """The common name in the client's certificate."""
    socket: int
    """The client's port: two requests with one came over one connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Script:
    """Answers in order, and what was asked."""

    asked: list[Asked] = field(default_factory=list)
    answers: list[Handler] = field(default_factory=list)
    default: Handler | None = None
    url: str = ""

    def answer(
        self,
        body: Any = None,
        *,
        code: int = 200,
        headers: dict[str, str] | None = None,
        text: bytes | None = None,
    ) -> None:
        content = json.dumps({} if body is None else body).encode() if text is None else text

        async def handler(request: web.Request) -> web.StreamResponse:
            return web.Response(
                body=content, status=code, headers={"Content-Type": "application/json", **(headers or {})}
            )

        self.answers.append(handler)

    def refuse(self, code: int, reason: str, message: str = "no", **more: Any) -> None:
        headers = more.pop("headers", None)
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        self.answer({**status, "reason": reason, "message": message, **more}, code=code, headers=headers)

    def stream(self, *chunks: bytes, hold: bool = False, abort: bool = False) -> asyncio.Event:
        """A watch that sends these pieces, then ends, holds, or breaks off. Answers an event that
        is set when the client has gone."""
        gone = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            try:
                for chunk in chunks:
                    await response.write(chunk)
                if hold:
                    await asyncio.Event().wait()
                if abort:
                    assert request.transport is not None
                    request.transport.abort()
            finally:
                gone.set()
            return response

        self.answers.append(handler)
        return gone

    async def handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        peer = transport.get_extra_info("peercert")
        names = [value for part in (peer or {}).get("subject", ()) for key, value in part]
        self.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                request.headers,
                await request.read(),
                names[0] if names else "",
                transport.get_extra_info("peername")[1],
            )
        )
        if self.answers:
            return await self.answers.pop(0)(request)
        if self.default is not None:
            return await self.default(request)
        return web.Response(status=500, text="the test expected no such request")


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Script]:
    script = Script()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{tail:.*}", script.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    script.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield script
    finally:
        await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Script]:
    """A plain HTTP server."""
    async with serving() as script:
        yield script


@pytest.fixture
def waits() -> list[float]:
    """How long the client was going to wait before it asked again."""
    return []


@pytest.fixture
def client(server: Script, waits: list[float]) -> Callable[..., Any]:
    """Makes clients of the server that wait for nothing; a context manager closes them."""

    async def note(seconds: float) -> None:
        waits.append(seconds)

    def make(**options: Any) -> HttpApi:
        options.setdefault("qps", -1)
        config = options.pop("config", ClientConfig(server.url))
        return HttpApi(config, sleep=note, **options)

    return make


@pytest.fixture
async def api(client: Callable[..., HttpApi]) -> AsyncIterator[HttpApi]:
    async with client() as made:
        yield made


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    return CertificateAuthority("tests")


@pytest.fixture(scope="session")
def serving_pair(authority: CertificateAuthority) -> CertificatePair:
    return authority.serving(("localhost", "api.example"), ("127.0.0.1",))


@dataclass(frozen=True)
class Pki:
    """Files of an authority, a server and a client, and servers that use them."""

    home: Path
    authority: CertificateAuthority
    pair: CertificatePair

    def write(self, name: str, content: bytes) -> str:
        path = self.home / name
        path.write_bytes(content)
        return str(path)

    @property
    def ca(self) -> Pem:
        return Pem(data=self.authority.pair.cert)

    def tls(self, user: str = "") -> TlsConfig:
        if not user:
            return TlsConfig(ca=self.ca)
        pair = self.authority.client(user)
        return TlsConfig(ca=self.ca, cert=Pem(data=pair.cert), key=Pem(data=pair.key))

    def server_context(self, pair: CertificatePair | None = None) -> ssl.SSLContext:
        pair = pair or self.pair
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.write("server.pem", pair.cert + pair.key))
        context.load_verify_locations(cadata=self.authority.pair.cert.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


@pytest.fixture
def pki(tmp_path: Path, authority: CertificateAuthority, serving_pair: CertificatePair) -> Pki:
    return Pki(tmp_path, authority, serving_pair)


@pytest.fixture
def serve() -> Callable[..., Any]:
    """``async with serve(ssl_context) as script``: a server of the test's own."""
    return serving


LOOPS = frozenset(["test_connection", "test_connector", "test_transport"])
"""The modules whose tests run on both event loops: connections behave differently on them."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Let tests of connections run on uvloop, too, which the program uses."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in LOOPS:
        uvloop = pytest.importorskip("uvloop")
        loops["uvloop"] = uvloop.new_event_loop
    return loops
