"""Proposals: the replicas that each metric of an autoscaler asks for, and its entry in ``status.currentMetrics``."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.kinds.autoscaling import (
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ObjectMetricSource,
    PodsMetricSource,
)
from steersman.api.label_selectors import compile_selector, format_as_go
from steersman.api.quantity import Format, Quantity
from steersman.controllers.horizontalpodautoscaler import metrics_client
from steersman.controllers.horizontalpodautoscaler.metrics_client import CustomMetrics
from steersman.controllers.horizontalpodautoscaler.replica_calculator import MetricError, ReplicaCalculator

UNKNOWN_TYPE = "InvalidMetricSourceType"
_FAILURES = (MetricError, ValueError, ArithmeticError)
"""Errors that fail one metric and not the round: a metric that cannot be read, and a target or value that cannot be computed
with."""


class InvalidMetric(Exception):
    """A metric that proposes no replicas."""

    def __init__(self, reason: str, cause: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """The reason of the condition and the event."""
        self.cause = cause
        """The message of the event."""


class Target(msgspec.Struct, frozen=True):
    """The pods of an autoscaler's target, and the calculator for them."""

    namespace: str
    selector: str
    status_replicas: int
    """``status.replicas`` of the scale."""
    calculator: ReplicaCalculator
    custom_metrics: CustomMetrics


class Proposal(msgspec.Struct, frozen=True):
    """The replicas that one metric asks for."""

    replicas: int
    name: str
    """The metric as messages name it."""
    status: dict[str, Any]
    """The entry in ``status.currentMetrics``."""


async def propose(target: Target, metric: MetricSpec) -> Proposal:
    """Reads one metric and computes its replicas. Raises `InvalidMetric`."""
    match metric.type:
        case "Resource" if metric.resource is not None:
            source = metric.resource
            return await _resource(target, source.name, "", source.target)
        case "ContainerResource" if metric.containerResource is not None:
            own = metric.containerResource
            return await _resource(target, own.name, own.container, own.target)
        case "Pods" if metric.pods is not None:
            return await _pods(target, metric.pods)
        case "Object" if metric.object is not None:
            return await _object(target, metric.object)
        case "External" if metric.external is not None:
            return await _external(target, metric.external)
    why = f'unknown metric source type "{metric.type}"'
    raise InvalidMetric(UNKNOWN_TYPE, why, why)


async def _resource(target: Target, resource: str, container: str, goal: MetricTarget) -> Proposal:
    calculator = target.calculator
    current: dict[str, Any]
    step = f"failed to get {resource} {'utilization' if goal.averageValue is None else 'usage'}"
    try:
        if goal.averageValue is not None:
            value = _milli(goal.averageValue)
            metrics = await metrics_client.resource_metric(
                resource, target.namespace, target.selector, container
            )
            replicas, average = calculator.by_average(metrics, value, resource)
            name = f"{resource} resource"
            current = {"averageValue": _quantity(average, resource)}
        elif goal.averageUtilization is not None:
            metrics = await metrics_client.resource_metric(
                resource, target.namespace, target.selector, container
            )
            replicas, percent, average = calculator.by_utilization(
                metrics, goal.averageUtilization, resource, container
            )
            sort = "container resource" if container else "resource"
            name = f"{resource} {sort} utilization (percentage of request)"
            current = {"averageUtilization": percent, "averageValue": _quantity(average, resource)}
        else:
            raise ValueError(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set"
            )
    except _FAILURES as error:
        cause = f"{step}: {error}" if isinstance(error, MetricError) else str(error)
        if container:
            message = f"failed to get {container} container metric value: {cause}"
            raise InvalidMetric("FailedGetContainerResourceMetric", cause, message) from None
        message = f"failed to get {resource} resource metric value: {cause}"
        raise InvalidMetric("FailedGetResourceMetric", cause, message) from None
    if container:
        status = {
            "type": "ContainerResource",
            "containerResource": {"name": resource, "container": container, "current": current},
        }
    else:
        status = {"type": "Resource", "resource": {"name": resource, "current": current}}
    return Proposal(replicas, name, status)


