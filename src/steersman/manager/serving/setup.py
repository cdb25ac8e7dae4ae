"""Secure serving, set up from flags."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.errors import ApiError
from steersman.client import kubeconfig
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.manager import logs
from steersman.manager.configz import configz, flagz
from steersman.manager.flags import UsageError
from steersman.manager.migration import Migration
from steersman.manager.options import AuthenticationOptions, Options, ServingOptions
from steersman.manager.serving import ciphers, serving_certs, zpages
from steersman.manager.serving.authentication import Authenticator, TokenReviewer
from steersman.manager.serving.authorization import AccessReviewer, AllowedPaths, Authorizer
from steersman.manager.serving.ca_bundles import (
    CaBundle,
    ClusterAuthentication,
    RequestHeaderConfig,
    RequestHeaderNames,
)
from steersman.manager.serving.dashboard import ManagerSite
from steersman.manager.serving.listener import HttpsListener, listen
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.routes import Routes
from steersman.manager.serving.tls import SniCert, TlsContexts
from steersman.manager.version import KUBERNETES, user_agent
from steersman.runtime.metrics import Metrics
from steersman.runtime.trace_view import TraceView

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

QPS, BURST = 200.0, 400
"""Client rate limits of reviews: high, because requests wait for them."""


def routes(
    options: Options,
    migration: Migration | None,
    clock: Clock,
    metrics: Metrics,
    rounds: TraceView | None = None,
) -> Routes:
    """The routes of a manager. ``migration`` is the leader migration configuration, if enabled."""
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
        configz=partial(configz, options, migration),
        pages={path: page for gate, path, page in pages if gates.get(gate, False)},
        profiling=options.debugging.profiling,
        set_verbosity=lambda verbosity: logs.configure(replace(options.logging, verbosity=verbosity)),
        started=started,
        rounds=rounds,
    )


class SecureServing:
    """Serves the endpoints of a manager. The socket is bound at once, and served from `open` on."""

    def __init__(
        self,
        options: Options,
        clock: Clock,
        metrics: Metrics,
        routes: Routes,
        site: ManagerSite | None = None,
    ) -> None:
        """``site`` is the dashboard. Raises `UsageError` where files, names or the address are invalid."""
        serving, authentication = options.serving, options.authentication
        authorization = options.authorization
        paths = AllowedPaths(authorization.always_allow_paths)
        source = _source(serving, clock)
        sni = [
            SniCert(serving_certs.CertFiles(one.cert, one.key), one.names) for one in serving.tls_sni_cert_key
        ]
        minimum = ciphers.version(serving.tls_min_version)
        cipher_list = ciphers.ciphers(serving.tls_cipher_suites)
        authn = _connection(authentication.kubeconfig, "authentication")
        authz = _connection(authorization.kubeconfig, "authorization")
        trust = _FlagTrust.read(authentication)
        listening = listen(serving.bind_address, serving.secure_port, shares_port=serving.permit_port_sharing)
        # Everything is validated; from here on there is something to close.
        self._apis: list[HttpApi] = []
        self._metrics = serving_metrics = ServingMetrics(metrics)
        # As upstream: only the front proxies are required.
        self._tolerant = authentication.tolerate_lookup_failure or trust.proxies is not None
        self._cluster: ClusterAuthentication | None = None
        self._watching: asyncio.Task[None] | None = None
        tokens, reviewer = None, None
        if authn is not None:
            api = self._api(authn, "authentication")
            tokens = TokenReviewer(api, clock, authentication.token_webhook_cache_ttl, serving_metrics)
            if not authentication.skip_lookup and not trust.complete:
                self._cluster = ClusterAuthentication(api, clock)
        if authz is not None:
            reviewer = AccessReviewer(
                self._api(authz, "authorization"),
                clock,
                allowed=authorization.webhook_cache_authorized_ttl,
                denied=authorization.webhook_cache_unauthorized_ttl,
            )
        cluster = self._cluster
        authenticator = Authenticator(
            clock,
            clients=trust.clients or (cluster.clients if cluster is not None else None),
            proxies=trust.proxies or (cluster.proxies if cluster is not None else None),
            tokens=tokens,
        )
        contexts = TlsContexts(
            source,
            sni,
            minimum=minimum,
            ciphers=cipher_list,
            request_certificates=authenticator.requests_certificates,
        )
        self.listener = HttpsListener(
            listening,
            contexts,
            authenticator,
            Authorizer(paths, reviewer),
            routes,
            clock,
            serving_metrics,
            site,
        )
        self._site = site

    async def open(self) -> None:
        """Start to serve. Raises `UsageError` where the cluster's CAs cannot be loaded."""
        if self._cluster is not None:
            await self._load(self._cluster)
            self._watching = asyncio.create_task(self._cluster.run(), name="cluster authentication")
        await self.listener.open()

    async def close(self) -> None:
        """Stop serving."""
        if self._site is not None:
            await self._site.close()
        await self.listener.close()
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        for api in self._apis:
            await api.close()

    async def _load(self, cluster: ClusterAuthentication) -> None:
        try:
            await cluster.load()
        except ApiError as error:
            message = f"unable to load configmap based request-header-client-ca-file: {error}"
            if not self._tolerant:
                raise UsageError(message) from None
            log.warning("%s; continuing without it: clients may be treated as anonymous", message)

    def _api(self, connection: ClientConfig, purpose: str) -> HttpApi:
        counted = self._metrics.delegated("authn" if purpose == "authentication" else "authz")
        api = HttpApi(connection, qps=QPS, burst=BURST, user_agent=user_agent(purpose), on_request=counted)
        self._apis.append(api)
        return api


