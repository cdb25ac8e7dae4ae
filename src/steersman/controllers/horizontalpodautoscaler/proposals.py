"""What each sort of metric proposes, and what the status says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.discovery import Discovered
from steersman.api.kinds import Pod
from steersman.api.kinds.autoscaling import (
    HorizontalPodAutoscaler,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ObjectMetricSource,
    PodsMetricSource,
)
from steersman.api.label_selectors import compile_selector, printed
from steersman.api.quantity import Format, Quantity
from steersman.controllers.horizontalpodautoscaler import metrics_client
from steersman.controllers.horizontalpodautoscaler.replica_calculator import (
    Tolerance,
    Tuning,
    Unmeasured,
    by_average,
    by_ratio,
    by_utilization,
    per_pod,
)

UNKNOWN_TYPE = "InvalidMetricSourceType"


class Failure(Exception):
    """A metric that proposes nothing."""

    def __init__(self, reason: str, cause: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Of the condition and the event."""
        self.cause = cause


class Given(msgspec.Struct, frozen=True):
    """What all metrics of an autoscaler start from."""

    scaler: HorizontalPodAutoscaler
    pods: tuple[Pod, ...]
    selector: str
    replicas: int
    """How many are wanted now."""
    counted: int
    """How many there are."""
    tolerance: Tolerance
    tuning: Tuning
    now: datetime

    @property
    def namespace(self) -> str:
        return self.scaler.metadata.namespace


class Proposal(msgspec.Struct, frozen=True):
    replicas: int
    name: str
    status: dict[str, Any]


async def propose(given: Given, metric: MetricSpec, served: Discovered) -> Proposal:
    """What one metric proposes. Raises `Failure`."""
    match metric.type:
        case "Resource" if metric.resource is not None:
            source = metric.resource
            return await _resource(given, source.name, "", source.target)
        case "ContainerResource" if metric.containerResource is not None:
            own = metric.containerResource
            return await _resource(given, own.name, own.container, own.target)
        case "Pods" if metric.pods is not None:
            return await _pods(given, metric.pods)
        case "Object" if metric.object is not None:
            return await _object(given, metric.object, served)
        case "External" if metric.external is not None:
            return await _external(given, metric.external)
    why = f'unknown metric source type "{metric.type}"'
    raise Failure(UNKNOWN_TYPE, why, why)


def _quantity(milli: int, resource: str = "") -> str:
    return str(Quantity.of_milli(milli, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))


def _target(amount: Any) -> int:
    return Quantity.parse(amount).milli()


async def _resource(given: Given, resource: str, container: str, target: MetricTarget) -> Proposal:
    reason = "FailedGetContainerResourceMetric" if container else "FailedGetResourceMetric"
    head = (
        f"failed to get {container} container metric value"
        if container
        else f"failed to get {resource} resource metric value"
    )
    current: dict[str, Any]
    try:
        if target.averageValue is not None:
            what = f"failed to get {resource} usage"
            wanted = _target(target.averageValue)
            with _worded(what):
                readings = await metrics_client.of_resource(
                    resource, given.namespace, given.selector, container
                )
                replicas, raw = by_average(
                    given.replicas,
                    wanted,
                    given.pods,
                    readings,
                    resource,
                    given.tolerance,
                    given.now,
                    given.tuning,
                )
            name = f"{resource} resource"
            current = {"averageValue": _quantity(raw, resource)}
        elif target.averageUtilization is not None:
            what = f"failed to get {resource} utilization"
            with _worded(what):
                readings = await metrics_client.of_resource(
                    resource, given.namespace, given.selector, container
                )
                replicas, percent, raw = by_utilization(
                    given.replicas,
                    target.averageUtilization,
                    given.pods,
                    readings,
                    container,
                    resource,
                    given.tolerance,
                    given.now,
                    given.tuning,
                )
            sort = "container resource" if container else "resource"
            name = f"{resource} {sort} utilization (percentage of request)"
            current = {"averageUtilization": percent, "averageValue": _quantity(raw, resource)}
        else:
            raise Unmeasured(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set"
            )
    except (Unmeasured, ValueError) as error:
        raise Failure(reason, str(error), f"{head}: {error}") from None
    if container:
        status = {
            "type": "ContainerResource",
            "containerResource": {"name": resource, "container": container, "current": current},
        }
    else:
        status = {"type": "Resource", "resource": {"name": resource, "current": current}}
    return Proposal(replicas, name, status)


