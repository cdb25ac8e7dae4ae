"""A TLS failure says which side refuses the other, why, and the way out: for every verb that talks to a server."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from steersman.client.config import ClientConfig, Pem, TlsConfig
from steersman.client.http import HttpApi
from steersman.manager.node import _do
from steersman.manager.run import StartupError, wait_for_server
from steersman.manager.verb import parse
from steersman.manager.verbs import NODE
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed
from steersman.sim.nodes import NodeError

NOW = datetime.now(UTC)
LAST_YEAR = NOW - timedelta(days=400)


def authority(at: datetime = NOW, *, lifetime: timedelta = timedelta(days=30)) -> CertificateAuthority:
    return CertificateAuthority(self_signed("test", LAST_YEAR), lambda: at, lifetime)


OURS, THEIRS = authority(), authority()
PAST = CertificateAuthority(OURS.pair, lambda: LAST_YEAR, timedelta(days=30))
FUTURE = CertificateAuthority(OURS.pair, lambda: NOW + timedelta(days=2), timedelta(days=30))


class Case(NamedTuple):
    """The certificate of each side, and what is said."""

    serving: CertificatePair
    client: CertificatePair | None
    says: str
    verified: bool = True
    """Whether the server verifies clients in the handshake. kube-apiserver answers 401 instead."""


def serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Answer every request with 401. Unlike asyncio's servers, this tells a client why it is refused."""
    with suppress(OSError):
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=answer, args=(plain, context), daemon=True).start()


def answer(plain: socket.socket, context: ssl.SSLContext) -> None:
    with context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as secured:
        with suppress(OSError):
            secured.do_handshake()
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        with suppress(OSError):
            # A socket that is closed with something unread takes the alert back.
            socket.socket.shutdown(secured, socket.SHUT_WR)
            while socket.socket.recv(secured, 65536):
                pass


def here(issuer: CertificateAuthority) -> CertificatePair:
    return issuer.serving(("localhost",), ("127.0.0.1",))


CASES = {
    "the server's certificate has expired": Case(
        here(PAST),
        OURS.client("a"),
        "{server}: the server's certificate has expired; renew it on the server, or set the clock of this machine",
    ),
    "the server's certificate is of the future": Case(
        here(FUTURE),
        OURS.client("a"),
        "{server}: the server's certificate is not valid yet; renew it on the server, or set the clock",
    ),
    "the server's certificate is of an unknown authority": Case(
        here(THEIRS),
        OURS.client("a"),
        "{server}: the server's certificate is signed by an unknown authority; certificate-authority in the kubeconfig "
        "must hold the authority that signed it",
    ),
    "the server's certificate is for another name": Case(
        OURS.serving(("elsewhere.example",), ("192.0.2.1",)),
        OURS.client("a"),
        "{server}: the server's certificate is for another address; use a name that it holds as server in the "
        "kubeconfig, or as tls-server-name",
    ),
    "the client's certificate is of an unknown authority": Case(
        here(OURS),
        THEIRS.client("a"),
        "{server}: the server refuses our client certificate: the server does not know the authority that signed it; "
        "check client-certificate in the kubeconfig",
    ),
    "the client's certificate has expired": Case(
        here(OURS),
        PAST.client("a"),
        "{server}: the server refuses our client certificate: it has expired; renew it, or use another kubeconfig: the "
        "client certificate expired on ",
    ),
    "there is no client certificate": Case(
        here(OURS),
        None,
        "{server}: the server refuses our client certificate: there is none, and one is needed; check",
    ),
    "a 401 for a client certificate that has expired": Case(
        here(OURS),
        PAST.client("a"),
        "{server} does not accept the credentials (from the test): the client certificate expired on ",
        verified=False,
    ),
    "a 401 for one that is good": Case(
        here(OURS),
        OURS.client("a"),
        "{server} does not accept the credentials (from the test): are they expired?",
        verified=False,
    ),
}


async def by_run(config: ClientConfig) -> str:
    async with HttpApi(config) as api:
        with pytest.raises(StartupError) as caught:
            # A busy machine may take longer than the default for a handshake; the reason is what this is about.
            await wait_for_server(api, timeout=60.0)
    return str(caught.value)


async def by_node(config: ClientConfig) -> str:
    with pytest.raises(NodeError) as caught:
        await _do(config, parse(NODE, ["list"]))
    return str(caught.value)


@pytest.mark.parametrize("verb", [by_run, by_node])
@pytest.mark.parametrize("name", CASES)
async def test_a_failure_names_the_side_the_reason_and_the_way_out(
    name: str, verb: Callable[[ClientConfig], Awaitable[str]], tmp_path: Path
) -> None:
    case = CASES[name]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "pair").write_bytes(case.serving.cert + case.serving.key)
    context.load_cert_chain(tmp_path / "pair")
    if case.verified:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=OURS.pair.cert.decode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, context), daemon=True).start()
        server = f"https://127.0.0.1:{listener.getsockname()[1]}"
        cert, key = (case.client.cert, case.client.key) if case.client is not None else (b"", b"")
        tls = TlsConfig(ca=Pem(data=OURS.pair.cert), cert=Pem(data=cert), key=Pem(data=key))
        said = await verb(ClientConfig(server=server, tls=tls, origin="the test"))
    wanted = case.says.format(server=server)
    assert wanted in said
    assert said.startswith(server if "401" in name else f"no TLS connection (from the test): {server}: ")
    assert "\n" not in said
    assert "is `steersman up` running?" not in said
