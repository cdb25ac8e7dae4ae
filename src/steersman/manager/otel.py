"""OpenTelemetry spans of rounds: a span for each round, with a child for each action.

A round that was caused by the write of another is a child of that round's span, so one trace shows what a change of a Deployment led
to, through all controllers. Imported only where an OTLP endpoint is configured; needs the extra ``otel``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, set_span_in_context

from steersman.intent.verdict import Rest, Wake
from steersman.runtime.trace import Failure, Numbered, Round, Trace
from steersman.runtime.trace_links import Links

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

DELAY = 2.0
"""Seconds that rounds are held back, because a round may end before the one that caused it."""
MAX_CONTEXTS = 8192
"""Rounds whose spans can still get children."""
MAX_DEPTH = 32
"""The longest chain of rounds in one trace. A longer one goes on in a new trace, linked to the first."""


class Spans:
    """Exports the rounds of a trace."""

    def __init__(self, trace: Trace, exporter: SpanExporter, service: str = "steersman") -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("steersman")
        self._links = Links(trace)
        self._held: list[Numbered] = []
        self._timer: asyncio.TimerHandle | None = None
        self._contexts: dict[int, tuple[SpanContext, int]] = {}
        """By number of the round: the context of its span, and its depth in its trace."""
        trace.listeners.append(self.record)

    def record(self, number: int, round_: Round) -> None:
        """Take a round. It is exported a little later."""
        self._held.append((number, round_))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.flush(hold=DELAY)
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._ring)

    def flush(self, hold: float = 0.0) -> None:
        """Export the rounds that ended more than ``hold`` seconds before the latest, in the order in which they began."""
        if not self._held:
            return
        self._links.refresh()
        latest = max(_end(round_) for _, round_ in self._held)
        due = [entry for entry in self._held if latest - _end(entry[1]) >= timedelta(seconds=hold)]
        self._held = [entry for entry in self._held if latest - _end(entry[1]) < timedelta(seconds=hold)]
        for number, round_ in sorted(due, key=lambda entry: entry[1].started):
            self._export(number, round_)

    def close(self) -> None:
        """Export the rest. Blocks until the collector has answered, or does not."""
        if self._timer is not None:
            self._timer.cancel()
        self.flush()
        self._provider.shutdown()

    def _export(self, number: int, round_: Round) -> None:
        causes = [
            self._contexts[writer]
            for writer in dict.fromkeys(self._links.writer(event, number) for event in round_.events)
            if writer in self._contexts
        ]
        context, depth, links = None, 0, causes
        if causes and causes[0][1] < MAX_DEPTH:
            context = set_span_in_context(NonRecordingSpan(causes[0][0]))
            depth, links = causes[0][1] + 1, causes[1:]
        start = _nanoseconds(round_.started.timestamp())
        span = self._tracer.start_span(
            f"{round_.controller} {round_.key}",
            context,
            start_time=start,
            links=[Link(each) for each, _ in links],
            attributes={
                "steersman.controller": round_.controller,
                "k8s.namespace.name": round_.key.namespace,
                "steersman.name": round_.key.name,
                "steersman.causes": [str(cause) for cause in round_.causes],
                "steersman.waited_seconds": round_.waited,
                "steersman.verdict": _verdict(round_),
                "steersman.round": number,
            },
        )
        below, at = set_span_in_context(span), start
        for step in round_.steps:
            child = self._tracer.start_span(
                step.action,
                below,
                start_time=at,
                attributes={"steersman.resource_versions": [each.resource_version for each in step.writes]},
            )
            if step.outcome:
                child.set_status(Status(StatusCode.ERROR, step.outcome))
            # The trace has the duration of each step; the time between two is next to nothing.
            at += _nanoseconds(step.seconds)
            child.end(at)
        if isinstance(round_.ending, Failure):
            span.set_status(Status(StatusCode.ERROR, round_.ending.error))
        span.end(max(at, start + _nanoseconds(round_.took)))
        self._contexts[number] = (span.get_span_context(), depth)
        while len(self._contexts) > MAX_CONTEXTS:
            del self._contexts[next(iter(self._contexts))]


def _end(round_: Round) -> datetime:
    return round_.started + timedelta(seconds=round_.took)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000) * 1000


def _verdict(round_: Round) -> str:
    match round_.ending:
        case Rest(because):
            return f"rests: {because}"
        case Wake(after, because):
            return f"wakes in {after.total_seconds():g} s: {because}"
        case Failure(error):
            return f"failed: {error}"


def export_spans(trace: Trace) -> Callable[[], None]:
    """Export the rounds of a trace to the OTLP endpoint of the environment; returns the function that ends it."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return Spans(trace, OTLPSpanExporter()).close
