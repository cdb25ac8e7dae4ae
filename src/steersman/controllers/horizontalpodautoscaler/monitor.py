"""Monitor: the autoscaler's own Prometheus metrics, under upstream's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.controllers.horizontalpodautoscaler.proposals import UNKNOWN_TYPE, InvalidMetric
from steersman.intent.controller import Caches, Change
from steersman.intent.metrics import Measure, Metric, Timed, exponential

_PREFIX = "horizontal_pod_autoscaler_controller_"
_BUCKETS = exponential(0.001, 2, 15)
_RECONCILIATION_LABELS = ("action", "error")
_COMPUTATION_LABELS = ("action", "error", "metric_type")
RECONCILIATIONS = Metric(
    _PREFIX + "reconciliations_total",
    "Number of reconciliations of HorizontalPodAutoscalers",
    _RECONCILIATION_LABELS,
    stability="BETA",
)
RECONCILIATION_SECONDS = Metric(
    _PREFIX + "reconciliation_duration_seconds",
    "Time in seconds that a reconciliation of a HorizontalPodAutoscaler took",
    _RECONCILIATION_LABELS,
    buckets=_BUCKETS,
    stability="BETA",
)
COMPUTATIONS = Metric(
    _PREFIX + "metric_computation_total",
    "Number of metric computations",
    _COMPUTATION_LABELS,
    stability="BETA",
)
COMPUTATION_SECONDS = Metric(
    _PREFIX + "metric_computation_duration_seconds",
    "Time in seconds that the computation of one metric took",
    _COMPUTATION_LABELS,
    buckets=_BUCKETS,
    stability="BETA",
)
AUTOSCALERS = Metric(
    _PREFIX + "num_horizontal_pod_autoscalers", "Number of HorizontalPodAutoscalers", gauge=True
)
DESIRED_REPLICAS = Metric(
    _PREFIX + "desired_replicas",
    "Desired replicas of a HorizontalPodAutoscaler",
    ("namespace", "hpa_name"),
    gauge=True,
)
METRICS = (
    RECONCILIATIONS,
    RECONCILIATION_SECONDS,
    COMPUTATIONS,
    COMPUTATION_SECONDS,
    AUTOSCALERS,
    DESIRED_REPLICAS,
)


def scale_action(current: int, desired: int) -> str:
    """The value of the label ``action`` for a change of replicas."""
    if desired == current:
        return "none"
    return "scale_up" if desired > current else "scale_down"


def reconciliation() -> Timed:
    """Counts and times the reconciliation of one autoscaler."""
    labels = {"action": "none", "error": "none"}
    return Timed(RECONCILIATION_SECONDS, RECONCILIATIONS, labels, lambda error: {"error": "internal"})


def computation(metric_type: str) -> Timed:
    """Counts and times the computation of one metric."""

    def failed(error: Exception) -> Mapping[str, str]:
        is_spec = isinstance(error, InvalidMetric) and error.reason == UNKNOWN_TYPE
        return {"action": "none", "error": "spec" if is_spec else "internal"}

    labels = {"action": "none", "error": "none", "metric_type": metric_type}
    return Timed(COMPUTATION_SECONDS, COMPUTATIONS, labels, failed)


def count_autoscalers(caches: Caches, change: Change[HorizontalPodAutoscaler]) -> Iterator[Measure]:
    """Counts the autoscalers when one is added or deleted."""
    if change.old is None or change.new is None:
        yield Measure(AUTOSCALERS, sum(1 for _ in caches[HORIZONTALPODAUTOSCALERS].list()))
