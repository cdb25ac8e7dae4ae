"""Feeds: what one user may list, live, in mailboxes that stay small."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from steersman.api.clock import RealClock
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.api.kinds.nodes import NODES
from steersman.dashboard.feed import Feed, Mailbox
from steersman.server.auth.users import User
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.bootstrap import bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server

Message = dict[str, Any]


def pod(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1"}]
    spec = {"containers": containers, **({"nodeName": node} if node else {}), **spec}
    return {"metadata": {"name": name}, "spec": spec}


class Viewer:
    """Reads the mailbox of a feed as a browser reads its stream."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.messages: list[Message] = []
        self.seen = 0

    async def until(self, reached: Callable[[Message], bool]) -> Message:
        """The first message for which something holds, of those that were not looked at yet."""
        while True:
            while self.seen < len(self.messages):
                self.seen += 1
                if reached(self.messages[self.seen - 1]):
                    return self.messages[self.seen - 1]
            await self.mailbox.wait()
            self.messages += map(json.loads, self.mailbox.take(1 << 16).splitlines())

    def objects(self) -> dict[str, Message]:
        """The objects by kind and name, as the page has them after all messages."""
        found: dict[str, Message] = {}
        for message in self.messages:
            if message["type"] == "object":
                place = f"{message['object']['kind']} {message['object']['name']}"
                if message["change"] == "deleted":
                    found.pop(place, None)
                else:
                    found[place] = message["object"]
        return found


def is_synced(message: Message) -> bool:
    return bool(message["type"] == "synced")


def object_named(name: str, state: str = "") -> Callable[[Message], bool]:
    def reached(message: Message) -> bool:
        found = message.get("object") or {}
        return bool(found.get("name") == name and state in ("", found["state"]))

    return reached


def server() -> Server:
    made = Server(RealClock())
    bootstrap_server(made, disabled_plugins=("ServiceAccount", "TaintNodesByCondition"))
    return made


@asynccontextmanager
async def feeding(made: Server, user: User | None = None, namespace: str = "") -> AsyncIterator[Feed]:
    api: Any = LocalApi(made)
    if user is not None:
        assert made.authorizer is not None
        api = AuthorizedApi(LocalApi(made, user), made.authorizer)
    feed = Feed(api, made.clock, namespace=namespace, now=lambda: {"type": "now"})
    feed.start()
    try:
        async with asyncio.timeout(60):
            yield feed
    finally:
        await feed.close()


async def test_a_viewer_is_told_what_is_there_and_what_changes() -> None:
    made = server()
    api = LocalApi(made)
    await api.create(NODES.untyped, "", {"metadata": {"name": "n1"}})
    await api.create(PODS.untyped, "default", pod("a", "n1"))
    async with feeding(made) as feed:
        viewer = Viewer(feed.join())
        await viewer.until(is_synced)
        assert viewer.messages[0] == {"type": "now"}
        assert viewer.objects()["Pod a"]["node"] == "n1"
        assert viewer.objects()["Node n1"]["pods"] == 1
        await api.create(PODS.untyped, "default", pod("b", "n1"))
        await viewer.until(lambda message: (message.get("object") or {}).get("pods") == 2)
        await api.delete(PODS, "default", "a", grace=0)
        gone = await viewer.until(lambda message: message.get("change") == "deleted")
        assert gone["object"]["name"] == "a"
        await viewer.until(lambda message: (message.get("object") or {}).get("pods") == 1)
        late = Viewer(feed.join())
        await late.until(is_synced)
        assert late.objects() == viewer.objects()


async def test_problems_name_the_top_object_and_its_first_cause() -> None:
    made = server()
    api = LocalApi(made)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("")["spec"]}
    spec = {"replicas": 1, "paused": True, "selector": {"matchLabels": labels}, "template": template}
    async with feeding(made) as feed:
        viewer = Viewer(feed.join())
        await viewer.until(is_synced)
        await api.create(DEPLOYMENTS.untyped, "default", {"metadata": {"name": "web"}, "spec": spec})
        told = await viewer.until(lambda message: bool(message.get("problems")))
        [problem] = told["problems"]
        assert (problem["kind"], problem["name"], problem["state"]) == ("Deployment", "web", "bad")
        assert problem["cause"] == (
            "Deployment web: its rollout is paused, and it has no ReplicaSet yet, so there are no pods."
        )
        await api.delete(DEPLOYMENTS, "default", "web")
        await viewer.until(lambda message: message.get("problems") == [])


