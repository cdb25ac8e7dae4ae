"""Who we are, request by request: fixed, read from a file, printed by a plugin, or fetched.

An `Authenticator` answers the credential to use now. When the server refuses it with a 401, the
client asks it to `renew` once and, where that gave another credential, sends the request again.
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
from steersman.client.connection import Connection
from steersman.client.exec_plugin import Credentials, PluginError, run
from steersman.client.tls import stamp

log = logging.getLogger(__name__)

Now = Callable[[], datetime]


def wall() -> datetime:
    """The machine's wall time: expiry times are other machines' and know no other."""
    return datetime.now(UTC)


class NoCredentials(Unreachable):
    """The request was not sent: there is nothing to prove who we are with."""


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """What goes with one request. Compared by identity: a renewed one is another."""

    authorization: str = field(default="", repr=False)
    """The value of the header; empty leaves it out."""
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        # A line break would let whoever wrote the token write headers of their own.
        if not self.authorization.isprintable():
            raise NoCredentials("the token or password has a stray line break in it")


class Authenticator(Protocol):
    async def credential(self) -> Credential:
        """The credential to use now. Raises `NoCredentials`."""
        ...

    async def renew(self, refused: Credential) -> bool:
        """The server refused this one: answer whether there is another to try."""
        ...


class Fixed:
    """One credential for ever, or none."""

    def __init__(self, authorization: str = "") -> None:
        self._credential = Credential(authorization)

    async def credential(self) -> Credential:
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        return False


class TokenFile:
    """A token in a file that somebody replaces now and then, as the kubelet does."""

    CHECK = 1.0
    """Seconds between looks at the file's dates."""
    REREAD = 60.0
    """Seconds after which it is read whatever its dates say: mounts can lie about them."""

    def __init__(self, path: str, first: str = "") -> None:
        self._path = path
        self._credential = Credential(f"Bearer {first}") if first else None
        self._stamp: tuple[tuple[int, int, int], ...] = ()
        self._checked = self._read_at = float("-inf")

    async def credential(self) -> Credential:
        now = asyncio.get_running_loop().time()
        if now - self._checked >= self.CHECK:
            self._checked = now
            if now - self._read_at >= self.REREAD or stamp((self._path,)) != self._stamp:
                self._read(now)
        if self._credential is None:
            raise NoCredentials(f"{self._path}: no token can be read from this file")
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        if self._credential is refused:
            self._read(asyncio.get_running_loop().time())
        return self._credential is not refused

    def _read(self, now: float) -> None:
        """Take the file's token. A file that cannot be read leaves the last one in use."""
        self._read_at = now
        before = stamp((self._path,))
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


class _Renewed(ABC):
    """A credential that costs something to get: kept until it expires, got by one task at a time."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._busy = asyncio.Lock()

    async def credential(self) -> Credential:
        if (current := self._current()) is not None:
            return current
        async with self._busy:
            return self._current() or await self._get()

    async def renew(self, refused: Credential) -> bool:
        async with self._busy:
            # Of many requests refused together, the first renews for all.
            if self._credential is refused:
                try:
                    await self._get()
                except NoCredentials as error:
                    log.warning("cannot renew credentials: %s", error.message)
        return self._credential is not refused

    def _current(self) -> Credential | None:
        if self._expires is not None and self._now() >= self._expires:
            return None
        return self._credential

    async def _get(self) -> Credential:
        self._credential, self._expires = await self._fetch()
        return self._credential

    @abstractmethod
    async def _fetch(self) -> tuple[Credential, datetime | None]:
        """A new credential and when it ends. Raises `NoCredentials`."""


_AGES = 1000
"""How many are kept for whoever counts them."""


class FromPlugin(_Renewed):
    """What an exec plugin prints."""

    def __init__(self, connection: Connection, now: Now = wall) -> None:
        super().__init__(now)
        self._connection = connection
        self.calls: Counter[tuple[int, str]] = Counter()
        """By exit code, and by how they ended."""
        self.ages: list[float] = []
        """How many seconds old certificates were when they were replaced; for whoever counts them."""
        self._since: datetime | None = None

    def ttl(self) -> float:
        """Seconds for which the certificate in use is good."""
        if self._since is None or self._expires is None:
            return math.inf
        return (self._expires - self._now()).total_seconds()

    async def _fetch(self) -> tuple[Credential, datetime | None]:
        try:
            printed: Credentials = await run(self._connection)
        except PluginError as error:
            self.calls[error.code, error.status] += 1
            raise NoCredentials(str(error)) from None
        self.calls[0, "no_error"] += 1
        if printed.cert:
            if self._since is not None and len(self.ages) < _AGES:
                self.ages.append((self._now() - self._since).total_seconds())
            self._since = self._now()
        header = f"Bearer {printed.token}" if printed.token else ""
        return Credential(header, printed.cert, printed.key), printed.expires


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and when it ends."""

    value: str = field(repr=False)
    expires: datetime


class Fetched(_Renewed):
    """Tokens asked for as they are needed, such as a service account's (`TokenRequest`).

    As upstream: renewed when a fifth of the lifetime is left, and taken to live ten minutes at
    least, whatever the two clocks say.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Token]], now: Now = wall) -> None:
        super().__init__(now)
        self._ask = fetch

    async def _fetch(self) -> tuple[Credential, datetime | None]:
        try:
            token = await self._ask()
        except ApiError as error:
            # Raised as it is, a NotFound here would pass for one of the object asked for.
            raise NoCredentials(f"cannot get a token: {error.message}") from error
        now = self._now()
        lifetime = max(token.expires - now, timedelta(minutes=10))
        return Credential(f"Bearer {token.value}"), now + lifetime * 0.8


def authenticator(connection: Connection, now: Now = wall) -> Authenticator:
    """The authenticator of a connection's user."""
    user = connection.user
    if user.token_file:
        return TokenFile(user.token_file, user.token)
    if user.token:
        return Fixed(f"Bearer {user.token}")
    if user.username or user.password:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return Fixed(f"Basic {pair}")
    if user.plugin is not None:
        return FromPlugin(connection, now)
    return Fixed()
