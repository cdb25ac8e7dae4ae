"""An aggregated API server of the test's own, behind a served control plane."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

from steersman.server.auth.ca import CertificateAuthority, self_signed
from steersman.server.calls import WebhookAddresses
from tests.server.http.conftest import Plane

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLAVORS = "/apis/ice.example.com/v1/namespaces/default/flavors"
DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "ice.example.com/v1",
    "resources": [
        {
            "name": "flavors",
            "singularName": "flavor",
            "namespaced": True,
            "kind": "Flavor",
            "verbs": ["get", "list"],
        },
        {
            "name": "flavors/taste",
            "singularName": "",
            "namespaced": True,
            "kind": "Taste",
            "verbs": ["create"],
        },
    ],
}


class Extension:
    """An extension API server, which trusts the front proxy of a control plane."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.more = asyncio.Event()
        now = datetime.now(UTC)
        self.authority = CertificateAuthority(self_signed("extension", now), lambda: now)
        self.address = ""

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.pair.cert).decode()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        if request.path == "/apis/ice.example.com/v1":
            return web.json_response(DISCOVERY)
        if request.path.startswith("/openapi"):
            return web.json_response({"openapi": "3.0.0"})
        if request.path.endswith("/moved"):
            return web.Response(status=302, headers={"Location": "/elsewhere"})
        if request.path.endswith("/warned"):
            warnings = (("Warning", '299 - "one"'), ("Warning", '299 - "two"'))
            return web.Response(headers=CIMultiDict(warnings))
        if request.query.get("watch"):
            stream = web.StreamResponse(headers={"Content-Type": "application/json"})
            await stream.prepare(request)
            await stream.write(b'{"type":"ADDED"}\n')
            await self.more.wait()
            await stream.write(b'{"type":"DELETED"}\n')
            return stream
        return web.json_response(
            {"path": request.path_qs, "method": request.method, "body": await request.text()}, status=418
        )


@asynccontextmanager
async def extension(plane: Plane, tmp_path: Path) -> AsyncIterator[Extension]:
    made = Extension()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    pair = made.authority.serving(("ext.default.svc",), ("127.0.0.1",))
    both = tmp_path / "pair"
    both.write_bytes(pair.cert + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    config = plane.server.store.table("configmaps").get("kube-system/extension-apiserver-authentication")
    context.load_verify_locations(cadata=config.data["requestheader-client-ca-file"])
    context.verify_mode = ssl.CERT_REQUIRED
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.address = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        made.more.set()
        await runner.cleanup()


def api_service(ca_bundle: str = "", name: str = "ext", **more: Any) -> dict[str, Any]:
    spec = {
        "group": "ice.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": name},
        "caBundle": ca_bundle,
        **more,
    }
    return {"metadata": {"name": "v1.ice.example.com"}, "spec": spec}


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
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
        condition = await register(plane, session, api_service(remote.ca_bundle))
        assert (condition.status, condition.reason) == ("True", "Passed")
        headers = {"X-Remote-User": "mallory", "X-Remote-Extra-Scopes": "all", "X-Own": "kept"}
        async with session.post(f"{FLAVORS}?pretty=true&x=1", data=b"{}", headers=headers) as answer:
            assert answer.status == 418, await answer.text()
            told = await answer.json(content_type=None)
    assert told == {"path": f"{FLAVORS}?pretty=true&x=1", "method": "POST", "body": "{}"}
    seen = remote.seen[-1]
    assert seen.headers["X-Remote-User"] == "root"
    assert seen.headers.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert seen.headers["X-Own"] == "kept"
    assert seen.headers["Host"] == seen.headers["X-Forwarded-Host"] == remote.address
    assert (seen.headers["X-Forwarded-For"], seen.headers["X-Forwarded-Uri"]) == ("127.0.0.1", FLAVORS)
    assert "X-Remote-Extra-Scopes" not in seen.headers
    assert "Authorization" not in seen.headers


async def test_discovery_and_openapi_show_what_another_server_serves(plane: Plane, tmp_path: Path) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
        await register(plane, session, api_service(remote.ca_bundle))
        async with session.get("/apis") as answer:
            groups = {each["name"]: each for each in (await answer.json())["groups"]}
        assert groups["ice.example.com"]["preferredVersion"]["groupVersion"] == "ice.example.com/v1"
        async with session.get("/apis", headers={"Accept": aggregated}) as answer:
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
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
        await register(plane, session, api_service(remote.ca_bundle))
        async with session.get(f"{FLAVORS}?watch=1") as answer:
            assert await answer.content.readline() == b'{"type":"ADDED"}\n'
            remote.more.set()
            assert await answer.content.readline() == b'{"type":"DELETED"}\n'
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


async def test_those_without_rights_are_refused_before_anything_is_passed_on(
    plane: Plane, tmp_path: Path
) -> None:
    async with extension(plane, tmp_path) as remote, plane.session() as session:
        plane.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
        await register(plane, session, api_service(remote.ca_bundle))
        async with plane.session("nobody-token") as nobody, nobody.get(FLAVORS) as answer:
            assert answer.status == 403
        # Only its discovery document was asked for, by the server itself.
        assert {each.path for each in remote.seen} == {"/apis/ice.example.com/v1"}


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
