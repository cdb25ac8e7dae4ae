"""Aggregator: passes requests for the group versions of remote APIServices on to the servers that serve them.

A remote APIService names a Service; where that is served is stated as for webhooks (`steersman.server.calls`). The aggregator
asks each for its discovery document, at once after a change and then every 30 seconds: the answer decides the condition
Available, and is what discovery shows. This module is imported with the first remote APIService.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote_to_bytes, urlsplit

import msgspec
from msgspec.structs import replace

from steersman.api.generated import Resource as Row
from steersman.api.generated import Subresource
from steersman.api.generated.apiregistration_v1 import APIService, APIServiceCondition
from steersman.http.response import StreamingResponse
from steersman.server.auth.ca import CertificatePair
from steersman.server.auth.users import User
from steersman.server.calls import Call, Endpoint, ServiceRef, service_endpoint
from steersman.server.http import request_body
from steersman.server.http.context import Context
from steersman.server.http.responses import Response
from steersman.server.http.webhook_client import go_error, load_aiohttp
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection

_log = logging.getLogger(__name__)

TABLE = "apiservices.apiregistration.k8s.io"
CHECK_INTERVAL = 30.0
CHECK_TIMEOUT = 5.0
MAX_RESPONSE = 64 * 1024 * 1024
"""Bytes of a response that is no watch. differs: upstream has no limit."""
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TEXT = "text/plain; charset=utf-8"
_NO_SNIFF = (("X-Content-Type-Options", "nosniff"),)
_NO_CACHE = ("Cache-Control", "no-cache, private")
_REDIRECT = b"the backend attempted to redirect this request, which is not permitted"
_WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Remote(NamedTuple):
    """A group version that another server serves."""

    name: str
    """The name of its APIService."""
    service: APIService
    endpoint: Endpoint
    available: bool

    @property
    def group_version(self) -> tuple[str, str]:
        return self.service.spec.group, self.service.spec.version


class Aggregator:
    """The remote APIServices of one server."""

    def __init__(
        self, server: Server, front_proxy: Callable[[], CertificatePair], changed: Callable[[], None]
    ) -> None:
        """``front_proxy`` makes the client certificate for other servers. ``changed`` is called when discovery changes."""
        self._server = server
        self._front_proxy = front_proxy
        self._changed = changed
        self._pair: CertificatePair | None = None
        self._remote: dict[tuple[str, str], Remote] = {}
        self._documents: dict[tuple[str, str], tuple[Row, ...]] = {}
        self._contexts: dict[tuple[str, bool], ssl.SSLContext] = {}
        self._session: Any = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.reload()

    def reload(self) -> None:
        """Follows a change of an APIService or a Service."""
        found: dict[tuple[str, str], Remote] = {}
        for service in self._server.store.table(TABLE).select(Selection()):
            spec = service.spec
            if spec.service is None:
                continue
            available = any(
                condition.type == "Available" and condition.status == "True"
                for condition in service.status.conditions
            )
            found[spec.group, spec.version] = Remote(
                service.metadata.name, service, self._endpoint(service), available
            )
        self._remote = found
        for gone in [key for key in self._documents if key not in found]:
            del self._documents[gone]
        self._changed()
        self._wake.set()
        if found and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._check_all(), name="aggregator")

    async def close(self) -> None:
        """Ends the checks and closes all connections."""
        if self._task is not None:
            self._task.cancel()
        if self._session is not None:
            await self._session.close()

    def find(self, path: str) -> Remote | None:
        """The server of a path; None if it is this one."""
        if not self._remote:
            return None
        parts = path.strip("/").split("/")
        if parts[:2] == ["openapi", "v3"]:
            parts = parts[2:]
        return self._remote.get((parts[1], parts[2])) if len(parts) > 2 and parts[0] == "apis" else None

    def rows(self) -> tuple[Row, ...]:
        """The resources of all other servers that were available, for discovery."""
        return tuple(row for key in sorted(self._documents) for row in self._documents[key])

    def _endpoint(self, service: APIService) -> Endpoint:
        reference = service.spec.service
        assert reference is not None
        table = self._server.store.table("services")
        return service_endpoint(
            ServiceRef(reference.namespace, reference.name, reference.port or 443),
            "",
            service.spec.caBundle or "",
            self._server.webhook_addresses,
            lambda namespace, name: table.get(object_key(namespace, name)),
        )

    def _listens(self, namespace: str, name: str, port: int) -> bool:
        """Whether a Service has a port. Only those with a cluster address say so; a stated address needs no Service."""
        found = self._server.store.table("services").get(object_key(namespace, name))
        if found is None or (found.spec.type or "ClusterIP") != "ClusterIP":
            return True
        return any(each.port == port for each in found.spec.ports)

    # -- availability -------------------------------------------------------------------------

    async def _check_all(self) -> None:
        while True:
            self._wake.clear()
            for remote in list(self._remote.values()):
                try:
                    await self._check(remote)
                except Exception:
                    _log.exception("the APIService %s cannot be checked", remote.name)
            try:
                async with asyncio.timeout(CHECK_INTERVAL):
                    await self._wake.wait()
            except TimeoutError:
                self._remote = {
                    key: one._replace(endpoint=self._endpoint(one.service))
                    for key, one in self._remote.items()
                }

    async def _check(self, remote: Remote) -> None:
        """Asks a server for its discovery document, and writes the condition Available."""
        status, reason, message = "True", "Passed", "all checks passed"
        reference = remote.service.spec.service
        assert reference is not None
        endpoint = remote.endpoint
        if endpoint.unresolved.endswith("not found"):
            status, reason = "False", "ServiceNotFound"
            message = f'service/{reference.name} in "{reference.namespace}" is not present'
        elif not self._listens(reference.namespace, reference.name, reference.port or 443):
            status, reason = "False", "ServicePortError"
            port = reference.port or 443
            message = f'service/{reference.name} in "{reference.namespace}" is not listening on port {port}'
        elif endpoint.unresolved:
            status, reason, message = "False", "MissingEndpoints", endpoint.unresolved
        else:
            failure = await self._discover(remote)
            if failure:
                status, reason, message = "False", "FailedDiscoveryCheck", failure
        self._write(remote, status, reason, message)

    async def _discover(self, remote: Remote) -> str:
        """Reads a server's discovery document; returns why it cannot."""
        group, version = remote.group_version
        path = f"/apis/{group}/{version}"
        shown = f"https://{remote.endpoint.address}{path}"
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                user = User("system:kube-aggregator", groups=("system:masters",))
                async with await self._request(
                    remote, "GET", path, _user_headers(user) | {"Accept": "application/json"}, b""
                ) as response:
                    body = await response.read()
                    if not 200 <= response.status < 300:
                        return f"failing or missing response from {shown}: bad status from {shown}: {response.status}"
        except TimeoutError:
            return f'failing or missing response from {shown}: Get "{shown}": context deadline exceeded'
        except Exception as error:
            call = Call(remote.endpoint, b"", CHECK_TIMEOUT, b"")
            return f'failing or missing response from {shown}: Get "{shown}": {go_error(error, call)}'
        rows = _rows(group, version, body)
        if self._documents.get((group, version)) != rows:
            self._documents[group, version] = rows
            self._changed()
        return ""

    def _write(self, remote: Remote, status: str, reason: str, message: str) -> None:
        resource = self._server.registry.find("apiregistration.k8s.io", "v1", "apiservices")
        now = self._server.now()
        current = self._server.table(resource).get(remote.name)
        if current is None or current.metadata.uid != remote.service.metadata.uid:
            return
        was = next((each for each in current.status.conditions if each.type == "Available"), None)
        if was is not None and (was.status, was.reason, was.message) == (status, reason, message):
            return
        since = was.lastTransitionTime if was is not None and was.status == status else now
        made = APIServiceCondition(
            type="Available", status=status, reason=reason, message=message, lastTransitionTime=since
        )
        others = tuple(each for each in current.status.conditions if each.type != "Available")
        self._server.rewrite(
            resource,
            "",
            remote.name,
            lambda old: replace(old, status=replace(old.status, conditions=(*others, made))),
            subresource="status",
        )

    # -- requests -----------------------------------------------------------------------------

    async def proxy(self, ctx: Context, remote: Remote) -> Response | StreamingResponse:
        """Passes a request on, as its user, and the response back."""
        if not remote.available or remote.endpoint.unresolved:
            return Response(b"service unavailable\n", 503, _TEXT, _NO_SNIFF)
        http = ctx.http
        body = await request_body.read(http) if ctx.http.method not in ("GET", "HEAD") else b""
        headers = {
            name: value
            for name, value in http.headers.items()
            if name.lower() not in _HOP_BY_HOP
            and name.lower() != "authorization"
            and not name.lower().startswith(("x-remote-", "impersonate-", "x-forwarded-"))
        }
        target = _normalized(http.raw_path)
        headers |= _forwarded_headers(ctx, remote.endpoint.address, target) | _user_headers(ctx.user)
        try:
            async with await self._request(remote, http.method, target, headers, body) as response:
                if 300 <= response.status < 400 and response.headers.get("Location"):
                    return Response(_REDIRECT, 502, _TEXT)
                kept = (
                    _NO_CACHE,
                    *(
                        (name, value)
                        for name, value in response.headers.items()
                        if name.lower() not in (*_HOP_BY_HOP, "content-type", "date")
                    ),
                )
                if ctx.info.verb == "watch" and response.status == 200:
                    return await _stream(ctx, response, kept)
                data = bytearray()
                async for chunk in response.content.iter_any():
                    data += chunk
                    if len(data) > MAX_RESPONSE:
                        response.close()
                        raise ValueError(f"the response has more than {MAX_RESPONSE} bytes")
                content_type = response.headers.get("Content-Type", "")
                return Response(bytes(data), response.status, content_type, kept)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            why = go_error(error, Call(remote.endpoint, b"", 60.0, b""))
            return Response(f"error trying to reach service: {why}\n".encode(), 503, _TEXT, _NO_SNIFF)

    async def _request(
        self, remote: Remote, method: str, target: str, headers: Mapping[str, Any], body: bytes
    ) -> Any:
        if self._session is None:
            await load_aiohttp()
        import aiohttp
        import yarl
        from multidict import CIMultiDict

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                timeout=aiohttp.ClientTimeout(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            )
        endpoint = remote.endpoint
        lines: CIMultiDict[str] = CIMultiDict()
        for name, value in headers.items():
            for one in value if isinstance(value, tuple) else (value,):
                lines.add(name, one)
        lines["Host"] = endpoint.address
        server_name = urlsplit(endpoint.url).hostname
        return self._session.request(
            method,
            yarl.URL(f"https://{endpoint.address}{target}", encoded=True),
            data=body or None,
            headers=lines,
            ssl=self._context(remote),
            server_hostname=server_name,
            allow_redirects=False,
        )

    def _context(self, remote: Remote) -> ssl.SSLContext:
        spec = remote.service.spec
        key = (spec.caBundle or "", bool(spec.insecureSkipTLSVerify))
        context = self._contexts.get(key)
        if context is None:
            from steersman.client.tls import load_certificate

            if self._pair is None:
                self._pair = self._front_proxy()
            context = ssl.create_default_context(cadata=b64decode(key[0]).decode() if key[0] else None)
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
            if key[1]:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            load_certificate(context, self._pair.cert, self._pair.key)
            self._contexts[key] = context
        return context


