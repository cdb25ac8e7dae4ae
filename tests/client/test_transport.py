from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import Unreachable
from steersman.api.kinds import PODS
from steersman.client import transport
from steersman.client.auth import StaticAuth
from steersman.client.config import AuthInfo, ClientConfig, ExecPlugin, Pem, TlsConfig
from steersman.client.http import HttpApi
from tests.harness.ca import CertificateAuthority

POD = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "5"}}

ENCRYPTED = b"""-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,2E9B3CBE3F9D2CCB9D0F1D1B5B6A5A7C

AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
-----END RSA PRIVATE KEY-----
"""


def client(url: str, tls: TlsConfig, **more: Any) -> HttpApi:
    return HttpApi(ClientConfig(url, tls=tls, **more), qps=-1)


async def ask(api: HttpApi, server: Any) -> Any:
    """One request; what the server saw of it."""
    server.answer(POD)
    await api.get(PODS, "n", "a")
    return server.asked[-1]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at certificate files for every request, rather than once a second."""
    monkeypatch.setattr(transport, "RELOAD_INTERVAL", 0.0)


# -- trust ------------------------------------------------------------------------------------


async def test_a_server_vouched_for_by_the_authority_is_trusted(pki: Any, serve: Callable[..., Any]) -> None:
    async with serve(pki.server_context()) as server, client(server.url, pki.tls()) as api:
        assert (await ask(api, server)).path == "/api/v1/namespaces/n/pods/a"


async def test_a_client_certificate_says_who_we_are(pki: Any, serve: Callable[..., Any]) -> None:
    async with serve(pki.server_context()) as server, client(server.url, pki.tls("jane")) as api:
        assert (await ask(api, server)).certificate == "jane"


async def test_a_certificate_may_be_for_a_name_we_were_told(pki: Any, serve: Callable[..., Any]) -> None:
    pair = pki.authority.serving(("api.example",), ())
    tls = replace(pki.tls(), server_name="api.example")
    async with serve(pki.server_context(pair)) as server, client(server.url, tls) as api:
        await ask(api, server)


async def test_without_checks_any_server_will_do(pki: Any, serve: Callable[..., Any]) -> None:
    async with serve(pki.server_context()) as server, client(server.url, TlsConfig(insecure=True)) as api:
        await ask(api, server)


async def test_the_servers_own_certificate_can_be_the_one_to_trust(
    pki: Any, serve: Callable[..., Any]
) -> None:
    tls = TlsConfig(ca=Pem(data=pki.pair.cert))
    async with serve(pki.server_context()) as server, client(server.url, tls) as api:
        await ask(api, server)


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        (
            lambda pki: TlsConfig(ca=Pem(data=CertificateAuthority("other").pair.cert)),
            "signed by an unknown authority",
        ),
        (lambda pki: replace(pki.tls(), server_name="wrong.example"), "is for another host name"),
        (lambda pki: TlsConfig(), "signed by an unknown authority"),
    ],
)
async def test_a_server_that_cannot_be_trusted_is_one_line_with_the_way_out(
    pki: Any, serve: Callable[..., Any], tls: Any, says: str
) -> None:
    async with serve(pki.server_context()) as server, client(server.url, tls(pki)) as api:
        with pytest.raises(Unreachable, match=says) as caught:
            await api.create(PODS.untyped, "n", POD)
    assert caught.value.message.startswith(f"{server.url}: the server's certificate is")
    assert "in the kubeconfig" in caught.value.message
    assert "\n" not in caught.value.message
    assert not caught.value.uncertain
    assert server.asked == []


async def test_tls_to_a_server_that_speaks_none_is_said_in_one_line(pki: Any, server: Any) -> None:
    url = server.url.replace("http://", "https://")
    async with client(url, pki.tls()) as api:
        with pytest.raises(Unreachable, match="does not speak TLS; is it an http:// server"):
            await api.get(PODS, "n", "a")


async def test_plain_http_to_a_tls_server_is_an_error(pki: Any, serve: Callable[..., Any]) -> None:
    async with serve(pki.server_context()) as server:
        api = client(server.url.replace("https://", "http://"), TlsConfig())
        with pytest.raises(Unreachable):
            await api.create(PODS.untyped, "n", POD)
        await api.close()


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        (lambda pki: TlsConfig(ca=Pem(path=str(pki.home / "gone"))), "gone: no such file or directory"),
        (
            lambda pki: TlsConfig(ca=Pem(data=b"nonsense")),
            "certificate-authority-data: holds no PEM certificate",
        ),
        (
            lambda pki: TlsConfig(ca=Pem(path=pki.write("ca", b"nonsense"))),
            "ca: holds no PEM certificate",
        ),
        (
            lambda pki: replace(pki.tls("jane"), key=pki.tls("joe").key),
            "client-certificate-data: not a PEM certificate with the unencrypted key",
        ),
        (lambda pki: replace(pki.tls("jane"), key=Pem(data=ENCRYPTED)), "unencrypted key"),
    ],
)
async def test_certificates_that_cannot_be_used_are_one_line(pki: Any, tls: Any, says: str) -> None:
    async with client("https://127.0.0.1:1", tls(pki)) as api:
        with pytest.raises(Unreachable, match=says) as caught:
            await api.get(PODS, "n", "a")
    assert "\n" not in caught.value.message
    assert "PRIVATE" not in caught.value.message


# -- change -----------------------------------------------------------------------------------


def user_files(pki: Any, user: str) -> None:
    """Write a client's certificate and key, the key first, as tools that renew them do."""
    pair = pki.authority.client(user)
    pki.write("client.key", pair.key)
    pki.write("client.crt", pair.cert)


