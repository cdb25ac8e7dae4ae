"""Metrics of a controller: `Metric` declares one, `Measure` and `DropSeries` update it, `Timed` counts and times a part of a
decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Literal

import msgspec

from steersman.intent.actions import Action


class Metric(msgspec.Struct, frozen=True):
    """A counter, gauge or histogram that a controller declares; the manager exposes it under this name."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram; empty for counters and gauges."""
    gauge: bool = False
    """A `Measure` sets a gauge, and adds to a counter."""
    drops_zero: bool = False
    """Removes the gauge of some labels when it is set to 0, because what they name may be gone for good."""
    stability: Literal["ALPHA", "BETA", "STABLE"] = "ALPHA"
    """Upstream's stability level of the metric."""

    @property
    def type(self) -> Literal["counter", "gauge", "histogram"]:
        if self.buckets:
            return "histogram"
        return "gauge" if self.gauge else "counter"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds that grow by a factor. Multiplied step by step, so the bounds are upstream's to the bit."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class Measure(Action[None], frozen=True):
    """Updates a metric that the controller declares. It does not appear in the trace."""

    metric: Metric
    value: float = 1.0
    labels: tuple[str, ...] = ()


class DropSeries(Action[None], frozen=True):
    """Removes the series of these label values from a gauge, so that it is no longer exposed."""

    metric: Metric
    labels: tuple[str, ...]


class Elapsed(Action[float], frozen=True):
    """Answers with the seconds since the round began; for a `Measure`."""


class Timed:
    """Counts and times a part of a decision when it ends, with or without an error.

    ::

        async with Timed(SECONDS, TOTAL, {"action": "none", "result": "success"}, failed) as timed:
            ...
            timed.labels["action"] = "scale_up"
    """

    def __init__(
        self,
        seconds: Metric,
        total: Metric,
        labels: Mapping[str, str],
        failed: Callable[[Exception], Mapping[str, str]] = lambda error: {},
    ) -> None:
        """``failed`` gives the labels that change when the part raises an error."""
        assert seconds.labels == total.labels
        self.labels = dict(labels)
        self._seconds = seconds
        self._total = total
        self._failed = failed
        self._began = 0.0

    async def __aenter__(self) -> Timed:
        self._began = await Elapsed()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.labels.update(self._failed(error))
        elif error is not None:
            return  # The round was cancelled: no driver is left to answer a Measure.
        values = tuple(self.labels[label] for label in self._total.labels)
        await Measure(self._seconds, await Elapsed() - self._began, values)
        await Measure(self._total, labels=values)
