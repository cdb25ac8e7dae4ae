"""Validation of flag values: ranges and contradictions.

Each error is one line with kube-controller-manager's own message. Where that does not name the flag, the flag follows in
parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.go_duration import format_duration
from steersman.api.go_quote import quote
from steersman.cloud import EXTERNAL, is_installed, unknown_provider
from steersman.manager import cidrs, controller_selection
from steersman.manager.feature_gates import Features

JITTER = 1.2
"""Factor by which the retry period of lease renewal may be stretched."""


def problems(values: Mapping[str, Any], features: Features) -> Iterator[str]:
    """Every error in the flag values."""
    on = features.enabled()
    yield from _logging(values, on)
    yield from _election(values)
    yield from controller_selection.unknown(values["controllers"])
    yield from _cloud(values)
    yield from _sizes(values)
    yield from cidrs.problems(values)
    yield from _serving(values, on)
    yield from _metrics(values)


def _logging(values: Mapping[str, Any], on: Mapping[str, bool]) -> Iterator[str]:
    form = values["logging-format"]
    if values["log-flush-frequency"] <= 0:
        shown = quote(format_duration(values["log-flush-frequency"]))
        yield f"flushFrequency: Invalid value: {shown}: Must be greater than zero (--log-flush-frequency)"
    if form not in ("text", "json"):
        yield f"format: Invalid value: {quote(form)}: Unsupported log format (--logging-format)"
    if form == "json" and not on["LoggingBetaOptions"]:
        yield "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature (--logging-format)"
    if form == "json" and values["vmodule"]:
        yield "vmodule: Forbidden: Only supported for text log format (--vmodule)"
    if not on["LoggingAlphaOptions"]:
        disabled = "Forbidden: Feature LoggingAlphaOptions is disabled"
        for kind in ("text", "json"):
            if values[f"log-{kind}-split-stream"]:
                yield f"options.{kind}.splitStream: {disabled} (--log-{kind}-split-stream)"
            if values[f"log-{kind}-info-buffer-size"].value():
                yield f"options.{kind}.infoBufferSize: {disabled} (--log-{kind}-info-buffer-size)"


def _election(values: Mapping[str, Any]) -> Iterator[str]:
    if not values["leader-elect"]:
        return
    if values["leader-elect-resource-lock"] != "leases":
        yield 'resourceLock value must be "leases" (--leader-elect-resource-lock)'
    for flag in ("leader-elect-resource-name", "leader-elect-resource-namespace"):
        if not values[flag]:
            yield f"resource {flag.rpartition('-')[2]} may not be empty (--{flag})"
    lease, renew, retry = (
        values[f"leader-elect-{flag}"] for flag in ("lease-duration", "renew-deadline", "retry-period")
    )
    if lease <= renew:
        yield (
            "leaseDuration must be greater than renewDeadline "
            f"(--leader-elect-lease-duration={format_duration(lease)}, "
            f"--leader-elect-renew-deadline={format_duration(renew)})"
        )
    if renew <= JITTER * retry:
        yield (
            "renewDeadline must be greater than retryPeriod*JitterFactor "
            f"(--leader-elect-renew-deadline={format_duration(renew)}, "
            f"--leader-elect-retry-period={format_duration(retry)}, times {JITTER})"
        )
    if retry <= 0:
        yield f"retryPeriod must be greater than zero (--leader-elect-retry-period={format_duration(retry)})"


def _cloud(values: Mapping[str, Any]) -> Iterator[str]:
    provider, allocator = values["cloud-provider"], values["cidr-allocator-type"]
    # differs: upstream has no provider any more and refuses every name.
    if provider not in ("", EXTERNAL) and not is_installed(provider):
        yield unknown_provider(provider)
    if allocator not in ("", "RangeAllocator"):
        yield (
            f"built-in cloud providers are disabled. The ipam {allocator} is not available "
            "(--cidr-allocator-type)"
        )


_BETWEEN = {
    "concurrent-service-endpoint-syncs": 50,
    "max-endpoints-per-slice": 1000,
    "mirroring-concurrent-service-endpoint-syncs": 50,
    "mirroring-max-endpoints-per-subset": 1000,
}
"""The maximum of these flags; the minimum is 1."""


def _sizes(values: Mapping[str, Any]) -> Iterator[str]:
    for flag, most in _BETWEEN.items():
        if values[flag] < 1:
            yield f"{flag} must not be less than 1, but got {values[flag]}"
        if values[flag] > most:
            yield f"{flag} must not be more than {most}, but got {values[flag]}"
    for flag, value in values.items():
        # differs: upstream allows 0 workers for some controllers, which then do nothing.
        if flag.startswith("concurrent-") and flag not in _BETWEEN and value < 1:
            yield f"{flag} must be greater than 0, but got {value}"
    if values["attach-detach-reconcile-sync-period"] < 1:
        yield (
            "duration time must be greater than one second as set via command line option "
            "reconcile-sync-loop-period (--attach-detach-reconcile-sync-period)"
        )


_CURVES = (23, 24, 25, 29, 4587, 4588, 4589)
"""Curve IDs of Go's crypto/tls: P-256, P-384, P-521, X25519 and three with ML-KEM."""
_HEADERS = ("username-headers", "group-headers", "extra-headers-prefix", "uid-headers")


def _serving(values: Mapping[str, Any], on: Mapping[str, bool]) -> Iterator[str]:
    port = values["secure-port"]
    if port > 65535:
        yield f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
    if port < 0:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    for curve in values["tls-curve-preferences"]:
        if curve not in _CURVES:
            yield f"curve preference {curve} is not supported (--tls-curve-preferences)"
    for flag in ("requestheader-allowed-names", *(f"requestheader-{name}" for name in _HEADERS)):
        if any(not name.strip() for name in values[flag]):
            yield f"empty value in {quote(flag)}"
    uids = values["requestheader-uid-headers"]
    if uids and not on["RemoteRequestHeaderUID"]:
        yield '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled'
    elif uids and "x-remote-uid" not in [name.lower() for name in uids]:
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
            "API aggregation will not work"
        )
    for path in values["authorization-always-allow-paths"]:
        if "*" in path[:-1]:
            yield f"only trailing * allowed in {quote(path.removeprefix('/'))} (--authorization-always-allow-paths)"


_METRIC = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"


def _metrics(values: Mapping[str, Any]) -> Iterator[str]:
    version = values["show-hidden-metrics-for-version"]
    if version not in ("", "1.35"):
        yield (
            f"metrics.showHiddenMetricsForVersion: Invalid value: {quote(version)}: must be omitted or have the "
            "value '1.35'; only the previous minor version is allowed (--show-hidden-metrics-for-version)"
        )
    for name in values["disabled-metrics"]:
        if not re.fullmatch(_METRIC, name):
            yield (
                f'metrics.disabledMetrics: must be fully qualified metric names matching "^{_METRIC}$", '
                f"got {quote(name)} (--disabled-metrics)"
            )
    for key, _ in values["allow-metric-labels"]:
        if not re.fullmatch(f"{_METRIC},{_LABEL}", key):
            yield (
                f"metrics.allowListMapping: Invalid value: {quote(key)}: must have keys with format "
                f'`metricName,labelName` where metricName matches "{_METRIC}" and labelName matches "{_LABEL}" '
                "(--allow-metric-labels)"
            )