def in_files(pki: Any) -> TlsConfig:
    return TlsConfig(
        ca=Pem(path=pki.write("ca.crt", pki.authority.pair.cert)),
        cert=Pem(path=str(pki.home / "client.crt")),
        key=Pem(path=str(pki.home / "client.key")),
    )


@pytest.mark.usefixtures("eager")
async def test_a_renewed_client_certificate_is_used_for_the_next_request(
    pki: Any, serve: Callable[..., Any]
) -> None:
    user_files(pki, "jane")
    async with serve(pki.server_context()) as server, client(server.url, in_files(pki)) as api:
        before = await ask(api, server)
        again = await ask(api, server)
        user_files(pki, "joe")
        after = await ask(api, server)
    assert (before.certificate, after.certificate) == ("jane", "joe")
    assert before.socket == again.socket != after.socket


@pytest.mark.usefixtures("eager")
async def test_files_written_again_with_the_same_content_change_nothing(
    pki: Any, serve: Callable[..., Any]
) -> None:
    user_files(pki, "jane")
    async with serve(pki.server_context()) as server, client(server.url, in_files(pki)) as api:
        before = await ask(api, server)
        for name in ("client.crt", "client.key"):
            path = pki.home / name
            fresh = pki.write(f"{name}.new", path.read_bytes())
            os.replace(fresh, path)
        assert (await ask(api, server)).socket == before.socket


@pytest.mark.usefixtures("eager")
async def test_half_written_certificates_leave_the_old_ones_in_use_until_they_are_whole(
    pki: Any, serve: Callable[..., Any]
) -> None:
    user_files(pki, "jane")
    async with serve(pki.server_context()) as server, client(server.url, in_files(pki)) as api:
        await ask(api, server)
        pair = pki.authority.client("joe")
        pki.write("client.key", pair.key)
        assert (await ask(api, server)).certificate == "jane"
        (pki.home / "client.crt").unlink()
        assert (await ask(api, server)).certificate == "jane"
        pki.write("client.crt", pair.cert)
        assert (await ask(api, server)).certificate == "joe"


@pytest.mark.usefixtures("eager")
async def test_a_renewed_authority_is_trusted_and_the_old_one_no_longer(
    pki: Any, serve: Callable[..., Any]
) -> None:
    other = CertificateAuthority("other")
    tls = TlsConfig(ca=Pem(path=pki.write("ca.crt", pki.authority.pair.cert)))
    async with serve(pki.server_context()) as server, client(server.url, tls) as api:
        await ask(api, server)
        pki.write("ca.crt", other.pair.cert)
        with pytest.raises(Unreachable, match="unknown authority"):
            await api.get(PODS, "n", "a")
        pki.write("ca.crt", other.pair.cert + pki.authority.pair.cert)
        await ask(api, server)


