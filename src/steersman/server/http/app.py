"""The socket: who asks, may they, and which handler answers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from steersman.api.errors import ApiError, NotFound, ServerError
from steersman.http.connection import HttpServer
from steersman.http.head import http_date
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.authentication import Authenticator, Credentials
from steersman.server.auth.impersonation import impersonate, wanted
from steersman.server.auth.lookup import Lookup, Objects
from steersman.server.auth.openid import Document
from steersman.server.auth.rbac import Authorizer
from steersman.server.auth.requester import REQUESTER
from steersman.server.auth.tokens import Mint
from steersman.server.auth.users import User
from steersman.server.codec.convert import FORMS
from steersman.server.codec.negotiation import known
from steersman.server.http import nonresource, reading, request_body, writing
from steersman.server.http import subresources as below
from steersman.server.http import watch as streams
from steersman.server.http.app_state import Plant, served_verbs
from steersman.server.http.context import Context
from steersman.server.http.discovery_cache import Catalogue
from steersman.server.http.metrics import Served
from steersman.server.http.request_info import Asked, ask, split
from steersman.server.http.responses import Answer, compressed, denied, refused, unrouted
from steersman.server.http.watch_registry import Watches
from steersman.server.registry.resources import Resource
from steersman.server.server import Server
from steersman.server.storage.store import object_key

_log = logging.getLogger(__name__)

A = TypeVar("A", Answer, StreamingResponse, Answer | StreamingResponse)

_OF_MANY = ("list", "watch", "deletecollection")
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_CACHE = "no-cache, private"
_GRACE = 5.0
"""Seconds requests under way are given when the edge closes."""
_CUSTOM_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CUSTOM_BELOW = ("get", "patch", "update")


async def serve(
    server: Server,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer | None = None,
    mint: Mint | None = None,
    openid: Mapping[str, Document] | None = None,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    durable: Callable[[], Awaitable[None]] | None = None,
) -> Edge:
    """Listen, and answer until closed. Port 0 is any that is free.

    Without an authorizer everybody may do anything; without a mint nobody is given tokens. ``durable``
    is waited for before a write is acknowledged.
    """
    plant = Plant(
        server,
        authenticator,
        authorizer,
        Catalogue(server),
        Watches(server.store),
        objects_of(server),
        mint,
        openid or {},
        durable=durable,
    )
    edge = Edge(plant, host, secure=tls is not None)
    try:
        await edge.open(port, tls)
    except BaseException:
        plant.catalogue.close()
        raise
    return edge


def objects_of(server: Server) -> Objects:
    """What authentication looks up, in a server's store."""
    return Lookup(
        lambda resource, namespace, name: server.store.table(resource).get(object_key(namespace, name))
    )


