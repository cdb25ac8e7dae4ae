"""The dashboard of ``steersman run``: behind delegated authentication and authorization, with SubjectAccessReviews for each kind."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from steersman.api.clock import RealClock
from steersman.api.generated import load
from steersman.api.kinds import PODS
from steersman.api.prometheus import Registry
from steersman.client.config import AuthInfo, ClientConfig, Pem, TlsConfig
from steersman.manager.serving import serving_certs
from steersman.manager.serving.authentication import Authenticator, TokenReviewer
from steersman.manager.serving.authorization import AccessReviewer, AllowedPaths, Authorizer
from steersman.manager.serving.dashboard import ManagerSite
from steersman.manager.serving.listener import HttpsListener, listen
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.routes import Routes
from steersman.manager.serving.tls import TlsContexts
from steersman.runtime.trace import Trace
from steersman.runtime.trace_view import TraceView
from steersman.server.local import LocalApi
from tests.manager.serving.conftest import Client, Plane, now

GROUP = "rbac.authorization.k8s.io"
SITE = {"nonResourceURLs": ["/ui/api/*"], "verbs": ["get", "post"]}


@pytest.fixture
async def site(plane: Plane, routes: Routes, session: aiohttp.ClientSession) -> AsyncIterator[Client]:
    """A manager's listener with a dashboard, and a client of it."""
    clock = RealClock()
    manager = plane.api("manager")
    tls = TlsConfig(ca=Pem(data=plane.boot.authority.pair.cert))
    connection = ClientConfig(server=plane.edge.url, tls=tls, user=AuthInfo(token="manager"))
    metrics = ServingMetrics(Registry())
    made = ManagerSite(connection, clock, TraceView(Trace(), clock), plane.asked.append)
    source = serving_certs.StaticCert(serving_certs.generate("127.0.0.1", now()))
    reviewer = AccessReviewer(manager, clock, allowed=10.0, denied=10.0)
    listener = HttpsListener(
        listen("127.0.0.1", 0),
        TlsContexts(source, request_certificates=False),
        Authenticator(clock, tokens=TokenReviewer(manager, clock, 10.0, metrics)),
        Authorizer(AllowedPaths(["/healthz"]), reviewer),
        routes,
        clock,
        metrics,
        made,
    )
    await listener.open()
    async with asyncio.timeout(60):
        yield Client(listener.port, session)
    await made.close()
    await listener.close()
    await manager.close()


async def grant(plane: Plane, user: str, *rules: dict[str, Any], namespace: str = "") -> None:
    """Give a user some rights, in one namespace or in all."""
    admin = LocalApi(plane.edge.state.server)
    prefix = "" if namespace else "Cluster"
    name = f"{user}-{len(rules)}-{namespace}".rstrip("-")
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": user}]
    ref = {"kind": f"{prefix}Role", "apiGroup": GROUP, "name": name}
    role = {"metadata": {"name": name}, "rules": list(rules)}
    binding = {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects}
    await admin.create(load(GROUP, "v1", f"{prefix}Role").untyped, namespace, role)
    await admin.create(load(GROUP, "v1", f"{prefix}RoleBinding").untyped, namespace, binding)


