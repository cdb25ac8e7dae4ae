"""AppState and Context: what handlers are given, for all requests and for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec import field

from steersman.api.bounded_cache import MAX_SHORT
from steersman.api.generated import gated_resources, resources
from steersman.http.request import HttpRequest
from steersman.http.target import Query, wants_pretty
from steersman.server.apply.options import manager_name
from steersman.server.auth.impersonation import LastModes, last_modes
from steersman.server.auth.tokens import OpenIDDocument
from steersman.server.auth.users import User
from steersman.server.codec.encoding import EncodingCache
from steersman.server.codec.field_validation import parse_directive
from steersman.server.codec.negotiation import (
    MediaTypeOptions,
    custom_or_meta,
    negotiate,
    negotiate_stream,
    own_kind,
    own_kind_or_meta,
)
from steersman.server.http.discovery_cache import DiscoveryCache
from steersman.server.http.heavy_requests import HeavyRequests
from steersman.server.http.metrics import Metrics
from steersman.server.http.request_body import FieldChecks
from steersman.server.http.request_info import RequestInfo
from steersman.server.http.watch_registry import WatchRegistry
from steersman.server.http.webhook_client import WebhookClient
from steersman.server.server import Server

if TYPE_CHECKING:
    from steersman.http.response import StreamingResponse
    from steersman.server.auth.ca import CertificatePair
    from steersman.server.http.aggregator import Aggregator
    from steersman.server.http.audit import AuditEvent, AuditLog
    from steersman.server.http.protobuf import ProtobufEncoder
    from steersman.server.http.responses import Response

T = TypeVar("T")

USER_AGENT = "User-Agent"


class Site(Protocol):
    """Pages under one path, such as a dashboard."""

    prefix: str
    """The path without its last slash: ``/ui``."""

    def public(self, method: str, path: str) -> Response | None:
        """The response of a file without data, for every client; None for a path that needs authorization."""
        ...

    async def answer(self, ctx: Context) -> Response | StreamingResponse:
        """Answer an authorized request."""
        ...


class AppState(msgspec.Struct, eq=False):
    """The state that all requests to one HTTP server share."""

    server: Server
    discovery: DiscoveryCache
    watches: WatchRegistry
    openid: Mapping[str, OpenIDDocument] = field(default_factory=dict)
    """The OpenID documents by path."""
    documents: Mapping[str, Callable[[Query], bytes]] = field(default_factory=dict)
    """JSON documents that other components of the control plane serve, by path. They may raise `ApiError`."""
    site: Site | None = None
    """Pages that another component of the control plane serves."""
    address: str = ""
    """Host and port where clients reach this server: ``127.0.0.1:6443``."""
    durable: Callable[[], Awaitable[None]] | None = None
    """Awaited before a write is acknowledged: returns once the write is on disk."""
    aggregator: Aggregator | None = None
    """Passes requests on to other API servers; None while there is no remote APIService."""
    front_proxy: Callable[[], CertificatePair] | None = None
    """Makes the client certificate of the aggregator."""
    webhook_client: WebhookClient | None = None
    """The client for calls to webhooks; None where the server came with another."""
    heavy: HeavyRequests = field(default_factory=HeavyRequests)
    encoded: EncodingCache = field(default_factory=EncodingCache)
    protobuf: ProtobufEncoder | None = None
    """Encodes responses as protobuf; made when the first client asks for it."""
    metrics: Metrics = field(default_factory=Metrics)
    streams: dict[asyncio.Task[object] | None, None] = field(default_factory=dict)
    """The requests that last: logs that are followed, commands and port forwardings."""
    audit: AuditLog | None = None
    """The log of all requests; None where none is kept."""
    impersonation_modes: LastModes = field(default_factory=last_modes)


class Context(msgspec.Struct):
    """One HTTP request on its way to a response."""

    state: AppState
    http: HttpRequest
    info: RequestInfo
    query: Query
    user: User
    warnings: list[str] = field(default_factory=list)
    """The messages of the response's Warning headers."""
    audit: AuditEvent | None = None
    """Its event in the audit log; None where none is kept."""

    @property
    def server(self) -> Server:
        return self.state.server

    def choice(self, *, custom: bool = False, stream: bool = False) -> MediaTypeOptions:
        """The representation of objects that the client accepts. Raises `NotAcceptable`."""
        accept = self.http.headers.get("Accept", "")
        return (_negotiated if len(accept) <= MAX_SHORT else _negotiate)(accept, custom, stream)

    def own_choice(self) -> MediaTypeOptions:
        """The representation of a document that has no other kind. Raises `NotAcceptable`."""
        return negotiate(self.http.headers.get("Accept", ""), own_kind)

    @property
    def protobuf(self) -> ProtobufEncoder:
        """Encodes responses as protobuf."""
        encoder = self.state.protobuf
        if encoder is None:
            # Most clients speak JSON, and the field numbers of all messages take a while to read.
            from steersman.server.http.protobuf import ProtobufEncoder

            encoder = self.state.protobuf = ProtobufEncoder()
        return encoder

    def audited(self, run: Callable[[], T]) -> T:
        """Carries out one run of a request, and notes the audit annotations of its admission."""
        annotations = self.server.audit_annotations
        if annotations is None or self.audit is None:
            return run()
        annotations.clear()
        try:
            return run()
        finally:
            self.audit.admission = dict(annotations)

    @property
    def pretty(self) -> bool:
        """Whether JSON is indented."""
        return wants_pretty(self.http.headers.get(USER_AGENT, ""), self.query)

    def field_checks(self, field_validation: str) -> FieldChecks:
        """How unknown and duplicate fields of the body are treated."""
        return FieldChecks(parse_directive(field_validation), self.warnings)

    @property
    def content_type(self) -> str:
        return self.http.headers.get("Content-Type", "")

    def field_manager(self, given: str) -> str:
        """The field manager: the one that the request names, or the product in the User-Agent header."""
        return manager_name(given, self.http.headers.get(USER_AGENT, ""))


def _negotiate(accept: str, custom: bool, stream: bool) -> MediaTypeOptions:
    allows = custom_or_meta if custom else own_kind_or_meta
    return negotiate_stream(accept, allows) if stream else negotiate(accept, allows)


_negotiated = lru_cache(maxsize=256)(_negotiate)
"""Cached because clients send few different headers."""


@cache
def served_verbs() -> Mapping[tuple[str, str, str, str], tuple[str, ...]]:
    """The verbs of built-in resources by group, version, plural and subresource."""
    found: dict[tuple[str, str, str, str], tuple[str, ...]] = {}
    for row in (*resources(), *gated_resources()):
        found[row.group, row.version, row.plural, ""] = row.verbs
        for subresource in row.subresources:
            found[row.group, row.version, row.plural, subresource.name] = subresource.verbs
    return found
