"""HorizontalPodAutoscalers of autoscaling/v1, which know of one metric, and of v2, which know of all.

What v1 has no fields for is in annotations there, in the words v1 would have had for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.generated import autoscaling_v1 as v1
from steersman.api.generated import autoscaling_v2 as v2
from steersman.api.kinds import EMPTY
from steersman.server.codec.convert import plain

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_BEHAVIOR, _CONDITIONS = f"{_PREFIX}behavior", f"{_PREFIX}conditions"
_ALL = (_METRICS, _CURRENT, _BEHAVIOR, _CONDITIONS)
_USUAL = 80
"""Percent of the CPU requested, where nothing is asked for."""

Document: TypeAlias = dict[str, Any]
T = TypeVar("T")


# -- the whole --------------------------------------------------------------------------------


def older(scaler: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """An autoscaler as v1 shows it."""
    spec, status, meta = scaler.spec, scaler.status, scaler.metadata
    notes = {name: text for name, text in meta.annotations.items() if name not in _ALL}
    others = [_older_source(plain(metric)) for metric in spec.metrics if _percent(metric) is None]
    current = [_older_status(plain(metric)) for metric in status.currentMetrics or ()]
    for name, found in (
        (_METRICS, others),
        (_CURRENT, current),
        (_BEHAVIOR, None if spec.behavior is None else _capital(_whole(plain(spec.behavior)))),
        (_CONDITIONS, [_ordered(each, _CONDITION) for each in plain(status.conditions)]),
    ):
        if found:
            notes[name] = msgspec.json.encode(found).decode()
    percents = (_percent(metric) for metric in spec.metrics)
    return v1.HorizontalPodAutoscaler(
        metadata=replace(meta, annotations=notes or EMPTY) if notes != dict(meta.annotations) else meta,
        spec=v1.HorizontalPodAutoscalerSpec(
            maxReplicas=spec.maxReplicas,
            minReplicas=spec.minReplicas,
            scaleTargetRef=_same(v1.CrossVersionObjectReference, spec.scaleTargetRef),
            targetCPUUtilizationPercentage=next((each for each in percents if each is not None), None),
        ),
        status=v1.HorizontalPodAutoscalerStatus(
            currentCPUUtilizationPercentage=_used(status),
            currentReplicas=status.currentReplicas,
            desiredReplicas=status.desiredReplicas,
            lastScaleTime=status.lastScaleTime,
            observedGeneration=status.observedGeneration,
        ),
    )


def newer(scaler: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """An autoscaler of v1 as v2 shows it."""
    spec, status, meta = scaler.spec, scaler.status, scaler.metadata
    said = meta.annotations
    percent, used = spec.targetCPUUtilizationPercentage, status.currentCPUUtilizationPercentage
    metrics = _read(said.get(_METRICS), tuple[v2.MetricSpec, ...], lambda all: list(map(_newer_source, all)))
    metrics = metrics or ()
    if percent is not None or not metrics:
        metrics = (*metrics, _cpu(_USUAL if percent is None else percent))
    current = _read(
        said.get(_CURRENT), tuple[v2.MetricStatus, ...], lambda all: list(map(_newer_status, all))
    )
    if current is None and used is not None:
        now = v2.MetricValueStatus(averageUtilization=used)
        current = (
            v2.MetricStatus(type="Resource", resource=v2.ResourceMetricStatus(name="cpu", current=now)),
        )
    behavior = _read(said.get(_BEHAVIOR), v2.HorizontalPodAutoscalerBehavior, _small)
    conditions = _read(
        said.get(_CONDITIONS), tuple[v2.HorizontalPodAutoscalerCondition, ...], lambda all: all
    )
    notes = {name: text for name, text in said.items() if name not in _ALL}
    return v2.HorizontalPodAutoscaler(
        metadata=replace(meta, annotations=notes or EMPTY) if len(notes) != len(said) else meta,
        spec=v2.HorizontalPodAutoscalerSpec(
            behavior=behavior,
            maxReplicas=spec.maxReplicas,
            metrics=metrics,
            minReplicas=spec.minReplicas,
            scaleTargetRef=_same(v2.CrossVersionObjectReference, spec.scaleTargetRef),
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


def _same(type_: type[T], ref: Any) -> T:
    return type_(apiVersion=ref.apiVersion, kind=ref.kind, name=ref.name)  # type: ignore[call-arg]


def _read(text: str | None, type_: type[T], turn: Callable[[Any], Any]) -> T | None:
    """What an annotation says; None where it says nothing that makes sense, as upstream."""
    if text is None:
        return None
    try:
        return msgspec.convert(turn(msgspec.json.decode(text)), type_)
    except (msgspec.MsgspecError, AttributeError, TypeError, KeyError):
        return None


# -- the metric of v1 -------------------------------------------------------------------------


def _percent(metric: v2.MetricSpec) -> int | None:
    """The load of CPUs a metric aims at, where it is of that sort."""
    if metric.type != "Resource" or metric.resource is None or metric.resource.name != "cpu":
        return None
    return metric.resource.target.averageUtilization


def _used(status: v2.HorizontalPodAutoscalerStatus) -> int | None:
    found = None
    for metric in status.currentMetrics or ():
        if metric.type == "Resource" and metric.resource is not None and metric.resource.name == "cpu":
            percent = metric.resource.current.averageUtilization
            found = found if percent is None else percent
    return found


def _cpu(percent: int) -> v2.MetricSpec:
    target = v2.MetricTarget(type="Utilization", averageUtilization=percent)
    return v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=target))


# -- metrics in the words of v1 ---------------------------------------------------------------


def _older_source(metric: Document) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        if sort == "type":
            continue
        target, named = source["target"], source.get("metric", {})
        value, average = target.get("value"), target.get("averageValue")
        match sort:
            case "resource" | "containerResource":
                percent = target.get("averageUtilization")
                made[sort] = _kept(
                    name=source["name"],
                    targetAverageUtilization=percent,
                    targetAverageValue=average,
                    container=source.get("container"),
                )
            case "pods":
                made[sort] = _kept(
                    metricName=named["name"],
                    targetAverageValue=average or "0",
                    selector=named.get("selector"),
                )
            case "object":
                made[sort] = _kept(
                    target=source["describedObject"],
                    metricName=named["name"],
                    targetValue=value or "0",
                    selector=named.get("selector"),
                    averageValue=average,
                )
            case "external":
                made[sort] = _kept(
                    metricName=named["name"],
                    metricSelector=named.get("selector"),
                    targetValue=value,
                    targetAverageValue=average,
                )
    return made


def _newer_source(metric: Mapping[str, Any]) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        match sort:
            case "resource" | "containerResource":
                percent, average = source.get("targetAverageUtilization"), source.get("targetAverageValue")
                type_ = "AverageValue" if percent is None else "Utilization"
                target = _kept(type=type_, averageUtilization=percent, averageValue=average)
                made[sort] = _kept(name=source["name"], container=source.get("container"), target=target)
            case "pods":
                target = {"type": "AverageValue", "averageValue": source["targetAverageValue"]}
                made[sort] = {"metric": _metric(source, "selector"), "target": target}
            case "object":
                value, average = source["targetValue"], source.get("averageValue")
                by_average = average is not None
                # v1 cannot leave the value out, so of a metric that aims at an average 0 is none.
                target = _kept(
                    type="AverageValue" if by_average else "Value",
                    value=None if by_average and value == "0" else value,
                    averageValue=average,
                )
                described = source["target"]
                made[sort] = {
                    "describedObject": described,
                    "metric": _metric(source, "selector"),
                    "target": target,
                }
            case "external":
                value, average = source.get("targetValue"), source.get("targetAverageValue")
                type_ = "AverageValue" if value is None else "Value"
                target = _kept(type=type_, value=value, averageValue=average)
                made[sort] = {"metric": _metric(source, "metricSelector"), "target": target}
    return made


def _older_status(metric: Document) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        if sort == "type":
            continue
        current, named = source["current"], source.get("metric", {})
        value, average = current.get("value"), current.get("averageValue")
        match sort:
            case "resource" | "containerResource":
                made[sort] = _kept(
                    name=source["name"],
                    currentAverageUtilization=current.get("averageUtilization"),
                    currentAverageValue=average or "0",
                    container=source.get("container"),
                )
            case "pods":
                made[sort] = _kept(
                    metricName=named["name"],
                    currentAverageValue=average or "0",
                    selector=named.get("selector"),
                )
            case "object":
                made[sort] = _kept(
                    target=source["describedObject"],
                    metricName=named["name"],
                    currentValue=value or "0",
                    selector=named.get("selector"),
                    averageValue=average,
                )
            case "external":
                made[sort] = _kept(
                    metricName=named["name"],
                    metricSelector=named.get("selector"),
                    currentValue=value or "0",
                    currentAverageValue=average,
                )
    return made


def _newer_status(metric: Mapping[str, Any]) -> Document:
    made: Document = {"type": metric["type"]}
    for sort, source in metric.items():
        match sort:
            case "resource" | "containerResource":
                percent = source.get("currentAverageUtilization")
                current = _kept(averageUtilization=percent, averageValue=source.get("currentAverageValue"))
                made[sort] = _kept(name=source["name"], container=source.get("container"), current=current)
            case "pods":
                current = {"averageValue": source["currentAverageValue"]}
                made[sort] = {"metric": _metric(source, "selector"), "current": current}
            case "object":
                current = _kept(value=source["currentValue"], averageValue=source.get("averageValue"))
                described = source["target"]
                made[sort] = {
                    "describedObject": described,
                    "metric": _metric(source, "selector"),
                    "current": current,
                }
            case "external":
                current = _kept(value=source["currentValue"], averageValue=source.get("currentAverageValue"))
                made[sort] = {"metric": _metric(source, "metricSelector"), "current": current}
    return made


def _metric(source: Mapping[str, Any], selector: str) -> Document:
    return _kept(name=source["metricName"], selector=source.get(selector))


def _kept(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


# -- behaviour, which upstream writes by the names of its own fields --------------------------

_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def _whole(behavior: Document) -> Document:
    """The behaviour with all its fields, those that say nothing as null."""
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


def _capital(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: _capital(item) for name, item in value.items()}
    return [_capital(item) for item in value] if isinstance(value, list) else value


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _small(item) for name, item in value.items() if item is not None}
    return [_small(item) for item in value] if isinstance(value, list) else value
