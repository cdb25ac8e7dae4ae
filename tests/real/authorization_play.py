"""Sends the authorization matrix to a server, and reduces each answer to one line that can be compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp

from tests.real.authorization_chapters import CHAPTERS as RESOURCES
from tests.real.authorization_chapters import DEFINITION, WIDGETS
from tests.real.authorization_grants import CHAPTERS as RIGHTS
from tests.real.authorization_rows import CLUSTER, ELSEWHERE, OWN, RBAC, Chapter, Request, User, collection
from tests.real.scenario import Ask, ask
from tests.real.scenario_plain import Answer, Plain
from tests.real.scenario_play import Target, send

CHAPTERS: tuple[Chapter, ...] = (*RESOURCES, *RIGHTS)
RECORDED = Path(__file__).with_name("authorization.txt")
"""The answers of a real kube-apiserver, a row a line."""
_WATCHES_AT_ONCE = 16
"""So few that a busy server sends what a watch begins with before the second of the watch is over."""
_LAST = "last"
"""The user whose rights are written last: once the authorizer knows of them, it knows of all."""


async def play(target: Target, chapters: Iterable[Chapter] = CHAPTERS) -> dict[str, str]:
    """The answer to every row by its title."""
    async with AsyncExitStack() as stack:
        player = Player(target, stack)
        await player.set_up(chapters)
        return {title: line for each in chapters async for title, line in player.chapter(each)}


def write(answers: Mapping[str, str]) -> str:
    """Answers as a text: a heading for each user, and a line for each of its requests."""
    lines, heading = [], ""
    for title, answer in answers.items():
        user, _, asked = title.rpartition(": ")
        if user != heading:
            lines.append(f"{user}\n")
            heading = user
        lines.append(f"\t{asked}\t{answer}\n")
    return "".join(lines)


@cache
def recorded() -> Mapping[str, str]:
    """What a real server answered when it was last asked."""
    answers, heading = {}, ""
    for line in RECORDED.read_text().splitlines():
        first, *rest = line.split("\t", 2)
        if first:
            heading = first
        else:
            asked, answer = rest
            answers[f"{heading}: {asked}"] = answer
    return answers


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The rows that two servers answer differently, as text."""
    return [
        f"{title}\n  this server:  {ours.get(title)}\n  kube-apiserver: {theirs.get(title)}"
        for title in dict.fromkeys((*ours, *theirs))
        if ours.get(title) != theirs.get(title)
    ]


