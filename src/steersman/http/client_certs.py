"""Client certificates, collected during the TLS handshake without being verified there.

A request with an untrusted certificate must be answered with 401, so the handshake has to succeed. OpenSSL aborts it when
it cannot verify a certificate, and Python has no way to disable that. But Python's message callback sees every handshake
message before OpenSSL processes it: when the client's certificate arrives, it is stored, and added to the CAs of the
context. OpenSSL then checks only that the client has the private key; `steersman.server.auth.cert_verify` verifies the
chain afterwards. The verification result of such a context must not be used for anything else.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

_HANDSHAKE, _CERTIFICATE = 22, 11
_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME: an expired certificate is a 401, too."""


class PeerCertificates:
    """The certificate chain of each connection, the client's own certificate first."""

    def __init__(self, on_trust: Callable[[ssl.SSLContext], None] = lambda context: None) -> None:
        """``on_trust`` is called with each context that has come to trust another certificate."""
        self._chains: WeakKeyDictionary[ssl.SSLObject, tuple[bytes, ...]] = WeakKeyDictionary()
        self._on_trust = on_trust

    def of(self, secured: ssl.SSLObject) -> tuple[bytes, ...]:
        """The chain that the client of a connection presented; empty where it presented none."""
        own = secured.getpeercert(True)
        if own is None:
            return ()
        chain = self._chains.get(secured, ())
        # A resumed session has only the client's own certificate.
        return chain if chain and chain[0] == own else (own,)

    def request(self, context: ssl.SSLContext) -> None:
        """Make a context request client certificates."""
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        # differs: a certificate whose usage excludes client authentication still ends the handshake.
        _set_message_callback(context, self._on_message)

    def _on_message(
        self, secured: ssl.SSLObject, direction: str, version: int, content: int, message: int, data: bytes
    ) -> None:
        if direction != "read" or content != _HANDSHAKE or message != _CERTIFICATE:
            return
        chain = tuple(certificates(data, modern=version == ssl.TLSVersion.TLSv1_3))
        if chain:
            self._chains[secured] = chain
            secured.context.load_verify_locations(cadata=chain[0])
            self._on_trust(secured.context)


def _set_message_callback(context: ssl.SSLContext, callback: Callable[..., None]) -> None:
    """Have a function called with every TLS message and record header, its codes as integers.

    The property of `ssl.SSLContext` converts each code to an enum first, for every record of every request; that of its
    base class does not. Both are private: there is no public hook.
    """
    base: Any = super(ssl.SSLContext, ssl.SSLContext)
    base._msg_callback.__set__(context, callback)


MAX_TRUSTED = 64
"""Client certificates a context may come to trust before it is replaced: their number is unbounded."""


class ClientCertContexts:
    """Contexts that request client certificates, each replaced once it trusts many of them."""

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        """``make`` makes a context with the server's certificate."""
        self._make = make
        self._trusted = 0
        self.peers = PeerCertificates(self._on_trust)
        self._current = self._new()

    def listening(self) -> ssl.SSLContext:
        """The context to listen with. It replaces itself for each connection."""
        context = self._new()
        context.sni_callback = self._select
        return context

    def _select(self, secured: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        if self._trusted >= MAX_TRUSTED:
            self._current, self._trusted = self._new(), 0
        secured.context = self._current

    def _on_trust(self, context: ssl.SSLContext) -> None:
        self._trusted += context is self._current

    def _new(self) -> ssl.SSLContext:
        context = self._make()
        # A resumed session carries no certificates, and its context may be gone.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self.peers.request(context)
        return context


def certificates(message: bytes, *, modern: bool) -> Iterator[bytes]:
    """The certificates in a TLS Certificate message. ``modern``: in the format of TLS 1.3."""
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
    """The data after a length of three bytes."""
    return data[3 : 3 + int.from_bytes(data[:3])]


def secured(transport: Any) -> ssl.SSLObject | None:
    """The TLS object of a connection; None without TLS."""
    found: ssl.SSLObject | None = transport.get_extra_info("ssl_object") if transport is not None else None
    return found