def grant(made: Server, namespace: str, user: str, *resources: str) -> list[tuple[str, dict[str, Any]]]:
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": ["list", "watch"]}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    ref = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": "reader"}
    return [
        ("Role", {"metadata": {"name": "reader"}, "rules": [rule]}),
        ("RoleBinding", {"metadata": {"name": "reader"}, "roleRef": ref, "subjects": [subject]}),
    ]


async def test_a_user_sees_the_pods_of_one_namespace_and_is_told_what_is_unread() -> None:
    made = server()
    api = LocalApi(made)
    for name in ("ours", "theirs"):
        await api.create(load("", "v1", "Namespace").untyped, "", {"metadata": {"name": name}})
        await api.create(PODS.untyped, name, pod(f"in-{name}"))
    for kind, body in grant(made, "ours", "jane", "pods"):
        await api.create(load("rbac.authorization.k8s.io", "v1", kind).untyped, "ours", body)
    jane = User("jane")
    async with feeding(made, jane, "ours") as feed:
        viewer = Viewer(feed.join())
        await viewer.until(is_synced)
        assert list(viewer.objects()) == ["Pod in-ours"]
        unread = {each["kind"]: each["why"] for each in viewer.messages if each["type"] == "unread"}
        assert "Pod" not in unread
        assert 'User "jane" cannot list resource "nodes"' in unread["Node"]
    async with feeding(made, jane) as feed:
        viewer = Viewer(feed.join())
        await viewer.until(is_synced)
        assert viewer.objects() == {}, "jane may not list the pods of all namespaces"
        assert "Pod" in {each["kind"] for each in viewer.messages if each["type"] == "unread"}
        assert await feed.is_current()
        binding = load("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
        ref = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "view"}
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}
        body = {"metadata": {"name": "jane"}, "roleRef": ref, "subjects": [subject]}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
        role = load("rbac.authorization.k8s.io", "v1", "ClusterRole")
        await api.create(role.untyped, "", {"metadata": {"name": "lister"}, "rules": rules})
        await api.create(binding.untyped, "", {**body, "roleRef": {**ref, "name": "lister"}})
        assert not await feed.is_current(), "rights that change make another feed"


async def test_five_thousand_pods_stay_small_for_a_viewer_that_does_not_read() -> None:
    made = server()
    api = LocalApi(made)
    count = 5000
    for number in range(count):
        await api.create(PODS.untyped, "default", pod(f"p{number}"))
    async with feeding(made) as feed:
        asleep, awake = Viewer(feed.join()), Viewer(feed.join())
        await awake.until(is_synced)
        assert len(awake.objects()) >= count
        before = len(asleep.mailbox)
        for phase in ("Running", "Succeeded"):
            for number in range(100):
                body = {**pod(f"p{number}"), "status": {"phase": phase}}
                await api.update_status(PODS.untyped, "default", f"p{number}", body)
        await awake.until(object_named("p99", "done"))
        assert len(asleep.mailbox) <= before + 3, "one message for each object, however often it changes"
        await asleep.until(object_named("p99", "done"))
        assert asleep.objects()["Pod p99"] == awake.objects()["Pod p99"]


def test_a_mailbox_keeps_the_latest_message_about_each_subject() -> None:
    async def main() -> list[Message]:
        mailbox = Mailbox()
        mailbox.put("a", "added", b'{"n":1}')
        mailbox.put("b", "added", b'{"n":2}')
        mailbox.put("a", "modified", b'{"n":3}')
        mailbox.put("b", "deleted", b'{"n":2}')
        mailbox.tell("now", {"type": "now", "n": 4})
        mailbox.tell("now", {"type": "now", "n": 5})
        return [json.loads(line) for line in mailbox.take(1000).splitlines()]

    told = asyncio.run(main())
    assert [(each.get("change"), (each.get("object") or each)["n"]) for each in told] == [
        ("added", 3),
        ("deleted", 2),
        (None, 5),
    ]
