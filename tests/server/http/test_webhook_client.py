"""Webhooks over sockets: TLS, errors in Go's words, connections, time-outs; asked by a served control plane."""

from __future__ import annotations

import asyncio
import base64
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.server.auth.ca import self_signed
from steersman.server.calls import MAX_RESPONSE, WebhookAddresses
from steersman.testing import Cluster
from tests.harness.webhook_server import WebhookServer, allow, answered, configuration, denying, patching
from tests.server.http.conftest import Plane

CMS = "/api/v1/namespaces/default/configmaps"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
def hooks() -> Iterator[WebhookServer]:
    with WebhookServer({"/allow": allow}, "hook.default.svc") as server:
        yield server


async def configure(session: Any, made: dict[str, Any]) -> None:
    plural = made["kind"].lower() + "s"
    async with session.post(f"{CONFIGURATIONS}/{plural}", json=made) as answer:
        assert answer.status == 201, await answer.text()


async def create(session: Any, name: str = "x", **more: Any) -> tuple[int, Any, list[str]]:
    async with session.post(CMS, json={"metadata": {"name": name}, **more}) as answer:
        return answer.status, await answer.json(), answer.headers.getall("Warning", [])


async def test_a_url_and_a_service_are_asked_over_one_connection_each(
    plane: Plane, hooks: WebhookServer
) -> None:
    hooks.handlers["/label"] = patching({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
    plane.server.webhook_addresses = WebhookAddresses({"default/hook:8443": hooks.address})
    service = {"namespace": "default", "name": "hook", "path": "/label", "port": 8443}
    async with plane.session() as session:
        await configure(session, configuration("Validating", "v", hooks.url("/allow")))
        client = {"service": service, "caBundle": hooks.ca_bundle}
        await configure(session, configuration("Mutating", "m", client))
        for number in range(3):
            code, made, _ = await create(session, f"x{number}")
            assert (code, made["metadata"].get("labels")) == (201, {"a": "b"})
    assert [path for path, _ in hooks.asked] == ["/label", "/allow"] * 3
    assert hooks.connections == 2


async def test_warnings_reach_the_client_and_are_cut_off_also_where_the_request_is_denied(
    plane: Plane, hooks: WebhookServer
) -> None:
    hooks.handlers["/warn"] = lambda review: answered(
        review, allowed=False, warnings=["beware", "x" * 2_000_000]
    )
    async with plane.session() as session:
        await configure(session, configuration("Validating", "v", hooks.url("/warn")))
        code, _, warnings = await create(session)
    assert code == 400
    assert warnings == ['299 - "beware"', f'299 - "{"x" * 256}"']


async def failure(plane: Plane, client: dict[str, Any], **more: Any) -> str:
    async with plane.session() as session:
        await configure(session, configuration("Validating", "v", client, **more))
        code, status, _ = await create(session)
    assert (code, status["reason"]) == (500, "InternalError")
    start = 'Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: '
    assert status["message"].startswith(start)
    assert status["details"]["causes"] == [
        {"message": status["message"].removeprefix("Internal error occurred: ")}
    ]
    return str(status["message"].removeprefix(start))


async def test_a_webhook_that_is_away(plane: Plane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    told = await failure(plane, {"url": f"https://{address}/x"})
    assert told == (
        f'Post "https://{address}/x?timeout=10s": dial tcp {address}: connect: connection refused'
    )


async def test_a_webhook_whose_authority_is_unknown(plane: Plane, hooks: WebhookServer) -> None:
    other = base64.b64encode(self_signed("other", datetime.now(UTC)).cert).decode()
    told = await failure(plane, {**hooks.url("/allow"), "caBundle": other})
    assert told.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")


async def test_a_service_must_have_the_name_in_its_certificate(plane: Plane, hooks: WebhookServer) -> None:
    plane.server.webhook_addresses = WebhookAddresses({"default/other": hooks.address})
    client = {"service": {"namespace": "default", "name": "other"}, "caBundle": hooks.ca_bundle}
    told = await failure(plane, client)
    assert "x509: certificate is not valid for other.default.svc" in told


async def test_a_webhook_that_hangs_is_given_up_in_time_and_holds_up_no_other_request(
    plane: Plane, hooks: WebhookServer
) -> None:
    def hang(review: dict[str, Any]) -> Any:
        hooks.released.wait(30)
        return allow(review)

    hooks.handlers["/hang"] = hang
    client = hooks.url("/hang")
    task = asyncio.create_task(failure(plane, client, timeoutSeconds=1))
    async with asyncio.timeout(30):
        while not hooks.asked and not task.done():
            await asyncio.sleep(0.005)
    async with plane.session() as session:
        for _ in range(20):
            async with session.get(CMS) as answer:
                assert answer.status == 200
        async with session.post("/api/v1/namespaces", json={"metadata": {"name": "quick"}}) as answer:
            assert answer.status == 201
    assert not task.done()
    url = client["url"]
    assert await task == f'Post "{url}?timeout=1s": context deadline exceeded'


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ((404, "text/plain", b"?"), "the server could not find the requested resource"),
        (
            (500, "text/plain", b"broken\n"),
            'an error on the server ("broken") has prevented the request from succeeding',
        ),
        (
            (500, "application/json", b"{}"),
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        ((503, "text/plain", b""), "the server is currently unable to handle the request"),
        (
            (301, "text/plain", b""),
            "the server responded with the status code 301 but did not return more details",
        ),
        ((200, "text/plain", b""), "0-length response with status code: 200 and content type: text/plain"),
        (
            (200, "text/plain", b"\xff" * (MAX_RESPONSE + 1)),
            f"the response has more than {MAX_RESPONSE} bytes",
        ),
    ],
    ids=["404", "500", "500 of JSON", "503", "301", "empty", "endless"],
)
async def test_a_webhook_that_answers_garbage(
    plane: Plane, hooks: WebhookServer, reply: tuple[int, str, bytes], told: str
) -> None:
    hooks.handlers["/garbage"] = lambda review: reply
    assert (await failure(plane, hooks.url("/garbage"))).endswith(told)


async def test_a_webhook_that_hangs_up(plane: Plane, hooks: WebhookServer) -> None:
    def hang_up(review: dict[str, Any]) -> Any:
        raise ConnectionError

    hooks.handlers["/gone"] = hang_up
    assert (await failure(plane, hooks.url("/gone"))).endswith(": EOF")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http: server gave HTTP response to HTTPS client"),
        # cert-manager's webhook, until it has a certificate
        (b"\x15\x03\x03\x00\x02\x02\x50", "remote error: tls: internal error"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "remote error: tls: handshake failure"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "remote error: tls: protocol version not supported"),
    ],
    ids=["no TLS", "internal error", "handshake failure", "protocol version"],
)
async def test_a_server_that_answers_the_handshake_otherwise(plane: Plane, sent: bytes, told: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await failure(plane, {"url": f"https://127.0.0.1:{port}/x"})).endswith(f": {told}")


