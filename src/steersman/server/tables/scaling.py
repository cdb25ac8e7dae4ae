"""Printers of HorizontalPodAutoscalers and of the scale subresource."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.server.tables import cells
from steersman.server.tables.cells import age
from steersman.server.tables.printer import NAME, Cell, Column, Printer, Printers, columns, integer

if TYPE_CHECKING:
    from steersman.api.generated import autoscaling_v1, autoscaling_v2

_MAX_METRICS = 2
"""The number of metrics a cell shows."""
_UNKNOWN = "<unknown>"


def autoscaler_cells(
    scaler: autoscaling_v2.HorizontalPodAutoscaler | autoscaling_v1.HorizontalPodAutoscaler, now: datetime
) -> tuple[Cell, ...]:
    """The cells of an autoscaler of autoscaling/v1 or v2."""
    spec = scaler.spec
    return (
        scaler.metadata.name,
        f"{spec.scaleTargetRef.kind}/{spec.scaleTargetRef.name}",
        _format_metrics(scaler),
        "<unset>" if spec.minReplicas is None else str(spec.minReplicas),
        spec.maxReplicas,
        scaler.status.currentReplicas,
        age(scaler.metadata.creationTimestamp, now),
    )


def _format_metrics(
    scaler: autoscaling_v2.HorizontalPodAutoscaler | autoscaling_v1.HorizontalPodAutoscaler,
) -> str:
    from steersman.api.generated import autoscaling_v2

    if isinstance(scaler, autoscaling_v2.HorizontalPodAutoscaler):
        metrics = _format_v2_metrics(scaler)
    else:
        metrics = _format_v1_metrics(scaler)
    if not metrics:
        return "<none>"
    text = ", ".join(metrics[:_MAX_METRICS])
    return f"{text} + {len(metrics) - _MAX_METRICS} more..." if len(metrics) > _MAX_METRICS else text


def _format_v1_metrics(scaler: autoscaling_v1.HorizontalPodAutoscaler) -> list[str]:
    # differs: upstream also shows the metrics that autoscaling/v1 keeps in annotations.
    target = scaler.spec.targetCPUUtilizationPercentage
    if target is None:
        return []
    return [f"cpu: {_format_percent(scaler.status.currentCPUUtilizationPercentage, _UNKNOWN)}/{target}%"]


def _format_v2_metrics(scaler: autoscaling_v2.HorizontalPodAutoscaler) -> list[str]:
    status = scaler.status.currentMetrics or ()
    return [
        _format_metric(metric, status[index] if index < len(status) else None)
        for index, metric in enumerate(scaler.spec.metrics)
    ]


def _format_metric(metric: autoscaling_v2.MetricSpec, status: autoscaling_v2.MetricStatus | None) -> str:
    """The current and the target value of one metric."""
    match metric.type:
        case "External" if metric.external is not None:
            return _format_value(
                metric.external.target, status.external.current if status and status.external else None
            )
        case "Object" if metric.object is not None:
            return _format_value(
                metric.object.target, status.object.current if status and status.object else None
            )
        case "Pods" if metric.pods is not None:
            now = _format_quantity(status.pods.current.averageValue) if status and status.pods else _UNKNOWN
            return f"{now}/{_format_quantity(metric.pods.target.averageValue)}"
        case "Resource" if metric.resource is not None:
            current = status.resource.current if status and status.resource else None
            return f"{metric.resource.name}: {_format_resource_value(metric.resource.target, current)}"
        case "ContainerResource" if metric.containerResource is not None:
            current = status.containerResource.current if status and status.containerResource else None
            return f"{metric.containerResource.name}: {_format_resource_value(metric.containerResource.target, current)}"
    return "<unknown type>"


def _format_value(target: autoscaling_v2.MetricTarget, now: autoscaling_v2.MetricValueStatus | None) -> str:
    """The current and the target value of an object or external metric, in total or per pod."""
    if target.averageValue is None:
        return f"{_UNKNOWN if now is None else _format_quantity(now.value)}/{_format_quantity(target.value)}"
    average = None if now is None else now.averageValue
    return f"{_UNKNOWN if average is None else _format_quantity(average)}/{_format_quantity(target.averageValue)} (avg)"


def _format_resource_value(
    target: autoscaling_v2.MetricTarget, now: autoscaling_v2.MetricValueStatus | None
) -> str:
    """The current and the target value of a resource metric: a quantity, or a utilization in percent."""
    if target.averageValue is not None:
        return f"{_UNKNOWN if now is None else _format_quantity(now.averageValue)}/{_format_quantity(target.averageValue)}"
    utilization = None if now is None else now.averageUtilization
    return f"{_format_percent(utilization, _UNKNOWN)}/{_format_percent(target.averageUtilization, '<auto>')}"


def _format_percent(utilization: int | None, default: str) -> str:
    return default if utilization is None else f"{utilization}%"


def _format_quantity(value: str | float | None) -> str:
    return "<nil>" if value is None else cells.format_quantity(value)


def scale_cells(scale: autoscaling_v1.Scale, now: datetime) -> tuple[Cell, ...]:
    """The cells of the scale subresource."""
    created = age(scale.metadata.creationTimestamp, now)
    return scale.metadata.name, scale.spec.replicas, scale.status.replicas, created


SCALE_PRINTER = Printer(columns(Column("Name"), integer("Desired"), integer("Available"), "Age"), scale_cells)

PRINTERS: Printers = {
    "horizontalpodautoscalers.autoscaling": Printer(
        columns(NAME, "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), autoscaler_cells
    ),
}
