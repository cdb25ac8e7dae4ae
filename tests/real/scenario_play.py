"""Sends the scenario to a server: the embedded one, or a real one with an etcd of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket as sockets
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yaml
import yarl
from multidict import CIMultiDict

from steersman.api.clock import RealClock
from steersman.api.jwt import Claims, encode
from steersman.api.signing_keys import KeySet
from steersman.server.auth.ca import CertificatePair
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.codec.negotiation import PROTOBUF
from steersman.server.server import Server
from tests.harness.echo_extension import ExtensionServer
from tests.harness.envtest import RealPlane
from tests.harness.protobuf_reader import read_body, read_frames
from tests.harness.webhook_server import Handler, WebhookServer
from tests.real.scenario_conversion import HANDLERS as CONVERTERS
from tests.real.scenario_plain import Answer, Plain, in_order
from tests.real.scenario_webhooks import HANDLERS

ISSUER = "https://kubernetes.default.svc"
NODES = ("system:nodes",)
GROUPS = {"admin": ("system:masters",), "system:node:ungrouped": (), "misnamed": NODES}
EXTENSION = "ext.scene-aggregation.svc"
"""The name of the Service that an extension API server is behind."""
PATIENCE = 60.0
"""Seconds that an answer may take."""
SILENCE = 10.0
"""Seconds after which a watch has nothing more to say."""


@dataclass(frozen=True)
class Target:
    """A server to play to."""

    url: str
    context: Callable[[str], ssl.SSLContext]
    """What makes a connection somebody's."""
    keys: KeySet
    """What its ServiceAccount tokens are signed with."""
    compact: Callable[[], None]
    """Makes it forget what was."""


def groups_of(user: str) -> tuple[str, ...]:
    """The groups in the certificate of a user."""
    return GROUPS.get(user, NODES if user.startswith("system:node:") else ())


@asynccontextmanager
async def real() -> AsyncIterator[Target]:
    """A real control plane of its own."""
    # Its caches would remember for a while what etcd was told to forget.
    flags = ("--feature-gates=ListFromCacheSnapshot=false", "--enable-admission-plugins=NodeRestriction")
    with RealPlane.start(apiserver=flags) as plane:
        keys = KeySet.load(plane.service_account_key.read_bytes())
        yield Target(
            plane.url,
            lambda user: (
                plane.tls(user, groups_of(user)) if user else ssl.create_default_context(cafile=str(plane.ca))
            ),
            keys,
            lambda: _compact(plane.dir / "etcd.sock"),
        )


@asynccontextmanager
async def embedded(audit_log: Path | None = None) -> AsyncIterator[Target]:
    """The embedded server, at a socket."""
    clock = RealClock()
    server = Server(clock)
    fresh = Bootstrap.generate(clock.now)
    boot = Bootstrap(fresh.authority, fresh.keys, clock.now, ISSUER)
    authorizer = bootstrap_server(server, client_ca=boot.authority.pair.cert)
    edge = await boot.serve(server, authorizer, audit_log=audit_log)

    def forget() -> None:
        server.store.compacted = server.store.revision
        for table in server.store.tables():
            table.convert_objects(lambda obj: obj)

    try:
        yield Target(
            edge.url,
            lambda user: _context(
                boot.authority.pair.cert, boot.authority.client(user, groups_of(user)) if user else None
            ),
            boot.keys,
            forget,
        )
    finally:
        await edge.close()


def _context(ca: bytes, pair: CertificatePair | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.decode())
    if pair is not None:
        with tempfile.TemporaryDirectory() as where:
            both = Path(where, "pair")
            both.write_bytes(pair.cert + pair.key)
            context.load_cert_chain(both)
    return context


def _compact(socket: Path) -> None:
    """Have etcd forget all but what is now."""

    def call(path: str, body: Mapping[str, Any]) -> Any:
        connection = http.client.HTTPConnection("etcd")
        connection.sock = sockets.socket(sockets.AF_UNIX)
        connection.sock.settimeout(PATIENCE)
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