@dataclass
class Player:
    """The connections of all users to one server."""

    target: Target
    stack: AsyncExitStack
    sessions: dict[str, aiohttp.ClientSession] = field(default_factory=dict)

    async def session(self, user: str) -> aiohttp.ClientSession:
        """The connection of a user; of the anonymous one for an empty name."""
        if user not in self.sessions:
            connector = aiohttp.TCPConnector(ssl=self.target.context(user))
            made = aiohttp.ClientSession(connector=connector, headers={"User-Agent": "matrix/1"})
            self.sessions[user] = await self.stack.enter_async_context(made)
        return self.sessions[user]

    async def send(self, user: str, asked: Request, known: Mapping[str, str]) -> Answer:
        sent = Ask(asked.title, asked.method, asked.path, asked.body, headers=asked.headers)
        return await send(await self.session(user), self.target.url, sent, known)

    async def create(self, path: str, body: Any, known: Mapping[str, str]) -> Any:
        """Creates an object as an administrator."""
        sent = ask("", "POST", path, body)
        answer = await send(await self.session("admin"), self.target.url, sent, known)
        assert answer["code"] == 201, (path, answer)
        return answer["body"]

    # -- namespaces and policy ----------------------------------------------------------------

    async def set_up(self, chapters: Iterable[Chapter]) -> None:
        await self.create("/api/v1/namespaces", {"metadata": {"name": ELSEWHERE}}, {})
        await self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, {})
        for chapter in chapters:
            for user in chapter.users:
                name = chapter.user_name(user)
                await self.create("/api/v1/namespaces", {"metadata": {"name": name}}, {})
                await self._grant(user, name)
        readers = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"]}
        await self._bind(
            "readers",
            CLUSTER,
            [readers],
            [("User", "reader"), ("Group", "readers"), ("User", "system:serviceaccount:elsewhere:robot")],
        )
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        for where in (CLUSTER, ELSEWHERE):
            await self._bind(_LAST + where, where, [everything], [("User", _LAST + where)])
            await self._known(_LAST + where, where)
        await self._until(f"{WIDGETS.replace(OWN, ELSEWHERE)}", 200)

    async def _grant(self, user: User, name: str) -> None:
        scopes = dict.fromkeys(grant.namespace for grant in user.grants)
        for scope in scopes:
            rules = [grant.rule for grant in user.grants if grant.namespace == scope]
            await self._bind(name, scope.replace(OWN, name), rules, [("User", name)])

    async def _bind(self, name: str, namespace: str, rules: Any, subjects: Iterable[tuple[str, str]]) -> None:
        kind = "Role" if namespace else "ClusterRole"
        names = {"metadata": {"name": name}}
        await self.create(collection(f"{kind.lower()}s", RBAC, namespace), {**names, "rules": rules}, {})
        ref = {"apiGroup": RBAC, "kind": kind, "name": name}
        of = [{"apiGroup": RBAC, "kind": each, "name": subject} for each, subject in subjects]
        path = collection(f"{kind.lower()}bindings", RBAC, namespace)
        await self.create(path, {**names, "roleRef": ref, "subjects": of}, {})

    async def _known(self, user: str, namespace: str) -> None:
        """Waits until the authorizer of a real server has seen the rights of a user."""
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        asked = {"verb": "x", "resource": "y", "namespace": namespace}
        async with asyncio.timeout(30):
            while True:
                review = await self.create(path, {"spec": {"user": user, "resourceAttributes": asked}}, {})
                if review["status"]["allowed"]:
                    return
                await asyncio.sleep(0.02)

    async def _until(self, path: str, code: int) -> None:
        async with asyncio.timeout(30):
            while True:
                sent = ask("", "GET", path)
                answer = await send(await self.session("admin"), self.target.url, sent, {})
                if answer["code"] == code:
                    return
                await asyncio.sleep(0.02)

    # -- rows ---------------------------------------------------------------------------------

    async def chapter(self, chapter: Chapter) -> AsyncIterator[tuple[str, str]]:
        """The title and the answer of every row of a chapter."""
        for user in chapter.users:
            name = chapter.user_name(user)
            for path, body in chapter.setting:
                await self.create(path, body, {"ns": name, "user": name})
        # A watch takes a second: those of a chapter run beside each other, before any request writes.
        watches = [(user, asked) for user, asked in chapter.rows() if asked.is_watch]
        at_once = asyncio.Semaphore(_WATCHES_AT_ONCE)

        async def watch(user: User, asked: Request) -> str:
            async with at_once:
                return await self._row(chapter, user, asked)

        streams = await asyncio.gather(*(watch(user, asked) for user, asked in watches))
        titles = (chapter.title(user, asked.title) for user, asked in watches)
        seen = dict(zip(titles, streams, strict=True))
        for user in chapter.users:
            for asked in chapter.requests:
                title = chapter.title(user, asked.title)
                yield title, seen[title] if asked.is_watch else await self._row(chapter, user, asked)
            for path, changed in chapter.remains:
                name, listing = chapter.user_name(user), Request("", "GET", path, shown=(changed,))
                left = await self.send("admin", listing, {"ns": name, "user": name})
                yield chapter.title(user, "what remains"), shown(left, listing, self.target.url)

    async def _row(self, chapter: Chapter, user: User, asked: Request) -> str:
        name = chapter.user_name(user)
        known = {"ns": name, "user": name, "name": asked.name}
        for path, body in asked.given:
            created = await self.create(path, body, known)
            known["version"] = created["metadata"]["resourceVersion"]
        answer = await self.send("" if user.anonymous else name, asked, known)
        return shown(answer, asked, self.target.url)


# -- answers as lines -------------------------------------------------------------------------


def shown(answer: Answer, asked: Request, url: str) -> str:
    """An answer as one line: its code, and what of its body is the same on every server."""
    code, body = answer["code"], answer["body"]
    if code < 400 and asked.quiet:
        return str(code)
    text = json.dumps(_told(body, asked), sort_keys=True, ensure_ascii=False)
    return f"{code} {Plain(url).text(text)}"


def _told(body: Any, asked: Request) -> Any:
    if isinstance(body, list) or (isinstance(body, dict) and {*body} == {"type", "object"}):
        events = body if isinstance(body, list) else [body]
        return sorted(f"{event['type']} {_named(event['object'])}" for event in events)
    if not isinstance(body, dict):
        return body
    if body.get("kind") == "Status" and body.get("status") == "Failure":
        return {key: body[key] for key in ("message", "reason", "details") if key in body}
    if "items" in body:
        return [_described(item, asked) for item in body["items"]]
    if str(body.get("kind")).endswith("Review"):
        return _in_order(body["status"])
    return _described(body, asked)


def _described(obj: Any, asked: Request) -> Any:
    """The name of an object, and the fields of it that the row is about."""
    fields = {path: _at(obj, path) for path in asked.shown}
    return [_named(obj), fields] if fields else _named(obj)


def _named(obj: Any) -> str:
    meta = obj.get("metadata", {})
    return "/".join(filter(None, (obj.get("kind", ""), meta.get("namespace", ""), meta.get("name", ""))))


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return body


def _in_order(value: Any) -> Any:
    """A review's answer with its lists in order: a real server has the rules of a user in none."""
    if isinstance(value, dict):
        return {key: _in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_order, value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
