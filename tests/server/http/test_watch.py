"""Watches over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from steersman.http.connection import HttpServer
from steersman.server.http import watch_registry

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def turns(count: int = 200) -> None:
    """Let everybody else go first, many times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def line(answer: Any) -> Any:
    text = await asyncio.wait_for(answer.content.readline(), 10)
    return json.loads(text) if text else None


async def test_what_happens_is_told_in_lines(plane: Any) -> None:
    async with plane.session() as session, session.get(f"{CONFIGMAPS}?watch=1") as watch:
        assert watch.status == 200
        async with session.post(CONFIGMAPS, json=configmap("a", k="1")) as answer:
            made = await answer.json()
        event = await line(watch)
        assert (event["type"], event["object"]) == ("ADDED", made)
        async with session.delete(f"{CONFIGMAPS}/a") as answer:
            assert answer.status == 200
        assert (await line(watch))["type"] == "DELETED"


async def test_a_streamed_list_ends_with_its_bookmark(plane: Any) -> None:
    query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a")) as answer:
            assert answer.status == 201
        async with session.get(CONFIGMAPS + query) as watch:
            assert (await line(watch))["object"]["metadata"]["name"] == "a"
            end = await line(watch)
            assert end["type"] == "BOOKMARK"
            assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_from_long_ago_is_told_so_and_ends(plane: Any) -> None:
    async with plane.session() as session:
        for i in range(2):
            async with session.post(CONFIGMAPS, json=configmap(f"c{i}")) as answer:
                assert answer.status == 201
        plane.server.store.table("configmaps")._compacted = plane.server.store.revision
        async with session.get(f"{CONFIGMAPS}?watch=1&resourceVersion=2") as watch:
            assert watch.status == 200
            event = await line(watch)
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
                "ERROR",
                410,
                "Expired",
            )
            assert await line(watch) is None