async def play(
    target: Target, chapters: Mapping[str, Sequence[Any]], handlers: Mapping[str, Handler] = HANDLERS
) -> dict[str, Answer]:
    """Every answer by what its request is called. ``handlers`` are those of the webhook server."""
    told: dict[str, Answer] = {}
    async with AsyncExitStack() as stack:
        sessions: dict[str, aiohttp.ClientSession] = {}

        async def session(user: str) -> aiohttp.ClientSession:
            if user not in sessions:
                connector = aiohttp.TCPConnector(ssl=target.context(user))
                made = aiohttp.ClientSession(connector=connector, headers={"User-Agent": "scene/1"})
                sessions[user] = await stack.enter_async_context(made)
            return sessions[user]

        hooks = stack.enter_context(WebhookServer({**handlers, **CONVERTERS}))
        extension = stack.enter_context(ExtensionServer(EXTENSION))
        port = extension.address.rpartition(":")[2]
        for chapter, asks in chapters.items():
            plain = Plain(target.url, hooks.address, int(port))
            namespace = f"scene-{chapter}"
            known = {"ns": namespace, "expired": expired(target.keys)}
            known |= {"hooks": hooks.address, "bundle": hooks.ca_bundle}
            known |= {"extension": port, "authority": extension.ca_bundle}
            await _set_up(await session("admin"), target.url, namespace)
            for ask in asks:
                title = f"{chapter}: {ask.title}"
                if ask.method == "COMPACT":
                    target.compact()
                    continue
                try:
                    answer = await send(await session(ask.user), target.url, ask, known)
                except aiohttp.ServerDisconnectedError:
                    answer = {"code": 0, "headers": CIMultiDict(), "body": "hangs up"}
                except (aiohttp.ClientError, TimeoutError) as error:
                    raise AssertionError(f"{title}: no answer") from error
                if answer["code"] in (0, 413):
                    # The server closes the connection, perhaps only after the next request has gone out.
                    await sessions.pop(ask.user).close()
                for name, path in ask.keep.items():
                    known[name] = str(_at(answer["body"], path))
                told[title] = plain.answer(ask.title, answer, ask.head)
                if ask.unordered:
                    told[title]["body"] = in_order(told[title]["body"])
                    warnings = told[title]["headers"].get("Warning")
                    if isinstance(warnings, list):
                        warnings.sort()
    return told


async def _set_up(session: aiohttp.ClientSession, url: str, namespace: str) -> None:
    spaces = f"{url}/api/v1/namespaces"
    for path, name in ((spaces, namespace), (f"{spaces}/{namespace}/serviceaccounts", "default")):
        async with session.post(path, json={"metadata": {"name": name}}) as answer:
            assert answer.status == 201, await answer.text()


async def send(session: aiohttp.ClientSession, url: str, ask: Any, known: Mapping[str, str]) -> Answer:
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
                body = _read(raw, answer.content_type, _stream(answer.headers))
                if ask.until in (0, answer.status) and (not ask.settled or _has(body, ask.settled)):
                    return {"code": answer.status, "headers": answer.headers, "body": body}
            await asyncio.sleep(0.05)


async def _lines(answer: aiohttp.ClientResponse, count: int) -> bytes:
    """So many lines of a watch, or frames of one in protobuf, or what there is of them."""
    raw = b""
    framed = answer.content_type == PROTOBUF
    try:
        async with asyncio.timeout(SILENCE):
            for _ in range(count):
                if not framed:
                    raw += await answer.content.readline()
                    continue
                head = await answer.content.readexactly(4)
                raw += head + await answer.content.readexactly(int.from_bytes(head, "big"))
    except asyncio.IncompleteReadError as rest:
        raw += rest.partial
    except TimeoutError:
        pass  # the comparison will tell
    return raw


def _filled(text: str, known: Mapping[str, str], safe: Callable[[str], str] = str) -> str:
    text = re.sub('"<<#([a-z]+)>>"', lambda found: known[found[1]], text)  # a number
    return re.sub("<<([a-z]+)>>", lambda found: safe(known[found[1]]), text)


def _stream(headers: Mapping[str, str]) -> str:
    return headers.get("Content-Type", "").partition(";stream=")[2]


def _read(raw: bytes, kind: str, stream: str) -> Any:
    """A document, a list of the lines of a watch, or text."""
    if kind == PROTOBUF:
        frames = stream == "watch"
        return {"as protobuf": list(read_frames(raw)) if frames else read_body(raw)}
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
        body = body[int(part) if isinstance(body, list) else part]
    return body


def _has(body: Any, path: str) -> bool:
    try:
        return bool(_at(body, path))
    except (KeyError, IndexError, TypeError):
        return False


def expired(keys: KeySet) -> str:
    """A token that held once."""
    at = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
    return encode(
        Claims(aud=(ISSUER,), exp=at + 600, iat=at, iss=ISSUER, nbf=at, sub="system:serviceaccount:a:b"),
        keys.signer,
    )
