"""`Api` over HTTP: any Kubernetes API server.

::

    api = HttpApi(kubeconfig.load())
    pods = await api.list(PODS, "default")
    mine = api.with_agent("deployment-controller")        # own rate limit, same sockets
    theirs = api.acting_as(Fetched(token), "ttl")         # another identity
    await api.close()
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from multidict import CIMultiDict

from steersman.api.discovery import Discovered
from steersman.api.errors import Unreachable
from steersman.api.scheme import Kind, encode
from steersman.client import discovery
from steersman.client.api import Page, UndecodableObject, WatchEvent
from steersman.client.auth import Authenticator, FromPlugin, authenticator
from steersman.client.connection import Connection
from steersman.client.decode import Decoder
from steersman.client.paths import accept, delete_options, path, query, within
from steersman.client.round_trip import Exchange, Request, RequestDone
from steersman.client.throttle import Bucket
from steersman.client.transport import Transports
from steersman.client.watch import events

T = TypeVar("T")

__all__ = ["HttpApi", "RequestDone"]

TIMEOUT = 65.0
"""Seconds for a whole request. The server ends all but watches after 60; a little more, so that it
is its answer we hear and not our own impatience."""

CONNECTIONS = 100
"""Requests under way at once, and so sockets, by all clients of one identity; more take turns."""


def _user_agent() -> str:
    try:
        release = version("steersman")
    except PackageNotFoundError:
        release = "unknown"
    return f"steersman/v{release} ({platform.system().lower()}/{platform.machine()})"


class Common:
    """What clients derived from one another have in common: sockets, and values in memory."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self.transports = Transports(connections)
        self.decoder = Decoder()


