"""metrics.k8s.io, served from what simulated pods use."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import MethodNotAllowed, NotFound
from steersman.api.generated import load
from steersman.api.generated.core_v1 import Node, Pod
from steersman.api.scheme import Kind
from steersman.server.auth.users import User
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim import metrics
from steersman.sim.world import World

PODS = load("", "v1", "Pod")
NODES = load("", "v1", "Node")
USED: Kind[dict[str, Any]] = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True, dict)
NODES_USED: Kind[dict[str, Any]] = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False, dict)
ROOT = "/apis/metrics.k8s.io/v1beta1"


def node(name: str, **notes: str) -> Node:
    ready = {"type": "Ready", "status": "True"}
    return msgspec.convert(
        {"metadata": {"name": name, "annotations": notes}, "status": {"conditions": [ready]}}, Node
    )


def pod(name: str, where: str, cpu: str, namespace: str = "default") -> Pod:
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name.partition("-")[0]},
            "annotations": {"sim.steersman.dev/cpu": cpu, "sim.steersman.dev/memory": "64Mi"},
        },
        "spec": {"nodeName": where, "containers": [{"name": "main", "image": "app:1"}]},
    }
    return msgspec.convert(document, Pod)


async def populate(server: Server) -> LocalApi:
    """Two nodes, a silent one, and pods on each of them that run."""
    api = LocalApi(server)
    await api.create(NODES, "", node("left"))
    await api.create(NODES, "", node("right"))
    await api.create(NODES, "", node("silent", **{"sim.steersman.dev/state": "failed"}))
    for each in (
        pod("web-1", "left", "250m"),
        pod("web-2", "right", "1"),
        pod("db-1", "left", "100m"),
        pod("web-3", "silent", "4"),
        pod("web-1", "left", "5m", "kube-system"),
    ):
        meta = each.metadata
        made = await api.create(PODS, meta.namespace, each)
        started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        status = {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "image": "app:1", "imageID": "", "ready": True, "restartCount": 0}
                | {"state": started}
            ],
        }
        body = msgspec.structs.replace(made, status=msgspec.convert(status, type(made.status)))
        await api.update_status(PODS, meta.namespace, meta.name, body)
    await api.create(PODS, "default", pod("web-new", "right", "7"))
    return api


@pytest.fixture
def world() -> Any:
    with World() as world:
        world.server.extend(metrics.install)
        yield world


def test_pods_that_run_on_nodes_that_are_heard_of_are_measured(world: World) -> None:
    api = world.run(populate(world.server))
    found = world.run(api.list(USED))
    assert [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found.items] == [
        ("default", "db-1"),
        ("default", "web-1"),
        ("default", "web-2"),
        ("kube-system", "web-1"),
    ]
    chosen = world.run(api.list(USED, "default", label_selector="app=web")).items
    assert [each["containers"] for each in chosen] == [
        [{"name": "main", "usage": {"cpu": "250m", "memory": "64Mi"}}],
        [{"name": "main", "usage": {"cpu": "1", "memory": "64Mi"}}],
    ]
    one = world.run(api.get(USED, "default", "web-1"))
    assert one == chosen[0]
    assert one["timestamp"] == "2026-01-01T00:00:00Z"
    with pytest.raises(NotFound, match=r'pods\.metrics\.k8s\.io "web-new" not found'):
        world.run(api.get(USED, "default", "web-new"))


def test_a_node_uses_what_its_pods_use_and_follows_them(world: World) -> None:
    api = world.run(populate(world.server))

    def used() -> dict[str, str]:
        found = world.run(api.list(NODES_USED)).items
        return {each["metadata"]["name"]: each["usage"]["cpu"] for each in found}

    assert used() == {"left": "355m", "right": "1"}
    world.run(api.delete(PODS, "default", "db-1", grace=0))
    assert used() == {"left": "255m", "right": "1"}


def test_a_page_at_a_time_is_all_of_them(world: World) -> None:
    api = world.run(populate(world.server))
    first = world.run(api.list(USED, limit=3))
    rest = world.run(api.list(USED, limit=3, continue_=first.continue_))
    assert len(first.items) == 3
    assert first.items + rest.items == world.run(api.list(USED)).items


def test_what_is_worked_out_cannot_be_written_deleted_or_watched(world: World) -> None:
    api = world.run(populate(world.server))
    before = world.server.store.revision

    async def watch() -> None:
        async for _ in api.watch(USED):
            raise AssertionError("there is nothing to see")

    found = world.run(api.get(USED, "default", "web-1"))
    for attempt in (
        api.create(USED, "default", found | {"metadata": {"name": "new"}}),
        api.update(USED, "default", "web-1", found | {"window": "1s"}),
        api.patch(USED, "default", "web-1", {"window": "1s"}),
        api.delete(USED, "default", "web-1"),
        watch(),
    ):
        with pytest.raises(MethodNotAllowed, match=r"pods\.metrics\.k8s\.io"):
            world.run(attempt)
    assert world.server.store.revision == before


def test_a_fork_of_the_server_measures_its_own_pods(world: World) -> None:
    api = world.run(populate(world.server))
    fork = world.server.fork()
    world.run(api.delete(PODS, "default", "web-2", grace=0))
    assert len(world.run(LocalApi(fork).list(USED)).items) == 4
    assert len(world.run(api.list(USED)).items) == 3


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    clock = RealClock()
    server = Server(clock)
    boot = Bootstrap.generate(clock.now)
    authorizer = bootstrap_server(server, disabled_plugins=("TaintNodesByCondition", "ServiceAccount"))
    server.extend(metrics.install)
    await populate(server)
    tokens = {"root": User("root", groups=("system:masters",)), "nobody": User("nobody")}
    edge = await boot.serve(server, authorizer, tokens=tokens)
    try:
        connector = aiohttp.TCPConnector(
            ssl=ssl.create_default_context(cadata=boot.authority.pair.cert.decode())
        )
        async with aiohttp.ClientSession(edge.url, connector=connector) as session:
            yield session
    finally:
        await edge.close()


async def ask(session: aiohttp.ClientSession, path: str, who: str = "root", **more: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {who}", **more.pop("headers", {})}
    async with session.request(more.pop("method", "GET"), path, headers=headers, **more) as response:
        return response.status, await response.json()


async def test_over_http_it_is_discovered_read_shown_and_guarded_like_any_resource(
    session: aiohttp.ClientSession,
) -> None:
    _, groups = await ask(session, "/apis")
    assert groups["groups"][-1]["name"] == "metrics.k8s.io"
    _, served = await ask(session, ROOT)
    assert [(each["name"], each["verbs"]) for each in served["resources"]] == [
        ("nodes", ["get", "list"]),
        ("pods", ["get", "list"]),
    ]
    code, found = await ask(session, f"{ROOT}/namespaces/default/pods?labelSelector=app%3Ddb")
    assert code == 200
    assert found["kind"] == "PodMetricsList"
    assert [each["containers"][0]["usage"]["cpu"] for each in found["items"]] == ["100m"]
    code, one = await ask(session, f"{ROOT}/nodes/left")
    assert (code, one["kind"], one["usage"]["cpu"]) == (200, "NodeMetrics", "355m")
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    _, shown = await ask(session, f"{ROOT}/namespaces/default/pods", headers=table)
    assert [each["name"] for each in shown["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert shown["rows"][1]["cells"] == ["web-1", "250m", "64Mi", "30s"]
    code, _ = await ask(session, f"{ROOT}/nodes/silent")
    assert code == 404
    code, _ = await ask(session, f"{ROOT}/namespaces/default/pods/web-1", method="DELETE")
    assert code == 405
    code, _ = await ask(session, f"{ROOT}/pods?watch=1")
    assert code == 405
    code, refusal = await ask(session, f"{ROOT}/namespaces/default/pods", "nobody")
    assert code == 403
    assert refusal["message"] == (
        'pods.metrics.k8s.io is forbidden: User "nobody" cannot list resource "pods" in API group '
        '"metrics.k8s.io" in the namespace "default"'
    )


def test_who_may_view_may_read_metrics_before_any_controller_runs() -> None:
    server = Server(RealClock())
    bootstrap_server(server)
    server.extend(metrics.install)
    roles = server.table(server.registry.find("rbac.authorization.k8s.io", "v1", "clusterroles"))
    reader = roles.get(metrics.READER)
    assert reader is not None
    for name in ("admin", "edit", "view"):
        role = roles.get(name)
        assert role is not None
        assert reader.rules[0] in role.rules
        assert len(set(role.rules)) == len(role.rules)
