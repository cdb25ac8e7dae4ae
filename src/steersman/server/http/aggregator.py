"""Aggregator: passes requests for the group versions of remote APIServices on to the servers that serve them.

A remote APIService names a Service; where that is served is stated as for webhooks (`steersman.server.calls`). The aggregator
asks each for its discovery document, at once after a change and then every 30 seconds, and sooner where it failed: the answer
decides the condition Available. Discovery and OpenAPI of servers that are available are made part of our own (`steersman.server.discovery.remote`,
`steersman.server.discovery.openapi.merge`); the group versions of others are there, and stale. This module is imported with the first remote APIService.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import ServerTimeout, TooManyRequests
from steersman.api.generated.apiregistration_v1 import APIService, APIServiceCondition
from steersman.http.head import Headers
from steersman.http.response import StreamingResponse
from steersman.server.auth.ca import CertificatePair
from steersman.server.auth.users import User
from steersman.server.calls import Call, Endpoint, ServiceRef, service_endpoint
from steersman.server.discovery.documents import api_resource_discovery
from steersman.server.discovery.openapi.merge import InvalidSpec, read_spec
from steersman.server.discovery.remote import (
    RemoteVersion,
    aggregated_version,
    legacy_rows,
    stale_version,
)
from steersman.server.http import request_body
from steersman.server.http.context import Context
from steersman.server.http.forwarding import (
    InvalidHeader,
    end_to_end,
    is_upgrade,
    passed_on,
    user_headers,
)
from steersman.server.http.responses import Response, warning_headers
from steersman.server.http.upgraded_connection import UpgradedConnection, request_upgrade
from steersman.server.http.webhook_client import go_error, load_aiohttp, real_timeout
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection

_log = logging.getLogger(__name__)

TABLE = "apiservices.apiregistration.k8s.io"
CHECK_INTERVAL = 30.0
RETRY_INTERVAL = 0.005
"""Seconds until a server whose check failed is asked again; doubled each time up to `CHECK_INTERVAL`, as upstream."""
CHECK_TIMEOUT = 5.0
REQUEST_TIMEOUT = 60.0
"""Seconds for a request that is neither a watch nor an upgrade, as upstream."""
MAX_WHOLE = 64 * 1024
"""Bytes of a response that is held until it is complete: the audit log looks for a Status in it. Others are passed back as they come."""
_READ_BUFFER = 32 * 1024
"""Bytes of a response that are read before its client has taken those before; aiohttp reads up to twice as many."""
_MAX_CONTEXTS = 100
"""TLS contexts, one for each CA bundle."""
MAX_DOCUMENT = 16 * 1024 * 1024
"""Bytes of a document of discovery or OpenAPI."""
MAX_STREAMS = 200
"""Upgraded connections at once, with logs, commands and port forwardings."""
_AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))
_AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_TEXT = "text/plain; charset=utf-8"
_NO_SNIFF = (("X-Content-Type-Options", "nosniff"),)
_NO_CACHE = ("Cache-Control", "no-cache, private")
_REDIRECT = b"the backend attempted to redirect this request, which is not permitted"


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

    @property
    def order(self) -> tuple[int, str]:
        """The place of its OpenAPI among that of others."""
        return -self.service.spec.groupPriorityMinimum, self.name


class Documents(msgspec.Struct):
    """The documents of a server about one group version."""

    discovery: Mapping[str, Any] | None = None
    """The APIVersionDiscovery; None while it could not be read."""
    v2: dict[str, Any] | None = None
    """The part of its OpenAPI v2 document."""
    v2_etag: str = ""
    v3: str = ""
    """The URL of its OpenAPI v3 document; empty where it has none."""


class Aggregator:
    """The remote APIServices of one server. The `RemoteDocuments` of its discovery."""

    def __init__(
        self, server: Server, front_proxy: Callable[[], CertificatePair], changed: Callable[[], None]
    ) -> None:
        """``front_proxy`` makes the client certificate for other servers. ``changed`` is called when discovery changes."""
        self._server = server
        self._front_proxy = front_proxy
        self._changed = changed
        self._pair: CertificatePair | None = None
        self._remote: dict[tuple[str, str], Remote] = {}
        self._documents: dict[tuple[str, str], Documents] = {}
        self._contexts: BoundedCache[tuple[str, bool], ssl.SSLContext] = BoundedCache(_MAX_CONTEXTS)
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
        if found == self._remote:
            return
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

    @property
    def is_empty(self) -> bool:
        """Whether there is no remote APIService any more."""
        return not self._remote

    def serves(self, group: str, version: str) -> bool:
        """Whether a group version is one of another server."""
        return (group, version) in self._remote

    def find(self, path: str) -> Remote | None:
        """The server of a path; None if it is this one."""
        if not self._remote:
            return None
        parts = path.strip("/").split("/")
        if parts[:2] == ["openapi", "v3"]:
            parts = parts[2:]
        return self._remote.get((parts[1], parts[2])) if len(parts) > 2 and parts[0] == "apis" else None

    # -- what others tell of themselves -------------------------------------------------------

    def versions(self) -> list[RemoteVersion]:
        """The group versions of all other servers."""
        found = []
        for key in sorted(self._remote):
            remote, known = self._remote[key], self._documents.get(key)
            spec = remote.service.spec
            document = known.discovery if known is not None and remote.available else None
            found.append(
                RemoteVersion(
                    *key,
                    spec.groupPriorityMinimum,
                    spec.versionPriority,
                    stale_version(spec.version) if document is None else document,
                )
            )
        return found

    def openapi_v2(self) -> list[dict[str, Any]]:
        """The parts of the OpenAPI v2 documents of servers that are available, by priority."""
        available = sorted((one for one in self._remote.values() if one.available), key=lambda one: one.order)
        known = (self._documents.get(one.group_version) for one in available)
        return [each.v2 for each in known if each is not None and each.v2 is not None]

    def openapi_v3(self) -> dict[str, str]:
        """The URLs of OpenAPI v3 documents, by name."""
        return {f"apis/{'/'.join(key)}": each.v3 for key, each in self._documents.items() if each.v3}

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
        """Asks all servers after a change and every `CHECK_INTERVAL`, and meanwhile those that failed."""
        while True:
            self._wake.clear()
            due, left, retry = list(self._remote.values()), CHECK_INTERVAL, RETRY_INTERVAL
            while True:
                # Side by side: one that hangs holds up no other.
                passed = await asyncio.gather(*map(self._check_safely, due))
                failing = [one for one, good in zip(due, passed, strict=True) if not good]
                pause = min(retry, left) if failing else left
                try:
                    async with real_timeout(pause):
                        await self._wake.wait()
                    break
                except TimeoutError:
                    due, left = failing, left - pause
                    retry = min(2 * retry, CHECK_INTERVAL) if failing else RETRY_INTERVAL
                if left <= 0:
                    self._remote = {
                        key: one._replace(endpoint=self._endpoint(one.service))
                        for key, one in self._remote.items()
                    }
                    due, left = list(self._remote.values()), CHECK_INTERVAL

    async def _check_safely(self, remote: Remote) -> bool:
        try:
            return await self._check(remote)
        except Exception:
            _log.exception("the APIService %s cannot be checked", remote.name)
            return False

    async def _check(self, remote: Remote) -> bool:
        """Asks a server for its discovery document, and writes the condition Available. False if it has to be asked again."""
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
        return reason != "FailedDiscoveryCheck"

    async def _discover(self, remote: Remote) -> str:
        """Reads what a server tells of a group version; returns why it cannot."""
        group, version = remote.group_version
        path = f"/apis/{group}/{version}"
        shown = f"https://{remote.endpoint.address}{path}"
        try:
            async with real_timeout(CHECK_TIMEOUT):
                status, legacy, _ = await self._get(remote, path, "application/json")
                if not 200 <= status < 300:
                    return f"failing or missing response from {shown}: bad status from {shown}: {status}"
        except TimeoutError:
            return f'failing or missing response from {shown}: Get "{shown}": context deadline exceeded'
        except Exception as error:
            call = Call(remote.endpoint, b"", CHECK_TIMEOUT, b"")
            return f'failing or missing response from {shown}: Get "{shown}": {go_error(error, call)}'
        known = self._documents.get((group, version)) or Documents()
        made = msgspec.structs.replace(known)
        for read in (self._read_discovery, self._read_v2, self._read_v3):
            try:
                async with real_timeout(CHECK_TIMEOUT):
                    await read(remote, made, legacy)
            except Exception as error:
                # Requests are passed on all the same; what is known stays.
                _log.warning("%s of the APIService %s: %s", read.__name__[6:], remote.name, error)
        if (group, version) in self._remote and made != known:
            self._documents[group, version] = made
            self._changed()
        return ""

    async def _read_discovery(self, remote: Remote, made: Documents, legacy: bytes) -> None:
        group, version = remote.group_version
        made.discovery = None
        status, body, headers = await self._get(remote, "/apis", _AGGREGATED)
        if status == 200 and "APIGroupDiscoveryList" in headers.get("Content-Type", ""):
            made.discovery = aggregated_version(body, group, version)
        if made.discovery is None:
            rows = legacy_rows(group, version, legacy)
            if rows is None:
                raise ValueError("it is malformed")
            resources = [api_resource_discovery(row, custom=True) for row in rows]
            made.discovery = {"version": version, "resources": resources, "freshness": "Current"}

    async def _read_v2(self, remote: Remote, made: Documents, legacy: bytes) -> None:
        status, body, headers = await self._get(
            remote, "/openapi/v2", "application/json", made.v2_etag if made.v2 is not None else ""
        )
        if status == 304:
            return
        made.v2, made.v2_etag = None, ""
        if status == 200:
            try:
                made.v2 = read_spec(body, *remote.group_version)
            except InvalidSpec as error:
                raise ValueError(f"OpenAPI v2 is invalid: {error}") from None
            made.v2_etag = headers.get("Etag", "")

    async def _read_v3(self, remote: Remote, made: Documents, legacy: bytes) -> None:
        status, body, _ = await self._get(remote, "/openapi/v3", "application/json")
        if status != 200:
            # differs: upstream makes a v3 document of the v2 one.
            made.v3 = ""
            return
        # differs: only the document of the group version is taken; upstream lets a server replace any other.
        paths = msgspec.json.decode(body, type=_V3Index).paths
        found = paths.get(f"apis/{'/'.join(remote.group_version)}")
        made.v3 = "" if found is None else found.serverRelativeURL

    async def _get(
        self, remote: Remote, path: str, accept: str, etag: str = ""
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Reads a document as the aggregator. Raises what aiohttp does, and `ValueError` for one that is too large."""
        headers = [*user_headers(_AGGREGATOR), ("Accept", accept)]
        if etag:
            headers.append(("If-None-Match", etag))
        async with await self._request(remote, "GET", path, headers, b"") as response:
            return response.status, await _read(response, MAX_DOCUMENT), response.headers

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
            return _unavailable("service unavailable")
        try:
            if is_upgrade(ctx.http.headers):
                return await self._upgrade(ctx, remote)
            if ctx.info.verb == "watch":
                return await self._pass_on(ctx, remote)
            async with real_timeout(REQUEST_TIMEOUT):
                return await self._pass_on(ctx, remote)
        except TimeoutError:
            message = "Timeout: request did not complete within the allotted timeout"
            raise ServerTimeout(message, reason="Timeout") from None
        except (ConnectionResetError, asyncio.CancelledError, TooManyRequests):
            raise
        except InvalidHeader as error:
            # Not the user's name, which may be of any length.
            _log.warning("a request for the APIService %s cannot be passed on: %s", remote.name, error)
            return _unavailable(f"error trying to reach service: {error}")
        except Exception as error:
            why = go_error(error, Call(remote.endpoint, b"", REQUEST_TIMEOUT, b""))
            return _unavailable(f"error trying to reach service: {why}")

    async def _pass_on(self, ctx: Context, remote: Remote) -> Response | StreamingResponse:
        http = ctx.http
        body = await request_body.read(http) if http.method not in ("GET", "HEAD") else b""
        target, headers = passed_on(ctx, remote.endpoint.address)
        async with await self._request(remote, http.method, target, headers, body) as response:
            if 300 <= response.status < 400 and response.headers.get("Location"):
                return Response(_REDIRECT, 502, _TEXT)
            content_type = response.headers.get("Content-Type", "")
            kept = (
                _NO_CACHE,
                *(
                    line
                    for line in end_to_end(response.headers.items())
                    if line[0].lower() not in ("content-type", "date")
                ),
            )
            begun: list[bytes] = []
            if response.status in (204, 304) or await _fits(ctx, response, begun):
                return Response(b"".join(begun), response.status, content_type, kept)
            typed = (("Content-Type", content_type),) if content_type else ()
            return await _stream(ctx, response, (*typed, *kept), begun)

    async def _upgrade(self, ctx: Context, remote: Remote) -> Response | StreamingResponse:
        """Passes a request on whose connection leaves HTTP: exec, port forwarding."""
        http, streams = ctx.http, ctx.state.streams
        if len(streams) >= MAX_STREAMS:
            raise TooManyRequests(
                f"too many streams: {MAX_STREAMS} are open", reason="TooManyRequests", retry_after=1.0
            )
        target, kept = passed_on(ctx, remote.endpoint.address)
        headers = [
            ("Host", remote.endpoint.address),
            ("Connection", "Upgrade"),
            ("Upgrade", http.headers.get("Upgrade", "")),
            *kept,
        ]
        async with real_timeout(REQUEST_TIMEOUT):
            upstream = await request_upgrade(
                remote.endpoint.address,
                self._context(remote),
                urlsplit(remote.endpoint.url).hostname or "",
                http.method,
                target,
                headers,
            )
        try:
            if upstream.status != 101:
                # As upstream, the answer is passed on, and the connection ends.
                async with real_timeout(REQUEST_TIMEOUT):
                    body = await upstream.read_body(MAX_DOCUMENT)
                return Response(body, upstream.status, Headers(upstream.headers).get("Content-Type"))
            task = asyncio.current_task()
            streams[task] = None
            try:
                connection = UpgradedConnection(http, upstream)
                await connection.run()
                return connection
            finally:
                streams.pop(task, None)
        finally:
            upstream.writer.close()

    async def _request(
        self, remote: Remote, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes
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
                read_bufsize=_READ_BUFFER,
                skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            )
        endpoint = remote.endpoint
        lines: CIMultiDict[str] = CIMultiDict(list(headers))
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
        context = self._contexts.use(key)
        if context is None:
            from steersman.client.certificates import load_certificate

            if self._pair is None:
                self._pair = self._front_proxy()
            context = ssl.create_default_context(cadata=b64decode(key[0]).decode() if key[0] else None)
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
            if key[1]:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            load_certificate(context, self._pair.cert, self._pair.key)
            self._contexts.put(key, context)
        return context