async def test_bookmarks_go_to_who_asked_for_them(plane: Any) -> None:
    async with (
        plane.session() as session,
        session.get(f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true") as with_,
        session.get(f"{CONFIGMAPS}?watch=1") as without,
    ):
        async with session.post("/api/v1/namespaces", json={"metadata": {"name": "n"}}) as answer:
            assert answer.status == 201
        plane.edge.state.watches.bookmark()
        async with session.post(CONFIGMAPS, json=configmap("a")) as answer:
            assert answer.status == 201
        bookmark = await line(with_)
        assert bookmark["type"] == "BOOKMARK"
        assert int(bookmark["object"]["metadata"]["resourceVersion"]) == plane.server.store.revision - 1
        assert (await line(with_))["type"] == "ADDED"
        assert (await line(without))["type"] == "ADDED"


async def test_a_client_that_goes_away_leaves_nothing_behind(plane: Any) -> None:
    watchers = plane.server.store.table("configmaps").watchers
    async with plane.session() as session:
        watch = await session.get(f"{CONFIGMAPS}?watch=1")
        assert len(watchers) == len(plane.edge.state.watches) == 1
        watch.close()
        async with session.get("/version") as answer:
            assert answer.status == 200
        await turns()
    await turns()
    assert len(watchers) == len(plane.edge.state.watches) == 0


async def test_a_client_that_does_not_read_is_dropped(plane: Any) -> None:
    watches = plane.edge.state.watches
    loop = asyncio.get_running_loop()
    async with plane.session() as session, session.get(f"{CONFIGMAPS}?watch=1") as watch:
        (served,) = watches._watches
        body = configmap("a", k="x" * 900_000)
        count = 0
        while served.since is None and count < 64:
            async with session.post(CONFIGMAPS, json={**body, "metadata": {"name": f"c{count}"}}) as answer:
                assert answer.status == 201
            count += 1
            await turns(20)
        assert served.since is not None, "nothing piled up"
        watches.sweep(loop.time())
        assert not served.transport.is_closing()
        watches.sweep(loop.time() + watch_registry.PATIENCE + 1)
        await turns()
        assert len(watches) == 0
        assert watch.status == 200


async def test_watches_end_when_the_server_does(plane: Any) -> None:
    async with plane.session() as session, session.get(f"{CONFIGMAPS}?watch=1") as watch:
        closing = asyncio.create_task(plane.edge.close())
        assert await line(watch) is None
        await closing


async def test_tables_say_their_columns_once(plane: Any) -> None:
    headers = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with plane.session() as session, session.get(f"{CONFIGMAPS}?watch=1", headers=headers) as watch:
        for name in "ab":
            async with session.post(CONFIGMAPS, json=configmap(name)) as answer:
                assert answer.status == 201
        one, two = await line(watch), await line(watch)
        assert [column["name"] for column in one["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert two["object"]["columnDefinitions"] is None
        assert two["object"]["rows"][0]["cells"][0] == "b"


async def test_an_event_is_encoded_once_for_everybody(plane: Any) -> None:
    pod = plane.server.registry.find("", "v1", "configmaps")
    encoded = plane.edge.state.encoded
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a")) as answer:
            assert answer.status == 201
        obj = plane.server.get(pod, "default", "a")
        once = encoded.get("v1", "ConfigMap", obj)
        assert encoded.get("v1", "ConfigMap", obj) is once
        async with session.get(f"{CONFIGMAPS}/a") as answer:
            assert await answer.read() == once + b"\n"


async def test_a_watch_of_an_allowed_name_cannot_select_another(plane: Any) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    role = {
        "metadata": {"name": "one"},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "verbs": ["list", "watch", "deletecollection"],
                "resourceNames": ["allowed"],
            }
        ],
    }
    binding = {
        "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}],
    }
    async with plane.session() as admin, plane.session("viewer-token") as viewer:
        secrets = "/api/v1/namespaces/default/secrets"
        bodies = {f"{rbac}/roles": [role], f"{rbac}/rolebindings": [binding]}
        bodies[secrets] = [{"metadata": {"name": name}} for name in ("allowed", "topsecret")]
        for path, objects in bodies.items():
            for body in objects:
                async with admin.post(path, json=body) as answer:
                    assert answer.status == 201
        one = "/api/v1/watch/namespaces/default/secrets/allowed"
        async with viewer.get(one) as watch:
            assert (await line(watch))["object"]["metadata"]["name"] == "allowed"
        for selector in ("metadata.name=topsecret", "metadata.name!=allowed", "type=Opaque"):
            async with viewer.get(one, params={"fieldSelector": selector}) as answer:
                assert answer.status == 400
                message = (await answer.json())["message"]
            assert message == "fieldSelector metadata.name doesn't match requested name"
        async with viewer.get(secrets, params={"fieldSelector": "metadata.name=allowed"}) as answer:
            assert [each["metadata"]["name"] for each in (await answer.json())["items"]] == ["allowed"]
        for path, method in ((secrets, "GET"), (secrets, "DELETE"), (one.rpartition("/")[0], "GET")):
            selector = "metadata.name=topsecret" if method == "GET" else "metadata.name=allowed"
            async with viewer.request(method, path, params={"fieldSelector": selector}) as answer:
                assert answer.status == 403


class Recorder(asyncio.Transport):
    """A transport that notes in a list, which others share, that it was written to."""

    def __init__(self, server: HttpServer, name: str, log: list[str]) -> None:
        super().__init__()
        self.protocol = server()
        self._name, self._log = name, log
        self.protocol.connection_made(self)

    def ask(self, method: str, path: str, body: str = "") -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
        self.protocol.data_received(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._log.append(self._name)

    def is_closing(self) -> bool:
        return False


async def test_the_event_of_a_write_is_sent_before_the_response_of_the_write(plane: Any) -> None:
    server, log = HttpServer(plane.edge.handle, lambda: "now"), list[str]()
    watch, writer = Recorder(server, "event", log), Recorder(server, "response", log)
    watch.ask("GET", f"{CONFIGMAPS}?watch=1")
    await turns()
    for number in range(5):
        log.clear()
        writer.ask("POST", CONFIGMAPS, json.dumps(configmap(f"c{number}")))
        writer.ask("GET", f"{CONFIGMAPS}/c{number}")
        await turns(20)
        assert log == ["event", "response", "response"]
    watch.protocol.connection_lost(None)
    writer.protocol.connection_lost(None)
    await turns()