def _connection(path: str, purpose: str) -> ClientConfig | None:
    """The connection of a kubeconfig, or the in-cluster connection without one; None where there is neither."""
    try:
        return kubeconfig.load(path) if path else kubeconfig.in_cluster()
    except ConfigError as error:
        if path:
            raise UsageError(f"--{purpose}-kubeconfig: {error}") from None
        log.warning("No %s-kubeconfig provided, so %s is not delegated to an API server", purpose, purpose)
        return None


def _source(serving: ServingOptions, clock: Clock) -> serving_certs.CertSource:
    if serving.tls_cert_file or serving.tls_private_key_file:
        return serving_certs.CertFiles(serving.tls_cert_file, serving.tls_private_key_file)
    if serving.cert_dir:
        return serving_certs.from_cert_dir(serving.cert_dir, serving.bind_address, clock.now)
    log.info("Generated self-signed cert in-memory")
    return serving_certs.StaticCert(serving_certs.generate(serving.bind_address, clock.now()))


class _FlagTrust(msgspec.Struct, frozen=True):
    """The client CAs and front proxies that flags configure."""

    clients: Callable[[], tuple[Certificate, ...]] | None
    proxies: Callable[[], RequestHeaderConfig | None] | None

    @property
    def complete(self) -> bool:
        """Whether nothing has to be looked up in the cluster."""
        return self.clients is not None and self.proxies is not None

    @classmethod
    def read(cls, options: AuthenticationOptions) -> _FlagTrust:
        """Raises `UsageError`."""
        clients, proxies = None, None
        if options.client_ca_file:
            clients = CaBundle(options.client_ca_file, "client-ca-file").roots
        if options.requestheader_client_ca_file:
            bundle = CaBundle(options.requestheader_client_ca_file, "requestheader-client-ca-file")
            headers = RequestHeaderNames(
                options.requestheader_username_headers,
                options.requestheader_uid_headers,
                options.requestheader_group_headers,
                options.requestheader_extra_headers_prefix,
            )
            proxies = partial(_proxies, bundle, options.requestheader_allowed_names, headers)
        return cls(clients, proxies)


def _proxies(bundle: CaBundle, names: tuple[str, ...], headers: RequestHeaderNames) -> RequestHeaderConfig:
    return RequestHeaderConfig(bundle.roots(), names, headers)