@pytest.mark.usefixtures("eager")
async def test_what_is_under_way_goes_on_over_the_old_sockets_which_close_after_it(
    pki: Any, serve: Callable[..., Any]
) -> None:
    user_files(pki, "jane")
    event = json.dumps({"type": "ADDED", "object": POD}).encode() + b"\n"
    async with serve(pki.server_context()) as server, client(server.url, in_files(pki)) as api:
        await ask(api, server)
        gone = server.stream(event, hold=True)
        watch = api.watch(PODS)
        await anext(watch)
        user_files(pki, "joe")
        await ask(api, server)
        assert not gone.is_set(), "the watch was opened with the old certificate and goes on"
        [old] = api._shared.transports._by_key.values()
        assert len(old._retired) == 1
        await watch.aclose()  # type: ignore[attr-defined]
        assert old._retired == []
        async with asyncio.timeout(5):
            await gone.wait()


async def test_files_are_not_looked_at_for_every_request(pki: Any, serve: Callable[..., Any]) -> None:
    user_files(pki, "jane")
    async with serve(pki.server_context()) as server, client(server.url, in_files(pki)) as api:
        await ask(api, server)
        await ask(api, server)
        user_files(pki, "joe")
        assert (await ask(api, server)).certificate == "jane"


# -- plugins and sharing ----------------------------------------------------------------------

SCRIPT = """
import json, sys
cert, key = (open(f"{sys.argv[1]}/plugin.{end}").read() for end in ("crt", "key"))
status = {"clientCertificateData": cert, "clientKeyData": key}
print(json.dumps({"apiVersion": sys.argv[2], "kind": "ExecCredential", "status": status}))
"""


async def test_a_plugins_certificate_is_shown_and_renewed_when_refused(
    pki: Any, serve: Callable[..., Any]
) -> None:
    def issue(user: str) -> None:
        pair = pki.authority.client(user)
        pki.write("plugin.crt", pair.cert)
        pki.write("plugin.key", pair.key)

    version = "client.authentication.k8s.io/v1"
    script = pki.write("plugin.py", SCRIPT.encode())
    plugin = ExecPlugin(sys.executable, version, args=(script, str(pki.home), version), interactive="Never")
    issue("jane")
    user = AuthInfo(plugin=plugin)
    async with serve(pki.server_context()) as server, client(server.url, pki.tls(), user=user) as api:
        assert (await ask(api, server)).certificate == "jane"
        issue("joe")
        server.refuse(401, "Unauthorized")
        assert (await ask(api, server)).certificate == "joe"


async def test_a_client_for_another_identity_does_not_show_our_certificate(
    pki: Any, serve: Callable[..., Any]
) -> None:
    async with serve(pki.server_context()) as server, client(server.url, pki.tls("jane")) as api:
        ours = await ask(api, server)
        async with (
            api.acting_as(StaticAuth("Bearer t"), "a") as one,
            api.acting_as(StaticAuth("Bearer u"), "b") as two,
        ):
            first, second = await ask(one, server), await ask(two, server)
    assert (ours.certificate, first.certificate) == ("jane", "")
    assert first.headers["Authorization"] == "Bearer t"
    assert second.headers["Authorization"] == "Bearer u"
    assert first.socket == second.socket != ours.socket


async def test_the_last_client_closes_the_sockets(server: Any) -> None:
    api = client(server.url, TlsConfig())
    other = api.with_user_agent("x")
    await ask(api, server)
    [shared] = api._shared.transports._by_key.values()
    pool = shared._pool
    assert pool is not None
    await api.close()
    assert not pool.closed
    await other.close()
    assert pool.closed


async def test_requests_go_through_a_proxy_where_there_is_one(
    pki: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    tunnels: list[str] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split()[1]
        tunnels.append(target)
        host, port = target.rsplit(":", 1)
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    proxy = await asyncio.start_server(relay, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    async with proxy, serve(pki.server_context()) as server:
        async with client(server.url, pki.tls("jane"), proxy=f"http://127.0.0.1:{port}") as api:
            assert (await ask(api, server)).certificate == "jane"
        assert tunnels == [server.url.removeprefix("https://")]
