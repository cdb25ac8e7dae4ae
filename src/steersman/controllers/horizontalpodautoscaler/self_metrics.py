"""What is counted about autoscalers, under upstream's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.controllers.horizontalpodautoscaler.proposals import UNKNOWN_TYPE, Failure
from steersman.intent.controller import Caches, Change
from steersman.intent.metrics import Measure, Metric, Timed, exponential

_PREFIX = "horizontal_pod_autoscaler_controller_"
_BUCKETS = exponential(0.001, 2, 15)
_LOOK = ("action", "error")
_METRIC = ("action", "error", "metric_type")
RECONCILIATIONS = Metric(_PREFIX + "reconciliations_total", "Looks at autoscalers", _LOOK, stability="BETA")
RECONCILIATION_SECONDS = Metric(
    _PREFIX + "reconciliation_duration_seconds",
    "How long a look took",
    _LOOK,
    buckets=_BUCKETS,
    stability="BETA",
)
COMPUTATIONS = Metric(_PREFIX + "metric_computation_total", "Looks at one metric", _METRIC, stability="BETA")
COMPUTATION_SECONDS = Metric(
    _PREFIX + "metric_computation_duration_seconds",
    "How long a look at one metric took",
    _METRIC,
    buckets=_BUCKETS,
    stability="BETA",
)
NUMBER = Metric(_PREFIX + "num_horizontal_pod_autoscalers", "How many autoscalers there are", gauge=True)
DESIRED = Metric(
    _PREFIX + "desired_replicas",
    "How many replicas an autoscaler wants",
    ("namespace", "hpa_name"),
    gauge=True,
)
METRICS = (RECONCILIATIONS, RECONCILIATION_SECONDS, COMPUTATIONS, COMPUTATION_SECONDS, NUMBER, DESIRED)


def action(current: int, wanted: int) -> str:
    """What it is called to go from one number to the other."""
    if wanted == current:
        return "none"
    return "scale_up" if wanted > current else "scale_down"


def reconciliation() -> Timed:
    """A look at one autoscaler."""
    labels = {"action": "none", "error": "none"}
    return Timed(RECONCILIATION_SECONDS, RECONCILIATIONS, labels, lambda error: {"error": "internal"})


def computation(metric_type: str) -> Timed:
    """A look at one of its metrics."""

    def failed(error: Exception) -> Mapping[str, str]:
        misspelt = isinstance(error, Failure) and error.reason == UNKNOWN_TYPE
        return {"action": "none", "error": "spec" if misspelt else "internal"}

    labels = {"action": "none", "error": "none", "metric_type": metric_type}
    return Timed(COMPUTATION_SECONDS, COMPUTATIONS, labels, failed)


def of_scaler(caches: Caches, change: Change[HorizontalPodAutoscaler]) -> Iterator[Measure]:
    """What a change of an autoscaler counts: how many there are."""
    if change.old is None or change.new is None:
        yield Measure(NUMBER, sum(1 for _ in caches[HORIZONTALPODAUTOSCALERS].list()))
