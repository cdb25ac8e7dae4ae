"""The dashboard of ``steersman up``, over HTTP: who is let in, what is shown to whom, and how time is steered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.api.clock import Clock, RealClock
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS, SERVICEACCOUNTS
from steersman.api.kinds.nodes import NODES
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.dashboard.static_files import static_files
from steersman.manager.control_plane import RunningControlPlane, run_control_plane
from steersman.manager.up import read
from steersman.server.local import LocalApi
from steersman.sim.scaled_clock import ScaledClock, ScaledLoop
from tests.harness.follow import until

FOR_EVER = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""The client may live on a loop whose time jumps."""


class Browser:
    """Asks as the page does, with a token or without."""

    def __init__(self, url: str, session: aiohttp.ClientSession, token: str = "") -> None:
        self.url = url
        self.session = session
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def request(self, method: str, path: str, **options: Any) -> Any:
        headers = {**self.headers, **options.pop("headers", {})}
        return self.session.request(
            method, f"{self.url}{path}", headers=headers, ssl=False, allow_redirects=False, **options
        )

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        async with self.request("GET", path, **options) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return json.loads(text)

    async def post(self, path: str, body: Any, status: int = 200, **options: Any) -> Any:
        async with self.request("POST", path, json=body, **options) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return json.loads(text)

    @asynccontextmanager
    async def stream(self, query: str = "") -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        async with self.request("GET", f"/ui/api/stream{query}") as answer:
            assert answer.status == 200, await answer.text()

            async def messages() -> AsyncIterator[dict[str, Any]]:
                async for line in answer.content:
                    yield json.loads(line)

            yield messages()


async def until_message(
    messages: AsyncIterator[dict[str, Any]], reached: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """The messages up to the first for which something holds."""
    found = []
    async for message in messages:
        found.append(message)
        if reached(message):
            return found
    raise AssertionError("the stream has ended")


@asynccontextmanager
async def up(
    tmp_path: Path, *flags: str, clock: Clock | None = None
) -> AsyncIterator[tuple[RunningControlPlane, Browser]]:
    options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}", *flags])
    async with (
        run_control_plane(options, clock or RealClock()) as running,
        aiohttp.ClientSession(timeout=FOR_EVER) as session,
    ):
        url, _, token = running.dashboard.partition("/ui/#token=")
        yield running, Browser(url, session, token)


async def as_account(
    running: RunningControlPlane,
    browser: Browser,
    namespace: str,
    name: str,
    *rules: dict[str, Any],
    cluster: bool = False,
) -> Browser:
    """A browser with the token of a new ServiceAccount that has some rights, in its namespace or in the cluster."""
    admin = LocalApi(running.server)
    await admin.create(SERVICEACCOUNTS.untyped, namespace, {"metadata": {"name": name}})
    prefix, where = ("Cluster", "") if cluster else ("", namespace)
    group = "rbac.authorization.k8s.io"
    ref = {"kind": f"{prefix}Role", "apiGroup": group, "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    made = f"{name}-{prefix.lower()}"
    role = {"metadata": {"name": made}, "rules": list(rules)}
    binding = {"metadata": {"name": made}, "roleRef": {**ref, "name": made}, "subjects": subjects}
    await admin.create(load(group, "v1", f"{prefix}Role").untyped, where, role)
    await admin.create(load(group, "v1", f"{prefix}RoleBinding").untyped, where, binding)
    answer = await admin.subresource(SERVICEACCOUNTS, namespace, name, "token", {"spec": {"audiences": []}})
    return Browser(running.url, browser.session, answer["status"]["token"])


SITE = {"nonResourceURLs": ["/ui/api/*"], "verbs": ["get"]}


def workload(name: str, cpu: str = "1m") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "main", "image": "app:1", "resources": resources}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


