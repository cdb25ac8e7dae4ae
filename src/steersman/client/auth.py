"""Authenticators: the sources of a client's credentials (static, token file, exec plugin, TokenRequest).

An `Authenticator` returns the credential to send with a request. When the server refuses it with a 401, the client
calls `renew` once and, if that gave another credential, sends the request again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from steersman.api.errors import ApiError, Unreachable
from steersman.client.config import ClientConfig
from steersman.client.exec_plugin import ExecCredential, PluginError, run_plugin
from steersman.client.tls import file_versions

log = logging.getLogger(__name__)

Now = Callable[[], datetime]


def wall_clock() -> datetime:
    """Return the machine's wall-clock time, which expiry times refer to."""
    return datetime.now(UTC)


class NoCredentials(Unreachable):
    """The request was not sent, because no credential is available."""


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """The credential of one request. Compared by identity: a renewed credential is never equal to the old one."""

    authorization: str = field(default="", repr=False)
    """The Authorization header; empty sends none."""
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        # A line break in a token would inject headers into the request.
        if not self.authorization.isprintable():
            raise NoCredentials("the token or password contains a line break or another control character")


class Authenticator(Protocol):
    """A source of credentials."""

    async def credential(self) -> Credential:
        """Return the current credential. Raises `NoCredentials`."""
        ...

    async def renew(self, refused: Credential) -> bool:
        """Replace a credential that the server refused. Returns whether there is another one to try."""
        ...


class StaticAuth:
    """A credential that never changes, or none."""

    def __init__(self, authorization: str = "") -> None:
        self._credential = Credential(authorization)

    async def credential(self) -> Credential:
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        return False


class TokenFileAuth:
    """A token in a file that is replaced from time to time, as the kubelet does."""

    CHECK_INTERVAL = 1.0
    """Seconds between checks of the file's modification time."""
    REREAD_INTERVAL = 60.0
    """Seconds after which the file is read regardless: the modification time of some mounts is wrong."""

    def __init__(self, path: str, first: str = "") -> None:
        self._path = path
        self._credential = Credential(f"Bearer {first}") if first else None
        self._stamp: tuple[tuple[int, int, int], ...] = ()
        self._checked = self._read_at = float("-inf")

    async def credential(self) -> Credential:
        now = asyncio.get_running_loop().time()
        if now - self._checked >= self.CHECK_INTERVAL:
            self._checked = now
            if now - self._read_at >= self.REREAD_INTERVAL or file_versions((self._path,)) != self._stamp:
                self._read(now)
        if self._credential is None:
            raise NoCredentials(f"{self._path}: no token can be read from this file")
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        if self._credential is refused:
            self._read(asyncio.get_running_loop().time())
        return self._credential is not refused

    def _read(self, now: float) -> None:
        """Read the token. If the file cannot be read, the previous token stays in use."""
        self._read_at = now
        before = file_versions((self._path,))
        try:
            token = Path(self._path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s: cannot read the token: %s", self._path, getattr(error, "strerror", "not text"))
            return
        self._stamp = before
        if token and (self._credential is None or self._credential.authorization != f"Bearer {token}"):
            try:
                self._credential = Credential(f"Bearer {token}")
            except NoCredentials as error:
                log.warning("%s: %s", self._path, error.message)


class _CachedAuth(ABC):
    """A credential that is expensive to fetch: cached until it expires, and fetched by one task at a time."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._fetching = asyncio.Lock()

    async def credential(self) -> Credential:
        if (current := self._current()) is not None:
            return current
        async with self._fetching:
            return self._current() or await self._refresh()

    async def renew(self, refused: Credential) -> bool:
        async with self._fetching:
            # Of many requests refused at the same time, the first renews the credential for all.
            if self._credential is refused:
                try:
                    await self._refresh()
                except NoCredentials as error:
                    log.warning("cannot renew credentials: %s", error.message)
        return self._credential is not refused

    def _current(self) -> Credential | None:
        if self._expires is not None and self._now() >= self._expires:
            return None
        return self._credential

    async def _refresh(self) -> Credential:
        self._credential, self._expires = await self._fetch()
        return self._credential

    @abstractmethod
    async def _fetch(self) -> tuple[Credential, datetime | None]:
        """Fetch a new credential and its expiry. Raises `NoCredentials`."""


_MAX_AGES = 1000
"""Certificate ages kept until they are collected as metrics."""


class ExecPluginAuth(_CachedAuth):
    """Credentials that an exec plugin prints."""

    def __init__(self, config: ClientConfig, now: Now = wall_clock) -> None:
        super().__init__(now)
        self._config = config
        self.calls: Counter[tuple[int, str]] = Counter()
        """Runs of the plugin, by exit code and upstream's call status."""
        self.ages: list[float] = []
        """Ages of replaced certificates in seconds, to be collected as metrics."""
        self._issued: datetime | None = None

    def ttl(self) -> float:
        """Return the remaining lifetime of the certificate in use, in seconds."""
        if self._issued is None or self._expires is None:
            return math.inf
        return (self._expires - self._now()).total_seconds()

    async def _fetch(self) -> tuple[Credential, datetime | None]:
        try:
            printed: ExecCredential = await run_plugin(self._config)
        except PluginError as error:
            self.calls[error.code, error.status] += 1
            raise NoCredentials(str(error)) from None
        self.calls[0, "no_error"] += 1
        if printed.cert:
            if self._issued is not None and len(self.ages) < _MAX_AGES:
                self.ages.append((self._now() - self._issued).total_seconds())
            self._issued = self._now()
        header = f"Bearer {printed.token}" if printed.token else ""
        return Credential(header, printed.cert, printed.key), printed.expires


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and its expiry."""

    value: str = field(repr=False)
    expires: datetime


class FetchedTokenAuth(_CachedAuth):
    """Tokens fetched on demand, such as a service account's (TokenRequest).

    As upstream, a token is renewed when a fifth of its lifetime is left. The lifetime is assumed to be at least ten
    minutes, so that a clock skew between client and server does no harm.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Token]], now: Now = wall_clock) -> None:
        super().__init__(now)
        self._fetch_token = fetch

    async def _fetch(self) -> tuple[Credential, datetime | None]:
        try:
            token = await self._fetch_token()
        except ApiError as error:
            # A NotFound raised from here would look as if the requested object were missing.
            raise NoCredentials(f"cannot get a token: {error.message}") from error
        now = self._now()
        lifetime = max(token.expires - now, timedelta(minutes=10))
        return Credential(f"Bearer {token.value}"), now + lifetime * 0.8


def authenticator(config: ClientConfig, now: Now = wall_clock) -> Authenticator:
    """Return the authenticator for the credentials in a config."""
    user = config.user
    if user.token_file:
        return TokenFileAuth(user.token_file, user.token)
    if user.token:
        return StaticAuth(f"Bearer {user.token}")
    if user.username or user.password:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return StaticAuth(f"Basic {pair}")
    if user.plugin is not None:
        return ExecPluginAuth(config, now)
    return StaticAuth()
