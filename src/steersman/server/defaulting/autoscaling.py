"""Defaults of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from steersman.api.generated import autoscaling_v1, autoscaling_v2
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_quantity,
    default_if_none,
    map_items,
    map_optional,
    put,
)

_PERIOD_SECONDS = 15
_SCALE_UP = autoscaling_v2.HPAScalingRules(
    stabilizationWindowSeconds=0,
    selectPolicy="Max",
    policies=(
        autoscaling_v2.HPAScalingPolicy(type="Pods", value=4, periodSeconds=_PERIOD_SECONDS),
        autoscaling_v2.HPAScalingPolicy(type="Percent", value=100, periodSeconds=_PERIOD_SECONDS),
    ),
)
_SCALE_DOWN = autoscaling_v2.HPAScalingRules(
    selectPolicy="Max",
    policies=(autoscaling_v2.HPAScalingPolicy(type="Percent", value=100, periodSeconds=_PERIOD_SECONDS),),
)
_CPU_METRIC = autoscaling_v2.MetricSpec(
    type="Resource",
    resource=autoscaling_v2.ResourceMetricSource(
        name="cpu", target=autoscaling_v2.MetricTarget(type="Utilization", averageUtilization=80)
    ),
)
_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"

MetricSource = TypeVar(
    "MetricSource",
    autoscaling_v2.ObjectMetricSource,
    autoscaling_v2.PodsMetricSource,
    autoscaling_v2.ResourceMetricSource,
    autoscaling_v2.ContainerResourceMetricSource,
    autoscaling_v2.ExternalMetricSource,
)


def default_autoscaler(obj: autoscaling_v2.HorizontalPodAutoscaler) -> autoscaling_v2.HorizontalPodAutoscaler:
    """Defaults to one replica at least, 80 % CPU utilization, and upstream's scaling behavior."""
    spec = default_if_none(obj.spec, minReplicas=1)
    spec = put(spec, metrics=map_items(spec.metrics, _canonical_metric) or (_CPU_METRIC,))
    behavior = spec.behavior
    if behavior is not None:
        spec = put(
            spec,
            behavior=put(
                behavior,
                scaleUp=_default_scaling_rules(behavior.scaleUp, _SCALE_UP),
                scaleDown=_default_scaling_rules(behavior.scaleDown, _SCALE_DOWN),
            ),
        )
    return put(obj, spec=spec)


def default_autoscaler_v1(
    obj: autoscaling_v1.HorizontalPodAutoscaler,
) -> autoscaling_v1.HorizontalPodAutoscaler:
    spec = default_if_none(obj.spec, minReplicas=1)
    if _METRICS_ANNOTATION not in obj.metadata.annotations:
        spec = default_if_none(spec, targetCPUUtilizationPercentage=80)
    return put(obj, spec=spec)


def _default_scaling_rules(
    given: autoscaling_v2.HPAScalingRules | None, usual: autoscaling_v2.HPAScalingRules
) -> autoscaling_v2.HPAScalingRules:
    if given is None:
        return usual
    filled = default_if_none(
        given,
        policies=usual.policies,
        selectPolicy=usual.selectPolicy,
        stabilizationWindowSeconds=usual.stabilizationWindowSeconds,
    )
    return put(
        filled,
        tolerance=map_optional(filled.tolerance, canonical_quantity),
    )


def _canonical_metric(metric: autoscaling_v2.MetricSpec) -> autoscaling_v2.MetricSpec:
    return put(
        metric,
        object=map_optional(metric.object, _canonical_source),
        pods=map_optional(metric.pods, _canonical_source),
        resource=map_optional(metric.resource, _canonical_source),
        containerResource=map_optional(metric.containerResource, _canonical_source),
        external=map_optional(metric.external, _canonical_source),
    )


def _canonical_source(source: MetricSource) -> MetricSource:
    target = source.target
    target = put(
        target,
        value=map_optional(target.value, canonical_quantity),
        averageValue=map_optional(target.averageValue, canonical_quantity),
    )
    return put(source, target=target)


DEFAULTS: Mapping[GroupKind, Default] = {
    ("autoscaling", "HorizontalPodAutoscaler"): default_autoscaler,
}
DEFAULTS_V1: Mapping[GroupKind, Default] = {
    ("autoscaling", "HorizontalPodAutoscaler"): default_autoscaler_v1,
}