async def test_the_page_needs_no_credential_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    async with asyncio.timeout(60), up(tmp_path, "--nodes=0") as (running, browser):
        for url in (browser.url, running.url):
            stranger = Browser(url, browser.session)
            for name, file in {**static_files(), "": static_files()["index.html"]}.items():
                async with stranger.request("GET", f"/ui/{name}") as answer:
                    assert answer.status == 200
                    assert await answer.read() == file.body
                    assert answer.headers["Content-Type"] == file.content_type
                    policy = answer.headers["Content-Security-Policy"]
                    assert policy.startswith(
                        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
                    )
                    assert "frame-ancestors 'none'" in policy
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
            async with stranger.request("GET", "/ui") as answer:
                assert (answer.status, answer.headers["Location"]) == (301, "/ui/")
            for path in ("/ui/nothing.js", "/ui/../secret", "/ui/%2e%2e/feed.py", "/ui/static/index.html"):
                async with stranger.request("GET", path) as answer:
                    assert answer.status in (403, 404), path


@pytest.mark.parametrize("path", ["plane", "stream", "object?kind=Pod&name=a", "controllers", "nothing"])
async def test_the_json_is_refused_without_a_credential(tmp_path: Path, path: str) -> None:
    async with asyncio.timeout(60), up(tmp_path, "--nodes=0") as (running, browser):
        for url in (browser.url, running.url):
            told = await Browser(url, browser.session).get(f"/ui/api/{path}", 401)
            assert told["kind"] == "Status"
            await Browser(url, browser.session, "wrong").get(f"/ui/api/{path}", 401)


async def test_the_plain_listener_serves_the_dashboard_alone_and_only_to_this_machine(tmp_path: Path) -> None:
    async with asyncio.timeout(60), up(tmp_path, "--nodes=0") as (_, browser):
        port = browser.url.rpartition(":")[2]
        for path in ("/api/v1/secrets", "/healthz", "/uix", "//ui/api/plane"):
            async with browser.request("GET", path) as answer:
                assert answer.status == 404, path
        for host in ("attacker.example", f"attacker.example:{port}", "127.0.0.1", "127.0.0.1:1", ""):
            async with browser.request("GET", "/ui/api/plane", headers={"Host": host}) as answer:
                assert answer.status == 421, f"DNS rebinding by {host!r}"
        async with browser.request("GET", "/ui/api/plane", headers={"Host": f"localhost:{port}"}) as answer:
            assert answer.status == 200
        async with browser.request("GET", "/") as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/ui/")


async def test_there_is_no_dashboard_where_none_is_wanted(tmp_path: Path) -> None:
    async with asyncio.timeout(60), up(tmp_path, "--nodes=0", "--no-ui") as (running, browser):
        assert running.dashboard == ""
        async with browser.session.get(f"{running.url}/ui/", ssl=False) as answer:
            assert answer.status == 403
        async with HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api:
            assert "/ui/" not in (await api.document("/"))["paths"]


async def test_a_rollout_is_followed_and_a_stuck_one_is_explained(tmp_path: Path) -> None:
    async with asyncio.timeout(60), up(tmp_path) as (running, browser):
        admin = LocalApi(running.server)
        plane = await browser.get("/ui/api/plane")
        assert (plane["program"], plane["simulated"], plane["leading"]) == ("up", True, True)
        assert (plane["user"], plane["clock"]) == ("steersman-dashboard", None)
        assert plane["controllers"] == running.controllers
        async with browser.stream() as messages:
            await until_message(messages, lambda each: each["type"] == "synced")
            await admin.create(DEPLOYMENTS.untyped, "default", workload("web"))
            await until_message(
                messages,
                lambda each: (
                    (each.get("object") or {}).get("kind") == "Deployment" and each["object"]["ready"] == 2
                ),
            )
            await admin.create(DEPLOYMENTS.untyped, "default", workload("stuck", "1000"))
            told = await until_message(messages, lambda each: "too little cpu" in str(each.get("problems")))
            assert [each["name"] for each in told[-1]["problems"]] == ["stuck"]
            page = await browser.get("/ui/api/object?kind=Deployment&namespace=default&name=stuck")
            assert page["summary"]["status"] == "0/2 ready"
            assert "no node of 3 fits: 3 have too little cpu" in page["text"]
            assert page["explanation"]["first"] == told[-1]["problems"][0]["cause"]
            assert {each["kind"] for each in page["graph"]["nodes"]} == {"Deployment", "ReplicaSet", "Pod"}
            kinds = {each["kind"] for each in page["timeline"]}
            assert kinds == {"cause", "decision", "write", "event", "condition"}
            first = next(each for each in page["timeline"] if each["kind"] == "write")
            assert first["text"].startswith("create replicasets.apps default/stuck-")
            assert first["caused"], "the rounds that the write led to"
            assert "ScalingReplicaSet" in {each["reason"] for each in page["events"]}
            assert "Available" in {each["type"] for each in page["conditions"]}
            assert "managedFields" not in page["yaml"]
            ready = await browser.get("/ui/api/object?kind=deploy&namespace=default&name=web")
            assert {"runs on"} < {each["relation"] for each in ready["graph"]["edges"]}
        controllers = await browser.get("/ui/api/controllers")
        assert len(controllers["controllers"]) == running.controllers
        assert controllers["fights"] == []


