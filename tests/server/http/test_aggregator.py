"""An aggregated API server of the test's own, behind a served control plane."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yaml
import yarl
from aiohttp import web

from steersman.http.limits import Wait
from steersman.server.auth.ca import self_signed
from steersman.server.auth.users import User
from steersman.server.calls import WebhookAddresses
from steersman.server.http import aggregator
from steersman.server.http.forwarding import user_headers
from tests.harness import extension_server
from tests.harness.extension_server import AGGREGATED, DISCOVERY, Extension, api_service
from tests.server.http.conftest import Plane

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLAVORS = "/apis/ice.example.com/v1/namespaces/default/flavors"


@asynccontextmanager
async def extension(plane: Plane, tmp_path: Path) -> AsyncIterator[Extension]:
    config = plane.server.store.table("configmaps").get("kube-system/extension-apiserver-authentication")
    async with extension_server.extension(config.data["requestheader-client-ca-file"], tmp_path) as made:
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": made.address})
        yield made


async def register(plane: Plane, session: Any, made: dict[str, Any]) -> Any:
    """Registers an APIService; returns its condition once it was checked."""
    async with session.post(APISERVICES, json=made) as answer:
        assert answer.status == 201, await answer.text()
    async with asyncio.timeout(10):
        while True:
            found = plane.server.store.table("apiservices.apiregistration.k8s.io").get("v1.ice.example.com")
            if found.status.conditions:
                return found.status.conditions[0]
            await asyncio.sleep(0.005)


async def test_requests_are_passed_on_as_their_user_with_the_certificate_of_the_front_proxy(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        condition = await register(plane, session, api_service(remote.ca_bundle))
        assert (condition.status, condition.reason) == ("True", "Passed")
        headers = {"X-Remote-User": "mallory", "X-Remote-Extra-Scopes": "all", "X-Own": "kept"}
        async with session.put(f"{FLAVORS}/a?pretty=true&x=1", data=b"{}", headers=headers) as answer:
            assert answer.status == 418, await answer.text()
            told = await answer.json(content_type=None)
    assert (told["path"], told["method"], told["body"]) == (f"{FLAVORS}/a?pretty=true&x=1", "PUT", "{}")
    (seen,) = (each for each in remote.seen if each.method == "PUT")
    assert seen.headers["X-Remote-User"] == "root"
    assert seen.headers.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert seen.headers["X-Own"] == "kept"
    assert seen.headers["Host"] == seen.headers["X-Forwarded-Host"] == remote.address
    assert (seen.headers["X-Forwarded-For"], seen.headers["X-Forwarded-Uri"]) == ("127.0.0.1", f"{FLAVORS}/a")
    assert "X-Remote-Extra-Scopes" not in seen.headers
    assert "Authorization" not in seen.headers


async def test_discovery_and_openapi_show_what_another_server_serves(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with session.get("/apis") as answer:
            groups = {each["name"]: each for each in (await answer.json())["groups"]}
        assert groups["ice.example.com"]["preferredVersion"]["groupVersion"] == "ice.example.com/v1"
        async with session.get("/apis", headers={"Accept": AGGREGATED}) as answer:
            items = json.loads(await answer.read())["items"]
        (found,) = (each for each in items if each["metadata"].get("name") == "ice.example.com")
        (flavors,) = found["versions"][0]["resources"]
        assert (flavors["resource"], flavors["subresources"][0]["subresource"]) == ("flavors", "taste")
        async with session.get("/apis/ice.example.com/v1") as answer:
            assert await answer.json() == DISCOVERY
        async with session.get("/openapi/v3/apis/ice.example.com/v1") as answer:
            assert await answer.json() == {"openapi": "3.0.0"}
        async with session.delete(f"{APISERVICES}/v1.ice.example.com") as answer:
            assert answer.status == 200
        async with session.get("/apis/ice.example.com") as answer:
            assert answer.status == 404
        async with session.get(FLAVORS) as answer:
            assert answer.status == 404


async def test_a_watch_is_passed_on_line_by_line(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with session.get(f"{FLAVORS}?watch=1&resourceVersion=0") as answer:
            await remote.put("default", {"metadata": {"name": "mint"}})
            assert json.loads(await answer.content.readline())["type"] == "ADDED"
            await remote.remove("default", "mint")
            assert json.loads(await answer.content.readline())["type"] == "DELETED"
            await remote.release()
            assert await answer.content.read() == b""


@pytest.mark.parametrize(
    ("way", "reason", "told"),
    [
        ("no service", "ServiceNotFound", 'service/ext in "default" is not present'),
        (
            "no address",
            "MissingEndpoints",
            "services have no network here: state where default/ext is served with",
        ),
        (
            "away",
            "FailedDiscoveryCheck",
            'Get "https://127.0.0.1:1/apis/ice.example.com/v1": dial tcp',
        ),
        ("untrusted", "FailedDiscoveryCheck", "certificate signed by unknown authority"),
    ],
)
async def test_a_server_that_is_away_is_a_503_and_says_so_in_its_condition(
    plane: Plane, tmp_path: Path, way: str, reason: str, told: str
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        plane.server.webhook_addresses = WebhookAddresses()
        if way == "no address":
            body = {"metadata": {"name": "ext"}, "spec": {"ports": [{"port": 443}]}}
            async with session.post("/api/v1/namespaces/default/services", json=body) as answer:
                assert answer.status == 201
        elif way != "no service":
            address = "127.0.0.1:1" if way == "away" else remote.address
            plane.server.webhook_addresses = WebhookAddresses({"default/ext": address})
        other = base64.b64encode(self_signed("other", datetime.now(UTC)).cert).decode()
        bundle = other if way == "untrusted" else remote.ca_bundle
        condition = await register(plane, session, api_service(bundle))
        assert (condition.status, condition.reason) == ("False", reason)
        assert told in condition.message
        async with session.get(FLAVORS) as answer:
            assert (answer.status, await answer.text()) == (503, "service unavailable\n")
        # All else goes on.
        async with session.get("/api/v1/namespaces") as answer:
            assert answer.status == 200
        if way == "no address":
            patch = {"metadata": {"annotations": {"sim.steersman.dev/webhook-address": remote.address}}}
            merge = {"Content-Type": "application/merge-patch+json"}
            url = "/api/v1/namespaces/default/services/ext"
            async with session.patch(url, data=json.dumps(patch), headers=merge) as answer:
                assert answer.status == 200
            async with asyncio.timeout(10):
                while (await (await session.get(FLAVORS)).text()).startswith("service unavailable"):
                    await asyncio.sleep(0.005)


async def test_a_server_that_starts_after_its_api_service_is_soon_asked_again(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        remote.starting = True
        condition = await register(plane, session, api_service(remote.ca_bundle))
        assert (condition.status, condition.reason) == ("False", "FailedDiscoveryCheck")
        async with asyncio.timeout(10):
            while len(remote.seen) < 5:
                await asyncio.sleep(0.005)
            remote.starting = False
            while (await session.get(FLAVORS)).status == 503:
                await asyncio.sleep(0.005)


async def test_those_without_rights_are_refused_before_anything_is_passed_on(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with plane.session("nobody-token") as nobody, nobody.get(FLAVORS) as answer:
            assert answer.status == 403
        # Only its documents were asked for, by the server itself.
        documents = {"/apis/ice.example.com/v1", "/apis", "/openapi/v2", "/openapi/v3"}
        assert {each.path for each in remote.seen} == documents
        assert {each.headers["X-Remote-User"] for each in remote.seen} == {"system:kube-aggregator"}


async def test_the_built_in_group_versions_have_api_services(plane: Plane) -> None:
    async with plane.session() as session, session.get(APISERVICES) as answer:
        items = (await answer.json())["items"]
    found = {each["metadata"]["name"]: each for each in items}
    assert {"v1.", "v1.apps", "v2.autoscaling"} <= found.keys()
    assert found["v1.apps"]["spec"] == {
        "group": "apps",
        "version": "v1",
        "groupPriorityMinimum": 17800,
        "versionPriority": 15,
    }
    assert found["v1."]["status"]["conditions"][0]["reason"] == "Local"


async def test_a_redirect_is_not_passed_on_and_headers_that_repeat_are(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
        await register(plane, session, api_service(remote.ca_bundle))
        async with session.get(f"{FLAVORS}/moved", allow_redirects=False) as answer:
            assert (answer.status, "Location" in answer.headers) == (502, False)
        async with session.get(f"{FLAVORS}/warned") as answer:
            assert answer.headers.getall("Warning") == ['299 - "one"', '299 - "two"']
            assert answer.headers.getall("Cache-Control") == ["no-cache, private"]


async def test_a_service_with_an_external_name_is_asked_there(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        host, _, port = remote.address.rpartition(":")
        spec = {"type": "ExternalName", "externalName": "localhost"}
        body = {"metadata": {"name": "ext"}, "spec": spec}
        async with session.post("/api/v1/namespaces/default/services", json=body) as answer:
            assert answer.status == 201, await answer.text()
        service = {"namespace": "default", "name": "ext", "port": int(port)}
        condition = await register(plane, session, api_service(remote.ca_bundle, service=service))
        assert (condition.status, host) == ("True", "127.0.0.1")


# -- discovery and OpenAPI --------------------------------------------------------------------


async def aggregated_version(session: Any) -> dict[str, Any] | None:
    async with session.get("/apis", headers={"Accept": AGGREGATED}) as answer:
        items = json.loads(await answer.read())["items"]
    found = [each for each in items if each["metadata"].get("name") == "ice.example.com"]
    return found[0]["versions"][0] if found else None


async def test_an_aggregated_discovery_document_is_passed_on_and_its_garbage_is_not(
    plane: Plane, tmp_path: Path
) -> None:
    flavors = {
        "resource": "flavors",
        "scope": "Namespaced",
        "singularResource": "flavor",
        "verbs": ["get"],
        "responseKind": {"group": "", "version": "", "kind": "Flavor"},
        "subresources": [{"subresource": "taste", "verbs": ["create"]}],
    }
    versions = [{"version": "v1", "resources": [flavors], "freshness": "Stale", "garbage": 1}]
    items = [{"metadata": {"name": name}, "versions": versions} for name in ("ice.example.com", "apps")]
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        remote.aggregated = {"kind": "APIGroupDiscoveryList", "items": items}
        async with session.get("/apis", headers={"Accept": AGGREGATED}) as answer:
            before = json.loads(await answer.read())["items"]
        await register(plane, session, api_service(remote.ca_bundle))
        found = await aggregated_version(session)
        async with session.get("/apis", headers={"Accept": AGGREGATED}) as answer:
            after = json.loads(await answer.read())["items"]
    empty = {"group": "", "version": "", "kind": ""}
    subresources = [{"subresource": "taste", "verbs": ["create"], "responseKind": empty}]
    assert found == {
        "version": "v1",
        "resources": [{**flavors, "subresources": subresources}],
        "freshness": "Current",
    }
    # The server is not asked about groups that are not its own.
    assert [each for each in after if each["metadata"]["name"] != "ice.example.com"] == before


async def test_a_server_that_is_away_is_stale_in_aggregated_discovery_and_fails_in_the_legacy_one(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": "127.0.0.1:1"})
        await register(plane, session, api_service(remote.ca_bundle))
        assert await aggregated_version(session) == {"version": "v1", "freshness": "Stale"}
        async with session.get("/apis/ice.example.com") as answer:
            assert (await answer.json())["versions"] == [
                {"groupVersion": "ice.example.com/v1", "version": "v1"}
            ]
        async with session.get("/apis/ice.example.com/v1") as answer:
            assert (answer.status, await answer.text()) == (503, "service unavailable\n")
    async with plane.connect() as api:
        found = await api.discover()
    assert found.error_message == (
        "unable to retrieve the complete list of server APIs: "
        "ice.example.com/v1: stale GroupVersion discovery: ice.example.com/v1"
    )


async def test_openapi_is_merged_as_kube_aggregator_merges_it(plane: Plane, tmp_path: Path) -> None:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        own = await (await session.get("/openapi/v2")).json(content_type=None)
        index = json.loads(await (await session.get("/openapi/v3")).text())["paths"]
        await register(plane, session, api_service(remote.ca_bundle))
        merged = await (await session.get("/openapi/v2")).json(content_type=None)
        merged_index = json.loads(await (await session.get("/openapi/v3")).text())["paths"]
        (path,) = merged["paths"].keys() - own["paths"].keys()
        assert path == "/apis/ice.example.com/v1/namespaces/{namespace}/flavors"
        added = merged["definitions"].keys() - own["definitions"].keys()
        assert added == {"com.example.ice.Flavor", f"{meta}_v2"}
        flavor = merged["definitions"]["com.example.ice.Flavor"]
        assert flavor["properties"]["metadata"] == {"$ref": f"#/definitions/{meta}_v2"}
        assert {name: merged["definitions"][name] for name in own["definitions"]} == own["definitions"]
        url = {"serverRelativeURL": "/openapi/v3/apis/ice.example.com/v1?hash=ABC"}
        assert merged_index == {**index, "apis/ice.example.com/v1": url}
        async with session.delete(f"{APISERVICES}/v1.ice.example.com") as answer:
            assert answer.status == 200
        assert await (await session.get("/openapi/v2")).json(content_type=None) == own
        assert json.loads(await (await session.get("/openapi/v3")).text())["paths"] == index


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/apis"])
async def test_a_broken_document_of_another_server_leaves_ours_as_they_are(
    plane: Plane, tmp_path: Path, path: str
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        own = {each: await (await session.get(each)).text() for each in ("/openapi/v2", "/openapi/v3")}
        remote.broken |= {path, "/openapi/v2", "/openapi/v3"}
        condition = await register(plane, session, api_service(remote.ca_bundle))
        assert condition.status == "True"
        assert {each: await (await session.get(each)).text() for each in own} == own
        found = await aggregated_version(session)
        assert found is not None
        assert [each["resource"] for each in found["resources"]] == ["flavors"]


# -- streams ----------------------------------------------------------------------------------


async def test_a_websocket_is_passed_on(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        url = f"{plane.edge.url}{FLAVORS}/mint/taste"
        async with session.ws_connect(url, protocols=("taste.example.com",)) as socket:
            assert socket.protocol == "taste.example.com"
            for word in ("sweet", "x" * 100_000):
                await socket.send_str(word)
                assert await socket.receive_str() == word.upper()
        (seen,) = (each for each in remote.seen if each.path.endswith("/taste"))
        assert seen.headers["X-Remote-User"] == "root"
        assert "Authorization" not in seen.headers
        assert not plane.edge.state.streams


async def test_an_upgrade_that_the_other_server_refuses_is_answered(plane: Plane, tmp_path: Path) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with session.post(f"{FLAVORS}/mint/nothing", headers=headers) as answer:
            assert answer.status == 418
            assert (await answer.json(content_type=None))["method"] == "POST"


async def test_a_server_that_hangs_is_a_504_and_no_other_request_waits(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregator, "REQUEST_TIMEOUT", 0.05)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        remote.hangs = True
        async with session.get(FLAVORS) as answer:
            status = await answer.json()
        assert (answer.status, status["reason"]) == (504, "Timeout")
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{plane.edge.url}{FLAVORS}/mint/taste")
        assert refused.value.status == 504


# -- who is told to the other server ----------------------------------------------------------


def certified(plane: Plane, user: str) -> aiohttp.ClientSession:
    """A client with a certificate for a user."""
    made = yaml.safe_load(plane.boot.kubeconfig(plane.edge.url, user, ("system:masters",)))["users"][0][
        "user"
    ]
    pair = plane.directory / "client"
    pair.write_bytes(
        b"".join(base64.b64decode(made[f"client-{part}-data"]) for part in ("certificate", "key"))
    )
    trusted = ssl.create_default_context(cadata=plane.boot.authority.pair.cert.decode())
    trusted.load_cert_chain(pair)
    return aiohttp.ClientSession(plane.edge.url, connector=aiohttp.TCPConnector(ssl=trusted))


async def test_the_token_among_the_subprotocols_of_a_websocket_is_not_passed_on(
    plane: Plane, tmp_path: Path
) -> None:
    token = base64.urlsafe_b64encode(b"admin-token").decode().rstrip("=")
    offered = (f"base64url.bearer.authorization.k8s.io.{token}", "taste.example.com", "v2.example.com")
    async with extension(plane, tmp_path) as remote, plane.session() as session, plane.session("") as browser:
        await register(plane, session, api_service(remote.ca_bundle))
        async with browser.ws_connect(f"{plane.edge.url}{FLAVORS}/mint/taste", protocols=offered) as socket:
            assert socket.protocol == "taste.example.com"
    (seen,) = (each for each in remote.seen if each.path.endswith("/taste"))
    assert seen.headers["X-Remote-User"] == "root"
    assert seen.headers.getall("Sec-WebSocket-Protocol") == ["taste.example.com,v2.example.com"]
    assert token not in str(seen.headers)


@pytest.mark.parametrize("user", ["jürgen", "Жук"])
async def test_the_name_of_a_user_is_the_same_for_an_upgrade_and_any_other_request(
    plane: Plane, tmp_path: Path, user: str
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with certified(plane, user) as client:
            async with client.get(FLAVORS) as answer:
                assert answer.status == 200
            async with client.ws_connect(f"{plane.edge.url}{FLAVORS}/mint/taste"):
                pass
    assert [each.headers["X-Remote-User"] for each in remote.seen if each.path.startswith(FLAVORS)] == [
        user
    ] * 2


async def test_neither_headers_named_in_connection_nor_pairs_that_go_drops_are_passed_on(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        headers = {"Connection": "keep-alive, X-Hop,x-remote-user", "X-Hop": "1", "X-Own": "kept"}
        url = yarl.URL(f"{plane.edge.url}{FLAVORS}?watch=true;&x=%zz&y=1", encoded=True)
        async with session.get(url, headers=headers) as answer:
            assert answer.status == 200
    (seen,) = (each for each in remote.seen if each.path == FLAVORS)
    assert (seen.headers["X-Own"], seen.headers["X-Remote-User"]) == ("kept", "root")
    assert "X-Hop" not in seen.headers
    assert seen.raw_path == f"{FLAVORS}?y=1"


async def test_the_tls_contexts_of_former_ca_bundles_are_forgotten(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregator, "_MAX_CONTEXTS", 2)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        made = plane.edge.state.aggregator
        found = made.find(FLAVORS)
        assert found is not None
        for number in range(3):
            other = base64.b64encode(self_signed(f"other-{number}", datetime.now(UTC)).cert).decode()
            spec = msgspec.structs.replace(found.service.spec, caBundle=other)
            made._context(found._replace(service=msgspec.structs.replace(found.service, spec=spec)))
        assert len(made._contexts) == 2


async def test_a_line_break_in_the_name_of_a_user_adds_no_header(
    plane: Plane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with certified(plane, "mallory\r\nX-Remote-Group: admins") as client:
            async with client.get(FLAVORS) as answer:
                assert answer.status == 503
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{plane.edge.url}{FLAVORS}/mint/taste")
            assert refused.value.status == 503
    assert [(each.levelname, each.getMessage(), each.exc_info) for each in caplog.records] == [
        (
            "WARNING",
            "a request for the APIService v1.ice.example.com cannot be passed on: "
            'net/http: invalid header field value for "X-Remote-User"',
            None,
        )
    ] * 2
    assert not [each for each in remote.seen if each.path.startswith(FLAVORS)]


def test_the_keys_of_extra_fields_are_escaped_byte_by_byte_as_go_does_it() -> None:
    user = User("a", extra={"example.com/Жü~|": ("x",)})
    assert user_headers(user)[-1] == ("X-Remote-Extra-example.com%2F%D0%96%C3%BC~|", "x")


# -- answers as they come ---------------------------------------------------------------------


@pytest.mark.parametrize("code", [299, 460, 999])
async def test_a_code_without_a_name_is_passed_back(
    plane: Plane, tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Extension, "_told", lambda *of: web.Response(status=code, text="so"))
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with asyncio.timeout(10), session.put(f"{FLAVORS}/mint", data=b"{}") as answer:
            assert (answer.status, await answer.text()) == (code, "so")


async def test_an_answer_that_is_compressed_is_not_compressed_again(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = os.urandom(200_000).hex().encode()
    encoding = {"Content-Encoding": "gzip"}
    monkeypatch.setattr(
        Extension, "_told", lambda *of: web.Response(body=gzip.compress(text), headers=encoding)
    )
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        headers = {"Accept-Encoding": "gzip"}
        async with session.put(f"{FLAVORS}/mint", data=b"{}", headers=headers) as answer:
            assert answer.headers.getall("Content-Encoding") == ["gzip"]
            assert await answer.read() == text


def answers(
    monkeypatch: pytest.MonkeyPatch, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> None:
    """Lets the extension server answer requests for flavors so."""
    others = Extension._resource

    async def answer(self: Extension, request: web.Request, parts: list[str]) -> web.StreamResponse:
        flavors = request.path.startswith(FLAVORS)
        return await (handle(request) if flavors else others(self, request, parts))

    monkeypatch.setattr(Extension, "_resource", answer)


def streams(
    monkeypatch: pytest.MonkeyPatch,
    pieces: AsyncIterator[bytes],
    length: int | None = None,
    status: int = 200,
) -> None:
    """Lets the extension server answer with a body in pieces; without a length it is chunked."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(status=status, headers={"Content-Type": "text/plain", "X-Own": ""})
        stream.content_length = length
        await stream.prepare(request)
        async for piece in pieces:
            await stream.write(piece)
        return stream

    answers(monkeypatch, answer)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("status", [200, 404])
