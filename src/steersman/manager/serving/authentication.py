"""Authentication of requests: by front proxy, by client certificate, by bearer token, else anonymous.

The order is upstream's. A request whose credentials are all invalid is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from steersman.api.bounded_cache import ExpiringCache
from steersman.api.clock import Clock
from steersman.api.errors import ApiError
from steersman.api.jwt import InvalidCredential, token_digest
from steersman.client.api import Api
from steersman.http.head import Headers
from steersman.manager.serving.ca_bundles import RequestHeaderConfig, RequestHeaderNames
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.reviews import TOKENS, review, reviewed_user
from steersman.server.auth.cert_verify import verify
from steersman.server.auth.users import ANONYMOUS, User, authenticated
from steersman.server.auth.x509 import certificate_user

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

_INVALID = "invalid bearer token"


class Credentials(msgspec.Struct, frozen=True):
    """The credentials of a request."""

    headers: Headers
    chain: Sequence[bytes] = ()
    """The certificates of the connection in DER, the client's own first."""


class TokenReviewer:
    """Authenticates bearer tokens by TokenReview, and caches the results. Errors are not cached."""

    def __init__(self, api: Api, clock: Clock, ttl: float, metrics: ServingMetrics) -> None:
        self._api = api
        self._clock = clock
        self._ttl = ttl
        self._metrics = metrics
        self._known: ExpiringCache[bytes, User | InvalidCredential] = ExpiringCache(clock.monotonic, 8192)

    async def authenticate(self, token: str) -> User:
        """The user of a token. Raises `InvalidCredential`."""
        # By digest: tokens are not kept in memory.
        key, start = token_digest(token), self._clock.monotonic()
        found = self._known.get(key)
        known = found is not None
        try:
            if found is None:
                found = await self._review(token)
                self._known.put(key, found, self._ttl)
        finally:
            self._metrics.token_lookup(known, self._clock.monotonic() - start)
        if isinstance(found, InvalidCredential):
            raise found
        return found

    async def _review(self, token: str) -> User | InvalidCredential:
        self._metrics.reviews_in_flight(1)
        try:
            status = await review(self._api, self._clock, TOKENS, {"token": token})
        except ApiError as error:
            log.error("Failed to make webhook authenticator request: %s", error)
            self._metrics.token_review(False)
            raise InvalidCredential(str(error)) from None
        finally:
            self._metrics.reviews_in_flight(-1)
        self._metrics.token_review(True)
        if not status.get("authenticated"):
            return InvalidCredential(str(status.get("error") or _INVALID))
        return reviewed_user(status.get("user") or {})


class Authenticator:
    """Authenticates requests by the configured methods."""

    def __init__(
        self,
        clock: Clock,
        *,
        clients: Callable[[], tuple[Certificate, ...]] | None = None,
        proxies: Callable[[], RequestHeaderConfig | None] | None = None,
        tokens: TokenReviewer | None = None,
    ) -> None:
        self._clock = clock
        self._clients = clients
        self._proxies = proxies
        self._tokens = tokens

    @property
    def requests_certificates(self) -> bool:
        """Whether the TLS handshake requests client certificates."""
        return self._clients is not None or self._proxies is not None

    async def authenticate(self, credentials: Credentials) -> User:
        """The user of a request. Raises `InvalidCredential`."""
        errors: list[str] = []
        for method in (self._by_proxy, self._by_certificate, self._by_token):
            try:
                user = await method(credentials)
            except InvalidCredential as error:
                errors += error.errors
            else:
                if user is not None:
                    return authenticated(user)
        if errors:
            raise InvalidCredential(*errors)
        return ANONYMOUS

    async def _by_proxy(self, credentials: Credentials) -> User | None:
        proxies = self._proxies() if self._proxies is not None and credentials.chain else None
        if proxies is None:
            return None
        verify(credentials.chain, proxies.roots, self._clock.now())
        proxy = certificate_user(credentials.chain[0])
        name = proxy.name if proxy is not None else ""
        if proxies.names and name not in proxies.names:
            raise InvalidCredential(f"x509: subject with cn={name} is not in the allowed list")
        return proxied_user(credentials.headers, proxies.headers)

    async def _by_certificate(self, credentials: Credentials) -> User | None:
        roots = self._clients() if self._clients is not None and credentials.chain else ()
        if not roots:
            return None
        verify(credentials.chain, roots, self._clock.now())
        return certificate_user(credentials.chain[0])

    async def _by_token(self, credentials: Credentials) -> User | None:
        if self._tokens is None:
            return None
        words = credentials.headers.get("Authorization").strip().split(" ", 2)
        if len(words) < 2 or words[0].lower() != "bearer" or not words[1]:
            return None
        return await self._tokens.authenticate(words[1])


def proxied_user(headers: Headers, names: RequestHeaderNames) -> User | None:
    """The user that a front proxy passes in request headers; None where there is none."""
    user = next(filter(None, map(headers.get, names.user)), "")
    if not user:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in names.extra:
        for header, value in headers.items():
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :].lower())
                extra[key] = (*extra.get(key, ()), value)
    return User(
        user,
        next(filter(None, map(headers.get, names.uid)), ""),
        tuple(value for name in names.group for value in headers.getall(name) if value),
        extra,
    )
