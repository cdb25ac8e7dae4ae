"""What is counted of those who ask, under upstream's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from steersman.intent.metrics import exponential
from steersman.runtime.metric_types import Registry

if TYPE_CHECKING:
    from steersman.client.round_trip import RequestDone

ATTEMPT_BUCKETS = exponential(0.001, 2, 15)
DELEGATED_BUCKETS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_KNOWN = ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")


class Counts:
    """Attempts, and what it took to decide them."""

    def __init__(self, registry: Registry) -> None:
        result, status = ("result",), ("status",)
        self._users = registry.counter(
            "authenticated_user_requests", "Requests of clients that were recognised", ("username",)
        )
        self._attempts = registry.counter("authentication_attempts", "Requests by who asks", result)
        self._recognising = registry.histogram(
            "authentication_duration_seconds", "How long it took to say who asks", ATTEMPT_BUCKETS, result
        )
        self._asked = registry.counter(
            "authorization_attempts_total", "Requests by what may be asked", result
        )
        self._deciding = registry.histogram(
            "authorization_duration_seconds",
            "How long it took to say whether they may",
            ATTEMPT_BUCKETS,
            result,
        )
        cache = "authentication_token_cache"
        self._tokens = registry.counter(f"{cache}_request_total", "Tokens by whether they were known", status)
        self._knowing = registry.histogram(
            f"{cache}_request_duration_seconds", "How long it took to know a token", DEFAULT_BUCKETS, status
        )
        self._fetches = registry.counter(f"{cache}_fetch_total", "Questions about tokens by outcome", status)
        self._fetching = registry.gauge(
            f"{cache}_active_fetch_count", "Tokens that are being asked about", status
        )
        self._reviews = {
            purpose: (
                registry.counter(
                    f"apiserver_delegated_{purpose}_request_total", f"Requests for {purpose}", ("code",)
                ),
                registry.histogram(
                    f"apiserver_delegated_{purpose}_request_duration_seconds",
                    f"How long requests for {purpose} took",
                    DELEGATED_BUCKETS,
                    ("code",),
                ),
            )
            for purpose in ("authn", "authz")
        }

    def recognised(self, user: str | None, seconds: float) -> None:
        """Somebody was recognised; None: was not."""
        result = "error" if user is None else "success"
        if user is not None:
            # Names are anybody's choice, and there may be any number of them.
            shown = user if user in _KNOWN else "email_id" if "@" in user else "other"
            self._users.of(shown).inc()
        self._attempts.of(result).inc()
        self._recognising.of(result).observe(seconds)

    def decided(self, allowed: bool | None, seconds: float) -> None:
        """Somebody may, or may not; None: nobody could say."""
        # differs: a refusal that upstream calls "denied" is no opinion here, too.
        result = "error" if allowed is None else "allowed" if allowed else "no-opinion"
        self._asked.of(result).inc()
        self._deciding.of(result).observe(seconds)

    def fetching(self, by: int) -> None:
        """So many more tokens are being asked about."""
        cell = self._fetching.of("in_flight")
        cell.set(cell.value + by)

    def fetched(self, well: bool) -> None:
        """The API server has been asked about a token."""
        self._fetches.of("ok" if well else "error").inc()

    def token(self, known: bool, seconds: float) -> None:
        """A token was shown, and was known already or had to be asked about."""
        status = "hit" if known else "miss"
        self._tokens.of(status).inc()
        self._knowing.of(status).observe(seconds)

    def delegated(self, purpose: str) -> Callable[[RequestDone], None]:
        """Counts what a client asks of the API server for ``authn`` or ``authz``."""
        total, latency = self._reviews[purpose]

        def done(request: RequestDone) -> None:
            if request.method == "POST":
                code = str(request.code) if request.code else "<error>"
                total.of(code).inc()
                latency.of(code).observe(request.seconds)

        return done
