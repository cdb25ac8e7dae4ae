"""Numbers that count what happens, cheaply: no locks, no label look-ups, nothing but an addition.

Everything counts on the event loop, so nothing needs guarding. prometheus-client's own counters cost
several times as much, which shows where there is one for every event and every round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from prometheus_client import Metric


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, by: float = 1.0) -> None:
        self.value += by


class Gauge:
    """A number that is set, or read from functions when somebody looks."""

    __slots__ = ("_merge", "_reads", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._reads: tuple[Callable[[], float], ...] = ()
        self._merge: Callable[[Iterable[float]], float] = sum

    def set(self, value: float) -> None:
        self._value = value

    def read(self, function: Callable[[], float], merge: Callable[[Iterable[float]], float] = sum) -> None:
        """Ask a function instead. Several functions are merged: upstream names some things alike."""
        self._reads = (*self._reads, function)
        self._merge = merge

    @property
    def value(self) -> float:
        return self._merge(read() for read in self._reads) if self._reads else self._value


class Histogram:
    """How often a value fell below each bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


C = TypeVar("C", bound=Counter | Gauge | Histogram)


class Family(Generic[C]):
    """One metric: a cell for each combination of label values."""

    __slots__ = ("_make", "cells", "help", "labels", "name", "type")

    def __init__(
        self,
        name: str,
        help: str,
        type: Literal["counter", "gauge", "histogram"],
        labels: tuple[str, ...],
        make: Callable[[], C],
    ) -> None:
        self.name = name
        self.help = help
        self.type = type
        self.labels = labels
        self.cells: dict[tuple[str, ...], C] = {}
        self._make = make

    def of(self, *values: str) -> C:
        """The cell for these label values. Keep it where it is used often."""
        cell = self.cells.get(values)
        if cell is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            cell = self.cells[values] = self._make()
        return cell

    def metric(self) -> Metric:
        """All cells, for prometheus-client."""
        from prometheus_client import Metric

        metric = Metric(self.name.removesuffix("_total"), self.help, self.type)
        for values, cell in self.cells.items():
            labels = dict(zip(self.labels, values, strict=True))
            if not isinstance(cell, Histogram):
                metric.add_sample(self.name, labels, cell.value)
                continue
            seen = 0
            for bound, count in zip((*cell.bounds, float("inf")), cell.counts, strict=True):
                seen += count
                metric.add_sample(f"{self.name}_bucket", {**labels, "le": _bound(bound)}, seen)
            metric.add_sample(f"{self.name}_sum", labels, cell.total)
            metric.add_sample(f"{self.name}_count", labels, seen)
        return metric


def _bound(bound: float) -> str:
    """A bound as Go writes it: no needless fraction, exponents from a million on."""
    from prometheus_client.utils import floatToGoString

    text: str = floatToGoString(bound)  # type: ignore[no-untyped-call]
    return text.removesuffix(".0")
