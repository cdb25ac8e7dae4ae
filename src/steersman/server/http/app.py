"""ApiServer: the API server at a socket. Authenticates, authorises and routes each request to its handler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from steersman.api.errors import ApiError, NotFound, ServerError, Unauthorized
from steersman.http.client_certs import ClientCertContexts, PeerCertificates, secured
from steersman.http.connection import HttpServer
from steersman.http.head import MalformedRequest, http_date
from steersman.http.limits import MAX_WATCHES, Limits
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.http.target import Query, first, parse_target
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, authorize
from steersman.server.auth.authentication import Credentials
from steersman.server.auth.ca import CertificatePair
from steersman.server.auth.impersonation import impersonate, requested_user
from steersman.server.auth.tokens import OpenIDDocument
from steersman.server.auth.users import ANONYMOUS, User, node_identity
from steersman.server.codec.convert import CODECS
from steersman.server.codec.negotiation import is_supported
from steersman.server.evaluation import EvaluationThread
from steersman.server.http import request_body
from steersman.server.http.context import AppState, Context, Site, served_verbs
from steersman.server.http.discovery_cache import DiscoveryCache
from steersman.server.http.handlers import (
    handle_get,
    handle_list,
    handle_write,
    is_served,
)
from steersman.server.http.heavy_requests import LARGE_BODY
from steersman.server.http.metrics import RequestLabels
from steersman.server.http.nonresource import handle_nonresource, not_found, unknown_request
from steersman.server.http.query_options import check_timeout
from steersman.server.http.request_info import RequestInfo, UnknownRequest, request_info
from steersman.server.http.responses import (
    Response,
    compressed,
    denied_response,
    error_response,
    negotiated_error,
    routing_error,
    warning_headers,
)
from steersman.server.http.watch import handle_watch
from steersman.server.http.watch_registry import WatchRegistry
from steersman.server.http.webhook_client import WebhookClient
from steersman.server.registry.resources import Resource
from steersman.server.rest.restart import restartable
from steersman.server.rest.subresources import KUBELET_SUBRESOURCES
from steersman.server.server import Server
from steersman.server.storage.watch import Commit, Selection

if TYPE_CHECKING:
    from steersman.server.http.audit import AuditEvent

_log = logging.getLogger(__name__)

R = TypeVar("R", Response, StreamingResponse, Response | StreamingResponse)

_COLLECTION_VERBS = ("list", "watch", "deletecollection")
_READS = ("get", "list", "watch")
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
"""The methods of requests for other paths than resources, as they are counted."""
_CACHE_CONTROL = "no-cache, private"
_GRACE = 5.0
"""Seconds that requests under way are given when the server closes."""
_AGGREGATED = ("apiservices.apiregistration.k8s.io", "services")
"""The tables that say where aggregated API servers are."""
_CUSTOM_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CUSTOM_SUBRESOURCE_VERBS = ("get", "patch", "update")


async def serve(
    server: Server,
    *,
    openid: Mapping[str, OpenIDDocument] | None = None,
    tls: ClientCertContexts | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    durable: Callable[[], Awaitable[None]] | None = None,
    limits: Limits = Limits(),
    max_watches: int = MAX_WATCHES,
    front_proxy: Callable[[], CertificatePair] | None = None,
    audit_log: Path | None = None,
) -> ApiServer:
    """Listens and serves until closed. Port 0 is any free port.

    The server must have an authenticator. Without an authorizer every request is allowed. ``durable`` is awaited
    before a write is acknowledged. ``max_watches`` is how many watches may be open at once. ``front_proxy`` makes the
    client certificate for aggregated API servers; without it there are none. ``audit_log`` is a file for a line about each request.
    """
    state = AppState(
        server,
        DiscoveryCache(server),
        WatchRegistry(server.store, max_watches),
        openid or {},
        durable=durable,
        front_proxy=front_proxy,
    )
    if server.outgoing is None:
        server.outgoing = state.webhook_client = WebhookClient()
        # Where webhooks are called over sockets, clients do not wait for expressions either.
        server.evaluation_thread = EvaluationThread()
    if audit_log is not None:
        # Loaded when asked for.
        from steersman.server.http.audit import AuditLog

        state.audit = AuditLog(audit_log)
        server.audit_annotations = {}
    api_server = ApiServer(state, host, secure=tls is not None, limits=limits)
    try:
        await api_server.open(port, tls)
    except BaseException:
        state.discovery.close()
        raise
    return api_server


class ApiServer:
    """An API server at a socket."""

    def __init__(self, state: AppState, host: str, *, secure: bool, limits: Limits = Limits()) -> None:
        self.state = state
        self._peers: PeerCertificates | None = None
        self.host = host
        self.port = 0
        self._secure = secure
        # The machine's time, not the cluster's, which may be ahead: clients compute the age of cached responses
        # from it.
        state.server.store.commit_hooks.append(self._follow_api_services)
        self._http = HttpServer(self.handle, lambda: http_date(datetime.now(UTC)), limits)
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"{'https' if self._secure else 'http'}://{self.state.address}"

    async def open(self, port: int, tls: ClientCertContexts | None) -> None:
        """Begins to listen."""
        loop = asyncio.get_running_loop()
        if tls is not None:
            self._peers = tls.peers
            self._http.secure(tls.listening())
        # A str would be encoded for IDNA, which loads tables of Unicode that nothing else needs.
        host: Any = (self.host.encode("ascii"),)
        self._listener = await loop.create_server(self._http, host, port, backlog=1024, reuse_address=True)
        self.port = self._listener.sockets[0].getsockname()[1]
        services = self.state.server.store.table(_AGGREGATED[0]).select(Selection())
        if any(each.spec.service is not None for each in services):
            self._aggregate()
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.state.address = f"{name}:{self.port}"

    async def close(self) -> None:
        """Stops listening, ends all watches, and waits for the requests under way."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        self.state.watches.close()
        for task in tuple(self.state.streams):
            if task is not None:
                task.cancel()
        self.state.server.store.commit_hooks.remove(self._follow_api_services)
        if self.state.aggregator is not None:
            await self.state.aggregator.close()
        await self._http.shutdown(_GRACE)
        if self.state.webhook_client is not None:
            await self.state.webhook_client.close()
            if self.state.server.evaluation_thread is not None:
                self.state.server.evaluation_thread.close()
                self.state.server.evaluation_thread = None
        self.state.discovery.close()
        if self.state.audit is not None:
            self.state.audit.close()
            self.state.audit = None

    async def __aenter__(self) -> ApiServer:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _follow_api_services(self, commit: Commit) -> None:
        """Starts the aggregator with the first APIService of another server, and tells it of changes."""
        if commit.resource not in _AGGREGATED:
            return
        state = self.state
        if state.aggregator is not None:
            state.aggregator.reload()
        elif commit.resource == _AGGREGATED[0] and commit.obj.spec.service is not None:
            self._aggregate()

    def _aggregate(self) -> None:
        from steersman.server.http.aggregator import Aggregator

        state = self.state
        if state.front_proxy is None:
            return
        state.aggregator = Aggregator(state.server, state.front_proxy, state.discovery.renew)
        state.discovery.remote = state.aggregator
        state.discovery.renew()

    # -- one request --------------------------------------------------------------------------

    async def handle(self, http: HttpRequest) -> HttpResponse | StreamingResponse:
        """Answers a request."""
        path, query = parse_target(http.raw_path)
        site = self._site(path)
        if site is not None and (public := site.public(http.method, path)) is not None:
            return self._reply(http, public, [])
        try:
            info = request_info(http.method, path, query)
        except UnknownRequest as error:
            return self._reply(http, unknown_request(http.raw_path, str(error)), [])
        ctx: Context | None = None
        event = self._audit_event(http, info) if self.state.audit is not None else None
        try:
            if not self._is_long_running(info):
                check_timeout(query)
            user, warnings = self._authenticate(http)
            if event is not None:
                event.user = user
            try:
                user = self._authorize(http, info, query, user, event)
            except ApiError as error:
                if site is not None and user.name == ANONYMOUS.name:
                    # A browser asks its user for a credential then.
                    raise Unauthorized("Unauthorized", reason="Unauthorized") from error
                return self._reply(http, self._counted(info, denied_response(error)), [], event)
            ctx = Context(self.state, http, info, query, user, warnings, event)
            response = await self._route(ctx)
            if self.state.durable is not None and info.verb in _WRITES:
                await self.state.durable()
        except ApiError as error:
            response = error_response(error)
        except (asyncio.CancelledError, ConnectionError, MalformedRequest):
            # The client has gone, or its body cannot be parsed, which the connection answers.
            self._audit(event, 200, b"")
            raise
        except Exception:
            _log.exception("%s %s failed", http.method, path)
            response = error_response(
                ServerError("Internal error occurred: see the server's log", reason="InternalError")
            )
        self._counted(info, response)
        if isinstance(response, StreamingResponse):
            self._audit(event, response.status, b"")
            return response
        # A client that has read the response to its write finds the event in its watch, as far as that is in our hands.
        after_events = info.verb in _WRITES and response.status < 300 and len(self.state.watches) > 0
        return self._reply(http, response, ctx.warnings if ctx is not None else [], event, after_events)

    def _site(self, path: str) -> Site | None:
        """The site that serves a path, if there is one."""
        site = self.state.site
        return site if site is not None and f"{path}/".startswith(f"{site.prefix}/") else None

    def _audit_event(self, http: HttpRequest, info: RequestInfo) -> AuditEvent:
        from steersman.server.http.audit import AuditEvent

        return AuditEvent(http, info, self.state.server.clock.now)

    def _audit(self, event: AuditEvent | None, code: int, body: bytes) -> None:
        """Adds the event of an answered request to the audit log."""
        if event is not None and self.state.audit is not None:
            self.state.audit.write(event.document(code, body))

    def _reply(
        self,
        http: HttpRequest,
        response: Response,
        warnings: list[str],
        event: AuditEvent | None = None,
        after_events: bool = False,
    ) -> HttpResponse:
        self._audit(event, response.status, response.body)
        if response.status >= 400 and (accept := http.headers.get("Accept", "")):
            response = negotiated_error(response, accept)
        if len(response.body) > 1024:
            response = compressed(response, http.headers.get("Accept-Encoding", ""))
        lines = [("Content-Type", response.content_type)] if response.content_type else []
        if not response.headers or all(name.lower() != "cache-control" for name, _ in response.headers):
            lines.append(("Cache-Control", _CACHE_CONTROL))
        lines += response.headers
        if event is not None:
            lines.append(("Audit-Id", event.id))
        if warnings:
            lines += warning_headers(warnings)
        return HttpResponse(response.status, lines, response.body, after_events=after_events)

    def _counted(self, info: RequestInfo, response: R) -> R:
        code = response.status
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        verb = info.verb if info.resource or info.verb in _METHODS else ""
        self.state.metrics.count(
            RequestLabels(
                verb,
                info.group,
                info.version,
                info.plural,
                info.subresource,
                scope if info.resource else "",
                code,
            )
            if code < 400 or (code != 404 and self._is_served(info))
            # Paths that do not exist are not counted by name: clients could make up any number of them.
            else RequestLabels(verb, "", "", "", "", "", code)
        )
        return response

    @staticmethod
    def _is_long_running(info: RequestInfo) -> bool:
        """Whether a request may take as long as it likes, as a watch."""
        return info.verb in ("watch", "proxy") or info.subresource in KUBELET_SUBRESOURCES

    def _is_served(self, info: RequestInfo) -> bool:
        """Whether the resource and the subresource of a request exist."""
        if not self.state.server.registry.serves(info.group, info.version, info.plural):
            return False
        named = (info.group, info.version, info.plural, info.subresource)
        return not info.subresource or named in served_verbs()

    # -- authentication and authorisation -----------------------------------------------------

    def _authenticate(self, http: HttpRequest) -> tuple[User, list[str]]:
        """The user of a request, and warnings about their credentials. Raises `Unauthorized`."""
        authenticator = self.state.server.authenticator
        assert authenticator is not None, "a server needs an authenticator to be served"
        headers = http.headers
        certificate: bytes | None = http.certificate
        others: tuple[bytes, ...] = ()
        if certificate is not None and self._peers is not None and (tls := secured(http.transport)):
            others = self._peers.of(tls)[1:]
        credentials = Credentials(
            headers.get("Authorization", ""),
            certificate,
            others,
            tuple(headers.getall("Sec-WebSocket-Protocol", ())),
        )
        found = authenticator.authenticate(credentials, self.state.server.clock.now())
        http.writer.authenticated = found.user.name != ANONYMOUS.name
        return found.user, list(found.warnings)

    def _authorize(
        self, http: HttpRequest, info: RequestInfo, query: Query, user: User, event: AuditEvent | None
    ) -> User:
        """The user that a request is carried out as, after impersonation. Raises `Forbidden`."""
        authorizer = self.state.server.authorizer
        if authorizer is None:
            return user
        attributes = _attributes(user, info, query)
        if any(name.startswith("impersonate-") for name in http.headers):
            impersonated = requested_user(http.headers.items())
            if impersonated is not None:
                modes = self.state.impersonation_modes
                found = impersonate(authorizer, attributes, impersonated, modes)
                user = found.user
                attributes = _attributes(user, info, query)
                if event is not None:
                    event.impersonated, event.constraint = user, found.constraint
        if event is not None:
            event.decided(authorizer.authorize(attributes))
        authorize(authorizer, attributes)
        return user

    # -- routing ------------------------------------------------------------------------------

    async def _route(self, ctx: Context) -> Response | StreamingResponse:
        info = ctx.info
        aggregator = self.state.aggregator
        if aggregator is not None and (remote := aggregator.find(info.path)) is not None:
            # In a task, which the client's time-outs need: connections drive handlers without one.
            return await asyncio.create_task(aggregator.proxy(ctx, remote))
        if not info.routed:
            return not_found()
        if not info.resource:
            site = self._site(info.path)
            return handle_nonresource(ctx) if site is None else await site.answer(ctx)
        gate = ctx.server.store.write_gate
        if gate is not None:
            # State that a failed disk does not have must not be shown: it will be gone after a restart.
            gate()
        resource = self._find(ctx)
        if isinstance(resource, Response):
            return resource
        accept = ctx.http.headers.get("Accept", "")
        if resource.type not in CODECS and not is_supported(accept):
            return routing_error(406, streams=info.verb in ("list", "watch"))
        if ";as=" in accept and info.verb == "get" and not info.subresource:
            # Refused before the object is looked for, as upstream does.
            ctx.choice(custom=resource.type in CODECS)
        if deprecated := self.state.discovery.deprecation(resource):
            ctx.warnings.append(deprecated)
        if info.verb == "get" and not info.subresource:
            return await self._read(handle_get, ctx, resource)
        if info.verb == "list":
            await self.state.heavy.turn()
            return await self._read(handle_list, ctx, resource)
        if info.verb == "watch":
            return await handle_watch(ctx, resource)
        body = await request_body.read(ctx.http) if info.verb in _WRITES else b""
        if len(body) > LARGE_BODY:
            await self.state.heavy.turn()
        if info.subresource in KUBELET_SUBRESOURCES:
            # Loaded when needed: most clusters under test have no such requests.
            from steersman.server.http.kubelet_proxy import handle_connect

            return await handle_connect(ctx, resource)
        if info.verb == "get":
            return await self._read(handle_get, ctx, resource)
        if info.subresource and not is_served(resource, info.subresource):
            return routing_error(404)
        return await self._write(ctx, resource, body)

    async def _read(
        self, handle: Callable[[Context, Resource], Response], ctx: Context, resource: Resource
    ) -> Response:
        """Carries out a read; again where it must wait for a conversion webhook."""
        if resource.serve_all is None:
            return handle(ctx, resource)
        return await restartable(ctx.server, partial(handle, ctx, resource))

    async def _write(self, ctx: Context, resource: Resource, body: bytes) -> Response:
        """Carries out a write; again for each webhook that it must wait for."""
        known = len(ctx.warnings)

        def run() -> Response:
            del ctx.warnings[known:]
            return ctx.audited(partial(handle_write, ctx, resource, body))

        return await restartable(ctx.server, run, ctx.warnings)

    def _find(self, ctx: Context) -> Resource | Response:
        """The resource of a request that serves its verb, or the 404 or 405."""
        info, registry = ctx.info, ctx.server.registry
        try:
            resource = registry.find(info.group, info.version, info.plural)
        except NotFound:
            return routing_error(404) if registry.built_in(info.group) else not_found()
        verbs = served_verbs().get((info.group, info.version, info.plural, info.subresource))
        if resource.verbs is not None:
            verbs = () if info.subresource else resource.verbs
        elif verbs is None:
            if not info.subresource:
                verbs = _CUSTOM_VERBS
            else:
                verbs = _CUSTOM_SUBRESOURCE_VERBS if info.subresource in resource.subresources else ()
        single = info.verb not in _COLLECTION_VERBS
        named = single and info.name != ""
        wrong_scope = info.scoped if not resource.namespaced else named and not info.scoped
        if not verbs and resource.type in CODECS:
            raise status_errors.not_found(resource.group, resource.plural, info.name)
        if not verbs or wrong_scope or (info.rest and info.subresource != "proxy"):
            return routing_error(404)
        lacks_namespace = resource.namespaced and not info.scoped and info.verb in _WRITES
        # Objects are created without a name in the path; every other verb for one object needs it.
        wrong_name = single and not info.subresource and named == (info.verb == "create")
        if info.verb_in_path and info.verb not in verbs:
            return routing_error(404)
        # A verb of reading is what HEAD, and any method of a watch by its path, are authorized for.
        wrong_method = (
            info.verb in _READS and ctx.http.method != "GET" and info.subresource not in KUBELET_SUBRESOURCES
        )
        if info.verb not in verbs or lacks_namespace or wrong_name or wrong_method:
            return routing_error(405)
        return resource


def _attributes(user: User, info: RequestInfo, query: Query) -> Attributes:
    if not info.resource:
        return Attributes(user, info.verb, path=info.path)
    selector = first(query, "fieldSelector") if query and node_identity(user) is not None else ""
    return Attributes(
        user,
        info.verb,
        info.group,
        info.plural,
        info.subresource,
        info.namespace,
        info.name,
        field_selector=selector,
    )
