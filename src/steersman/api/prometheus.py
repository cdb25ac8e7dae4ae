"""Prometheus metrics: counters, gauges and histograms, and their text format as Go writes it.

Counting costs no lock and no label lookup: all counting happens on the event loop, and callers keep the children they
update often. `exposition` writes the text that Prometheus scrapes::

    body = exposition(registry)
    body = exposition(registry, ExpositionOptions(disabled=frozenset({"workqueue_depth"})))
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import field

MetricType: TypeAlias = Literal["counter", "gauge", "histogram"]
Stability: TypeAlias = Literal["", "ALPHA", "BETA", "STABLE"]
"""Upstream's stability level of a metric; empty for metrics that have none."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
VERSION = (1, 36)
"""The Kubernetes release whose metrics these are."""
UNEXPECTED = "unexpected"
"""Upstream's replacement for label values that are not in the label's allow list."""

_HIDDEN_AFTER = {"STABLE": 3, "BETA": 1}
"""Minor releases after its deprecation at which a metric is hidden, by stability."""
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_ALLOW_LIST_KEY = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)")


# -- metrics ----------------------------------------------------------------------------------


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, by: float = 1.0) -> None:
        self.value += by


class Gauge:
    """A number that is set, or read from functions at each scrape."""

    __slots__ = ("_merge", "_reads", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._reads: tuple[Callable[[], float], ...] = ()
        self._merge: Callable[[Iterable[float]], float] = sum

    def set(self, value: float) -> None:
        self._value = value

    def read(self, function: Callable[[], float], merge: Callable[[Iterable[float]], float] = sum) -> None:
        """Read the value from a function. Several functions are merged: upstream gives some queues the same name."""
        self._reads = (*self._reads, function)
        self._merge = merge

    @property
    def value(self) -> float:
        return self._merge(read() for read in self._reads) if self._reads else self._value


class Histogram:
    """Counts observations by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """The sum of all observed values."""

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


C = TypeVar("C", bound=Counter | Gauge | Histogram)


class MetricFamily(Generic[C]):
    """One metric, with a child for each combination of label values."""

    __slots__ = ("_make", "children", "deprecated", "help", "labels", "name", "stability", "type")

    def __init__(
        self,
        name: str,
        help: str,
        type: MetricType,
        labels: tuple[str, ...],
        make: Callable[[], C],
        stability: Stability = "ALPHA",
        deprecated: str = "",
    ) -> None:
        """``deprecated`` is the release that deprecated it: ``1.35``. It is hidden some releases later."""
        self.name = name
        self.help = help
        self.type = type
        self.labels = labels
        self.stability = stability
        self.deprecated = deprecated
        self.children: dict[tuple[str, ...], C] = {}
        self._make = make

    def of(self, *values: str) -> C:
        """The child for these label values. Keep it where it is updated often."""
        child = self.children.get(values)
        if child is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            child = self.children[values] = self._make()
        return child


class Registry:
    """Metric families by name."""

    def __init__(self) -> None:
        self._families: dict[str, MetricFamily[Any]] = {}
        self.refreshes: list[Callable[[], None]] = []
        """Called before each scrape, to update metrics that are counted elsewhere."""

    @property
    def families(self) -> tuple[MetricFamily[Any], ...]:
        """All metric families, sorted by name."""
        return tuple(family for _, family in sorted(self._families.items()))

    def counter(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> MetricFamily[Counter]:
        """Register a counter."""
        return self.add(MetricFamily(name, help, "counter", labels, Counter, stability))

    def gauge(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> MetricFamily[Gauge]:
        """Register a gauge."""
        return self.add(MetricFamily(name, help, "gauge", labels, Gauge, stability))

    def histogram(
        self,
        name: str,
        help: str,
        buckets: Sequence[float],
        labels: tuple[str, ...] = (),
        stability: Stability = "ALPHA",
    ) -> MetricFamily[Histogram]:
        """Register a histogram."""
        return self.add(MetricFamily(name, help, "histogram", labels, lambda: Histogram(buckets), stability))

    def add(self, family: MetricFamily[C]) -> MetricFamily[C]:
        """Register a metric family. A metric without labels is exposed from the start."""
        if family.name in self._families:
            raise ValueError(f"{family.name} is declared twice")
        self._families[family.name] = family
        if not family.labels:
            family.of()
        return family


# -- options ----------------------------------------------------------------------------------


class ExpositionOptions(msgspec.Struct, frozen=True):
    """Which metrics are exposed, and which values of their labels: upstream's metrics flags."""

    disabled: frozenset[str] = frozenset()
    allowed_values: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """By metric and label: the only values that are exposed as they are."""
    show_hidden: bool = False
    """Expose metrics that are hidden since their deprecation."""

    def shows(self, family: MetricFamily[Any]) -> bool:
        """Whether a metric is exposed at all. A disabled metric is not, even with `show_hidden`."""
        return family.name not in self.disabled and (self.show_hidden or not is_hidden(family))

    def label_values(self, family: MetricFamily[Any], values: tuple[str, ...]) -> tuple[str, ...]:
        """Label values as they are exposed: those not allowed become `UNEXPECTED`."""
        allowed = self.allowed_values.get(family.name)
        if allowed is None:
            return values
        return tuple(
            value if label not in allowed or value in allowed[label] else UNEXPECTED
            for label, value in zip(family.labels, values, strict=True)
        )


DEFAULT_OPTIONS = ExpositionOptions()


def parse_allow_list(flags: Mapping[str, str]) -> dict[str, dict[str, frozenset[str]]]:
    """The allow lists of ``metric,label`` to ``value,value``. Raises `ValueError` for a key of another form."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in flags.items():
        match = _ALLOW_LIST_KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key!r} is not of the form metricName,labelName")
        found.setdefault(match[1], {})[match[2]] = frozenset(values.split(","))
    return found


def is_hidden(family: MetricFamily[Any], version: tuple[int, int] = VERSION) -> bool:
    """Whether a metric was deprecated long enough ago to be hidden by default."""
    if not family.deprecated:
        return False
    major, minor = map(int, family.deprecated.split("."))
    return (major, minor + _HIDDEN_AFTER.get(family.stability, 0)) <= version


# -- text -------------------------------------------------------------------------------------


def exposition(
    registry: Registry, options: ExpositionOptions = DEFAULT_OPTIONS, *, about_metrics: bool = True
) -> bytes:
    """The metrics of a registry in the text format of Prometheus, sorted by name and labels. See `CONTENT_TYPE`.

    ``about_metrics`` adds the metrics about metrics that upstream's component-base registers.
    """
    for refresh in registry.refreshes:
        refresh()
    families: Iterable[MetricFamily[Any]] = registry.families
    if about_metrics:
        families = (*registry.families, *_metrics_about(registry.families, options))
    text: list[str] = []
    for family in sorted(filter(options.shows, families), key=lambda family: family.name):
        text.extend(_family_text(family, _exposed_children(family, options)))
    return "".join(text).encode()


def _metrics_about(
    families: Sequence[MetricFamily[Any]], options: ExpositionOptions
) -> Iterator[MetricFamily[Any]]:
    if not families:
        return
    registered = MetricFamily(
        "registered_metrics_total",
        "Metrics that are registered",
        "counter",
        ("stability_level", "deprecated_version"),
        Counter,
        "BETA",
    )
    for family in families:
        if family.stability:
            registered.of(family.stability, family.deprecated).inc()
    yield registered
    yield _single("disabled_metrics_total", "Metrics that are disabled", len(options.disabled))
    yield _single("hidden_metrics_total", "Metrics that are hidden", sum(map(is_hidden, families)))
    # differs: upstream counts how often such a value was met; here, how many there are.
    unexpected = sum(
        options.label_values(family, values) != values for family in families for values in family.children
    )
    yield _single(
        "cardinality_enforcement_unexpected_categorizations_total",
        "Combinations of labels' values that are not all allowed",
        unexpected,
        "ALPHA",
    )


def _single(name: str, help: str, value: float, stability: Stability = "BETA") -> MetricFamily[Counter]:
    family: MetricFamily[Counter] = MetricFamily(name, help, "counter", (), Counter, stability)
    family.of().inc(value)
    return family


def _exposed_children(family: MetricFamily[Any], options: ExpositionOptions) -> Mapping[tuple[str, ...], Any]:
    """The children by their exposed label values; those that become equal are added up."""
    if family.name not in options.allowed_values:
        return family.children
    found: dict[tuple[str, ...], list[Any]] = {}
    for values, child in family.children.items():
        found.setdefault(options.label_values(family, values), []).append(child)
    return {values: same[0] if len(same) == 1 else _sum(same) for values, same in found.items()}


def _sum(children: Sequence[Counter | Gauge | Histogram]) -> Gauge | Histogram:
    first = children[0]
    if isinstance(first, Histogram):
        total = Histogram(first.bounds)
        for child in children:
            assert isinstance(child, Histogram)
            total.counts = [one + other for one, other in zip(total.counts, child.counts, strict=True)]
            total.total += child.total
        return total
    gauge = Gauge()
    gauge.set(sum(child.value for child in children if not isinstance(child, Histogram)))
    return gauge


def _family_text(family: MetricFamily[Any], children: Mapping[tuple[str, ...], Any]) -> Iterator[str]:
    if not children:
        return
    help = f"(Deprecated since {family.deprecated}.0) {family.help}" if family.deprecated else family.help
    help = f"[{family.stability}] {help}" if family.stability else help
    name = family.name
    yield f"# HELP {name} {help.translate(_HELP_ESCAPES)}\n# TYPE {name} {family.type}\n"
    order = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    for values in sorted(children, key=lambda values: [values[i] for i in order]):
        labels = ",".join(f'{family.labels[i]}="{values[i].translate(_ESCAPES)}"' for i in order)
        child = children[values]
        if isinstance(child, Histogram):
            yield from _histogram_text(name, labels, child)
        else:
            braces = f"{{{labels}}}" if labels else ""
            yield f"{name}{braces} {format_number(child.value)}\n"


def _histogram_text(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    count = 0
    prefix = f"{labels}," if labels else ""
    for bound, observed in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        count += observed
        yield f'{name}_bucket{{{prefix}le="{format_number(bound)}"}} {format_number(count)}\n'
    braces = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{braces} {format_number(histogram.total)}\n{name}_count{braces} {format_number(count)}\n"


def format_number(value: float) -> str:
    """A number as Go writes it: no needless fraction, an exponent from a million on and below 0.0001."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if -1e6 < value < 1e6 and value == int(value):
        return str(int(value))
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    scale = len(digits) + exponent - 1
    if -4 <= scale < 6:
        return f"{Decimal((sign, digits, exponent)):f}"
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{'-' if scale < 0 else '+'}{abs(scale):02d}"