async def _stream(ctx: Context, response: Any, headers: tuple[tuple[str, str], ...]) -> StreamingResponse:
    """Passes a watch back, as it comes."""
    stream = StreamingResponse(ctx.http.writer)
    try:
        stream.begin((("Content-Type", response.headers.get("Content-Type", "application/json")), *headers))
        async for chunk in response.content.iter_any():
            await stream.write(chunk)
    except ConnectionError:
        pass  # the client has gone
    return stream


def _normalized(target: str) -> str:
    """A path and a query as upstream passes them on: decoded and encoded again, the query sorted by name."""
    path, _, query = target.partition("?")
    path = quote(unquote_to_bytes(path), safe="/$&+,:;=@~")
    pairs = (part.partition("=") for part in query.split("&") if part and ";" not in part)
    encoded = [
        (unquote_to_bytes(name.replace("+", " ")), unquote_to_bytes(value.replace("+", " ")))
        for name, _, value in pairs
    ]
    sorted_query = "&".join(
        f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(encoded, key=lambda pair: pair[0])
    )
    return f"{path}?{sorted_query}" if sorted_query else path


def _forwarded_headers(ctx: Context, address: str, target: str) -> dict[str, str]:
    """The headers by which a reverse proxy tells whom a request came from, and how."""
    transport = ctx.http.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    before = ctx.http.headers.get("X-Forwarded-For", "")
    return {
        "X-Forwarded-For": ", ".join(filter(None, (before, str(peer[0]) if peer else ""))),
        "X-Forwarded-Host": address,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Uri": target.partition("?")[0],
    }