async def test_nothing_is_watched_when_the_last_viewer_has_gone(tmp_path: Path) -> None:
    def following() -> list[str]:
        return [each.get_name() for each in asyncio.all_tasks() if each.get_name().startswith("dashboard")]

    async with asyncio.timeout(60), up(tmp_path, "--nodes=0") as (_, browser):
        assert following() == []
        async with browser.stream() as one, browser.stream() as other:
            await until_message(one, lambda each: each["type"] == "synced")
            await until_message(other, lambda each: each["type"] == "synced")
            assert len([name for name in following() if "pods" in name]) == 1, (
                "viewers of one user share a feed"
            )
        while following():
            await asyncio.sleep(0)
        await browser.get("/ui/api/object?kind=Namespace&name=default")
        assert following() == []


async def test_an_account_sees_what_it_may_list_and_nothing_else(tmp_path: Path) -> None:
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    async with asyncio.timeout(60), up(tmp_path) as (running, admin_browser):
        admin = LocalApi(running.server)
        for name in ("ours", "theirs"):
            await admin.create(load("", "v1", "Namespace").untyped, "", {"metadata": {"name": name}})
            await until(admin, SERVICEACCOUNTS, name, "default", lambda found: True)
            body = {"metadata": {"name": f"in-{name}"}, "spec": workload("x")["spec"]["template"]["spec"]}
            await admin.create(PODS.untyped, name, body)
        await as_account(running, admin_browser, "ours", "jane", pods)
        jane = await as_account(running, admin_browser, "theirs", "jane", SITE, cluster=True)
        refused = await jane.get("/ui/api/controllers", 403)
        assert "cannot get path" in refused["message"], "the trace names objects of all namespaces"
        async with jane.stream() as messages:
            told = await until_message(messages, lambda each: each["type"] == "synced")
        assert not [each for each in told if each["type"] == "object"]
        why = next(each["why"] for each in told if each.get("kind") == "Pod")
        assert 'cannot list resource "pods" in API group "" at the cluster scope' in why
        await jane.get("/ui/api/object?kind=Pod&namespace=ours&name=in-ours", 403)
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": "jane", "namespace": "theirs"}
        binding = {"metadata": {"name": "both"}, "subjects": [subject]}
        ref = {"kind": "Role", "apiGroup": group, "name": "jane-"}
        await admin.create(load(group, "v1", "RoleBinding").untyped, "ours", {**binding, "roleRef": ref})
        async with jane.stream("?namespace=ours") as messages:
            told = await until_message(messages, lambda each: each["type"] == "synced")
            assert [each["object"]["name"] for each in told if each["type"] == "object"] == ["in-ours"]
            assert "Node" in {each["kind"] for each in told if each["type"] == "unread"}
        page = await jane.get("/ui/api/object?kind=Pod&namespace=ours&name=in-ours")
        assert [each["kind"] for each in page["graph"]["nodes"]] == ["Pod"], "no right to see the node"
        assert not [each for each in page["timeline"] if each["kind"] == "decision"]
        await jane.get("/ui/api/object?kind=Pod&namespace=theirs&name=in-theirs", 403)
        await jane.post("/ui/api/node", {"name": "node-1", "action": "fail"}, 403)


