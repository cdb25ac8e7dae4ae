"""Metrics as text: as Prometheus reads it and Go writes it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from steersman.api.prometheus import (
    Counter,
    ExpositionOptions,
    MetricFamily,
    Registry,
    exposition,
    format_number,
    is_hidden,
    parse_allow_list,
)


def written(registry: Registry, shown: ExpositionOptions = ExpositionOptions()) -> list[str]:
    """The lines about the metrics, without those about metrics of metrics."""
    text = exposition(registry, shown).decode()
    return [
        line
        for line in text.splitlines()
        if not any(word in line for word in ("registered_", "hidden_", "disabled_", "cardinality_"))
    ]


def meta(registry: Registry, name: str, shown: ExpositionOptions = ExpositionOptions()) -> float:
    """One of the metrics about metrics."""
    (line,) = (
        line for line in exposition(registry, shown).decode().splitlines() if line.startswith(f"{name} ")
    )
    return float(line.split(" ")[1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3, "3"),
        (-2.0, "-2"),
        (0.25, "0.25"),
        (999999, "999999"),
        (1e6, "1e+06"),
        (1048576, "1.048576e+06"),
        (1.79479636349e9, "1.79479636349e+09"),
        (0.0001, "0.0001"),
        (1e-08, "1e-08"),
        (9.999999999999999e-06, "9.999999999999999e-06"),
        (-1.5e-7, "-1.5e-07"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert format_number(value) == text


@given(st.floats(allow_nan=False))
def test_a_written_number_is_the_number(value: float) -> None:
    assert float(format_number(value)) == value


def test_a_counter_has_its_stability_and_its_labels_in_order() -> None:
    registry = Registry()
    counter = registry.counter("requests", "Requests\nby outcome", ("verb", "code"), "BETA")
    counter.of("GET", "404").inc()
    counter.of("GET", "200").inc(2)
    counter.of('"\\\n', "200").inc(3)
    assert written(registry) == [
        "# HELP requests [BETA] Requests\\nby outcome",
        "# TYPE requests counter",
        'requests{code="200",verb="\\"\\\\\\n"} 3',
        'requests{code="200",verb="GET"} 2',
        'requests{code="404",verb="GET"} 1',
    ]


def test_a_histogram_counts_up_to_each_bound() -> None:
    registry = Registry()
    histogram = registry.histogram("took", "How long", (0.5, 1), ("name",)).of("a")
    for value in (0.25, 0.75, 2):
        histogram.observe(value)
    assert written(registry)[2:] == [
        'took_bucket{name="a",le="0.5"} 1',
        'took_bucket{name="a",le="1"} 2',
        'took_bucket{name="a",le="+Inf"} 3',
        'took_sum{name="a"} 3',
        'took_count{name="a"} 3',
    ]


def test_metrics_come_by_name_and_only_those_that_have_something_to_say() -> None:
    registry = Registry()
    registry.gauge("b", "B")
    registry.gauge("a", "A", stability="")
    registry.gauge("c", "C", ("label",))
    assert [line for line in written(registry) if not line.startswith("# TYPE")] == [
        "# HELP a A",
        "a 0",
        "# HELP b [ALPHA] B",
        "b 0",
    ]


names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


@given(
    st.dictionaries(
        names, st.dictionaries(st.text(max_size=8), st.floats(0, 1e12), min_size=1, max_size=4), max_size=5
    )
)
def test_whatever_is_written_prometheus_reads(metrics: dict[str, dict[str, float]]) -> None:
    registry = Registry()
    for name, cells in metrics.items():
        family = registry.gauge(f"x_{name}", "X", ("label",))
        for label, value in cells.items():
            family.of(label).set(value)
    read = {
        family.name: {sample.labels["label"]: sample.value for sample in family.samples}
        for family in text_string_to_metric_families(exposition(registry).decode())
        if family.name.startswith("x_")
    }
    assert read == {f"x_{name}": cells for name, cells in metrics.items()}


def test_what_nobody_counts_here_is_brought_up_to_date_when_somebody_looks() -> None:
    registry = Registry()
    gauge = registry.gauge("a", "A").of()
    ticks = iter(range(1, 9))
    registry.refreshes.append(lambda: gauge.set(next(ticks)))
    assert [written(registry)[-1], written(registry)[-1]] == ["a 1", "a 2"]


# -- what is shown ----------------------------------------------------------------------------


def test_a_disabled_metric_is_not_shown() -> None:
    registry = Registry()
    registry.gauge("a", "A")
    registry.gauge("b", "B")
    shown = ExpositionOptions(frozenset({"a"}))
    assert written(registry, shown)[-1] == "b 0"
    assert not any(line.startswith("a ") for line in written(registry, shown))
    assert meta(registry, "disabled_metrics_total", shown) == 1


def test_metrics_about_metrics_can_be_disabled_too() -> None:
    registry = Registry()
    registry.gauge("a", "A")
    assert b"hidden_metrics_total" not in exposition(
        registry, ExpositionOptions(frozenset({"hidden_metrics_total"}))
    )


@pytest.mark.parametrize(
    ("stability", "deprecated", "hidden"),
    [
        ("ALPHA", "", False),
        ("ALPHA", "1.36", True),
        ("ALPHA", "1.37", False),
        ("BETA", "1.36", False),
        ("BETA", "1.35", True),
        ("STABLE", "1.34", False),
        ("STABLE", "1.33", True),
        ("STABLE", "0.99", True),
    ],
)
def test_what_is_deprecated_is_hidden_after_some_releases(
    stability: str, deprecated: str, hidden: bool
) -> None:
    family = MetricFamily("old", "Old", "counter", (), Counter, stability, deprecated)  # type: ignore[arg-type]
    assert is_hidden(family) is hidden
    registry = Registry()
    registry.add(family)
    assert (written(registry) == []) is hidden
    assert meta(registry, "hidden_metrics_total") == hidden
    told = f"(Deprecated since {deprecated}.0) " if deprecated else ""
    assert written(registry, ExpositionOptions(show_hidden=True))[0] == f"# HELP old [{stability}] {told}Old"


def test_values_that_are_not_allowed_are_counted_together() -> None:
    registry = Registry()
    counter = registry.counter("requests", "Requests", ("verb", "host"))
    for verb, host in (("GET", "a"), ("GET", "b"), ("PUT", "a"), ("POST", "a")):
        counter.of(verb, host).inc()
    histogram = registry.histogram("took", "How long", (1,), ("verb",))
    histogram.of("GET").observe(0.5)
    histogram.of("PUT").observe(2)
    shown = ExpositionOptions(allowed_values=parse_allow_list({"requests,verb": "GET", "took,verb": "POST"}))
    assert [line for line in written(registry, shown) if not line.startswith("#")] == [
        'requests{host="a",verb="GET"} 1',
        'requests{host="a",verb="unexpected"} 2',
        'requests{host="b",verb="GET"} 1',
        'took_bucket{verb="unexpected",le="1"} 1',
        'took_bucket{verb="unexpected",le="+Inf"} 2',
        'took_sum{verb="unexpected"} 2.5',
        'took_count{verb="unexpected"} 2',
    ]
    assert meta(registry, "cardinality_enforcement_unexpected_categorizations_total", shown) == 4


@pytest.mark.parametrize("key", ["metric", "metric,", ",label", "met-ric,label", "a,b,c"])
def test_an_allow_list_is_of_a_metric_and_a_label(key: str) -> None:
    with pytest.raises(ValueError, match="metricName,labelName"):
        parse_allow_list({key: "x"})
