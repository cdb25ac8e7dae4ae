"""Sends the scenario to a server, and brings its answers into a form in which two servers' can be compared.

Left out is what differs by nature, and nothing else: identities, versions, times, drawn names and addresses, tokens,
where a server listens. What stays comparable does: the same identity or version has the same number wherever it comes.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yaml
import yarl
from multidict import CIMultiDict

from steersman.api.jwt import Claims, encode
from steersman.api.keys import Keys
from steersman.runtime.clock import LiveClock
from steersman.server.auth.authority import Pair
from steersman.server.boot import Boot, equip
from steersman.server.core import Server
from steersman.testing.plane import RealPlane

ISSUER = "https://kubernetes.default.svc"
GROUPS = {"admin": ("system:masters",)}
PATIENCE = 20.0
"""Seconds that an answer may take."""
SILENCE = 2.0
"""Seconds after which a watch has nothing more to say."""
RECORDED = Path(__file__).with_name("scenario.txt")

UNTOLD = frozenset(
    {
        "Accept-Ranges",
        "Audit-Id",
        "Content-Encoding",
        "Content-Length",
        "Date",
        "Etag",
        "Last-Modified",
        "Process-Start-Time-Unix",
        "Server",
        "Transfer-Encoding",
        "Vary",
        "X-Kubernetes-Pf-Flowschema-Uid",
        "X-Kubernetes-Pf-Prioritylevel-Uid",
    }
)
"""Headers that say nothing about the answer, or how it is packed."""

Answer = dict[str, Any]
"""``code``, ``headers`` and ``body``."""


@dataclass(frozen=True)
class Target:
    """A server to play to."""

    url: str
    context: Callable[[str], ssl.SSLContext]
    """What makes a connection somebody's."""
    keys: Keys
    """What its ServiceAccount tokens are signed with."""
    compact: Callable[[], None]
    """Makes it forget what was."""


@asynccontextmanager
async def real() -> AsyncIterator[Target]:
    """A real control plane of its own."""
    # Its caches would remember for a while what etcd was told to forget.
    with RealPlane.start(apiserver=("--feature-gates=ListFromCacheSnapshot=false",)) as plane:
        keys = Keys.load(plane.service_account_key.read_bytes())
        yield Target(
            plane.url,
            lambda user: _context(
                plane.ca.read_bytes(), plane._authority.client(user, GROUPS.get(user, ())) if user else None
            ),
            keys,
            lambda: _compact(plane.dir / "etcd.sock"),
        )


@asynccontextmanager
async def embedded() -> AsyncIterator[Target]:
    """The embedded server, at a socket."""
    clock = LiveClock()
    server = Server(clock)
    fresh = Boot.fresh(clock.now)
    boot = Boot(fresh.authority, fresh.keys, clock.now, ISSUER)
    authorizer = equip(server, authority=boot.authority.pair.cert)
    edge = await boot.serve(server, authorizer)

    def forget() -> None:
        server.store.floor = server.store.revision
        for table in server.store.tables():
            table.recast(lambda obj: obj)

    try:
        yield Target(
            edge.url,
            lambda user: _context(
                boot.authority.pair.cert, boot.authority.client(user, GROUPS.get(user, ())) if user else None
            ),
            boot.keys,
            forget,
        )
    finally:
        await edge.close()


def _context(ca: bytes, pair: Pair | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.decode())
    if pair is not None:
        with tempfile.TemporaryDirectory() as where:
            both = Path(where, "pair")
            both.write_bytes(pair.cert + pair.key)
            context.load_cert_chain(both)
    return context


def _compact(socket: Path) -> None:
    """Have etcd forget all but what is now."""
    import http.client
    import socket as sockets

    def call(path: str, body: Mapping[str, Any]) -> Any:
        connection = http.client.HTTPConnection("etcd")
        connection.sock = sockets.socket(sockets.AF_UNIX)
        connection.sock.connect(str(socket))
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        assert answer.status == 200, told
        return told

    head = call("/v3/kv/range", {"key": "AA=="})["header"]
    call("/v3/kv/compaction", {"revision": head["revision"], "physical": True})


# -- playing ----------------------------------------------------------------------------------


