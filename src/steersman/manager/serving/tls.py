"""TLS contexts: a certificate for each server name (SNI), reloaded with its files."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterable, Sequence

import msgspec

from steersman.api.pem import parse_certificates
from steersman.client.certificates import load_certificate
from steersman.http.client_certs import MAX_TRUSTED, PeerCertificates
from steersman.manager.serving.serving_certs import CertSource
from steersman.server.auth.ca import CertificatePair


class SniCert(msgspec.Struct, frozen=True):
    """A certificate for some server names."""

    source: CertSource
    names: tuple[str, ...] = ()
    """Host names, possibly with ``*`` as first label; empty: the names in the certificate."""


class TlsContexts:
    """Creates an SSL context for each certificate, and selects one for each connection by server name."""

    def __init__(
        self,
        source: CertSource,
        sni: Sequence[SniCert] = (),
        *,
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        ciphers: str = "",
        request_certificates: bool = False,
    ) -> None:
        """``source`` is the default certificate; ``request_certificates``: the handshake requests client
        certificates."""
        self._source = source
        self._sni = sni
        self._minimum = minimum
        self._ciphers = ciphers
        self._request_certificates = request_certificates
        self._contexts: dict[int, tuple[CertificatePair, ssl.SSLContext]] = {}
        self._trusted: dict[int, int] = {}
        self._names: tuple[tuple[CertificatePair, ...], dict[str, CertSource]] = ((), {})
        self.peers = PeerCertificates(self._on_trust)

    def listening(self) -> ssl.SSLContext:
        """The context to listen with. It replaces itself for each connection."""
        context = self._make(self._source.current())
        context.sni_callback = self._select
        return context

    def _select(self, secured: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        secured.context = self._context(self._find(name or ""))

    def _find(self, name: str) -> CertSource:
        if not self._sni or not name:
            return self._source
        known = self._by_name()
        name = name.lower().rstrip(".")
        wildcard = f"*.{name.partition('.')[2]}"
        return known.get(name) or known.get(wildcard) or self._source

    def _by_name(self) -> dict[str, CertSource]:
        """Sources by server name: explicit names take precedence over those in certificates, then the first wins."""
        pairs = tuple(one.source.current() for one in self._sni)
        if self._names[0] != pairs:
            explicit = {name.lower(): one.source for one in reversed(self._sni) for name in one.names}
            read = {
                name: one.source
                for one, pair in reversed(tuple(zip(self._sni, pairs, strict=True)))
                if not one.names
                for name in _names(pair)
            }
            self._names = (pairs, read | explicit)
        return self._names[1]

    def _context(self, source: CertSource) -> ssl.SSLContext:
        pair = source.current()
        known = self._contexts.get(id(source))
        if known is not None and known[0] is pair and self._trusted.get(id(known[1]), 0) < MAX_TRUSTED:
            return known[1]
        if known is not None:
            self._trusted.pop(id(known[1]), None)
        context = self._make(pair)
        self._contexts[id(source)] = (pair, context)
        return context

    def _on_trust(self, context: ssl.SSLContext) -> None:
        self._trusted[id(context)] = self._trusted.get(id(context), 0) + 1

    def _make(self, pair: CertificatePair) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings():
            # The flag names an old version explicitly.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = self._minimum
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        # differs: no HTTP/2, which neither the standard library nor aiohttp has.
        context.set_alpn_protocols(["http/1.1"])
        # A resumed session carries no certificates, and its context may be gone.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        if self._request_certificates:
            self.peers.request(context)
        load_certificate(context, pair.cert, pair.key)
        return context


def _names(pair: CertificatePair) -> Iterable[str]:
    """The names in a certificate."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = parse_certificates(pair.cert)[0]
    for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(attribute.value).lower()
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from (name.lower() for name in names.get_values_for_type(x509.DNSName))
