"""Authentication: from what a request shows to who sent it.

In upstream's order: the client certificate, then bearer tokens (static, legacy, those of TokenRequest,
bootstrap), then nobody in particular. A token that does not hold is refused; it is never anonymous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from steersman.api.errors import Unauthorized
from steersman.api.jwt import Untrusted, Verifier, digest
from steersman.api.signing_keys import Keys, from_unpadded
from steersman.server.auth.attributes import quoted
from steersman.server.auth.bootstrap_tokens import joiner
from steersman.server.auth.lookup import Objects
from steersman.server.auth.service_accounts import LEGACY_ISSUER, LegacyUse, bearer, legacy_bearer
from steersman.server.auth.users import ANONYMOUS, User, authenticated
from steersman.server.auth.x509 import holder

_INVALID = "invalid bearer token"
_PROTOCOL = "base64url.bearer.authorization.k8s.io."
_SPACED = "the provided Authorization header contains extra space before the bearer token, and is ignored"

_Bearer: TypeAlias = tuple[User, tuple[str, ...], tuple[str, ...]]
"""Somebody, the audiences their token is meant for, and warnings."""


class Credentials(msgspec.Struct, frozen=True):
    """What a request shows of its sender."""

    authorization: str = ""
    """The Authorization header."""
    certificate: bytes | None = None
    """The client's certificate as DER, verified by the connection."""
    protocols: tuple[str, ...] = ()
    """The Sec-WebSocket-Protocol headers of a request for a web socket: browsers can set no others."""


class Identity(msgspec.Struct, frozen=True):
    """Somebody who has been recognised."""

    user: User
    audiences: tuple[str, ...] = ()
    """For whom their token was meant, of those asked about; empty for a certificate."""
    warnings: tuple[str, ...] = ()
    """What to tell them in Warning headers."""


class Authenticator:
    """Recognises users by certificate and token."""

    def __init__(
        self,
        objects: Objects,
        *,
        keys: Keys,
        issuers: Sequence[str],
        audiences: Sequence[str] = (),
        tokens: Mapping[str, User] | None = None,
        anonymous: bool = True,
        used: Callable[[LegacyUse], None] = lambda use: None,
    ) -> None:
        """``audiences`` are the server's own, its issuers where none are given; ``tokens`` are static ones.

        ``used`` is told when a legacy token is used for the first time in a day.
        """
        self.audiences = tuple(audiences) or tuple(issuers)
        self._objects = objects
        self._anonymous = anonymous
        self._used = used
        # By digest: looking one up tells nothing by the time it takes, and they are not kept in the clear.
        self._static = {digest(token): user for token, user in (tokens or {}).items()}
        self._verifier = Verifier(keys, (LEGACY_ISSUER, *issuers))

    def authenticate(self, credentials: Credentials, now: datetime) -> Identity:
        """Who sent a request. Raises `Unauthorized`, which says no more than that."""
        try:
            return self.recognise(credentials, now)
        except Untrusted as error:
            raise Unauthorized("Unauthorized", reason="Unauthorized") from error

    def recognise(self, credentials: Credentials, now: datetime, audiences: tuple[str, ...] = ()) -> Identity:
        """The same for a token meant for some audiences; raises `Untrusted`, which says why."""
        wanted = audiences or self.audiences
        errors: list[str] = []
        warnings: tuple[str, ...] = ()
        if credentials.certificate is not None:
            try:
                user = holder(credentials.certificate)
            except Untrusted as error:
                errors += error.errors
            else:
                if user is not None:
                    return Identity(authenticated(user))
        for token_of in (_bearer_token, _protocol_token):
            try:
                token, warnings = token_of(credentials, warnings)
                if token:
                    user, meant, more = self._token(token, now, wanted)
                    return Identity(authenticated(user), meant, warnings + more)
            except Untrusted as error:
                errors += error.errors
        if errors:
            raise Untrusted(*errors)
        if not self._anonymous:
            raise Untrusted("no credentials")
        return Identity(ANONYMOUS, wanted, warnings)

    def _token(self, token: str, now: datetime, wanted: tuple[str, ...]) -> _Bearer:
        """Whose token it is. Raises `Untrusted`, also for one nobody knows."""
        # Tokens that say nothing of audiences are for this server alone.
        ours = _shared(self.audiences, wanted)
        key = digest(token)
        user = self._static.get(key) if ours else None
        if user is not None:
            return user, ours, ()
        claims = self._verifier.read(token, key)
        if claims is not None:
            meant = self._meant(claims.audiences, wanted)
            if claims.iss != LEGACY_ISSUER:
                return bearer(claims, self._objects, now), meant, ()
            user, warnings = legacy_bearer(claims, token, self._objects, now, self._used)
            return user, meant, warnings
        user = joiner(token, self._objects, now) if ours else None
        if user is None:
            raise Untrusted(_INVALID)
        return user, ours, ()

    def _meant(self, told: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The audiences that are wanted among those a token is meant for."""
        told = told or self.audiences
        shared = _shared(told, wanted)
        if not shared:
            raise Untrusted(
                f"token audiences {quoted(told)} is invalid for the target audiences {quoted(wanted)}"
            )
        return shared


def _shared(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in some if one in others)


def _bearer_token(credentials: Credentials, warnings: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The token of the Authorization header; any other scheme is nobody's business here."""
    parts = credentials.authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return "", warnings
    if not parts[1] and len(parts) == 3:
        return "", (*warnings, _SPACED)
    return parts[1], warnings


def _protocol_token(credentials: Credentials, warnings: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The token among the protocols of a web socket. Raises `Untrusted` where it is put wrongly."""
    offered = [one.strip() for header in credentials.protocols for one in header.split(",")]
    tokens = [one.removeprefix(_PROTOCOL) for one in offered if one.startswith(_PROTOCOL)]
    if not tokens:
        return "", warnings
    if len(tokens) > 1:
        raise Untrusted("multiple base64.bearer.authorization tokens specified")
    try:
        data = from_unpadded(tokens[0])
    except ValueError:
        raise Untrusted("invalid base64.bearer.authorization token encoding") from None
    try:
        token = data.decode()
    except UnicodeDecodeError:
        raise Untrusted("invalid base64.bearer.authorization token") from None
    if token and len(offered) == 1:
        raise Untrusted("missing additional subprotocol")
    return token, warnings