def test_the_first_call_loads_its_client_in_a_thread_so_that_no_other_request_waits_for_it() -> None:
    script = """
import asyncio, sys, threading
from steersman.server.calls import Call, Endpoint
from steersman.server.http.webhook_client import WebhookClient

class Watcher:
    def find_spec(self, name, path, target=None):
        if name == "aiohttp":
            print(threading.current_thread() is threading.main_thread())

async def main():
    client = WebhookClient()
    call = Call(Endpoint("https://127.0.0.1:1/"), b"", 60, b"")
    print(*[answer.error for answer in await client.ask([call, call])], sep="; ")
    await client.close()

assert "aiohttp" not in sys.modules
sys.meta_path.insert(0, Watcher())
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert done.stdout.splitlines() == ["False", f"{refused}; {refused}"]
    assert done.stderr == ""


def test_time_holds_still_in_a_simulated_cluster_while_a_webhook_is_asked_over_a_socket(
    hooks: WebhookServer,
) -> None:
    hooks.handlers["/deny"] = denying("not here", code=403)
    stated = {"default/hook": hooks.address}
    with Cluster(nodes=1, webhooks=stated) as cluster:
        service = {"namespace": "default", "name": "hook", "path": "/allow"}
        client = {"service": service, "caBundle": hooks.ca_bundle}
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
        cluster.apply(configuration("Validating", "v", client, rules=rules))
        before = cluster.now
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "main:1"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        cluster.apply(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        )
        cluster.wait_until(lambda: len(cluster.list("pods")) == 2)
        assert cluster.now == before
    assert [path for path, _ in hooks.asked] == ["/allow"] * 2


@pytest.mark.parametrize(("code", "answered_with"), [(460, 460), (200, 400), (5000, 500)])
async def test_a_refusal_with_a_code_of_its_own_is_answered(
    plane: Plane, hooks: WebhookServer, code: int, answered_with: int
) -> None:
    hooks.handlers["/deny"] = lambda review: answered(review, allowed=False, status={"code": code})
    async with plane.session() as session, asyncio.timeout(10):
        await configure(session, configuration("Validating", "v", hooks.url("/deny")))
        answer, status, _ = await create(session)
    assert (answer, status["code"]) == (answered_with, answered_with)