async def pod(plane: Plane, namespace: str) -> None:
    admin = LocalApi(plane.edge.state.server)
    if namespace != "default":
        await admin.create(load("", "v1", "Namespace").untyped, "", {"metadata": {"name": namespace}})
    await admin.create(load("", "v1", "ServiceAccount").untyped, namespace, {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    await admin.create(PODS.untyped, namespace, {"metadata": {"name": f"in-{namespace}"}, "spec": spec})


@asynccontextmanager
async def streaming(
    site: Client, token: str, query: str = ""
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    context = ssl._create_unverified_context()
    url = f"https://127.0.0.1:{site.port}/ui/api/stream{query}"
    headers = {"Authorization": f"Bearer {token}"}
    async with site.session.get(url, headers=headers, ssl=context) as answer:
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"

        async def messages() -> AsyncIterator[dict[str, Any]]:
            async for line in answer.content:
                yield json.loads(line)

        yield messages()


async def synced(messages: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    told = []
    async for message in messages:
        told.append(message)
        if message["type"] == "synced":
            break
    return told


async def test_the_page_is_public_and_its_json_is_refused_without_a_credential(site: Client) -> None:
    page = await site.get("/ui/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    credentials: tuple[dict[str, Any], ...] = ({}, {"Authorization": "Bearer wrong"})
    for path in ("plane", "stream", "object?kind=Pod&name=a", "controllers", "clock"):
        for headers in credentials:
            refused = await site.get(f"/ui/api/{path}", **headers)
            assert refused.status == 401, path
            assert json.loads(refused.body)["kind"] == "Status"


async def test_a_user_without_the_right_to_the_path_is_refused(site: Client) -> None:
    refused = await site.get("/ui/api/plane", Authorization="Bearer nobody")
    assert refused.status == 403
    assert 'cannot get path \\"/ui/api/plane\\"' in refused.body


async def test_a_user_sees_what_reviews_allow_and_is_told_the_rest(site: Client, plane: Plane) -> None:
    await pod(plane, "ours")
    await pod(plane, "theirs")
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    await grant(plane, "nobody", SITE)
    await grant(plane, "nobody", pods, namespace="ours")
    async with streaming(site, "nobody", "?namespace=ours") as messages:
        told = await synced(messages)
        assert [each["object"]["name"] for each in told if each["type"] == "object"] == ["in-ours"]
        unread = {each["kind"]: each["why"] for each in told if each["type"] == "unread"}
        assert 'User "nobody" cannot list resource "nodes"' in unread["Node"]
    async with streaming(site, "nobody") as messages:
        told = await synced(messages)
        assert not [each for each in told if each["type"] == "object"]
    headers: dict[str, Any] = {"Authorization": "Bearer nobody"}
    page = await site.get("/ui/api/object?kind=Pod&namespace=ours&name=in-ours", **headers)
    assert page.status == 200
    assert json.loads(page.body)["summary"]["name"] == "in-ours"
    for path in ("object?kind=Pod&namespace=theirs&name=in-theirs", "controllers"):
        assert (await site.get(f"/ui/api/{path}", **headers)).status == 403


async def test_a_monitor_of_everything_sees_everything_live_by_lists_and_watches_alone(
    site: Client, plane: Plane
) -> None:
    await pod(plane, "default")
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}
    rounds = {"nonResourceURLs": ["/debug/rounds"], "verbs": ["get"]}
    await grant(plane, "monitor", SITE, everything, rounds)
    headers: dict[str, Any] = {"Authorization": "Bearer monitor"}
    told = json.loads((await site.get("/ui/api/plane", **headers)).body)
    assert (told["program"], told["simulated"], told["clock"], told["user"]) == (
        "run",
        False,
        None,
        "monitor",
    )
    plane.asked.clear()
    async with streaming(site, "monitor") as messages:
        told = await synced(messages)
        assert "in-default" in {each["object"]["name"] for each in told if each["type"] == "object"}
        admin = LocalApi(plane.edge.state.server)
        await admin.delete(PODS, "default", "in-default", grace=0)
        async for message in messages:
            if message.get("change") == "deleted":
                break
        page = await site.get("/ui/api/object?kind=Namespace&name=default", **headers)
        assert json.loads(page.body)["explanation"]["well"]
    assert (await site.get("/ui/api/controllers", **headers)).status == 200
    reads = {attempt.verb for attempt in plane.asked if "reviews" not in attempt.resource}
    assert reads == {"list", "watch"}


@pytest.mark.parametrize(
    ("path", "body"), [("node", {"name": "n", "action": "fail"}), ("clock", {"speed": 2})]
)
async def test_a_manager_changes_neither_nodes_nor_time(
    site: Client, plane: Plane, path: str, body: dict[str, Any]
) -> None:
    await grant(plane, "monitor", SITE)
    headers: dict[str, Any] = {"Authorization": "Bearer monitor", "Content_Type": "application/json"}
    refused = await site.get(f"/ui/api/{path}", method="POST", data=json.dumps(body), **headers)
    assert refused.status == 409


async def test_other_paths_are_served_as_ever(site: Client) -> None:
    assert (await site.get("/healthz")).body == "ok"
    assert (await site.get("/uix")).status == 403
