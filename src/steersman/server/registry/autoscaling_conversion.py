"""Conversion of HorizontalPodAutoscalers between autoscaling/v1, which has one metric, and v2.

Fields that v1 lacks are kept in annotations there, in the format upstream uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.generated import autoscaling_v1 as v1
from steersman.api.generated import autoscaling_v2 as v2
from steersman.api.kinds import EMPTY
from steersman.server.codec.convert import to_builtins

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_BEHAVIOR, _CONDITIONS = f"{_PREFIX}behavior", f"{_PREFIX}conditions"
_ANNOTATIONS = (_METRICS, _CURRENT, _BEHAVIOR, _CONDITIONS)
_DEFAULT_CPU_PERCENT = 80
"""The target in percent of the requested CPU if no metric is set."""

Document: TypeAlias = dict[str, Any]
T = TypeVar("T")


# -- objects ----------------------------------------------------------------------------------


def to_v1(scaler: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """Converts an autoscaler from v2 to v1."""
    spec, status, meta = scaler.spec, scaler.status, scaler.metadata
    kept = {name: text for name, text in meta.annotations.items() if name not in _ANNOTATIONS}
    others = [
        _source_to_v1(to_builtins(metric)) for metric in spec.metrics if _target_cpu_percent(metric) is None
    ]
    current = [_status_to_v1(to_builtins(metric)) for metric in status.currentMetrics or ()]
    for name, found in (
        (_METRICS, others),
        (_CURRENT, current),
        (
            _BEHAVIOR,
            None
            if spec.behavior is None
            else _capitalize_names(_with_all_fields(to_builtins(spec.behavior))),
        ),
        (_CONDITIONS, [_ordered(each, _CONDITION) for each in to_builtins(status.conditions)]),
    ):
        if found:
            kept[name] = msgspec.json.encode(found).decode()
    percents = (_target_cpu_percent(metric) for metric in spec.metrics)
    return v1.HorizontalPodAutoscaler(
        metadata=replace(meta, annotations=kept or EMPTY) if kept != dict(meta.annotations) else meta,
        spec=v1.HorizontalPodAutoscalerSpec(
            maxReplicas=spec.maxReplicas,
            minReplicas=spec.minReplicas,
            scaleTargetRef=_reference(v1.CrossVersionObjectReference, spec.scaleTargetRef),
            targetCPUUtilizationPercentage=next((each for each in percents if each is not None), None),
        ),
        status=v1.HorizontalPodAutoscalerStatus(
            currentCPUUtilizationPercentage=_current_cpu_percent(status),
            currentReplicas=status.currentReplicas,
            desiredReplicas=status.desiredReplicas,
            lastScaleTime=status.lastScaleTime,
            observedGeneration=status.observedGeneration,
        ),
    )


def to_v2(scaler: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """Converts an autoscaler from v1 to v2."""
    spec, status, meta = scaler.spec, scaler.status, scaler.metadata
    annotations = meta.annotations
    percent, used = spec.targetCPUUtilizationPercentage, status.currentCPUUtilizationPercentage
    metrics = _from_annotation(
        annotations.get(_METRICS), tuple[v2.MetricSpec, ...], lambda all: list(map(_source_to_v2, all))
    )
    metrics = metrics or ()
    if percent is not None or not metrics:
        metrics = (*metrics, _cpu_metric(_DEFAULT_CPU_PERCENT if percent is None else percent))
    current = _from_annotation(
        annotations.get(_CURRENT), tuple[v2.MetricStatus, ...], lambda all: list(map(_status_to_v2, all))
    )
    if current is None and used is not None:
        now = v2.MetricValueStatus(averageUtilization=used)
        current = (
            v2.MetricStatus(type="Resource", resource=v2.ResourceMetricStatus(name="cpu", current=now)),
        )
    behavior = _from_annotation(
        annotations.get(_BEHAVIOR), v2.HorizontalPodAutoscalerBehavior, _lowercase_names
    )
    conditions = _from_annotation(
        annotations.get(_CONDITIONS), tuple[v2.HorizontalPodAutoscalerCondition, ...], lambda all: all
    )
    kept = {name: text for name, text in annotations.items() if name not in _ANNOTATIONS}
    return v2.HorizontalPodAutoscaler(
        metadata=replace(meta, annotations=kept or EMPTY) if len(kept) != len(annotations) else meta,
        spec=v2.HorizontalPodAutoscalerSpec(
            behavior=behavior,
            maxReplicas=spec.maxReplicas,
            metrics=metrics,
            minReplicas=spec.minReplicas,
            scaleTargetRef=_reference(v2.CrossVersionObjectReference, spec.scaleTargetRef),
        ),
        status=v2.HorizontalPodAutoscalerStatus(
            conditions=conditions or (),
            currentMetrics=current,
            currentReplicas=status.currentReplicas,
            desiredReplicas=status.desiredReplicas,
            lastScaleTime=status.lastScaleTime,
            observedGeneration=status.observedGeneration,
        ),
    )


def _reference(type_: type[T], ref: Any) -> T:
    return type_(apiVersion=ref.apiVersion, kind=ref.kind, name=ref.name)  # type: ignore[call-arg]


def _from_annotation(text: str | None, type_: type[T], convert: Callable[[Any], Any]) -> T | None:
    """The value of an annotation; None if it is missing or malformed, as upstream."""
    if text is None:
        return None
    try:
        return msgspec.convert(convert(msgspec.json.decode(text)), type_)
    except (msgspec.MsgspecError, AttributeError, TypeError, KeyError):
        return None


# -- the CPU metric of v1 ---------------------------------------------------------------------


def _target_cpu_percent(metric: v2.MetricSpec) -> int | None:
    """The target CPU utilization of a metric in percent; None for other metrics."""
    if metric.type != "Resource" or metric.resource is None or metric.resource.name != "cpu":
        return None
    return metric.resource.target.averageUtilization


def _current_cpu_percent(status: v2.HorizontalPodAutoscalerStatus) -> int | None:
    found = None
    for metric in status.currentMetrics or ():
        if metric.type == "Resource" and metric.resource is not None and metric.resource.name == "cpu":
            percent = metric.resource.current.averageUtilization
            found = found if percent is None else percent
    return found


def _cpu_metric(percent: int) -> v2.MetricSpec:
    target = v2.MetricTarget(type="Utilization", averageUtilization=percent)
    return v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=target))


# -- metrics in v1's annotations --------------------------------------------------------------


def _source_to_v1(metric: Document) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        if sort == "type":
            continue
        target, named = source["target"], source.get("metric", {})
        value, average = target.get("value"), target.get("averageValue")
        match sort:
            case "resource" | "containerResource":
                percent = target.get("averageUtilization")
                made[sort] = _without_none(
                    name=source["name"],
                    targetAverageUtilization=percent,
                    targetAverageValue=average,
                    container=source.get("container"),
                )
            case "pods":
                made[sort] = _without_none(
                    metricName=named["name"],
                    targetAverageValue=average or "0",
                    selector=named.get("selector"),
                )
            case "object":
                made[sort] = _without_none(
                    target=source["describedObject"],
                    metricName=named["name"],
                    targetValue=value or "0",
                    selector=named.get("selector"),
                    averageValue=average,
                )
            case "external":
                made[sort] = _without_none(
                    metricName=named["name"],
                    metricSelector=named.get("selector"),
                    targetValue=value,
                    targetAverageValue=average,
                )
    return made


def _source_to_v2(metric: Mapping[str, Any]) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        match sort:
            case "resource" | "containerResource":
                percent, average = source.get("targetAverageUtilization"), source.get("targetAverageValue")
                type_ = "AverageValue" if percent is None else "Utilization"
                target = _without_none(type=type_, averageUtilization=percent, averageValue=average)
                made[sort] = _without_none(
                    name=source["name"], container=source.get("container"), target=target
                )
            case "pods":
                target = {"type": "AverageValue", "averageValue": source["targetAverageValue"]}
                made[sort] = {"metric": _metric_identifier(source, "selector"), "target": target}
            case "object":
                value, average = source["targetValue"], source.get("averageValue")
                by_average = average is not None
                # v1 cannot omit the value, so 0 means none if there is an average.
                target = _without_none(
                    type="AverageValue" if by_average else "Value",
                    value=None if by_average and value == "0" else value,
                    averageValue=average,
                )
                described = source["target"]
                made[sort] = {
                    "describedObject": described,
                    "metric": _metric_identifier(source, "selector"),
                    "target": target,
                }
            case "external":
                value, average = source.get("targetValue"), source.get("targetAverageValue")
                type_ = "AverageValue" if value is None else "Value"
                target = _without_none(type=type_, value=value, averageValue=average)
                made[sort] = {"metric": _metric_identifier(source, "metricSelector"), "target": target}
    return made


def _status_to_v1(metric: Document) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        if sort == "type":
            continue
        current, named = source["current"], source.get("metric", {})
        value, average = current.get("value"), current.get("averageValue")
        match sort:
            case "resource" | "containerResource":
                made[sort] = _without_none(
                    name=source["name"],
                    currentAverageUtilization=current.get("averageUtilization"),
                    currentAverageValue=average or "0",
                    container=source.get("container"),
                )
            case "pods":
                made[sort] = _without_none(
                    metricName=named["name"],
                    currentAverageValue=average or "0",
                    selector=named.get("selector"),
                )
            case "object":
                made[sort] = _without_none(
                    target=source["describedObject"],
                    metricName=named["name"],
                    currentValue=value or "0",
                    selector=named.get("selector"),
                    averageValue=average,
                )
            case "external":
                made[sort] = _without_none(
                    metricName=named["name"],
                    metricSelector=named.get("selector"),
                    currentValue=value or "0",
                    currentAverageValue=average,
                )
    return made


def _status_to_v2(metric: Mapping[str, Any]) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        match sort:
            case "resource" | "containerResource":
                percent = source.get("currentAverageUtilization")
                current = _without_none(
                    averageUtilization=percent, averageValue=source.get("currentAverageValue")
                )
                made[sort] = _without_none(
                    name=source["name"], container=source.get("container"), current=current
                )
            case "pods":
                current = {"averageValue": source["currentAverageValue"]}
                made[sort] = {"metric": _metric_identifier(source, "selector"), "current": current}
            case "object":
                current = _without_none(value=source["currentValue"], averageValue=source.get("averageValue"))
                described = source["target"]
                made[sort] = {
                    "describedObject": described,
                    "metric": _metric_identifier(source, "selector"),
                    "current": current,
                }
            case "external":
                current = _without_none(
                    value=source["currentValue"], averageValue=source.get("currentAverageValue")
                )
                made[sort] = {"metric": _metric_identifier(source, "metricSelector"), "current": current}
    return made


def _metric_identifier(source: Mapping[str, Any], selector: str) -> Document:
    return _without_none(name=source["metricName"], selector=source.get(selector))


def _without_none(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


# -- behavior, which upstream encodes with capitalized Go field names --------------------------

_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def _with_all_fields(behavior: Document) -> Document:
    """The behavior with all its fields; omitted ones are null."""
    return {
        name: None if rules is None else {field: _rule(field, rules.get(field)) for field in _RULES}
        for name, rules in ((name, behavior.get(name)) for name in ("scaleUp", "scaleDown"))
    }


def _rule(field: str, value: Any) -> Any:
    return [_ordered(each, _POLICY) for each in value] if field == "policies" and value else value


_POLICY = ("type", "value", "periodSeconds")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")


def _ordered(document: Document, names: tuple[str, ...]) -> Document:
    """A document with its fields in upstream's order: annotations are compared as text."""
    return {name: document[name] for name in names if name in document}


def _capitalize_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: _capitalize_names(item) for name, item in value.items()}
    return [_capitalize_names(item) for item in value] if isinstance(value, list) else value


def _lowercase_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name[0].lower() + name[1:]: _lowercase_names(item)
            for name, item in value.items()
            if item is not None
        }
    return [_lowercase_names(item) for item in value] if isinstance(value, list) else value
