"""`HttpApi`: the verbs of `Api` against any Kubernetes API server, over HTTP.

::

    api = HttpApi(kubeconfig.load())
    pods = await api.list(PODS, "default")
    mine = api.with_user_agent("deployment-controller")       # own rate limit, same connections
    theirs = api.acting_as(FetchedTokenAuth(token), "ttl")    # another identity
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

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import Unreachable
from steersman.api.scheme import Kind, encode
from steersman.api.token_bucket import TokenBucket
from steersman.client import discovery
from steersman.client.api import Page, UndecodableObject, WatchEvent
from steersman.client.auth import Authenticator, ExecPluginAuth, authenticator
from steersman.client.capabilities import REMOTE, Capabilities
from steersman.client.config import ClientConfig
from steersman.client.connection import RequestFailed
from steersman.client.decode import Decoder
from steersman.client.paths import (
    accept_header,
    delete_options,
    query_string,
    resource_path,
    writable_collection_path,
)
from steersman.client.round_trip import ApiRequest, RequestAttempt, RoundTripper
from steersman.client.transport import TransportCache
from steersman.client.watch import watch_events

T = TypeVar("T")

TIMEOUT = 65.0
"""Seconds for a whole request.

The server ends all but watches after 60 seconds. The client waits a little longer, to receive the server's error.
"""

TRICKLE = 16 * 1024
"""Bytes; a read of at least so many finds a stream that flows by itself, such as the initial events of a watch."""
CONNECTIONS = 100
"""Concurrent requests, and so connections, of all clients of one identity."""


def _user_agent() -> str:
    try:
        release = version("steersman")
    except PackageNotFoundError:
        release = "unknown"
    return f"steersman/v{release} ({platform.system().lower()}/{platform.machine()})"


class SharedClientState:
    """The connections and the decoder (with its interned values) that clients derived from one another share."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self.transports = TransportCache(connections)
        self.decoder = Decoder()


