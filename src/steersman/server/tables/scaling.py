"""Scaling: what autoscalers look at, and how far they got."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from steersman.server.tables import cells
from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Column, Printer, Printers, columns, integer

if TYPE_CHECKING:
    from steersman.api.generated import autoscaling_v1, autoscaling_v2

_MOST = 2
"""So many metrics are named."""
_UNKNOWN = "<unknown>"


def autoscaler(
    scaler: autoscaling_v2.HorizontalPodAutoscaler | autoscaling_v1.HorizontalPodAutoscaler, now: datetime
) -> tuple[Cell, ...]:
    """The cells of an autoscaler of either version."""
    spec = scaler.spec
    return (
        scaler.metadata.name,
        f"{spec.scaleTargetRef.kind}/{spec.scaleTargetRef.name}",
        _metrics(scaler),
        "<unset>" if spec.minReplicas is None else str(spec.minReplicas),
        spec.maxReplicas,
        scaler.status.currentReplicas,
        since(scaler.metadata.creationTimestamp, now),
    )


def _metrics(scaler: Any) -> str:
    told = _newer(scaler) if hasattr(scaler.spec, "metrics") else _older(scaler)
    if not told:
        return "<none>"
    text = ", ".join(told[:_MOST])
    return f"{text} + {len(told) - _MOST} more..." if len(told) > _MOST else text


def _older(scaler: autoscaling_v1.HorizontalPodAutoscaler) -> list[str]:
    # differs: upstream also reads the metrics this version has no fields for from annotations.
    target = scaler.spec.targetCPUUtilizationPercentage
    if target is None:
        return []
    return [f"cpu: {_percent(scaler.status.currentCPUUtilizationPercentage, _UNKNOWN)}/{target}%"]


def _newer(scaler: autoscaling_v2.HorizontalPodAutoscaler) -> list[str]:
    seen = scaler.status.currentMetrics or ()
    return [
        _metric(metric, seen[place] if place < len(seen) else None)
        for place, metric in enumerate(scaler.spec.metrics)
    ]


def _metric(metric: autoscaling_v2.MetricSpec, seen: autoscaling_v2.MetricStatus | None) -> str:
    """One metric: what it is now, and what it should be."""
    match metric.type:
        case "External" if metric.external is not None:
            return _value(metric.external.target, seen.external.current if seen and seen.external else None)
        case "Object" if metric.object is not None:
            return _value(metric.object.target, seen.object.current if seen and seen.object else None)
        case "Pods" if metric.pods is not None:
            now = _amount(seen.pods.current.averageValue) if seen and seen.pods else _UNKNOWN
            return f"{now}/{_amount(metric.pods.target.averageValue)}"
        case "Resource" if metric.resource is not None:
            part = seen.resource.current if seen and seen.resource else None
            return f"{metric.resource.name}: {_share(metric.resource.target, part)}"
        case "ContainerResource" if metric.containerResource is not None:
            part = seen.containerResource.current if seen and seen.containerResource else None
            return f"{metric.containerResource.name}: {_share(metric.containerResource.target, part)}"
    return "<unknown type>"


def _value(target: autoscaling_v2.MetricTarget, now: autoscaling_v2.MetricValueStatus | None) -> str:
    """A metric of something as a whole, or of that per pod."""
    if target.averageValue is None:
        return f"{_UNKNOWN if now is None else _amount(now.value)}/{_amount(target.value)}"
    average = None if now is None else now.averageValue
    return f"{_UNKNOWN if average is None else _amount(average)}/{_amount(target.averageValue)} (avg)"


def _share(target: autoscaling_v2.MetricTarget, now: autoscaling_v2.MetricValueStatus | None) -> str:
    """A metric of the pods' own use, as an amount or as a share of what they asked for."""
    if target.averageValue is not None:
        return f"{_UNKNOWN if now is None else _amount(now.averageValue)}/{_amount(target.averageValue)}"
    share = None if now is None else now.averageUtilization
    return f"{_percent(share, _UNKNOWN)}/{_percent(target.averageUtilization, '<auto>')}"


def _percent(share: int | None, otherwise: str) -> str:
    return otherwise if share is None else f"{share}%"


def _amount(value: str | float | None) -> str:
    return "<nil>" if value is None else cells.quantity(value)


def scale(scale: autoscaling_v1.Scale, now: datetime) -> tuple[Cell, ...]:
    """The cells of the scale subresource."""
    age = since(scale.metadata.creationTimestamp, now)
    return scale.metadata.name, scale.spec.replicas, scale.status.replicas, age


SCALE = Printer(columns(Column("Name"), integer("Desired"), integer("Available"), "Age"), scale)

PRINTERS: Printers = {
    "horizontalpodautoscalers.autoscaling": Printer(
        columns(NAME, "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), autoscaler
    ),
}