class HttpApi:
    """The ten verbs to one API server as one identity."""

    def __init__(
        self,
        connection: Connection,
        *,
        qps: float = 20,
        burst: int = 30,
        user_agent: str = "",
        timeout: float = TIMEOUT,
        on_request: Callable[[RequestDone], None] | None = None,
        auth: Authenticator | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        common: Common | None = None,
        permit: Callable[[], bool] | None = None,
    ) -> None:
        """``permit`` is asked at the moment a write is about to be sent; what it forbids is `Unreachable`."""
        self.connection = connection
        self.user_agent = user_agent or _user_agent()
        self.qps = qps
        self.burst = burst
        self._timeout = timeout
        self._on_request = on_request
        self._sleep = sleep
        self._auth = auth or authenticator(connection)
        self._common = common or Common()
        self._exchange = Exchange(
            connection,
            self._common.transports.acquire(connection),
            self._auth,
            Bucket(qps, burst),
            _headers(connection, self.user_agent),
            timeout=timeout,
            on_request=on_request,
            sleep=sleep,
            permit=permit,
        )

    @property
    def transports(self) -> Transports:
        """The sockets of this client and of those derived from it."""
        return self._common.transports

    @property
    def plugin(self) -> FromPlugin | None:
        """What runs the plugin that hands out its credentials, where there is one."""
        return self._auth if isinstance(self._auth, FromPlugin) else None

    # -- other clients ------------------------------------------------------------------------

    def with_agent(
        self,
        name: str,
        *,
        qps: float | None = None,
        burst: int | None = None,
        permit: Callable[[], bool] | None = None,
    ) -> HttpApi:
        """The same identity under a longer user agent and with a rate limit of its own."""
        return self._derive(self.connection, self._auth, name, qps, burst, permit)

    def acting_as(
        self,
        auth: Authenticator,
        name: str,
        *,
        qps: float | None = None,
        burst: int | None = None,
        permit: Callable[[], bool] | None = None,
    ) -> HttpApi:
        """Another identity at the same server: none of ours goes with its requests."""
        return self._derive(self.connection.anonymous(), auth, name, qps, burst, permit)

    def _derive(
        self,
        connection: Connection,
        auth: Authenticator,
        name: str,
        qps: float | None,
        burst: int | None,
        permit: Callable[[], bool] | None,
    ) -> HttpApi:
        return HttpApi(
            connection,
            qps=self.qps if qps is None else qps,
            burst=self.burst if burst is None else burst,
            user_agent=f"{self.user_agent}/{name}",
            timeout=self._timeout,
            on_request=self._on_request,
            auth=auth,
            sleep=self._sleep,
            common=self._common,
            permit=permit,
        )

    async def close(self) -> None:
        """Let go of the sockets. They close with the last client that uses them."""
        if not self._exchange.closed:
            self._exchange.close()
            await self._common.transports.release(self.connection)

    async def __aenter__(self) -> HttpApi:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # -- the ten verbs ------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        at = path(kind, namespace, name)
        body = await self._exchange.ask(Request("get", "GET", kind.resource, at, accept(kind)))
        return self._common.decoder.reader(kind).one(body)

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: Literal["", "Exact", "NotOlderThan"] = "",
    ) -> Page[T | UndecodableObject]:
        at = path(kind, namespace) + query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        request = Request("list", "GET", kind.resource, at, accept(kind, many=True))
        body = await self._exchange.ask(request)
        return await self._common.decoder.reader(kind).page(kind, body)

    async def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        at = path(kind, namespace) + query(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            timeoutSeconds="" if timeout_seconds is None else str(timeout_seconds),
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
        )
        request = Request("watch", "GET", kind.resource, at, accept(kind))
        reader = self._common.decoder.reader(kind)
        async with self._exchange.open(request, timeout_seconds) as response:

            async def read() -> bytes:
                try:
                    return await response.content.readany()
                except TimeoutError:
                    raise Unreachable(
                        f"{self.connection.server}: {request}: nothing came for too long"
                    ) from None
                except (aiohttp.ClientError, OSError, RuntimeError):
                    # A server that goes away ends its watches, with or without the last word.
                    return b""

            async with aclosing(events(read, lambda line: reader.event(kind, line))) as stream:
                async for event in stream:
                    yield event

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        return await self._write("create", "POST", kind, within(kind, namespace), encode(kind, body))

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        return await self._write("update", "PUT", kind, path(kind, namespace, name), encode(kind, body))

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        at = path(kind, namespace, name, "status")
        return await self._write("update", "PUT", kind, at, encode(kind, body), "status")

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        at = path(kind, namespace, name, subresource)
        at += query(fieldManager=field_manager, force="true" if force else "")
        # A JSON patch is a list of operations: no document, so no kind to write into it.
        content = encode(kind, body) if isinstance(body, msgspec.Struct) else msgspec.json.encode(body)
        return await self._write("patch", "PATCH", kind, at, content, subresource, content_type)

    async def delete(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace: int | None = None,
    ) -> None:
        options = delete_options(uid, resource_version, propagation, grace)
        at = path(kind, namespace, name)
        await self._exchange.ask(Request("delete", "DELETE", kind.resource, at, body=options))

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        at = within(kind, namespace)
        at += query(labelSelector=label_selector, fieldSelector=field_selector)
        options = delete_options("", "", propagation, None)
        await self._exchange.ask(Request("deletecollection", "DELETE", kind.resource, at, body=options))

    async def subresource(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        verb: Literal["get", "create", "update"] = "create",
    ) -> dict[str, Any]:
        at = path(kind, namespace, name, subresource)
        method = {"get": "GET", "create": "POST", "update": "PUT"}[verb]
        content = None if body is None or verb == "get" else msgspec.json.encode(body)
        request = Request(verb, method, f"{kind.resource}/{subresource}", at, body=content)
        answer = await self._exchange.ask(request)
        return self._common.decoder.reader(kind.untyped).one(answer, wrote=request.write)

    async def discover(self) -> Discovered:
        return await discovery.discover(self.document)

    async def document(self, path: str, *, accept: str = "application/json") -> dict[str, Any]:
        """What is no resource: discovery (``/apis``), ``/version``, ``/openapi/v3`` …"""
        request = Request("get", "GET", path.partition("?")[0], path, accept)
        answer = await self._exchange.ask(request)
        return self._common.decoder.reader(_DOCUMENT).one(answer)

    async def _write(
        self,
        verb: str,
        method: str,
        kind: Kind[T],
        at: str,
        body: bytes,
        subresource: str = "",
        content_type: str = "application/json",
    ) -> T:
        resource = f"{kind.resource}/{subresource}" if subresource else kind.resource
        request = Request(verb, method, resource, at, accept(kind), body, content_type)
        answer = await self._exchange.ask(request)
        return self._common.decoder.reader(kind).one(answer, wrote=True)


_DOCUMENT: Kind[dict[str, Any]] = Kind("", "", "", "", False, dict)


def _headers(connection: Connection, user_agent: str) -> CIMultiDict[str]:
    """What goes with every request."""
    headers: CIMultiDict[str] = CIMultiDict()
    headers["User-Agent"] = user_agent
    headers["Accept-Encoding"] = "gzip" if connection.compression else "identity"
    who = connection.impersonate
    if who is not None:
        headers["Impersonate-User"] = who.user
        if who.uid:
            headers["Impersonate-Uid"] = who.uid
        for group in who.groups:
            headers.add("Impersonate-Group", group)
        for key, values in who.extra:
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(key, safe=_HEADER)}", value)
    return headers


_HEADER = "!#$&'*+-.^_`|~"
"""Besides letters and digits, what may stand in a header's name. (``%`` may too, but escapes.)"""
