"""Serving as the flags say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from steersman.api.errors import ApiError
from steersman.client import kubeconfig
from steersman.client.connection import ConfigError, Connection
from steersman.client.http import HttpApi
from steersman.manager import logs
from steersman.manager.configz import configz
from steersman.manager.flags import UsageError
from steersman.manager.flagz import flagz
from steersman.manager.migration import Migration
from steersman.manager.options import Authentication, Options, Serving
from steersman.manager.serving import ciphers as suites
from steersman.manager.serving import serving_certs, zpages
from steersman.manager.serving.authentication import Authenticator, Tokens
from steersman.manager.serving.authorization import Access, Authorizer, Paths
from steersman.manager.serving.ca_bundles import Bundle, Headers, Proxies, Published
from steersman.manager.serving.listener import Door, bound
from steersman.manager.serving.metrics import Counts
from steersman.manager.serving.routes import Routes
from steersman.manager.serving.tls import Contexts, Named
from steersman.manager.version import KUBERNETES, user_agent
from steersman.runtime.clock import Clock
from steersman.runtime.metrics import Metrics

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

QPS, BURST = 200.0, 400
"""Of the clients that ask about clients: they must not be what others wait for."""


def routes(options: Options, table: Migration | None, clock: Clock, metrics: Metrics) -> Routes:
    """What there is to be asked for. ``table`` is that of leader migration, where there is one."""
    gates = options.features.enabled()
    cbor = gates.get("CBORServingAndStorage", False)
    major, minor = options.features.emulated
    started = clock.now()
    status = zpages.statusz(started, clock.now, KUBERNETES.removeprefix("v"), f"{major}.{minor}", cbor)
    pages = (
        ("ComponentStatusz", "/statusz", status),
        ("ComponentFlagz", "/flagz", zpages.flagz(partial(flagz, options), cbor)),
    )
    return Routes(
        metrics=metrics.render,
        configz=partial(configz, options, table),
        pages={path: page for gate, path, page in pages if gates.get(gate, False)},
        profiling=options.debugging.profiling,
        talk=lambda verbosity: logs.begin(replace(options.logging, verbosity=verbosity)),
        started=started,
    )


class Server:
    """What serves a manager's own endpoints: prepared at once, and opened when the cluster can be asked."""

    def __init__(self, options: Options, clock: Clock, metrics: Metrics, made: Routes) -> None:
        """Raises `UsageError`: files, names and the address are looked at here."""
        serving, authentication = options.serving, options.authentication
        authorization = options.authorization
        paths = Paths(authorization.always_allow_paths)
        source = _source(serving, clock)
        named = [Named(serving_certs.Files(one.cert, one.key), one.names) for one in serving.tls_sni_cert_key]
        minimum, ciphers = suites.version(serving.tls_min_version), suites.ciphers(serving.tls_cipher_suites)
        asked = _connection(authentication.kubeconfig, "authentication")
        access = _connection(authorization.kubeconfig, "authorization")
        given = _Given.read(authentication)
        listening = bound(serving.bind_address, serving.secure_port, shares_port=serving.permit_port_sharing)
        # From here on nothing can be wrong any more, and there is something to be closed.
        self._apis: list[HttpApi] = []
        self._counts = counts = Counts(metrics)
        # As upstream: of the two only the proxies are waited for.
        self._tolerant = authentication.tolerate_lookup_failure or given.proxies is not None
        self._published: Published | None = None
        self._following: asyncio.Task[None] | None = None
        tokens, reviews = None, None
        if asked is not None:
            api = self._api(asked, "authentication")
            tokens = Tokens(api, clock, authentication.token_webhook_cache_ttl, counts)
            if not authentication.skip_lookup and not given.all:
                self._published = Published(api, clock)
        if access is not None:
            reviews = Access(
                self._api(access, "authorization"),
                clock,
                allowed=authorization.webhook_cache_authorized_ttl,
                denied=authorization.webhook_cache_unauthorized_ttl,
            )
        known = self._published
        authenticator = Authenticator(
            clock,
            clients=given.clients or (known.clients if known is not None else None),
            proxies=given.proxies or (known.proxies if known is not None else None),
            tokens=tokens,
        )
        contexts = Contexts(source, named, minimum=minimum, ciphers=ciphers, asks=authenticator.asks)
        self.door = Door(listening, contexts, authenticator, Authorizer(paths, reviews), made, clock, counts)

    async def open(self) -> None:
        """Begin to serve. Raises `UsageError` where the cluster does not say whom it trusts."""
        if self._published is not None:
            await self._look(self._published)
            self._following = asyncio.create_task(self._published.follow(), name="whom the cluster trusts")
        await self.door.open()

    async def close(self) -> None:
        """Serve no more."""
        await self.door.close()
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        for api in self._apis:
            await api.close()

    async def _look(self, published: Published) -> None:
        try:
            await published.look()
        except ApiError as error:
            told = f"unable to load configmap based request-header-client-ca-file: {error}"
            if not self._tolerant:
                raise UsageError(told) from None
            log.warning("%s; going on without, so that all clients may count as anonymous", told)

    def _api(self, connection: Connection, purpose: str) -> HttpApi:
        counted = self._counts.delegated("authn" if purpose == "authentication" else "authz")
        api = HttpApi(connection, qps=QPS, burst=BURST, user_agent=user_agent(purpose), on_request=counted)
        self._apis.append(api)
        return api


def _connection(path: str, purpose: str) -> Connection | None:
    """That of a kubeconfig; without one that of the pod, where this is one."""
    try:
        return kubeconfig.load(path) if path else kubeconfig.in_cluster()
    except ConfigError as error:
        if path:
            raise UsageError(f"--{purpose}-kubeconfig: {error}") from None
        log.warning("No %s-kubeconfig provided, so no API server is asked for %s", purpose, purpose)
        return None


def _source(serving: Serving, clock: Clock) -> serving_certs.Source:
    if serving.tls_cert_file or serving.tls_private_key_file:
        return serving_certs.Files(serving.tls_cert_file, serving.tls_private_key_file)
    if serving.cert_dir:
        return serving_certs.kept(serving.cert_dir, serving.bind_address, clock.now)
    log.info("Generated self-signed cert in-memory")
    return serving_certs.Fixed(serving_certs.made(serving.bind_address, clock.now()))


class _Given(NamedTuple):
    """Whom to trust according to flags."""

    clients: Callable[[], tuple[Certificate, ...]] | None
    proxies: Callable[[], Proxies | None] | None

    @property
    def all(self) -> bool:
        """Whether there is nothing left to look up in the cluster."""
        return self.clients is not None and self.proxies is not None

    @classmethod
    def read(cls, asked: Authentication) -> _Given:
        """Raises `UsageError`."""
        clients, proxies = None, None
        if asked.client_ca_file:
            clients = Bundle(asked.client_ca_file, "client-ca-file").roots
        if asked.requestheader_client_ca_file:
            bundle = Bundle(asked.requestheader_client_ca_file, "requestheader-client-ca-file")
            headers = Headers(
                asked.requestheader_username_headers,
                asked.requestheader_uid_headers,
                asked.requestheader_group_headers,
                asked.requestheader_extra_headers_prefix,
            )
            proxies = partial(_believed, bundle, asked.requestheader_allowed_names, headers)
        return cls(clients, proxies)


def _believed(bundle: Bundle, names: tuple[str, ...], headers: Headers) -> Proxies:
    return Proxies(bundle.roots(), names, headers)