async def _pods(target: Target, source: PodsMetricSource) -> Proposal:
    try:
        metrics = await metrics_client.pods_metric(
            source.metric.name,
            target.namespace,
            target.selector,
            _selector(source.metric),
            target.custom_metrics,
        )
        value = _milli(source.target.averageValue or "0")
        replicas, average = target.calculator.by_average(metrics, value)
    except _FAILURES as error:
        message = f"failed to get pods metric value: {error}"
        raise InvalidMetric("FailedGetPodsMetric", str(error), message) from None
    current = {"averageValue": _quantity(average)}
    status = {"type": "Pods", "pods": {"metric": _identifier(source.metric), "current": current}}
    return Proposal(replicas, f"pods metric {source.metric.name}", status)


async def _object(target: Target, source: ObjectMetricSource) -> Proposal:
    metric, goal = source.metric, source.target
    # Upstream repeats the failure for one of the two target types.
    step = f"failed to get {metric.name} object metric: " if goal.type == "AverageValue" else ""
    try:
        value = goal.value if goal.type == "Value" else None
        average_value = goal.averageValue if goal.type == "AverageValue" else None
        if value is None and average_value is None:
            raise MetricError(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        usage = await metrics_client.object_metric(
            metric.name,
            target.namespace,
            source.describedObject,
            _selector(metric),
            target.custom_metrics,
        )
        if value is not None:
            replicas = target.calculator.by_ratio(usage / _milli(value))
            name = f"{source.describedObject.kind} metric {metric.name}"
            current = {"value": _quantity(usage)}
        else:
            replicas, each = target.calculator.per_pod(target.status_replicas, usage, _milli(average_value))
            name = f"external metric {metric.name}({format_as_go(metric.selector)})"
            current = {"averageValue": _quantity(each)}
    except _FAILURES as error:
        message = f"failed to get object metric value: {step}{error}"
        raise InvalidMetric("FailedGetObjectMetric", str(error), message) from None
    described = msgspec.to_builtins(source.describedObject)
    status = {
        "type": "Object",
        "object": {"describedObject": described, "metric": _identifier(metric), "current": current},
    }
    return Proposal(replicas, name, status)


async def _external(target: Target, source: PodsMetricSource) -> Proposal:
    metric, goal = source.metric, source.target
    shown = format_as_go(metric.selector)
    step = ""
    try:
        if goal.averageValue is not None:
            step = f"failed to get {metric.name} external metric: "
        elif goal.value is not None:
            step = f"failed to get external metric {metric.name}: "
        else:
            raise MetricError(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        usage = await metrics_client.external_metric(metric.name, target.namespace, _selector(metric), shown)
        if goal.averageValue is not None:
            replicas, each = target.calculator.per_pod(
                target.status_replicas, usage, _milli(goal.averageValue)
            )
            current = {"averageValue": _quantity(each)}
        else:
            replicas = target.calculator.by_ratio(usage / _milli(goal.value))
            current = {"value": _quantity(usage)}
    except _FAILURES as error:
        message = f"failed to get {metric.name} external metric value: {step}{error}"
        raise InvalidMetric("FailedGetExternalMetric", str(error), message) from None
    status = {"type": "External", "external": {"metric": _identifier(metric), "current": current}}
    return Proposal(replicas, f"external metric {metric.name}({shown})", status)


def _selector(metric: MetricIdentifier) -> str:
    return "" if metric.selector is None else str(compile_selector(metric.selector))


def _identifier(metric: MetricIdentifier) -> dict[str, Any]:
    identifier: dict[str, Any] = {"name": metric.name}
    if metric.selector is not None:
        identifier["selector"] = msgspec.to_builtins(metric.selector)
    return identifier


def _milli(quantity: Any) -> int:
    return Quantity.parse(quantity).milli()


def _quantity(milli: int, resource: str = "") -> str:
    return str(Quantity.of_milli(milli, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))
