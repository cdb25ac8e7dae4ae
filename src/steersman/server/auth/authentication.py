"""Authenticator: from the credentials of a request to its user.

In upstream's order: the client certificate, then bearer tokens (static, legacy, TokenRequest, bootstrap), then
anonymous. A request with an invalid token is refused; it is never anonymous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from steersman.api.errors import Unauthorized
from steersman.api.jwt import InvalidCredential, Verifier, token_digest
from steersman.api.signing_keys import KeySet, base64url_decode
from steersman.server.auth.attributes import quoted
from steersman.server.auth.bootstrap_tokens import bootstrap_token_user
from steersman.server.auth.cert_verify import ClientCAs
from steersman.server.auth.lookup import ObjectGetter
from steersman.server.auth.service_accounts import LEGACY_ISSUER, LegacyUse, legacy_token_user, token_user
from steersman.server.auth.users import ANONYMOUS, User, authenticated
from steersman.server.auth.x509 import certificate_user

_INVALID = "invalid bearer token"
TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io."
"""The beginning of a WebSocket subprotocol that is a bearer token."""
_EXTRA_SPACE = (
    "the provided Authorization header contains extra space before the bearer token, and is ignored"
)

_TokenUser: TypeAlias = tuple[User, tuple[str, ...], tuple[str, ...]]
"""A user, the audiences of the token, and warnings."""


class Credentials(msgspec.Struct, frozen=True):
    """The credentials of a request."""

    authorization: str = ""
    """The Authorization header."""
    certificate: bytes | None = None
    """The client certificate as DER, of which the client has the private key."""
    intermediates: tuple[bytes, ...] = ()
    """The other certificates that the client sent."""
    protocols: tuple[str, ...] = ()
    """The Sec-WebSocket-Protocol headers of a WebSocket request: browsers cannot set an Authorization header."""


class Identity(msgspec.Struct, frozen=True):
    """The result of an authentication."""

    user: User
    audiences: tuple[str, ...] = ()
    """The audiences of the token, among the requested ones; empty for a certificate."""
    warnings: tuple[str, ...] = ()
    """The texts of Warning headers."""


class Authenticator:
    """Authenticates users by certificate and token."""

    def __init__(
        self,
        objects: ObjectGetter,
        *,
        keys: KeySet,
        issuers: Sequence[str],
        audiences: Sequence[str] = (),
        tokens: Mapping[str, User] | None = None,
        anonymous: bool = True,
        used: Callable[[LegacyUse], None] = lambda use: None,
        client_cas: ClientCAs | None = None,
    ) -> None:
        """``audiences`` are those of the server, by default its issuers; ``tokens`` are static bearer tokens.

        ``used`` is called when a legacy token is used for the first time in a day. ``client_cas`` verifies client
        certificates, unless TLS has verified them.
        """
        self.audiences = tuple(audiences) or tuple(issuers)
        self._objects = objects
        self._anonymous = anonymous
        self._used = used
        self._client_cas = client_cas
        # By digest: the lookup leaks nothing by its timing, and tokens are not kept in clear text.
        self._static = {token_digest(token): user for token, user in (tokens or {}).items()}
        self._verifier = Verifier(keys, (LEGACY_ISSUER, *issuers))

    def authenticate(self, credentials: Credentials, now: datetime) -> Identity:
        """The user of a request. Raises `Unauthorized`, without a reason, as upstream does."""
        try:
            return self.authenticate_for(credentials, now)
        except InvalidCredential as error:
            raise Unauthorized("Unauthorized", reason="Unauthorized") from error

    def authenticate_for(
        self, credentials: Credentials, now: datetime, audiences: tuple[str, ...] = ()
    ) -> Identity:
        """The user of credentials for some audiences, by default the server's. Raises `InvalidCredential` with the reasons."""
        wanted = audiences or self.audiences
        errors: list[str] = []
        warnings: tuple[str, ...] = ()
        if credentials.certificate is not None:
            try:
                if self._client_cas is not None:
                    self._client_cas.check((credentials.certificate, *credentials.intermediates), now)
                user = certificate_user(credentials.certificate)
            except InvalidCredential as error:
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
            except InvalidCredential as error:
                errors += error.errors
        if errors:
            raise InvalidCredential(*errors)
        if not self._anonymous:
            raise InvalidCredential("no credentials")
        return Identity(ANONYMOUS, wanted, warnings)

    def _token(self, token: str, now: datetime, wanted: tuple[str, ...]) -> _TokenUser:
        """The user of a token. Raises `InvalidCredential`, also for an unknown token."""
        # Tokens without audiences are for this server alone.
        ours = _intersection(self.audiences, wanted)
        key = token_digest(token)
        user = self._static.get(key) if ours else None
        if user is not None:
            return user, ours, ()
        claims = self._verifier.read(token, key)
        if claims is not None:
            meant = self._matching_audiences(claims.audiences, wanted)
            if claims.iss != LEGACY_ISSUER:
                return token_user(claims, self._objects, now), meant, ()
            user, warnings = legacy_token_user(claims, token, self._objects, now, self._used)
            return user, meant, warnings
        user = bootstrap_token_user(token, self._objects, now) if ours else None
        if user is None:
            raise InvalidCredential(_INVALID)
        return user, ours, ()

    def _matching_audiences(self, values: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The requested audiences that a token has. Raises `InvalidCredential` if there is none."""
        values = values or self.audiences
        shared = _intersection(values, wanted)
        if not shared:
            raise InvalidCredential(
                f"token audiences {quoted(values)} is invalid for the target audiences {quoted(wanted)}"
            )
        return shared


def _intersection(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in some if one in others)


def _bearer_token(credentials: Credentials, warnings: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The bearer token of the Authorization header; other schemes are ignored."""
    parts = credentials.authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return "", warnings
    if not parts[1] and len(parts) == 3:
        return "", (*warnings, _EXTRA_SPACE)
    return parts[1], warnings


def _protocol_token(credentials: Credentials, warnings: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The bearer token among the subprotocols of a WebSocket. Raises `InvalidCredential` if it is malformed."""
    offered = [one.strip() for header in credentials.protocols for one in header.split(",")]
    tokens = [one.removeprefix(TOKEN_PROTOCOL) for one in offered if one.startswith(TOKEN_PROTOCOL)]
    if not tokens:
        return "", warnings
    if len(tokens) > 1:
        raise InvalidCredential("multiple base64.bearer.authorization tokens specified")
    try:
        data = base64url_decode(tokens[0])
    except ValueError:
        raise InvalidCredential("invalid base64.bearer.authorization token encoding") from None
    try:
        token = data.decode()
    except UnicodeDecodeError:
        raise InvalidCredential("invalid base64.bearer.authorization token") from None
    if token and len(offered) == 1:
        raise InvalidCredential("missing additional subprotocol")
    return token, warnings
