"""Who asks: by a front proxy, by certificate, by token; else nobody in particular.

The order is upstream's. Whoever shows something that does not hold is refused, unless something else they show does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from steersman.api.bounded_cache import ExpiringCache
from steersman.api.errors import ApiError
from steersman.api.jwt import Untrusted, digest
from steersman.client.api import Api
from steersman.http.head import Headers
from steersman.manager.serving.ca_bundles import Headers as Names
from steersman.manager.serving.ca_bundles import Proxies
from steersman.manager.serving.cert_verify import verify
from steersman.manager.serving.metrics import Counts
from steersman.manager.serving.reviews import TOKENS, named, review
from steersman.runtime.clock import Clock
from steersman.server.auth.users import ANONYMOUS, User, authenticated
from steersman.server.auth.x509 import holder

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

_INVALID = "invalid bearer token"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request shows of its sender."""

    headers: Headers
    chain: Sequence[bytes] = ()
    """The certificates of the connection, the client's own first."""


class Tokens:
    """Asks the API server whose a token is, and remembers what it said: yes and no, not that it did not answer."""

    def __init__(self, api: Api, clock: Clock, ttl: float, counts: Counts) -> None:
        self._api = api
        self._clock = clock
        self._ttl = ttl
        self._counts = counts
        self._known: ExpiringCache[bytes, User | Untrusted] = ExpiringCache(clock.monotonic, 8192)

    async def whose(self, token: str) -> User:
        """Raises `Untrusted`."""
        # By digest: they are not kept in the clear.
        key, start = digest(token), self._clock.monotonic()
        found = self._known.get(key)
        known = found is not None
        try:
            if found is None:
                found = await self._ask(token)
                self._known.put(key, found, self._ttl)
        finally:
            self._counts.token(known, self._clock.monotonic() - start)
        if isinstance(found, Untrusted):
            raise found
        return found

    async def _ask(self, token: str) -> User | Untrusted:
        self._counts.fetching(1)
        try:
            status = await review(self._api, self._clock, TOKENS, {"token": token})
        except ApiError as error:
            log.error("Failed to make webhook authenticator request: %s", error)
            self._counts.fetched(False)
            raise Untrusted(str(error)) from None
        finally:
            self._counts.fetching(-1)
        self._counts.fetched(True)
        if not status.get("authenticated"):
            return Untrusted(str(status.get("error") or _INVALID))
        return named(status.get("user") or {})


class Authenticator:
    """Recognises clients by what is configured; whatever is not is not looked at."""

    def __init__(
        self,
        clock: Clock,
        *,
        clients: Callable[[], tuple[Certificate, ...]] | None = None,
        proxies: Callable[[], Proxies | None] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._clock = clock
        self._clients = clients
        self._proxies = proxies
        self._tokens = tokens

    @property
    def asks(self) -> bool:
        """Whether clients are to be asked for certificates."""
        return self._clients is not None or self._proxies is not None

    async def authenticate(self, shown: Shown) -> User:
        """Who sent a request. Raises `Untrusted`."""
        errors: list[str] = []
        for way in (self._by_proxy, self._by_certificate, self._by_token):
            try:
                user = await way(shown)
            except Untrusted as error:
                errors += error.errors
            else:
                if user is not None:
                    return authenticated(user)
        if errors:
            raise Untrusted(*errors)
        return ANONYMOUS

    async def _by_proxy(self, shown: Shown) -> User | None:
        proxies = self._proxies() if self._proxies is not None and shown.chain else None
        if proxies is None:
            return None
        verify(shown.chain, proxies.roots, self._clock.now())
        proxy = holder(shown.chain[0])
        name = proxy.name if proxy is not None else ""
        if proxies.names and name not in proxies.names:
            raise Untrusted(f"x509: subject with cn={name} is not in the allowed list")
        return spoken_for(shown.headers, proxies.headers)

    async def _by_certificate(self, shown: Shown) -> User | None:
        roots = self._clients() if self._clients is not None and shown.chain else ()
        if not roots:
            return None
        verify(shown.chain, roots, self._clock.now())
        return holder(shown.chain[0])

    async def _by_token(self, shown: Shown) -> User | None:
        if self._tokens is None:
            return None
        words = shown.headers.get("Authorization").strip().split(" ", 2)
        if len(words) < 2 or words[0].lower() != "bearer" or not words[1]:
            return None
        return await self._tokens.whose(words[1])


def spoken_for(headers: Headers, names: Names) -> User | None:
    """Whom a front proxy speaks for; None where it does not say."""
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
