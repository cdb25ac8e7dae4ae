"""The trace of a process, as its environment configures it: on or off, and whether its rounds are exported as spans."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

import msgspec

from steersman.runtime.trace import Trace

SWITCH = "STEERSMAN_TRACE"
"""Set to ``off``, no rounds are recorded."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables: with one of them, spans are exported."""

log = logging.getLogger(__name__)


class Tracing(msgspec.Struct, frozen=True):
    """A trace, and the function that ends its export; None where it is not exported."""

    trace: Trace
    close: Callable[[], None] | None = None


def make_tracing(environ: Mapping[str, str] = os.environ) -> Tracing:
    """The trace of this process."""
    trace = Trace(enabled=environ.get(SWITCH, "").lower() not in ("off", "0", "false"))
    configured = next((name for name in ENDPOINTS if environ.get(name)), "")
    if not configured or not trace.enabled or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Tracing(trace)
    try:
        from steersman.manager.otel import export_spans
    except ImportError as error:
        log.warning(
            "%s is set, but spans are not exported: %s; install steersman[otel]", configured, error.msg
        )
        return Tracing(trace)
    return Tracing(trace, export_spans(trace))