class HttpApi:
    """A client of one API server, with one identity and one rate limit."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        qps: float = 20,
        burst: int = 30,
        user_agent: str = "",
        timeout: float = TIMEOUT,
        on_request: Callable[[RequestAttempt], None] | None = None,
        auth: Authenticator | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        shared: SharedClientState | None = None,
        fence: Callable[[], bool] | None = None,
    ) -> None:
        """``fence`` is called when a write is about to be sent; if it returns False, `Unreachable` is raised."""
        self.config = config
        self.capabilities: Capabilities = REMOTE
        self.user_agent = user_agent or _user_agent()
        self.qps = qps
        self.burst = burst
        self._timeout = timeout
        self._on_request = on_request
        self._sleep = sleep
        self._auth = auth or authenticator(config)
        self._shared = shared or SharedClientState()
        self._round_tripper = RoundTripper(
            config,
            self._shared.transports.acquire(config),
            self._auth,
            TokenBucket(qps, burst),
            _headers(config, self.user_agent),
            timeout=timeout,
            on_request=on_request,
            sleep=sleep,
            fence=fence,
        )

    @property
    def transports(self) -> TransportCache:
        """The transports of this client and of those derived from it."""
        return self._shared.transports

    @property
    def plugin(self) -> ExecPluginAuth | None:
        """The exec plugin that provides the credentials; None without one."""
        return self._auth if isinstance(self._auth, ExecPluginAuth) else None

    # -- derived clients ----------------------------------------------------------------------

    def with_user_agent(
        self,
        name: str,
        *,
        qps: float | None = None,
        burst: int | None = None,
        fence: Callable[[], bool] | None = None,
    ) -> HttpApi:
        """Return a client of the same identity, with a longer user agent and its own rate limit."""
        return self._derive(self.config, self._auth, name, qps, burst, fence)

    def acting_as(
        self,
        auth: Authenticator,
        name: str,
        *,
        qps: float | None = None,
        burst: int | None = None,
        fence: Callable[[], bool] | None = None,
    ) -> HttpApi:
        """Return a client of another identity at the same server. It sends none of this client's credentials."""
        return self._derive(self.config.anonymous(), auth, name, qps, burst, fence)

    def _derive(
        self,
        config: ClientConfig,
        auth: Authenticator,
        name: str,
        qps: float | None,
        burst: int | None,
        fence: Callable[[], bool] | None,
    ) -> HttpApi:
        return HttpApi(
            config,
            qps=self.qps if qps is None else qps,
            burst=self.burst if burst is None else burst,
            user_agent=f"{self.user_agent}/{name}",
            timeout=self._timeout,
            on_request=self._on_request,
            auth=auth,
            sleep=self._sleep,
            shared=self._shared,
            fence=fence,
        )

    async def close(self) -> None:
        """Release the connections. They are closed with the last client that shares them."""
        if not self._round_tripper.closed:
            self._round_tripper.close()
            self._shared.transports.release(self.config)

    async def __aenter__(self) -> HttpApi:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # -- Api ----------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        at = resource_path(kind, namespace, name)
        body = await self._round_tripper.send(
            ApiRequest("get", "GET", kind.resource, at, accept_header(kind))
        )
        return self._shared.decoder.for_kind(kind).decode_object(body)

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
        at = resource_path(kind, namespace) + query_string(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        request = ApiRequest("list", "GET", kind.resource, at, accept_header(kind, many=True))
        body = await self._round_tripper.send(request)
        return await self._shared.decoder.for_kind(kind).decode_list(kind, body)

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
        level_triggered: bool = False,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        at = resource_path(kind, namespace) + query_string(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            timeoutSeconds="" if timeout_seconds is None else str(timeout_seconds),
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
        )
        request = ApiRequest("watch", "GET", kind.resource, at, accept_header(kind))
        decoder = self._shared.decoder.for_kind(kind)
        async with self._round_tripper.open_watch(request, timeout_seconds) as response:
            size = 0

            async def read() -> bytes:
                nonlocal size
                try:
                    if kind.read_interval and 0 < size < TRICKLE:
                        await response.gather(kind.read_interval)
                    chunk = await response.read_some()
                    size = len(chunk)
                    return chunk
                except TimeoutError:
                    raise Unreachable(
                        f"{self.config.server}: {request}: the server did not end the watch within its timeout"
                    ) from None
                except RequestFailed:
                    # A server that shuts down ends its watches, with or without the last chunk.
                    return b""

            async with aclosing(watch_events(read, lambda line: decoder.decode_event(kind, line))) as stream:
                async for event in stream:
                    yield event

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        return await self._write(
            "create", "POST", kind, writable_collection_path(kind, namespace), encode(kind, body)
        )

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        return await self._write(
            "update", "PUT", kind, resource_path(kind, namespace, name), encode(kind, body)
        )

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        at = resource_path(kind, namespace, name, "status")
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
        at = resource_path(kind, namespace, name, subresource)
        at += query_string(fieldManager=field_manager, force="true" if force else "")
        # A JSON patch is a list of operations, without kind and apiVersion.
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
        at = resource_path(kind, namespace, name)
        await self._round_tripper.send(ApiRequest("delete", "DELETE", kind.resource, at, body=options))

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        at = writable_collection_path(kind, namespace)
        at += query_string(labelSelector=label_selector, fieldSelector=field_selector)
        options = delete_options("", "", propagation, None)
        await self._round_tripper.send(
            ApiRequest("deletecollection", "DELETE", kind.resource, at, body=options)
        )

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
        at = resource_path(kind, namespace, name, subresource)
        method = {"get": "GET", "create": "POST", "update": "PUT"}[verb]
        content = None if body is None or verb == "get" else msgspec.json.encode(body)
        request = ApiRequest(verb, method, f"{kind.resource}/{subresource}", at, body=content)
        answer = await self._round_tripper.send(request)
        return self._shared.decoder.for_kind(kind.untyped).decode_object(answer, wrote=request.is_write)

    async def discover(self) -> DiscoveryResult:
        return await discovery.discover(self.document)

    async def document(self, path: str, *, accept: str = "application/json") -> dict[str, Any]:
        """Return a document that is not a resource: ``/apis``, ``/version``, ``/openapi/v3`` …"""
        request = ApiRequest("get", "GET", path.partition("?")[0], path, accept)
        answer = await self._round_tripper.send(request)
        return self._shared.decoder.for_kind(_DOCUMENT).decode_object(answer)

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
        request = ApiRequest(verb, method, resource, at, accept_header(kind), body, content_type)
        answer = await self._round_tripper.send(request)
        return self._shared.decoder.for_kind(kind).decode_object(answer, wrote=True)


_DOCUMENT: Kind[dict[str, Any]] = Kind("", "", "", "", False, dict)


def _headers(config: ClientConfig, user_agent: str) -> list[tuple[str, str]]:
    """Return the headers that every request of a client has."""
    headers = [("User-Agent", user_agent), ("Accept-Encoding", "gzip" if config.compression else "identity")]
    user = config.impersonate
    if user is not None:
        headers.append(("Impersonate-User", user.user))
        if user.uid:
            headers.append(("Impersonate-Uid", user.uid))
        headers += [("Impersonate-Group", group) for group in user.groups]
        for key, values in user.extra:
            name = f"Impersonate-Extra-{quote(key, safe=_HEADER_NAME_CHARS)}"
            headers += [(name, value) for value in values]
    return headers


_HEADER_NAME_CHARS = "!#$&'*+-.^_`|~"
"""Characters, besides letters and digits, that need no escape in a header name (``%`` is the escape)."""
