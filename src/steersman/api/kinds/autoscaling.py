"""Views of HorizontalPodAutoscalers and pod metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.kinds import Condition, LabelSelector, Object, Struct
from steersman.api.scheme import Kind, register


class CrossVersionObjectReference(Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""


class MetricIdentifier(Struct, frozen=True):
    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Struct, frozen=True):
    type: str = ""
    value: str | None = None
    averageValue: str | None = None
    averageUtilization: int | None = None


class ResourceMetricSource(Struct, frozen=True):
    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerResourceMetricSource(Struct, frozen=True):
    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class PodsMetricSource(Struct, frozen=True):
    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class ObjectMetricSource(Struct, frozen=True):
    describedObject: CrossVersionObjectReference = CrossVersionObjectReference()
    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class MetricSpec(Struct, frozen=True):
    type: str = ""
    resource: ResourceMetricSource | None = None
    containerResource: ContainerResourceMetricSource | None = None
    pods: PodsMetricSource | None = None
    object: ObjectMetricSource | None = None
    external: PodsMetricSource | None = None


class HPAScalingPolicy(Struct, frozen=True):
    type: str = ""
    value: int = 0
    periodSeconds: int = 0


class HPAScalingRules(Struct, frozen=True):
    stabilizationWindowSeconds: int | None = None
    selectPolicy: str | None = None
    policies: tuple[HPAScalingPolicy, ...] | None = None
    tolerance: str | None = None


class HorizontalPodAutoscalerBehavior(Struct, frozen=True):
    scaleUp: HPAScalingRules | None = None
    scaleDown: HPAScalingRules | None = None


class HorizontalPodAutoscalerSpec(Struct, frozen=True):
    scaleTargetRef: CrossVersionObjectReference = CrossVersionObjectReference()
    minReplicas: int | None = None
    maxReplicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    behavior: HorizontalPodAutoscalerBehavior | None = None


class HorizontalPodAutoscalerStatus(Struct, frozen=True):
    observedGeneration: int | None = None
    lastScaleTime: datetime | None = None
    currentReplicas: int = 0
    desiredReplicas: int = 0
    currentMetrics: tuple[dict[str, Any], ...] | None = None
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(Object, frozen=True):
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


HORIZONTALPODAUTOSCALERS = register(
    Kind(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        True,
        HorizontalPodAutoscaler,
    )
)
PODMETRICS: Kind[dict[str, Any]] = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True, dict)