class _V3Path(msgspec.Struct, frozen=True):
    serverRelativeURL: str = ""


class _V3Index(msgspec.Struct, frozen=True):
    paths: Mapping[str, _V3Path] = {}


def _unavailable(message: str) -> Response:
    return Response(f"{message}\n".encode(), 503, _TEXT, _NO_SNIFF)


async def _read(response: Any, limit: int) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > limit:
            response.close()
            raise ValueError(f"the response has more than {limit} bytes")
    return bytes(data)


async def _fits(ctx: Context, response: Any, begun: list[bytes]) -> bool:
    """Whether a response is a short one, and now read whole. Its body, as far as it was read, is in ``begun``."""
    if ctx.http.method == "HEAD" or (ctx.info.verb == "watch" and response.status == 200):
        return False
    if (response.content_length or 0) > MAX_WHOLE:
        return False
    size = 0
    async for chunk in response.content.iter_any():
        begun.append(chunk)
        size += len(chunk)
        if size > MAX_WHOLE:
            return False
    return True


async def _stream(
    ctx: Context, response: Any, headers: Iterable[tuple[str, str]], begun: list[bytes]
) -> StreamingResponse:
    """Passes a response back as it comes, no faster than the client reads it."""
    stream = StreamingResponse(ctx.http.writer)
    stream.status = response.status
    audit_id = () if ctx.audit is None else (("Audit-Id", ctx.audit.id),)
    try:
        stream.begin((*headers, *audit_id, *warning_headers(ctx.warnings)), response.content_length)
        stream.keep(2 * _READ_BUFFER)
        while begun:
            await stream.write(begun.pop(0))
        async for chunk in response.content.iter_any():
            await stream.write(chunk)
    except BaseException:
        # Half of a response must not look like a whole one; what is answered in its place is not sent any more.
        ctx.http.writer.abort()
        raise
    return stream
