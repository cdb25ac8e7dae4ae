"""What clients show of themselves in a handshake, without judging it there.

A request whose certificate is of nobody's must be answered with a 401, so the handshake has to come about. OpenSSL
ends it when it cannot verify a certificate, and Python cannot tell it not to. But it hands out every message of a
handshake before it is acted upon: when the client's certificate arrives, it is remembered, and added to what the
context trusts. So OpenSSL checks what only it can (that the client has the key), and `steersman.manager.serving.cert_verify`
says later whether an authority vouches for it. Nobody else may ever rely on what such a context has verified.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

_HANDSHAKE, _CERTIFICATE = 22, 11
_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME: an expired certificate is a 401, too."""


class Chains:
    """The certificates of each connection, the client's own first."""

    def __init__(self, learned: Callable[[ssl.SSLContext], None] = lambda context: None) -> None:
        """``learned`` is told of each context that has come to trust another certificate."""
        self._shown: WeakKeyDictionary[ssl.SSLObject, tuple[bytes, ...]] = WeakKeyDictionary()
        self._learned = learned

    def of(self, secured: ssl.SSLObject) -> tuple[bytes, ...]:
        """What a connection's client has shown; empty where that is nothing."""
        own = secured.getpeercert(True)
        if own is None:
            return ()
        shown = self._shown.get(secured, ())
        # A resumed session tells of the client's own certificate only.
        return shown if shown and shown[0] == own else (own,)

    def ask(self, context: ssl.SSLContext) -> None:
        """Have a context ask clients for certificates."""
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        # differs: a certificate that is not for clients at all still ends the handshake.
        setattr(context, "_msg_callback", self._heard)  # noqa: B010  (private, and nothing else would do)

    def _heard(
        self, secured: ssl.SSLObject, direction: str, version: int, content: int, message: int, data: bytes
    ) -> None:
        if direction != "read" or content != _HANDSHAKE or message != _CERTIFICATE:
            return
        chain = tuple(certificates(data, modern=version == ssl.TLSVersion.TLSv1_3))
        if chain:
            self._shown[secured] = chain
            secured.context.load_verify_locations(cadata=chain[0])
            self._learned(secured.context)


def certificates(message: bytes, *, modern: bool) -> Iterator[bytes]:
    """The certificates in a Certificate message of TLS, which is another one in 1.3, here ``modern``."""
    rest = message[4:]
    if modern:
        rest = rest[1 + int.from_bytes(rest[:1]) :]
    rest = _sized(rest)
    while rest:
        one = _sized(rest)
        yield one
        rest = rest[3 + len(one) :]
        if modern:
            rest = rest[2 + int.from_bytes(rest[:2]) :]


def _sized(data: bytes) -> bytes:
    """What follows a length of three bytes."""
    return data[3 : 3 + int.from_bytes(data[:3])]


def secured(transport: Any) -> ssl.SSLObject | None:
    """The TLS of a connection."""
    found: ssl.SSLObject | None = transport.get_extra_info("ssl_object") if transport is not None else None
    return found
