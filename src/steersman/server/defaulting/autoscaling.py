"""Defaults of HorizontalPodAutoscalers."""

from __future__ import annotations

from steersman.api.generated import autoscaling_v1, autoscaling_v2
from steersman.server.defaulting.missing_fields import amount, each, maybe, put, unset

_PERIOD = 15
_UP = autoscaling_v2.HPAScalingRules(
    stabilizationWindowSeconds=0,
    selectPolicy="Max",
    policies=(
        autoscaling_v2.HPAScalingPolicy(type="Pods", value=4, periodSeconds=_PERIOD),
        autoscaling_v2.HPAScalingPolicy(type="Percent", value=100, periodSeconds=_PERIOD),
    ),
)
_DOWN = autoscaling_v2.HPAScalingRules(
    selectPolicy="Max",
    policies=(autoscaling_v2.HPAScalingPolicy(type="Percent", value=100, periodSeconds=_PERIOD),),
)
_CPU = autoscaling_v2.MetricSpec(
    type="Resource",
    resource=autoscaling_v2.ResourceMetricSource(
        name="cpu", target=autoscaling_v2.MetricTarget(type="Utilization", averageUtilization=80)
    ),
)
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_SOURCES = ("object", "pods", "resource", "containerResource", "external")


def autoscaler(obj: autoscaling_v2.HorizontalPodAutoscaler) -> autoscaling_v2.HorizontalPodAutoscaler:
    """Scales by the load of CPUs where it does not say, and as fast as is usual."""
    spec = unset(obj.spec, minReplicas=1)
    spec = put(spec, metrics=each(spec.metrics, _metric) or (_CPU,))
    behavior = spec.behavior
    if behavior is not None:
        spec = put(
            spec,
            behavior=put(
                behavior,
                scaleUp=_rules(behavior.scaleUp, _UP),
                scaleDown=_rules(behavior.scaleDown, _DOWN),
            ),
        )
    return put(obj, spec=spec)


def autoscaler_v1(obj: autoscaling_v1.HorizontalPodAutoscaler) -> autoscaling_v1.HorizontalPodAutoscaler:
    spec = unset(obj.spec, minReplicas=1)
    if _METRICS not in obj.metadata.annotations:
        spec = unset(spec, targetCPUUtilizationPercentage=80)
    return put(obj, spec=spec)


def _rules(
    given: autoscaling_v2.HPAScalingRules | None, usual: autoscaling_v2.HPAScalingRules
) -> autoscaling_v2.HPAScalingRules:
    if given is None:
        return usual
    filled = unset(
        given,
        selectPolicy=usual.selectPolicy,
        stabilizationWindowSeconds=usual.stabilizationWindowSeconds,
    )
    return put(filled, policies=filled.policies or usual.policies, tolerance=maybe(filled.tolerance, amount))


def _metric(metric: autoscaling_v2.MetricSpec) -> autoscaling_v2.MetricSpec:
    for name in _SOURCES:
        source = getattr(metric, name)
        if source is not None:
            target = put(
                source.target,
                value=maybe(source.target.value, amount),
                averageValue=maybe(source.target.averageValue, amount),
            )
            metric = put(metric, **{name: put(source, target=target)})
    return metric