async def play(target: Target, chapters: Mapping[str, Sequence[Any]]) -> dict[str, Answer]:
    """Every answer by what its request is called."""
    told: dict[str, Answer] = {}
    async with AsyncExitStack() as stack:
        sessions: dict[str, aiohttp.ClientSession] = {}

        async def session(user: str) -> aiohttp.ClientSession:
            if user not in sessions:
                connector = aiohttp.TCPConnector(ssl=target.context(user))
                made = aiohttp.ClientSession(connector=connector, headers={"User-Agent": "scene/1"})
                sessions[user] = await stack.enter_async_context(made)
            return sessions[user]

        for chapter, asks in chapters.items():
            plain = Plain(target.url)
            namespace = f"scene-{chapter}"
            known = {"ns": namespace, "expired": expired(target.keys)}
            await _set_up(await session("admin"), target.url, namespace)
            for ask in asks:
                title = f"{chapter}: {ask.title}"
                if ask.method == "COMPACT":
                    target.compact()
                    continue
                try:
                    answer = await _send(await session(ask.user), target.url, ask, known)
                except aiohttp.ServerDisconnectedError:
                    answer = {"code": 0, "headers": CIMultiDict(), "body": "hangs up"}
                except (aiohttp.ClientError, TimeoutError) as error:
                    raise AssertionError(f"{title}: no answer") from error
                for name, path in ask.keep.items():
                    known[name] = str(_at(answer["body"], path))
                told[title] = plain.answer(ask.title, answer, ask.head)
                if ask.unordered:
                    told[title]["body"] = _sort(told[title]["body"])
    return told


def _sort(body: Any) -> Any:
    """A body with its lists in order, which a real server has in none; its message says the same."""
    if isinstance(body, list):
        return sorted(map(_sort, body), key=lambda item: json.dumps(item, sort_keys=True))
    if not isinstance(body, dict):
        return body
    return {
        name: value.partition(": ")[0]
        if (name, body.get("status")) == ("message", "Failure")
        else _sort(value)
        for name, value in body.items()
    }


async def _set_up(session: aiohttp.ClientSession, url: str, namespace: str) -> None:
    spaces = f"{url}/api/v1/namespaces"
    for path, name in ((spaces, namespace), (f"{spaces}/{namespace}/serviceaccounts", "default")):
        async with session.post(path, json={"metadata": {"name": name}}) as answer:
            assert answer.status == 201, await answer.text()


async def _send(session: aiohttp.ClientSession, url: str, ask: Any, known: Mapping[str, str]) -> Answer:
    target = yarl.URL(url + _filled(ask.path, known, quote), encoded=True)
    headers = {name: _filled(value, known) for name, value in ask.headers.items()}
    data: Any = ask.body
    if isinstance(data, int):
        data = b"x" * data
    elif data is not None and not isinstance(data, bytes):
        data = _filled(json.dumps(data), known).encode()
    skip = () if headers.get("Content-Type", "x") else ("Content-Type",)
    headers = {name: value for name, value in headers.items() if value}
    async with asyncio.timeout(PATIENCE):
        while True:
            async with session.request(
                ask.method, target, data=data, headers=headers, skip_auto_headers=skip, allow_redirects=False
            ) as answer:
                if ask.lines:
                    raw = await _lines(answer, ask.lines)
                else:
                    raw = await answer.read()
                if ask.until in (0, answer.status):
                    return {
                        "code": answer.status,
                        "headers": answer.headers,
                        "body": _read(raw, answer.content_type),
                    }
            await asyncio.sleep(0.05)


async def _lines(answer: aiohttp.ClientResponse, count: int) -> bytes:
    """So many lines of a watch, or what there is of them."""
    raw = b""
    try:
        async with asyncio.timeout(SILENCE):
            for _ in range(count):
                raw += await answer.content.readline()
    except TimeoutError:
        pass  # the comparison will tell
    return raw


def _filled(text: str, known: Mapping[str, str], safe: Callable[[str], str] = str) -> str:
    return re.sub("<<([a-z]+)>>", lambda found: safe(known[found[1]]), text)


def _read(raw: bytes, kind: str) -> Any:
    """A document, a list of the lines of a watch, or text."""
    if b"k8s\0" in raw[:8]:
        return "<protobuf>"
    text = raw.decode("utf-8", "backslashreplace")
    if kind == "application/yaml":
        return {"as YAML": json.loads(json.dumps(yaml.safe_load(text), default=datetime.isoformat))}
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()] if text else ""
    except ValueError:
        return text


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        body = body[part]
    return body


def expired(keys: Keys) -> str:
    """A token that held once."""
    at = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
    return encode(
        Claims(aud=(ISSUER,), exp=at + 600, iat=at, iss=ISSUER, nbf=at, sub="system:serviceaccount:a:b"),
        keys.signer,
    )


# -- what differs by nature -------------------------------------------------------------------