async def test_a_large_response_is_passed_back_while_it_is_still_being_sent(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, status: int
) -> None:
    piece, read = os.urandom(2 * aggregator.MAX_WHOLE), asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield piece
        await read.wait()
        yield piece

    streams(monkeypatch, pieces(), 2 * len(piece) if known else None, status)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        headers = {"Accept-Encoding": "gzip"}
        async with asyncio.timeout(10), session.get(f"{FLAVORS}/big", headers=headers) as answer:
            assert (answer.status, answer.content_length) == (status, 2 * len(piece) if known else None)
            assert (answer.headers["Content-Type"], answer.headers["X-Own"]) == ("text/plain", "")
            assert "Content-Encoding" not in answer.headers
            assert await answer.content.readexactly(len(piece)) == piece
            read.set()
            assert await answer.read() == piece


async def test_a_client_that_does_not_read_holds_the_other_server_up(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece, sent, enough = b"x" * 2**20, 0, 64

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < enough:
            sent += 1
            yield piece

    streams(monkeypatch, pieces(), enough * len(piece))
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        async with asyncio.timeout(30), session.get(f"{FLAVORS}/big") as answer:
            (connection,) = (each for each in plane.edge._http.connections if each.busy)
            while connection.wait is not Wait.READER:
                await asyncio.sleep(0)
            # What the sockets between the three take differs between machines; the server holds little.
            assert sent < enough
            assert connection.counted < 2**20
            assert sum([len(each) async for each in answer.content.iter_any()]) == enough * len(piece)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("query", ["", "?watch=1"])
async def test_a_response_that_breaks_off_is_no_whole_one(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, query: str
) -> None:
    piece, requests = b"x" * (2 * aggregator.MAX_WHOLE), []

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        stream.content_length = 2 * len(piece) if known else None
        await stream.prepare(request)
        await stream.write(piece)
        requests.append(request)
        return stream

    answers(monkeypatch, answer)
    broken = asyncio.Event()
    write_eof = web.StreamResponse.write_eof

    async def break_off(self: web.StreamResponse, data: bytes = b"") -> None:
        if not requests:
            return await write_eof(self, data)
        await broken.wait()
        transport = requests[0].transport
        assert transport is not None
        transport.abort()

    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        monkeypatch.setattr(web.StreamResponse, "write_eof", break_off)
        async with asyncio.timeout(10), session.get(f"{FLAVORS}{query}") as told:
            assert told.status == 200
            assert await told.content.readexactly(len(piece)) == piece
            broken.set()
            with pytest.raises(aiohttp.ClientPayloadError):
                await told.read()


async def test_a_response_that_hangs_half_way_breaks_off_in_time(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece, never = b"x" * (2 * aggregator.MAX_WHOLE), asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield piece
        await never.wait()

    streams(monkeypatch, pieces())
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        monkeypatch.setattr(aggregator, "REQUEST_TIMEOUT", 0.2)
        async with asyncio.timeout(10), session.get(f"{FLAVORS}/big") as answer:
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()
        never.set()


@pytest.mark.parametrize(("status", "length"), [(200, 10**6), (404, 12), (204, None), (304, None)])
async def test_a_response_without_a_body_has_the_length_that_the_other_server_gave(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, length: int | None
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        headers = {"ETag": '"a"'} if length is None else {"ETag": '"a"', "Content-Length": str(length)}
        return web.Response(status=status, headers=headers)

    answers(monkeypatch, handle)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        for method in ("HEAD",) if length is not None else ("HEAD", "GET"):
            async with asyncio.timeout(10), session.request(method, f"{FLAVORS}/a") as told:
                assert (told.status, told.content_length, told.headers["ETag"]) == (status, length, '"a"')
                assert await told.read() == b""


@pytest.mark.parametrize("framing", ["length", "chunks", "end of the connection"])
async def test_a_long_refusal_of_an_upgrade_is_whole(
    plane: Plane, tmp_path: Path, framing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = b"no" * 20_000

    async def refuse(self: Extension, request: web.Request) -> web.StreamResponse:
        refusal = web.StreamResponse(status=400)
        if framing == "length":
            refusal.content_length = 10 * len(piece)
        elif framing == "chunks":
            refusal.enable_chunked_encoding()
        else:
            refusal.force_close()
            request._version = aiohttp.HttpVersion10
        await refusal.prepare(request)
        for _ in range(10):
            await refusal.write(piece)
        return refusal

    monkeypatch.setattr(Extension, "_upgraded", refuse)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        await register(plane, session, api_service(remote.ca_bundle))
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with session.post(f"{FLAVORS}/mint/taste", headers=headers) as answer:
            assert (answer.status, await answer.read()) == (400, 10 * piece)


async def test_other_servers_have_real_time_whatever_the_speed_of_the_clock(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a loop whose timers are this much faster: no answer comes within a ten-thousandth of a second.
    monkeypatch.setattr(asyncio.get_running_loop(), "speed", 1e5, raising=False)
    for name in ("CHECK_TIMEOUT", "REQUEST_TIMEOUT"):
        monkeypatch.setattr(aggregator, name, 1e-4)
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        condition = await register(plane, session, api_service(remote.ca_bundle))
        assert (condition.status, condition.reason) == ("True", "Passed")
        async with session.ws_connect(f"{plane.edge.url}{FLAVORS}/mint/taste") as socket:
            await socket.send_str("sweet")
            assert await socket.receive_str() == "SWEET"