async def test_the_data_of_secrets_is_nowhere(tmp_path: Path) -> None:
    async with asyncio.timeout(60), up(tmp_path, "--nodes=0") as (running, browser):
        admin = LocalApi(running.server)
        secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2-hunter2"}}
        await admin.create(load("", "v1", "Secret").untyped, "default", secret)
        async with browser.request("GET", "/ui/api/object?kind=Secret&namespace=default&name=s") as answer:
            text = await answer.text()
            assert answer.status == 200
            assert answer.headers["Cache-Control"] == "no-store"
        assert "hunter2" not in text
        assert "aHVudGVy" not in text
        assert "(15 bytes)" in json.loads(text)["yaml"]


async def test_a_node_fails_and_recovers_by_those_who_may_change_nodes(tmp_path: Path) -> None:
    get = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    patch = {**get, "verbs": ["patch"]}
    site = {**SITE, "verbs": ["get", "post"]}
    async with asyncio.timeout(60), up(tmp_path) as (running, browser):
        admin = LocalApi(running.server)
        fail = {"name": "node-1", "action": "fail"}
        reader = await as_account(running, browser, "default", "reader", get, site, cluster=True)
        refused = await reader.post("/ui/api/node", fail, 403)
        assert 'cannot patch resource "nodes"' in refused["message"]
        operator = await as_account(running, browser, "default", "operator", get, patch, site, cluster=True)
        assert await operator.post("/ui/api/node", fail) == {}
        state = "sim.steersman.dev/state"
        assert (await admin.get(NODES, "", "node-1")).metadata.annotations[state] == "failed"
        await operator.post("/ui/api/node", {**fail, "action": "recover"})
        assert state not in (await admin.get(NODES, "", "node-1")).metadata.annotations
        await operator.post("/ui/api/node", {**fail, "name": "nothing"}, 404)
        await operator.post("/ui/api/node", {**fail, "action": "explode"}, 400)
        await operator.post("/ui/api/node", {**fail, "more": 1}, 400)
        await admin.create(NODES.untyped, "", {"metadata": {"name": "real"}})
        await operator.post("/ui/api/node", {**fail, "name": "real"}, 409)
        async with operator.request("POST", "/ui/api/node", data=json.dumps(fail)) as answer:
            assert answer.status == 415, "a form of another origin cannot send JSON"
        async with operator.request("POST", "/ui/api/node", json={**fail, "name": "n" * 9000}) as answer:
            assert answer.status == 413
        refused = await operator.post("/ui/api/clock", {"speed": 2}, 409)
        assert "steersman up --speed=1" in refused["message"]
        async with operator.request("DELETE", "/ui/api/node") as answer:
            assert answer.status == 403


async def test_a_viewer_that_does_not_read_holds_nothing_up_and_little_memory(tmp_path: Path) -> None:
    async with asyncio.timeout(120), up(tmp_path, "--nodes=0", "--no-controllers") as (running, browser):
        admin = LocalApi(running.server)
        host, _, port = browser.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        head = f"GET /ui/api/stream HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: {browser.headers['Authorization']}\r\n\r\n"
        writer.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")
        # From here on it does not read.
        await admin.create(SERVICEACCOUNTS.untyped, "default", {"metadata": {"name": "default"}})
        template = workload("x")["spec"]["template"]["spec"]
        for number in range(3000):
            await admin.create(
                PODS.untyped, "default", {"metadata": {"name": f"p{number}"}, "spec": template}
            )
        async with browser.stream() as messages:
            await until_message(messages, lambda each: (each.get("object") or {}).get("name") == "p2999")
            [feed] = running_feeds()
            sizes = sorted(len(mailbox) for mailbox in feed._mailboxes)
            assert sizes[-1] <= 3000 + 20, "one message for each object at most"
        writer.close()


