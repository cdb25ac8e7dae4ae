"""Requests to the API server, from bytes to response: none fails inside the server.

A response may refuse, but with a Status that says why. An exception that becomes a 500 is a finding, and so is a connection that
closes without a response.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import h11
import msgspec
from hypothesis import strategies as st

from steersman.api.signing_keys import KeySet
from steersman.server.auth.authentication import Authenticator
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.users import User
from steersman.server.bootstrap import bootstrap_server
from steersman.server.http.app import ApiServer
from steersman.server.http.context import AppState
from steersman.server.http.discovery_cache import DiscoveryCache
from steersman.server.http.watch_registry import WatchRegistry
from steersman.server.server import Server
from tests.fuzz.event_loop import run
from tests.fuzz.server_connection import exchange
from tests.fuzz.target import Target
from tests.fuzz.targets.list_options import targets
from tests.harness.fake_clock import FakeClock

RENEW = 64
"""Inputs after which a new server takes the place of the one they have filled."""
USERS = {"admin": User("root", groups=("system:masters",)), "viewer": User("viewer")}
ISSUER = "https://kubernetes.default.svc"
UNKNOWN_REQUEST = b"unable to determine kind and namespace from url"


class Servers:
    """The server under test: a control plane without a socket, with a Namespace, a Pod and a ConfigMap."""

    def __init__(self) -> None:
        self._left = 0
        self._current: ApiServer | None = None

    async def current(self) -> ApiServer:
        if self._current is None or not self._left:
            # The bound on time may end this half-way: the next attempt must not close the same server again.
            full, self._current = self._current, None
            if full is not None:
                full.state.watches.close()
                full.state.discovery.close()
            self._current, self._left = await self._new(), RENEW
        self._left -= 1
        return self._current

    async def _new(self) -> ApiServer:
        server = Server(FakeClock())
        bootstrap_server(server)
        keys = KeySet.seeded(Random(1))
        nothing = ObjectLookup(lambda *key: None)
        server.authenticator = Authenticator(nothing, keys=keys, issuers=[ISSUER], tokens=USERS)
        state = AppState(server, DiscoveryCache(server), WatchRegistry(server.store))
        made = ApiServer(state, "127.0.0.1", secure=False)
        for request in SEEDS[:2]:
            await exchange(made.handle, (request,))
        return made


SERVERS = Servers()


class Failures(logging.Handler):
    """Collects what the server logs about requests that failed inside it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.found.append(record.exc_info[1])


@contextmanager
def failures() -> Iterator[list[BaseException]]:
    """Keep what the server logs out of the output, and collect it."""
    log, handler = logging.getLogger("steersman.server.http.app"), Failures()
    log.addHandler(handler)
    log.propagate = False
    try:
        yield handler.found
    finally:
        log.removeHandler(handler)
        log.propagate = True


async def check_request(data: bytes) -> None:
    server = await SERVERS.current()
    with failures() as failed:
        transport = await exchange(server.handle, (data,))
    if failed:
        raise failed[0]
    if transport.closed:
        assert transport.written, "closed without a response"
    rest = transport.written
    method = data.lstrip(b"\r\n").partition(b" ")[0]
    while rest:
        rest = check_response(rest, method)
        method = b"GET"


