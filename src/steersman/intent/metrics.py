"""What a controller counts, declared as values: the manager shows it under these names."""

from __future__ import annotations

from typing import Literal

import msgspec


class Metric(msgspec.Struct, frozen=True):
    """One metric, as its `Measure` names it: a counter is added to, a gauge set, a histogram filled."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram; none for what is no histogram."""
    settles: bool = False
    """It goes up and down."""
    stability: Literal["ALPHA", "BETA", "STABLE"] = "ALPHA"
    """What upstream promises about it."""

    @property
    def type(self) -> Literal["counter", "gauge", "histogram"]:
        if self.buckets:
            return "histogram"
        return "gauge" if self.settles else "counter"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Buckets that grow by a factor. Multiplied step by step, so the bounds are upstream's to the bit."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
