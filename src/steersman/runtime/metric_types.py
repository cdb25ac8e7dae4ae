"""Numbers that count what happens, cheaply: no locks, no label look-ups, nothing but an addition.

Everything counts on the event loop, so nothing needs guarding. What somebody who scrapes is shown of them is up to
`steersman.runtime.prometheus_text`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

Type: TypeAlias = Literal["counter", "gauge", "histogram"]
Stability: TypeAlias = Literal["", "ALPHA", "BETA", "STABLE"]
"""What upstream promises about a metric; nothing where it says nothing."""


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

    __slots__ = ("_make", "cells", "deprecated", "help", "labels", "name", "stability", "type")

    def __init__(
        self,
        name: str,
        help: str,
        type: Type,
        labels: tuple[str, ...],
        make: Callable[[], C],
        stability: Stability = "ALPHA",
        deprecated: str = "",
    ) -> None:
        """``deprecated`` is the version since which it is: ``1.35``. It is hidden some versions later."""
        self.name = name
        self.help = help
        self.type = type
        self.labels = labels
        self.stability = stability
        self.deprecated = deprecated
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


class Registry:
    """Metrics by their names."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Any]] = {}
        self.refreshes: list[Callable[[], None]] = []
        """Called before somebody looks: they bring up to date what nobody counts here."""

    @property
    def families(self) -> tuple[Family[Any], ...]:
        """Everything there is, by name."""
        return tuple(family for _, family in sorted(self._families.items()))

    def counter(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> Family[Counter]:
        """Declare a counter."""
        return self.add(Family(name, help, "counter", labels, Counter, stability))

    def gauge(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> Family[Gauge]:
        """Declare a gauge."""
        return self.add(Family(name, help, "gauge", labels, Gauge, stability))

    def histogram(
        self,
        name: str,
        help: str,
        buckets: Sequence[float],
        labels: tuple[str, ...] = (),
        stability: Stability = "ALPHA",
    ) -> Family[Histogram]:
        """Declare a histogram."""
        return self.add(Family(name, help, "histogram", labels, lambda: Histogram(buckets), stability))

    def add(self, family: Family[C]) -> Family[C]:
        """Declare a metric. One without labels is there from the start."""
        if family.name in self._families:
            raise ValueError(f"{family.name} is declared twice")
        self._families[family.name] = family
        if not family.labels:
            family.of()
        return family
