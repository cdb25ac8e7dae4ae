"""TLS as clients meet it: which certificate for which name, renewed when its files are."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steersman.client.tls import present
from steersman.manager.serving.client_certs import Chains
from steersman.manager.serving.serving_certs import Source
from steersman.server.auth.ca import Pair

STRANGERS = 64
"""Certificates a context may learn before another takes its place: anybody can show any number of them."""


class Named(NamedTuple):
    """A certificate for some names."""

    source: Source
    names: tuple[str, ...] = ()
    """Host names, with ``*`` for a first label; those in the certificate where none are given."""


class Contexts:
    """Makes a context for each certificate, and gives each connection the one for the name it asks for."""

    def __init__(
        self,
        source: Source,
        named: Sequence[Named] = (),
        *,
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        ciphers: str = "",
        asks: bool = False,
    ) -> None:
        """``source`` is for all names that none of the others is for; ``asks``: clients are asked for
        certificates."""
        self._source = source
        self._named = named
        self._minimum = minimum
        self._ciphers = ciphers
        self._asks = asks
        self._made: dict[int, tuple[Pair, ssl.SSLContext]] = {}
        self._strangers: dict[int, int] = {}
        self._names: tuple[tuple[Pair, ...], dict[str, Source]] = ((), {})
        self.chains = Chains(self._learned)

    def door(self) -> ssl.SSLContext:
        """The context to listen with. Each connection leaves it for one of the others at once."""
        context = self._make(self._source.current())
        context.sni_callback = self._choose
        return context

    def _choose(self, secured: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        secured.context = self._context(self._find(name or ""))

    def _find(self, name: str) -> Source:
        if not self._named or not name:
            return self._source
        known = self._known()
        name = name.lower().rstrip(".")
        wildcard = f"*.{name.partition('.')[2]}"
        return known.get(name) or known.get(wildcard) or self._source

    def _known(self) -> dict[str, Source]:
        """Who is for which name: those told count before those read from certificates, the first before others."""
        pairs = tuple(one.source.current() for one in self._named)
        if self._names[0] != pairs:
            told = {name.lower(): one.source for one in reversed(self._named) for name in one.names}
            read = {
                name: one.source
                for one, pair in reversed(tuple(zip(self._named, pairs, strict=True)))
                if not one.names
                for name in _names(pair)
            }
            self._names = (pairs, read | told)
        return self._names[1]

    def _context(self, source: Source) -> ssl.SSLContext:
        pair = source.current()
        known = self._made.get(id(source))
        if known is not None and known[0] is pair and self._strangers.get(id(known[1]), 0) < STRANGERS:
            return known[1]
        if known is not None:
            self._strangers.pop(id(known[1]), None)
        context = self._make(pair)
        self._made[id(source)] = (pair, context)
        return context

    def _learned(self, context: ssl.SSLContext) -> None:
        self._strangers[id(context)] = self._strangers.get(id(context), 0) + 1

    def _make(self, pair: Pair) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings():
            # Who names an old version means it.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = self._minimum
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        # differs: no HTTP/2, which neither the standard library nor aiohttp has.
        context.set_alpn_protocols(["http/1.1"])
        # A session that is resumed shows no certificates, and its context may be gone.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        if self._asks:
            self.chains.ask(context)
        present(context, pair.cert, pair.key)
        return context


def _names(pair: Pair) -> Iterable[str]:
    """The names in a certificate."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = x509.load_pem_x509_certificate(pair.cert)
    for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(attribute.value).lower()
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from (name.lower() for name in names.get_values_for_type(x509.DNSName))
