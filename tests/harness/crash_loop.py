"""A control plane that is killed again and again under load, and what must be true of it after each time.

``steersman up --data-dir`` runs in a process of its own. Clients write to it over HTTP: creations, updates, patches,
applies and deletions, each client to objects of its own, so that of every object there is one story. In the midst
of that the process is killed. The next one must show, of every object, what was acknowledged last, at the version that
was acknowledged; or else the one write that was under way, whole. No version that anybody ever saw is given out again,
and whoever was trusted still is.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import field

from steersman.client import kubeconfig
from tests.harness.raw_http import Line, context

OBJECTS = "/api/v1/namespaces/default/configmaps"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_EACH = 6
"""How many objects a client has."""
_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')
_PATCHES = {"patch": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}


class Story(msgspec.Struct):
    """What is known of one object."""

    name: str
    content: str | None = None
    """What was acknowledged last; None where there is no such object."""
    version: int = 0
    under_way: tuple[str | None] | None = None
    """The content a write will leave that nobody has answered for."""


class Tally(msgspec.Struct):
    """What has happened so far."""

    kills: int = 0
    acknowledged: int = 0
    whole: int = 0
    """Writes that were there although nobody had been told."""
    absent: int = 0
    """Writes that nobody had been told of and that were not there."""
    verbs: dict[str, int] = field(default_factory=dict)


class Ordeal:
    """One data directory through many lives."""

    def __init__(self, directory: Path, seed: int, *, clients: int = 6) -> None:
        self.tally = Tally()
        self._directory = directory
        self._random = Random(seed)
        self._stories = [[Story(f"c{n}-{m}") for m in range(_EACH)] for n in range(clients)]
        self._seen = 0
        """The highest version anybody ever saw."""
        self._written = 0
        self._first: tuple[ssl.SSLContext, bytes] | None = None
        """How the first life's administrator connects, and the authority he trusts."""
        self._account: dict[str, Any] | None = None
        self._token = ""

    async def go(self, kills: int, most: int = 400) -> Tally:
        """Live and be killed so many times, each time after at most so many writes; and look once more."""
        for _ in range(kills):
            async with self._life() as (url, process):
                await self._check(url)
                await self._suffer(url, process, self._random.randrange(1, most))
                self.tally.kills += 1
        async with self._life() as (url, _):
            await self._check(url)
        return self.tally

    # -- a life -------------------------------------------------------------------------------

    @asynccontextmanager
    async def _life(self) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
        where = self._directory
        flags = ("--port=0", "--nodes=0", f"--data-dir={where / 'data'}", f"--kubeconfig={where / 'config'}")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "steersman.manager.cli", "up", *flags, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            said = (await process.stdout.readline()).decode()
            assert said.startswith("steersman is up at "), f"it did not come up: {said!r}"
            yield said.split()[4], process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    # -- load ---------------------------------------------------------------------------------

    async def _suffer(self, url: str, process: asyncio.subprocess.Process, writes: int) -> None:
        """Write from all sides until it is killed, some time around a number of writes."""
        tls, _ = self._trusted()
        watch = await Line.open(url, tls)
        await watch.follow(f"{OBJECTS}?watch=1&resourceVersion=0", self._hear)
        end, late = self._written + writes, self._random.random() * 0.01
        due = asyncio.Event()

        async def client(stories: list[Story], random: Random) -> None:
            line = await Line.open(url, tls)
            try:
                while True:
                    await self._write(line, random.choice(stories), random)
                    if self._written >= end:
                        due.set()
            except ConnectionError:
                pass  # as it must end
            finally:
                line.close()

        clients = [
            asyncio.create_task(client(stories, Random(self._random.random()))) for stories in self._stories
        ]
        await asyncio.wait((asyncio.create_task(due.wait()), *clients), return_when=asyncio.FIRST_COMPLETED)
        # Not at the moment of an answer, when the disk is sure to be done.
        asyncio.get_running_loop().call_later(late, process.kill)
        await asyncio.gather(*clients)
        await process.wait()
        watch.close()

    def _hear(self, data: bytes) -> None:
        for version in _VERSION.findall(data):
            self._seen = max(self._seen, int(version))

    async def _write(self, line: Line, story: Story, random: Random) -> None:
        """One write. Raises `ConnectionError` where nobody answers."""
        self._written += 1
        there = story.content is not None
        verb = random.choice(("update", "patch", "apply", "delete") if there else ("create", "apply"))
        size = random.choice((10, 500, 9000))
        content = None if verb == "delete" else f"{self._written} {random.randbytes(size).hex()}"
        story.under_way = (content,)
        code, answer = await self._send(line, verb, story, content, random)
        if code not in (200, 201):
            raise AssertionError(f"{verb} {story.name} was answered with {code}: {answer[:300]!r}")
        story.under_way = None
        story.content = content
        self.tally.acknowledged += 1
        self.tally.verbs[verb] = self.tally.verbs.get(verb, 0) + 1
        if content is not None:
            made = json.loads(answer)
            version = int(made["metadata"]["resourceVersion"])
            assert made["data"]["content"] == content, f"{story.name} was answered with something else"
            assert version > story.version, f"{story.name} goes from {story.version} back to {version}"
            story.version = version
            self._seen = max(self._seen, version)

    def _send(
        self, line: Line, verb: str, story: Story, content: str | None, random: Random
    ) -> asyncio.Future[tuple[int, bytes]]:
        path = f"{OBJECTS}/{story.name}"
        meta: dict[str, Any] = {"name": story.name, "labels": {"of": "ordeal"}}
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"content": content}}
        if verb == "delete":
            return line.ask("DELETE", path)
        if verb == "create":
            return line.ask("POST", OBJECTS, json.dumps(whole).encode())
        if verb == "update":
            if random.random() < 0.5:
                meta["resourceVersion"] = str(story.version)
            return line.ask("PUT", path, json.dumps(whole).encode())
        body = whole if verb == "apply" else {"data": {"content": content}}
        query = "?fieldManager=ordeal&force=true" if verb == "apply" else ""
        return line.ask("PATCH", path + query, json.dumps(body).encode(), _PATCHES[verb])

    # -- what must be true --------------------------------------------------------------------

    def _trusted(self) -> tuple[ssl.SSLContext, bytes]:
        """As whom to connect: the administrator of the first life, whose certificate still counts."""
        connection = kubeconfig.load(str(self._directory / "config"))
        if self._first is None:
            self._first = context(connection), connection.tls.ca.data
        assert connection.tls.ca.data == self._first[1], "another authority than in the first life"
        return self._first

    async def _check(self, url: str) -> None:
        tls, _ = self._trusted()
        line = await Line.open(url, tls)
        try:
            code, answer = await line.ask("GET", OBJECTS)
            assert code == 200, answer
            found = json.loads(answer)
            now = int(found["metadata"]["resourceVersion"])
            assert now >= self._seen, f"goes back to {now}, {self._seen} was seen"
            # What comes from now on must be above all that there is.
            self._seen = max(self._seen, now)
            objects = {each["metadata"]["name"]: each for each in found["items"]}
            for story in (each for stories in self._stories for each in stories):
                self._compare(story, objects.get(story.name))
            await self._recognise(line)
        finally:
            line.close()

    def _compare(self, story: Story, found: dict[str, Any] | None) -> None:
        """Hold what there is of an object against its story."""
        content = None if found is None else found["data"]["content"]
        version = 0 if found is None else int(found["metadata"]["resourceVersion"])
        last, under_way = story.content, story.under_way
        story.under_way = None
        if under_way is not None and content == under_way[0] and (found is None or version > story.version):
            self.tally.whole += 1
            story.content, story.version = content, max(version, story.version)
            return
        if under_way is not None:
            self.tally.absent += 1
        assert content == last, f"{story.name}: {_shown(last)} was acknowledged, there is {_shown(content)}"
        if found is not None:
            assert version == story.version, f"{story.name} is at {version}, {story.version} was acknowledged"

    async def _recognise(self, line: Line) -> None:
        """The default account is there, and who it was in the first life; and so is who has its token."""
        account = await _account(line)
        if self._account is None:
            self._account = account
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            code, answer = await line.ask("POST", f"{ACCOUNT}/token", json.dumps(body).encode())
            assert code == 201, answer
            self._token = json.loads(answer)["status"]["token"]
        assert account["metadata"]["uid"] == self._account["metadata"]["uid"], "another default account"
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": self._token},
        }
        where = "/apis/authentication.k8s.io/v1/tokenreviews"
        code, answer = await line.ask("POST", where, json.dumps(review).encode())
        assert code == 201, answer
        assert json.loads(answer)["status"].get("authenticated"), (
            "a token of the first life is not recognised"
        )
        claims = self._token.split(".")[1]
        assert self._account["metadata"]["uid"] in b64decode(claims + "=" * (-len(claims) % 4)).decode()


async def _account(line: Line) -> dict[str, Any]:
    """The default account, once it is there: only in the first life is that not at once."""
    code, answer = await line.ask("GET", ACCOUNT)
    while code == 404:
        code, answer = await line.ask("GET", ACCOUNT)
    assert code == 200, answer
    made: dict[str, Any] = json.loads(answer)
    return made


def _shown(content: str | None) -> str:
    return "nothing" if content is None else f"write {content.partition(' ')[0]} ({len(content)} letters)"