def _user_headers(user: User) -> dict[str, Any]:
    """The headers by which a front proxy tells who the user is."""
    headers: dict[str, Any] = {"X-Remote-User": user.name}
    if user.uid:
        headers["X-Remote-Uid"] = user.uid
    if user.groups:
        headers["X-Remote-Group"] = tuple(user.groups)
    for key, values in user.extra.items():
        # Keys are percent-encoded as Go does it: header names are case-insensitive and have few characters.
        escaped = "".join(one if one.isalnum() or one in "-._" else f"%{ord(one):02X}" for one in key)
        headers[f"X-Remote-Extra-{escaped}"] = tuple(values)
    return headers


class _APIResource(msgspec.Struct, frozen=True):
    name: str
    kind: str = ""
    namespaced: bool = False
    singularName: str = ""
    verbs: tuple[str, ...] = ()
    shortNames: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    group: str = ""
    version: str = ""


class _APIResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_APIResource, ...] = ()


def _rows(group: str, version: str, body: bytes) -> tuple[Row, ...]:
    """The resources of a discovery document; none of one that is malformed."""
    try:
        found = msgspec.json.decode(body, type=_APIResourceList).resources
    except (msgspec.DecodeError, RecursionError):
        return ()
    subresources: dict[str, list[Subresource]] = {}
    for each in found:
        plural, slash, name = each.name.partition("/")
        if slash:
            one = Subresource(name, each.group or group, each.version or version, each.kind, each.verbs)
            subresources.setdefault(plural, []).append(one)
    return tuple(
        Row(
            group,
            version,
            each.kind,
            each.name,
            each.singularName,
            each.namespaced,
            each.shortNames,
            each.categories,
            each.verbs,
            tuple(subresources.get(each.name, ())),
            "",
        )
        for each in found
        if "/" not in each.name
    )
