"""The way of a request through a manager's door."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import pytest

from steersman.manager.flags import UsageError
from steersman.manager.serving.authorization import AllowedPaths, Authorizer
from steersman.manager.serving.listener import listen
from steersman.manager.serving.routes import Routes

OPEN = Authorizer(AllowedPaths(["*"]))


class Long(Routes):
    """With much to tell, and something that goes wrong."""

    def __init__(self) -> None:
        super().__init__(metrics=lambda: b"a_metric 1\n" * 10_000, configz=self._fail, pages={})

    def _fail(self) -> dict[str, Any]:
        raise ZeroDivisionError("secret detail")


@pytest.fixture
def routes() -> Routes:
    return Long()


async def test_what_fails_here_is_a_500_that_says_no_more_and_the_next_is_answered(
    opened: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client = await opened(authorizer=OPEN)
    answer = await client.get("/configz")
    assert (answer.status, "secret" in answer.body) == (500, False)
    assert "GET /configz failed" in caplog.text
    assert (await client.get("/healthz")).status == 200


async def test_a_long_answer_is_compressed_for_who_takes_that(opened: Any) -> None:
    client = await opened(authorizer=OPEN)
    plain = await client.get("/metrics", Accept_Encoding="identity")
    squeezed = await client.get("/metrics", Accept_Encoding="gzip, deflate")
    assert "Content-Encoding" not in plain.headers
    assert squeezed.headers["Content-Encoding"] == "gzip"
    assert int(squeezed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 10
    assert squeezed.body == plain.body


async def test_who_takes_no_form_there_is_gets_a_refusal_to_read(opened: Any) -> None:
    client = await opened(authorizer=Authorizer(AllowedPaths([])))
    assert (await client.get("/metrics", Accept="application/xml")).body.startswith('{\n  "kind": "Status"')
    assert (await client.get("/metrics", User_Agent="curl/8.0")).body.startswith('{\n  "kind": "Status"')
    assert (await client.get("/metrics", Accept="application/yaml")).body.startswith("apiVersion: v1\n")
    assert (await client.get("/metrics")).body.startswith('{"kind":"Status"')


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", b"505"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"1" * 5000 + b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"400"),
    ],
)
async def test_what_is_no_request_is_refused(opened: Any, sent: bytes, code: bytes) -> None:
    client = await opened()
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", client.port, ssl=ssl._create_unverified_context()
    )
    writer.write(sent)
    assert (await reader.readline()).split()[1] == code
    writer.close()


async def test_who_speaks_no_tls_is_not_answered_and_leaves_no_trace(
    opened: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client = await opened()
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    # A TLS alert at most: nothing that a client of HTTP could take for an answer.
    assert not (await reader.read()).startswith(b"HTTP")
    writer.close()
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_port_can_be_shared_only_by_who_agrees_to() -> None:
    with listen("127.0.0.1", 0, shares_port=True) as first:
        port = first.getsockname()[1]
        with listen("127.0.0.1", port, shares_port=True) as second:
            assert second.getsockname() == first.getsockname()
        with pytest.raises(UsageError, match=f"listen tcp 127.0.0.1:{port}: bind: address already in use"):
            listen("127.0.0.1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has one family")
def test_an_unspecified_address_is_all_of_both_families() -> None:
    with listen("0.0.0.0", 0) as everywhere:
        assert everywhere.family == socket.AF_INET6
        socket.create_connection(("127.0.0.1", everywhere.getsockname()[1])).close()