def running_feeds() -> list[Any]:
    import gc

    from steersman.dashboard.feed import Feed

    return [each for each in gc.get_objects() if isinstance(each, Feed) and each.viewers]


# -- the clock ----------------------------------------------------------------------------------


def on_a_scaled_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=lambda: ScaledLoop(1.0)) as runner:
        runner.run(main())


async def settle() -> None:
    """Let all that needs no time happen."""
    for _ in range(300):
        await asyncio.sleep(0)


def test_time_is_paused_and_jumps_from_one_thing_that_happens_to_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ScaledClock(asyncio.get_running_loop())
        async with up(tmp_path, "--speed=1", clock=clock) as (running, browser):
            admin = LocalApi(running.server)
            assert (await browser.get("/ui/api/plane"))["clock"]["paused"] is False
            async with browser.stream() as messages:
                await until_message(messages, lambda each: each["type"] == "synced")
                told = await browser.post("/ui/api/clock", {"paused": True})
                assert (told["paused"], told["speed"]) == (True, 1.0)
                now = await until_message(
                    messages, lambda each: (each.get("clock") or {}).get("paused") is True
                )
                assert now[-1]["type"] == "now"
            before = clock.now()
            await admin.create(DEPLOYMENTS.untyped, "default", workload("web"))
            await settle()
            assert clock.now() == before, "what needs no time happens; a container takes a second to start"
            jumps = 0
            while (await admin.get(DEPLOYMENTS, "default", "web")).status.readyReplicas < 2:
                await browser.post("/ui/api/clock", {"jump": "next"})
                await settle()
                jumps += 1
            assert 1 <= (clock.now() - before).total_seconds() < 3
            assert jumps < 30
            await browser.post("/ui/api/node", {"name": "node-1", "action": "fail"})
            before = clock.now()
            silent = ("Unknown",)
            while not any(
                each.type == "Ready" and each.status in silent
                for each in (await admin.get(NODES, "", "node-1")).status.conditions
            ):
                await browser.post("/ui/api/clock", {"jump": "next"})
            assert 40 <= (clock.now() - before).total_seconds() <= 60, "the grace period of a silent node"
            plane = await browser.get("/ui/api/plane")
            assert plane["leading"], "the Lease is renewed in real time"
            assert plane["clock"]["paused"], "a jump leaves the pause as it was"

    on_a_scaled_loop(main)


def test_the_speed_of_the_clock_changes_while_it_runs(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ScaledClock(asyncio.get_running_loop())
        async with up(tmp_path, "--speed=1", "--nodes=0", clock=clock) as (running, browser):
            told = await browser.post("/ui/api/clock", {"speed": 10_000})
            assert told["speed"] == 10_000
            before = clock.now()
            await asyncio.sleep(3600)
            assert (clock.now() - before).total_seconds() >= 3600
            for speed in (0, -1, 1e9):
                refused = await browser.post("/ui/api/clock", {"speed": speed}, 400)
                assert "speed must be from" in refused["message"]
            await browser.post("/ui/api/clock", {"jump": "back"}, 400)
            site = {**SITE, "verbs": ["get"]}
            reader = await as_account(running, browser, "default", "reader", site, cluster=True)
            await reader.post("/ui/api/clock", {"speed": 1}, 403)

    on_a_scaled_loop(main)


def test_a_control_plane_whose_clock_stands_still_ends(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ScaledClock(asyncio.get_running_loop())
        async with up(tmp_path, "--speed=1", clock=clock) as (_, browser):
            stream = browser.request("GET", "/ui/api/stream")
            async with stream as answer:
                await answer.content.readline()
                await browser.post("/ui/api/clock", {"paused": True})

    on_a_scaled_loop(main)