_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+]0000 UTC)")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_DRAWN = re.compile(r"(gen-|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_VERSIONS = re.compile(
    r"(ResourceVersion in [a-z ]+[:(] ?|in record \(|in the precondition \(|current: )\d+\b(?!-)"
)
_TOO_OLD = re.compile(r"(too old resource version: \d+ \()\d+")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_CREDENTIAL = re.compile(r"\b(X509SHA256=)[0-9a-f]{64}\b")
_ECHO = re.compile(r'(?<=Invalid value: )"\{(?:[^"\\]|\\.)*\}"')
_PORT = re.compile(r"(?<=:)(?!30123)3[0-2]\d{3}(?=/)|(?<=value: )(?!30123)3[0-2]\d{3}\b")
_AGE = re.compile(r"^(\d+[smh])+$|^<unknown>$")


def _in_order(found: re.Match[str]) -> str:
    """A document that a message shows: fields have no order."""
    try:
        echo = json.loads(json.loads(found[0]))
    except ValueError:
        return found[0]
    for meta in (echo.get("metadata"),):
        if isinstance(meta, dict) and "resourceVersion" in meta:
            meta["resourceVersion"] = "<version>"
    return json.dumps(json.dumps(echo, sort_keys=True))


@dataclass
class Plain:
    """Takes out of answers what differs by nature. One a chapter."""

    url: str
    _uids: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)
    _title: str = ""

    def answer(self, title: str, answer: Answer, head: bool) -> Answer:
        self._title = title
        headers: dict[str, Any] = {}
        for name in sorted({*answer["headers"]} - UNTOLD):
            values = [self.text(value) for value in answer["headers"].getall(name) if value]
            if values:
                headers[name] = values if len(values) > 1 else values[0]
        body = None if head else self.value(answer["body"])
        return {"code": answer["code"], "headers": headers, "body": body}

    def value(self, value: Any, name: str = "", within: Any = None) -> Any:
        if isinstance(value, dict):
            return {key: self.value(value[key], key, value) for key in sorted(value)}
        if isinstance(value, list):
            if name == "managedFields":
                # Among other things they are sorted by their times, in seconds.
                value = sorted(value, key=lambda entry: json.dumps({**entry, "time": ""}, sort_keys=True))
            return [self.value(item, name, value) for item in value]
        if not isinstance(value, str):
            drawn = isinstance(value, int) and name in ("nodePort", "healthCheckNodePort") and value != 30123
            return "<port>" if drawn and value else value
        if name == "resourceVersion" and value.isdigit() and value != "0":
            if isinstance(within, dict) and "uid" in within:
                return self._called(self._versions, "version", value)
            return "<version>"
        if name == "continue" and value:
            return "<continue>"
        if name == "description":
            return "<text>" if value else ""
        if name == "cells" and _AGE.match(value):
            return "<age>"
        return self.text(value)

    def text(self, text: str) -> str:
        text = _ECHO.sub(_in_order, text)
        text = _TIME.sub(lambda found: f"<time{'.' * (len(found[1] or ''))}>", text)
        text = _UID.sub(self._uid, _TOKEN.sub("<token>", text))
        text = _VERSIONS.sub(r"\1<version>", _TOO_OLD.sub(r"\1<version>", _DRAWN.sub(r"\1<name>", text)))
        text = _PORT.sub("<port>", text)
        text = _ADDRESS.sub("<address>", _CREDENTIAL.sub(r"\1<digest>", text))
        return text.replace(self.url.removeprefix("https://"), "<server>")

    def _uid(self, found: re.Match[str]) -> str:
        return found[0] if not found[0].strip("0-") else self._called(self._uids, "uid", found[0])

    def _called(self, known: dict[str, str], what: str, value: str) -> str:
        """The same for the same: after the first answer that told of it."""
        if value not in known:
            name = f"<{what} of {self._title!r}"
            others = sum(other.startswith(name) for other in known.values())
            known[value] = f"{name} {others}>" if others else f"{name}>"
        return known[value]


# -- comparing --------------------------------------------------------------------------------


def differing(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ, and what stands there: the deepest such places."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{path}.{key}".lstrip("."), one.get(key, ...), other.get(key, ...)
            else:
                yield from differing(one[key], other[key], f"{path}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differing(mine, theirs, f"{path}.{place}")
    elif one != other:
        yield path, one, other


def compared(
    ours: Mapping[str, Answer], theirs: Mapping[str, Answer]
) -> dict[str, list[tuple[str, Any, Any]]]:
    """Where answers differ, by what their requests are called."""
    assert list(ours) == list(theirs)
    found = {title: list(differing(answer, theirs[title])) for title, answer in ours.items()}
    return {title: places for title, places in found.items() if places}


USUAL = {"Cache-Control": "no-cache, private", "Content-Type": "application/json"}
"""The headers of most answers."""


def write(answers: Mapping[str, Answer]) -> str:
    """Answers as a text: a line each."""
    lines = []
    for title, answer in answers.items():
        told = {key: value for key, value in answer.items() if (key, value) != ("headers", USUAL)}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{title}\t{text}\n")
    return "".join(lines)


def recorded() -> dict[str, Answer]:
    """What a real server answered when it was last asked."""
    lines = (line.split("\t", 1) for line in RECORDED.read_text().split("\n") if line)
    return {title: {"headers": USUAL, **json.loads(answer)} for title, answer in lines}