def check_response(data: bytes, method: bytes) -> bytes:
    """Check the first response; return the rest."""
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    reader.send(
        h11.Request(method="HEAD" if method == b"HEAD" else "GET", target="/", headers=[("Host", "a")])
    )
    reader.send(h11.EndOfMessage())
    reader.receive_data(data)
    status = 0
    content_type = coding = body = b""
    while not isinstance(event := reader.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            status = event.status_code
            content_type = dict(event.headers).get(b"content-type", b"")
            coding = dict(event.headers).get(b"content-encoding", b"")
        elif isinstance(event, h11.Data):
            body += event.data
        elif event is h11.NEED_DATA:
            return b""  # a watch goes on
    if coding == b"gzip" and body:
        body = gzip.decompress(body)
    assert status != 500 or is_upstreams(body), f"{status}: {body[:300]!r}"
    if content_type == b"application/json" and body and method != b"HEAD":
        document = msgspec.json.decode(body)
        if status >= 400 and document.get("kind") == "Status":
            assert document["code"] == status
    return reader.trailing_data[0]


def is_upstreams(body: bytes) -> bool:
    """Whether kube-apiserver refuses with 500, too: a path it cannot parse, or a Status without a reason.

    An apply with unknown fields and a watch from a malformed resourceVersion are such.
    """
    if UNKNOWN_REQUEST in body:
        return True
    document = msgspec.json.decode(body)
    return document["kind"] == "Status" and "reason" not in document


def check(data: bytes) -> None:
    run(check_request(data))


def written(
    method: str, path: str, body: bytes, content_type: str = "application/json", more: str = ""
) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\nContent-Type: {content_type}\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


POD = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"b":"c"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
CONFIG_MAP = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"d":"e"}}'
PODS, CONFIG_MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"
SEEDS = (
    written("POST", PODS, POD),
    written("POST", CONFIG_MAPS, CONFIG_MAP),
    written("PUT", f"{CONFIG_MAPS}/a", CONFIG_MAP),
    written("PATCH", f"{CONFIG_MAPS}/a", b'{"data":{"d":null}}', "application/merge-patch+json"),
    written("PATCH", f"{PODS}/a", b'{"metadata":{"labels":{"x":"y"}}}', "application/strategic-merge-patch+json"),
    written("PATCH", f"{PODS}/a", b'[{"op":"replace","path":"/metadata/labels/b","value":"z"}]', "application/json-patch+json"),
    written("PATCH", f"{CONFIG_MAPS}/b?fieldManager=m&force=true", CONFIG_MAP.replace(b'"a"', b'"b"'), "application/apply-patch+yaml"),
    written("POST", "/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict", b'{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},'
            b'"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}'),
    written("DELETE", f"{PODS}/a?gracePeriodSeconds=0", b'{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}'),
    written("POST", f"{PODS}/a/eviction", b'{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"}}', more="User-Agent: kubectl/v1.36\r\n"),
    b"GET /api/v1/pods?limit=1&labelSelector=b%3Dc HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n\r\n",
    b"GET /api/v1/pods?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n",
    b"GET /apis HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer viewer\r\nImpersonate-User: x\r\n\r\n",
    b"GET /api/v1/namespaces/default/pods/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a.b.c\r\n\r\n",
    written("GET", "/openapi/v2", b"", more="Impersonate-User: system:serviceaccount:a:b\r\nImpersonate-Group: c\r\n"),
    written("POST", CONFIG_MAPS, b"kind: ConfigMap\napiVersion: v1\nmetadata: {generateName: a-}\n", "application/yaml"),
)  # fmt: skip
BODIES = st.sampled_from(
    [
        POD, CONFIG_MAP, b"", b"{}", b"[]", b"null", b'{"metadata":{"name":"\\ud800"}}', b'{"metadata":{"name":"\xff","name":"b"}}', b'{"metadata":[]}', b'{"data":{"a":1}}',
        b'{"metadata":{"generateName":"a","managedFields":[{}]}}', b'{"metadata":{"finalizers":[null]}}', b'{"kind":7,"apiVersion":[]}', b'{"spec":{"containers":null}}',
        b"k8s\x00", b"k8s\x00\n\x05\n\x01v\x12\x00", b'[{"op":"test","path":"","value":{}}]', b'[{"op":"move","from":"/a","path":"/a/b"}]', b'{"metadata":{"creationTimestamp":"x"}}',
        b'{"preconditions":{"uid":7}}', b'{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1e999"}}}]}}', b"a: &a [*a]", b"- 1", b"a: b: c",
    ]
)  # fmt: skip
CONTENT_TYPES = st.sampled_from(
    ["application/json", "application/yaml", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json",
     "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", "application/json; charset=x"]
)  # fmt: skip
MORE = st.sampled_from(
    [
        "", "", "Accept: application/yaml\r\n", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n",
        "Accept: application/vnd.kubernetes.protobuf\r\n", "Accept: */*;q=x\r\n", "User-Agent: \udcff\r\n", "User-Agent: curl\r\n", "Impersonate-User: \udcff\r\n", "Accept-Encoding: gzip\r\n",
        "Impersonate-User: a\r\nImpersonate-Extra-%FF: b\r\n", "Impersonate-Group: a\r\n", "If-None-Match: x\r\n", "Upgrade: websocket\r\nConnection: Upgrade\r\n",
    ]
)  # fmt: skip
PATHS = st.one_of(
    targets().map(lambda target: target.decode("utf-8", "surrogateescape")),
    st.sampled_from(
        [
            PODS, f"{PODS}/a", f"{PODS}/a/status", f"{PODS}/a/log", f"{PODS}/a/eviction", f"{PODS}/a/binding", f"{PODS}/\udcff", f"{PODS}/%FF", CONFIG_MAPS, f"{CONFIG_MAPS}/a", "/api", "/",
            "/apis", "/openapi/v2", "/openapi/v3", "/version", "/metrics", "/healthz?verbose", "/api/v1/namespaces/\udcff/pods", "/apis/\udcff/v1/x", "/api/v1/namespaces/default/finalize",
            "/api/v1/namespaces/default/serviceaccounts/default/token", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews",
            "/apis/apps/v1/namespaces/default/deployments/d/scale", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/nodes/n/proxy/x", f"{PODS}?fieldSelector=spec.nodeName%3D%FF",
        ]
    ),
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]))
    body, content_type, more = draw(BODIES), draw(CONTENT_TYPES), draw(MORE)
    head = f"{method} {draw(PATHS)} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {draw(st.sampled_from(['admin', 'viewer', 'a.b.c']))}\r\n"
    text = f"{head}Content-Type: {content_type}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return text.encode("utf-8", "surrogateescape") + body


TARGET = Target(
    name="api_request",
    check=check,
    seeds=SEEDS,
    strategy=requests(),
    dictionary=(
        b"GET ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"/api/v1/", b"/apis/apps/v1/", b"namespaces/default/", b"pods", b"/status", b"/scale", b"?", b"&", b"=", b"%FF", b"%00", b"\xff",
        b"watch=1", b"limit=1", b"continue=", b"resourceVersion=", b"fieldSelector=", b"labelSelector=", b"dryRun=All", b"fieldManager=", b"application/yaml", b"application/merge-patch+json",
        b"application/json-patch+json", b"application/strategic-merge-patch+json", b"application/apply-patch+yaml", b'"metadata":', b'"spec":', b'"labels":', b'"name":', b'"$patch":"delete"',
        b'"$setElementOrder/containers":[]', b'"managedFields":[]', b'"ownerReferences":[{}]', b'"finalizers":["a/b"]', b"null", b"{}", b"[]", b"\\ud800", b"1e999", b"9" * 30, b"\r\n", b"\r\n\r\n",
        b"Accept: ", b"Impersonate-User: ", b"Content-Type: ", b"Authorization: Bearer ",
    ),
    seconds_per_byte=1e-3,
    memory_per_byte=20_000,
)  # fmt: skip