@contextmanager
def _worded(words: str) -> Iterator[None]:
    """Put words before what could not be measured."""
    try:
        yield
    except Unmeasured as error:
        raise Unmeasured(f"{words}: {error}") from None


def _selected(metric: MetricIdentifier) -> str:
    return "" if metric.selector is None else str(compile_selector(metric.selector))


def _named(metric: MetricIdentifier) -> dict[str, Any]:
    made: dict[str, Any] = {"name": metric.name}
    if metric.selector is not None:
        made["selector"] = msgspec.to_builtins(metric.selector)
    return made


async def _pods(given: Given, source: PodsMetricSource) -> Proposal:
    try:
        readings = await metrics_client.of_pods(
            source.metric.name, given.namespace, given.selector, _selected(source.metric)
        )
        replicas, used = by_average(
            given.replicas,
            _target(source.target.averageValue or "0"),
            given.pods,
            readings,
            "",
            given.tolerance,
            given.now,
            given.tuning,
        )
    except (Unmeasured, ValueError, ZeroDivisionError) as error:
        raise Failure(
            "FailedGetPodsMetric", str(error), f"failed to get pods metric value: {error}"
        ) from None
    current = {"averageValue": _quantity(used)}
    status = {"type": "Pods", "pods": {"metric": _named(source.metric), "current": current}}
    return Proposal(replicas, f"pods metric {source.metric.name}", status)


async def _object(given: Given, source: ObjectMetricSource, served: Discovered) -> Proposal:
    metric, target = source.metric, source.target
    described = msgspec.to_builtins(source.describedObject)
    # One of the two ways of reading it says once more what failed.
    words = f"failed to get {metric.name} object metric: " if target.type == "AverageValue" else ""
    try:
        value = target.value if target.type == "Value" else None
        shared = target.averageValue if target.type == "AverageValue" else None
        if value is None and shared is None:
            raise Unmeasured(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        used = await metrics_client.of_object(
            metric.name, given.namespace, source.describedObject, _selected(metric), served
        )
        if value is not None:
            replicas = by_ratio(given.replicas, used / _target(value), given.pods, given.tolerance)
            name, current = f"{source.describedObject.kind} metric {metric.name}", {"value": _quantity(used)}
        else:
            replicas, each = per_pod(given.counted, used, _target(shared), given.tolerance)
            name = f"external metric {metric.name}({printed(metric.selector)})"
            current = {"averageValue": _quantity(each)}
    except (Unmeasured, ValueError, ZeroDivisionError) as error:
        message = f"failed to get object metric value: {words}{error}"
        raise Failure("FailedGetObjectMetric", str(error), message) from None
    status = {
        "type": "Object",
        "object": {"describedObject": described, "metric": _named(metric), "current": current},
    }
    return Proposal(replicas, name, status)


async def _external(given: Given, source: PodsMetricSource) -> Proposal:
    metric, target = source.metric, source.target
    shown = printed(metric.selector)
    head, words = f"failed to get {metric.name} external metric value", ""
    try:
        if target.averageValue is not None:
            words = f"failed to get {metric.name} external metric: "
        elif target.value is not None:
            words = f"failed to get external metric {metric.name}: "
        else:
            raise Unmeasured(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        used = await metrics_client.from_outside(metric.name, given.namespace, _selected(metric), shown)
        if target.averageValue is not None:
            replicas, each = per_pod(given.counted, used, _target(target.averageValue), given.tolerance)
            current = {"averageValue": _quantity(each)}
        else:
            replicas = by_ratio(given.replicas, used / _target(target.value), given.pods, given.tolerance)
            current = {"value": _quantity(used)}
    except (Unmeasured, ValueError, ZeroDivisionError) as error:
        raise Failure("FailedGetExternalMetric", str(error), f"{head}: {words}{error}") from None
    status = {"type": "External", "external": {"metric": _named(metric), "current": current}}
    return Proposal(replicas, f"external metric {metric.name}({shown})", status)
