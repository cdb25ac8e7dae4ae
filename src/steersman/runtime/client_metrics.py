"""Metrics of the API client, under the names of client-go."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from steersman.api.prometheus import Counter, Histogram, Registry

if TYPE_CHECKING:
    # Where there is no server over HTTP, its client need not be loaded.
    from steersman.client.http import HttpApi
    from steersman.client.round_trip import RequestAttempt

LATENCY_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_MINUTE, _DAY = 60, 86400
_MONTH = 30 * _DAY
AGE_BUCKETS = (
    *(10 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE, 240 * _MINUTE),
    *(_DAY, 7 * _DAY, _MONTH, 3 * _MONTH, 6 * _MONTH, 12 * _MONTH, 48 * _MONTH),
)


class _RequestMetrics(msgspec.Struct, frozen=True):
    """The cells of requests of one method with one outcome."""

    requests: Counter
    latency: Histogram
    throttled: Histogram
    sent: Histogram
    received: Histogram


class RestMetrics:
    """Requests by outcome, sockets, and plugins that hand out credentials."""

    def __init__(self, registry: Registry) -> None:
        place = ("verb", "host")
        self.requests = registry.counter(
            "rest_client_requests_total", "Requests by outcome", ("code", "method", "host")
        )
        """The code is ``<error>`` where no answer came."""
        self.retries = registry.counter(
            "rest_client_request_retries_total", "Requests that were sent again", ("code", "verb", "host")
        )
        self.latency = registry.histogram(
            "rest_client_request_duration_seconds", "How long requests took", LATENCY_BUCKETS, place
        )
        self.throttled = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests were held back on this side",
            LATENCY_BUCKETS,
            place,
        )
        self.sent = registry.histogram(
            "rest_client_request_size_bytes", "How large request bodies were", SIZE_BUCKETS, place
        )
        self.received = registry.histogram(
            "rest_client_response_size_bytes", "How large answers were", SIZE_BUCKETS, place
        )
        self._entries = registry.gauge(
            "rest_client_transport_cache_entries", "Pools of sockets, one for each identity with certificates"
        ).of()
        self._calls = registry.counter(
            "rest_client_transport_create_calls_total",
            "Clients that were made, by whether their sockets were there already",
            ("result",),
        )
        self._reloads = registry.counter(
            "rest_client_transport_ca_reload_total",
            "Certificates that were read anew, by what came of it",
            ("result", "reason"),
        )
        self._plugin_calls = registry.counter(
            "rest_client_exec_plugin_call_total",
            "Calls of a plugin for credentials",
            ("code", "call_status"),
        )
        self._ttl = registry.gauge(
            "rest_client_exec_plugin_ttl_seconds",
            "How long the certificate of a plugin is good for; +Inf where there is none",
        ).of()
        self._ttl.set(math.inf)
        self._age = registry.histogram(
            "rest_client_exec_plugin_certificate_rotation_age",
            "How old certificates of a plugin were when they were replaced",
            AGE_BUCKETS,
        ).of()
        self._registry = registry

    def counting(self, host: str) -> Callable[[RequestAttempt], None]:
        """A function that counts the requests to a server, for `HttpApi`."""
        known: dict[tuple[int, str], _RequestMetrics] = {}

        def done(request: RequestAttempt) -> None:
            counter = known.get((request.code, request.method))
            if counter is None:
                counter = known[request.code, request.method] = self._counter_of(
                    request.code, request.method, host
                )
            counter.requests.inc()
            counter.latency.observe(request.seconds)
            counter.throttled.observe(request.throttled)
            counter.sent.observe(request.sent)
            counter.received.observe(request.received)
            if request.attempt:
                self.retries.of(_code(request.code), request.method, host).inc()

        return done

    def _counter_of(self, code: int, method: str, host: str) -> _RequestMetrics:
        histograms = (self.latency, self.throttled, self.sent, self.received)
        return _RequestMetrics(
            self.requests.of(_code(code), method, host), *(family.of(method, host) for family in histograms)
        )

    def follow(self, api: HttpApi) -> None:
        """Show what a client, and those derived from it, count themselves."""
        transports, plugin = api.transports, api.plugin

        def refresh() -> None:
            self._entries.set(len(transports))
            self._calls.of("hit").value = transports.hits
            self._calls.of("miss").value = transports.misses
            for (result, reason), count in transports.reloads.items():
                self._reloads.of(result, reason).value = count
            if plugin is None:
                return
            for (code, status), count in plugin.calls.items():
                self._plugin_calls.of(str(code), status).value = count
            self._ttl.set(plugin.ttl())
            while plugin.ages:
                self._age.observe(plugin.ages.pop())

        self._registry.refreshes.append(refresh)


def _code(code: int) -> str:
    return str(code) if code else "<error>"