class Edge:
    """A server at a socket."""

    def __init__(self, plant: Plant, host: str, *, secure: bool) -> None:
        self.plant = plant
        self.host = host
        self.port = 0
        self._secure = secure
        # Not the cluster's time, which may be ahead: clients reckon by it how old what they keep is, and what
        # comes from the future is never asked for again.
        self._http = HttpServer(self._handle, lambda: http_date(datetime.now(UTC)))
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"{'https' if self._secure else 'http'}://{self.plant.address}"

    async def open(self, port: int, tls: ssl.SSLContext | None) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._http, self.host, port, ssl=tls, backlog=1024, reuse_address=True
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.plant.address = f"{host}:{self.port}"

    async def close(self) -> None:
        """Listen no more, end all watches, and let the requests under way come to their end."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        self.plant.watches.close()
        await self._http.shutdown(_GRACE)
        self.plant.catalogue.close()

    async def __aenter__(self) -> Edge:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # -- one request --------------------------------------------------------------------------

    async def _handle(self, request: HttpRequest) -> HttpResponse | StreamingResponse:
        path, query = split(request.raw_path)
        asked = ask(request.method, path, query)
        ctx: Context | None = None
        try:
            user, warnings = self._who(request)
            try:
                user = self._may(request, asked, user)
            except ApiError as error:
                return self._respond(request, self._counted(asked, denied(error)), [])
            ctx = Context(self.plant, self.plant.server, request, asked, query, user, warnings)
            REQUESTER.set(user)
            answer = await self._answer(ctx)
            if self.plant.durable is not None and asked.verb in _WRITES:
                await self.plant.durable()
        except ApiError as error:
            answer = refused(error)
        except (asyncio.CancelledError, ConnectionError):
            # The client is gone.
            raise
        except Exception:
            _log.exception("%s %s failed", request.method, path)
            answer = refused(
                ServerError("Internal error occurred: see the server's log", reason="InternalError")
            )
        self._counted(asked, answer)
        if isinstance(answer, StreamingResponse):
            return answer
        return self._respond(request, answer, ctx.warnings if ctx is not None else [])

    def _respond(self, request: HttpRequest, answer: Answer, warnings: list[str]) -> HttpResponse:
        if len(answer.body) > 1024:
            answer = compressed(answer, request.headers.get("Accept-Encoding", ""))
        lines = {"Content-Type": answer.content_type, "Cache-Control": _CACHE, **dict(answer.headers)}
        told = (("Warning", f'299 - "{_quoted(text)}"') for text in dict.fromkeys(warnings))
        return HttpResponse(answer.status, (*lines.items(), *told), answer.body)

    def _counted(self, asked: Asked, answer: A) -> A:
        code = answer.status
        scope = "resource" if asked.name else "namespace" if asked.namespace else "cluster"
        self.plant.metrics.count(
            Served(
                asked.verb,
                asked.group,
                asked.version,
                asked.plural,
                asked.subresource,
                scope if asked.resource else "",
                code,
            )
            if code != 404
            # Anybody can ask for anything that is not there: that must not grow without bounds.
            else Served(asked.verb, "", "", "", "", "", code)
        )
        return answer

    # -- who, and may they --------------------------------------------------------------------

    def _who(self, request: HttpRequest) -> tuple[User, list[str]]:
        """Who sent a request, and what to warn them of. Raises `Unauthorized`."""
        headers = request.headers
        shown = Credentials(
            headers.get("Authorization", ""),
            request.certificate,
            tuple(headers.getall("Sec-WebSocket-Protocol", ())),
        )
        found = self.plant.authenticator.authenticate(shown, self.plant.server.clock.now())
        return found.user, list(found.warnings)

    def _may(self, request: HttpRequest, asked: Asked, user: User) -> User:
        """Whom a request goes on as. Raises `Forbidden`."""
        authorizer = self.plant.authorizer
        if authorizer is None:
            return user
        attributes = _attributes(user, asked)
        if any(name.startswith("impersonate-") for name in request.headers):
            whom = wanted(request.headers.items())
            if whom is not None:
                user = impersonate(authorizer, attributes, whom).user
                attributes = _attributes(user, asked)
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
        return user

    # -- which handler ------------------------------------------------------------------------

    async def _answer(self, ctx: Context) -> Answer | StreamingResponse:
        asked = ctx.asked
        if not asked.resource:
            return nonresource.serve(ctx)
        gate = self.plant.server.store.write_gate
        if gate is not None:
            # Memory that is ahead of a disk that failed is not shown: what is in it will not have happened.
            gate()
        resource = self._find(ctx)
        if isinstance(resource, Answer):
            return resource
        if resource.type not in FORMS and not known(ctx.request.headers.get("Accept", "")):
            return unrouted(406)
        if deprecated := self.plant.catalogue.deprecation(resource):
            ctx.warnings.append(deprecated)
        if asked.verb == "get" and not asked.subresource:
            return reading.get(ctx, resource)
        if asked.verb == "list":
            return reading.list_(ctx, resource)
        if asked.verb == "watch":
            return await streams.watch(ctx, resource)
        body = await request_body.read(ctx.request) if asked.verb in _WRITES else b""
        if asked.subresource:
            return below.serve(ctx, resource, body)
        match asked.verb:
            case "create":
                return below.create_only(ctx, resource, body) or writing.create(ctx, resource, body)
            case "update":
                return writing.update(ctx, resource, body)
            case "patch":
                return writing.patch(ctx, resource, body)
            case "delete":
                return writing.delete(ctx, resource, body)
            case "deletecollection":
                return writing.delete_collection(ctx, resource, body)
        return unrouted(405)

    def _find(self, ctx: Context) -> Resource | Answer:
        """The resource of a request that can be asked this of; or the answer that there is none."""
        asked = ctx.asked
        try:
            resource = self.plant.server.registry.find(asked.group, asked.version, asked.plural)
        except NotFound:
            known = self.plant.server.registry.built_in(asked.group)
            return unrouted(404) if known else nonresource.nothing()
        verbs = served_verbs().get((asked.group, asked.version, asked.plural, asked.subresource))
        if resource.verbs is not None:
            verbs = () if asked.subresource else resource.verbs
        elif verbs is None:
            below = asked.subresource
            verbs = _CUSTOM_VERBS if not below else _CUSTOM_BELOW if below in resource.subresources else ()
        one = asked.verb not in _OF_MANY
        named = one and asked.name != ""
        misplaced = asked.scoped if not resource.namespaced else named and not asked.scoped
        if not verbs and resource.type in FORMS:
            raise status_errors.not_found(resource.group, resource.plural, asked.name)
        if not verbs or misplaced or (asked.rest and asked.subresource != "proxy"):
            return unrouted(404)
        homeless = resource.namespaced and not asked.scoped and asked.verb in _WRITES
        # Objects are created without a name in the path, and nothing else is done without one.
        unfit = one and not asked.subresource and named == (asked.verb == "create")
        if asked.verb not in verbs or homeless or unfit:
            return unrouted(405)
        return resource


def _attributes(user: User, asked: Asked) -> Attributes:
    if not asked.resource:
        return Attributes(user, asked.verb, path=asked.path)
    return Attributes(
        user, asked.verb, asked.group, asked.plural, asked.subresource, asked.namespace, asked.name
    )


def _quoted(text: str) -> str:
    """Text as it may stand between quotes in a header."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
