"""The types of autoscaling/v2. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import AnyCondition, Quantity, Time
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class MetricTarget(Struct, frozen=True):
    averageUtilization: int | None = None
    averageValue: Quantity | None = None
    type: str = msgspec.field(default_factory=str)
    value: Quantity | None = None


class ContainerResourceMetricSource(Struct, frozen=True):
    container: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    target: MetricTarget = msgspec.field(default_factory=MetricTarget)


class MetricValueStatus(Struct, frozen=True):
    averageUtilization: int | None = None
    averageValue: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricStatus(Struct, frozen=True):
    container: str = msgspec.field(default_factory=str)
    current: MetricValueStatus = msgspec.field(default_factory=MetricValueStatus)
    name: str = msgspec.field(default_factory=str)


class CrossVersionObjectReference(Struct, frozen=True):
    apiVersion: str = ""
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class MetricIdentifier(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    selector: meta_v1.LabelSelector | None = None


class ExternalMetricSource(Struct, frozen=True):
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)
    target: MetricTarget = msgspec.field(default_factory=MetricTarget)


class ExternalMetricStatus(Struct, frozen=True):
    current: MetricValueStatus = msgspec.field(default_factory=MetricValueStatus)
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)


class HPAScalingPolicy(Struct, frozen=True):
    periodSeconds: int = msgspec.field(default_factory=int)
    type: str = msgspec.field(default_factory=str)
    value: int = msgspec.field(default_factory=int)


class HPAScalingRules(Struct, frozen=True):
    policies: Annotated[tuple[HPAScalingPolicy, ...] | None, ATOMIC] = None
    selectPolicy: str | None = None
    stabilizationWindowSeconds: int | None = None
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerSpec(Struct, frozen=True):
    behavior: HorizontalPodAutoscalerBehavior | None = None
    maxReplicas: int = msgspec.field(default_factory=int)
    metrics: Annotated[tuple[MetricSpec, ...], ATOMIC] = ()
    minReplicas: int | None = None
    scaleTargetRef: CrossVersionObjectReference = msgspec.field(default_factory=CrossVersionObjectReference)


class HorizontalPodAutoscalerStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[HorizontalPodAutoscalerCondition, ...],
        Merge(strategy="merge", key="type", list_type="map", keys=("type",)),
    ] = ()
    currentMetrics: Annotated[tuple[MetricStatus, ...] | None, ATOMIC] = msgspec.field(
        default_factory=NoneType
    )
    currentReplicas: int = 0
    desiredReplicas: int = msgspec.field(default_factory=int)
    lastScaleTime: Time | None = None
    observedGeneration: int | None = None


class HorizontalPodAutoscaler(meta_v1.Object, frozen=True):
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)


class HorizontalPodAutoscalerBehavior(Struct, frozen=True):
    scaleDown: HPAScalingRules | None = None
    scaleUp: HPAScalingRules | None = None


class HorizontalPodAutoscalerCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class MetricSpec(Struct, frozen=True):
    containerResource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    type: str = msgspec.field(default_factory=str)


class MetricStatus(Struct, frozen=True):
    containerResource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    type: str = msgspec.field(default_factory=str)


class ObjectMetricSource(Struct, frozen=True):
    describedObject: CrossVersionObjectReference = msgspec.field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)
    target: MetricTarget = msgspec.field(default_factory=MetricTarget)


class ObjectMetricStatus(Struct, frozen=True):
    current: MetricValueStatus = msgspec.field(default_factory=MetricValueStatus)
    describedObject: CrossVersionObjectReference = msgspec.field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)


class PodsMetricSource(Struct, frozen=True):
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)
    target: MetricTarget = msgspec.field(default_factory=MetricTarget)


class PodsMetricStatus(Struct, frozen=True):
    current: MetricValueStatus = msgspec.field(default_factory=MetricValueStatus)
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)


class ResourceMetricSource(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    target: MetricTarget = msgspec.field(default_factory=MetricTarget)


class ResourceMetricStatus(Struct, frozen=True):
    current: MetricValueStatus = msgspec.field(default_factory=MetricValueStatus)
    name: str = msgspec.field(default_factory=str)
