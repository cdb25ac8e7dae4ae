"""Metrics of authentication and authorization, under upstream's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from steersman.api.prometheus import Registry
from steersman.intent.metrics import exponential

if TYPE_CHECKING:
    from steersman.client.round_trip import RequestAttempt

ATTEMPT_BUCKETS = exponential(0.001, 2, 15)
DELEGATED_BUCKETS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_KNOWN = ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")


class ServingMetrics:
    """Counts authentication and authorization, and how long they take."""

    def __init__(self, registry: Registry) -> None:
        result, status = ("result",), ("status",)
        self._users = registry.counter(
            "authenticated_user_requests",
            "Counter of authenticated requests broken out by username.",
            ("username",),
        )
        self._attempts = registry.counter(
            "authentication_attempts", "Counter of authenticated attempts.", result
        )
        self._authentication = registry.histogram(
            "authentication_duration_seconds",
            "Authentication duration in seconds broken out by result.",
            ATTEMPT_BUCKETS,
            result,
        )
        self._authorizations = registry.counter(
            "authorization_attempts_total",
            "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', "
            "'no-opinion' or 'error'.",
            result,
        )
        self._authorization = registry.histogram(
            "authorization_duration_seconds",
            "Authorization duration in seconds broken out by result.",
            ATTEMPT_BUCKETS,
            result,
        )
        cache = "authentication_token_cache"
        self._lookups = registry.counter(
            f"{cache}_request_total", "Token lookups by cache hit or miss", status
        )
        self._lookup = registry.histogram(
            f"{cache}_request_duration_seconds",
            "Duration of token lookups in seconds",
            DEFAULT_BUCKETS,
            status,
        )
        self._token_reviews = registry.counter(f"{cache}_fetch_total", "TokenReviews by outcome", status)
        self._in_flight = registry.gauge(f"{cache}_active_fetch_count", "TokenReviews in flight", status)
        self._reviews = {
            purpose: (
                registry.counter(
                    f"apiserver_delegated_{purpose}_request_total",
                    "Number of HTTP requests partitioned by status code.",
                    ("code",),
                ),
                registry.histogram(
                    f"apiserver_delegated_{purpose}_request_duration_seconds",
                    "Request latency in seconds. Broken down by status code.",
                    DELEGATED_BUCKETS,
                    ("code",),
                ),
            )
            for purpose in ("authn", "authz")
        }

    def authenticated(self, user: str | None, seconds: float) -> None:
        """Count a request by its user; None: authentication failed."""
        result = "error" if user is None else "success"
        if user is not None:
            # Clients choose their names, so their number is unbounded.
            shown = user if user in _KNOWN else "email_id" if "@" in user else "other"
            self._users.of(shown).inc()
        self._attempts.of(result).inc()
        self._authentication.of(result).observe(seconds)

    def authorized(self, allowed: bool | None, seconds: float) -> None:
        """Count a decision; None: the review failed."""
        # differs: upstream counts an explicit denial as "denied"; here it is "no-opinion", too.
        result = "error" if allowed is None else "allowed" if allowed else "no-opinion"
        self._authorizations.of(result).inc()
        self._authorization.of(result).observe(seconds)

    def reviews_in_flight(self, by: int) -> None:
        """Change the number of TokenReviews in flight."""
        cell = self._in_flight.of("in_flight")
        cell.set(cell.value + by)

    def token_review(self, ok: bool) -> None:
        """Count a TokenReview by outcome."""
        self._token_reviews.of("ok" if ok else "error").inc()

    def token_lookup(self, cached: bool, seconds: float) -> None:
        """Count a token lookup by cache hit or miss."""
        status = "hit" if cached else "miss"
        self._lookups.of(status).inc()
        self._lookup.of(status).observe(seconds)

    def delegated(self, purpose: str) -> Callable[[RequestAttempt], None]:
        """A callback that counts requests of a client for ``authn`` or ``authz``."""
        total, latency = self._reviews[purpose]

        def done(request: RequestAttempt) -> None:
            if request.method == "POST":
                code = str(request.code) if request.code else "<error>"
                total.of(code).inc()
                latency.of(code).observe(request.seconds)

        return done
