"""Metrics as text, as Prometheus scrapes it and Go writes it, and what of them is shown.

::

    body = exposition(metrics)                                   # everything
    body = exposition(metrics, Shown(disabled=frozenset({"workqueue_depth"})))
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import field

from steersman.runtime.metric_types import Counter, Family, Gauge, Histogram, Registry, Stability

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
VERSION = (1, 36)
"""The release whose metrics these are."""
UNEXPECTED = "unexpected"
"""What values of a label that are not in its allow list are called; upstream's word."""

_PERIODS = {"STABLE": 3, "BETA": 1}
"""For how many minor releases a deprecated metric is shown."""
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_KEY = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)")


class Shown(msgspec.Struct, frozen=True):
    """Which metrics are shown, and which values of their labels, as flags say."""

    disabled: frozenset[str] = frozenset()
    allowed: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """By metric and label: the only values that are told apart."""
    hidden: bool = False
    """Show what has been deprecated for so long that it is hidden."""

    def __call__(self, family: Family[Any]) -> bool:
        """Whether a metric is shown at all. Disabling one goes before showing what is hidden."""
        return family.name not in self.disabled and (self.hidden or not is_hidden(family))

    def told(self, family: Family[Any], values: tuple[str, ...]) -> tuple[str, ...]:
        """The values of a metric's labels as they are shown."""
        allowed = self.allowed.get(family.name)
        if allowed is None:
            return values
        return tuple(
            value if label not in allowed or value in allowed[label] else UNEXPECTED
            for label, value in zip(family.labels, values, strict=True)
        )


ALL = Shown()


def allow_list(said: Mapping[str, str]) -> dict[str, dict[str, frozenset[str]]]:
    """The allow lists of ``metric,label`` to ``value,value``. Raises `ValueError` for another key."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in said.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key!r} is not of the form metricName,labelName")
        found.setdefault(match[1], {})[match[2]] = frozenset(values.split(","))
    return found


def is_hidden(family: Family[Any], version: tuple[int, int] = VERSION) -> bool:
    """Whether a metric was deprecated so long ago that it is only shown to who asks for it."""
    if not family.deprecated:
        return False
    major, minor = map(int, family.deprecated.split("."))
    return (major, minor + _PERIODS.get(family.stability, 0)) <= version


def exposition(registry: Registry, shown: Shown = ALL) -> bytes:
    """The metrics that are shown, by name, each with its samples by their labels. See `CONTENT_TYPE`."""
    for refresh in registry.refreshes:
        refresh()
    families = (*registry.families, *_about(registry.families, shown))
    text: list[str] = []
    for family in sorted(filter(shown, families), key=lambda family: family.name):
        text.extend(_write(family, _folded(family, shown)))
    return "".join(text).encode()


def _about(families: Sequence[Family[Any]], shown: Shown) -> Iterator[Family[Any]]:
    """Metrics about the metrics."""
    if not families:
        return
    registered = Family(
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
    yield _one("disabled_metrics_total", "Metrics that are disabled", len(shown.disabled))
    yield _one("hidden_metrics_total", "Metrics that are hidden", sum(map(is_hidden, families)))
    # differs: upstream counts how often such a value was met; here, how many there are.
    folded = sum(shown.told(family, values) != values for family in families for values in family.cells)
    yield _one(
        "cardinality_enforcement_unexpected_categorizations_total",
        "Combinations of labels' values that are not all allowed",
        folded,
        "ALPHA",
    )


def _one(name: str, help: str, value: float, stability: Stability = "BETA") -> Family[Counter]:
    family: Family[Counter] = Family(name, help, "counter", (), Counter, stability)
    family.of().inc(value)
    return family


# -- values that are not told apart -----------------------------------------------------------


def _folded(family: Family[Any], shown: Shown) -> Mapping[tuple[str, ...], Any]:
    """The cells, with those counted together whose labels are not told apart."""
    if family.name not in shown.allowed:
        return family.cells
    found: dict[tuple[str, ...], list[Any]] = {}
    for values, cell in family.cells.items():
        found.setdefault(shown.told(family, values), []).append(cell)
    return {values: cells[0] if len(cells) == 1 else _sum(cells) for values, cells in found.items()}


def _sum(cells: Sequence[Counter | Gauge | Histogram]) -> Gauge | Histogram:
    first = cells[0]
    if isinstance(first, Histogram):
        total = Histogram(first.bounds)
        for cell in cells:
            assert isinstance(cell, Histogram)
            total.counts = [one + other for one, other in zip(total.counts, cell.counts, strict=True)]
            total.total += cell.total
        return total
    gauge = Gauge()
    gauge.set(sum(cell.value for cell in cells if not isinstance(cell, Histogram)))
    return gauge


# -- text -------------------------------------------------------------------------------------


def _write(family: Family[Any], cells: Mapping[tuple[str, ...], Any]) -> Iterator[str]:
    if not cells:
        return
    help = f"(Deprecated since {family.deprecated}.0) {family.help}" if family.deprecated else family.help
    help = f"[{family.stability}] {help}" if family.stability else help
    name = family.name
    yield f"# HELP {name} {help.translate(_HELP_ESCAPES)}\n# TYPE {name} {family.type}\n"
    order = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    for values in sorted(cells, key=lambda values: [values[i] for i in order]):
        labels = ",".join(f'{family.labels[i]}="{values[i].translate(_ESCAPES)}"' for i in order)
        cell = cells[values]
        if isinstance(cell, Histogram):
            yield from _histogram(name, labels, cell)
        else:
            yield f"{name}{{{labels}}} {number(cell.value)}\n" if labels else f"{name} {number(cell.value)}\n"


def _histogram(name: str, labels: str, cell: Histogram) -> Iterator[str]:
    seen = 0
    before = f"{labels}," if labels else ""
    for bound, count in zip((*cell.bounds, math.inf), cell.counts, strict=True):
        seen += count
        yield f'{name}_bucket{{{before}le="{number(bound)}"}} {number(seen)}\n'
    behind = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{behind} {number(cell.total)}\n{name}_count{behind} {number(seen)}\n"


def number(value: float) -> str:
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
