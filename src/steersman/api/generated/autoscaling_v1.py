"""The types of autoscaling/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import Atomic, Time
from steersman.api.kinds import Struct


class CrossVersionObjectReference(Atomic, frozen=True):
    apiVersion: str = ""
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class HorizontalPodAutoscalerSpec(Struct, frozen=True):
    maxReplicas: int = msgspec.field(default_factory=int)
    minReplicas: int | None = None
    scaleTargetRef: CrossVersionObjectReference = msgspec.field(default_factory=CrossVersionObjectReference)
    targetCPUUtilizationPercentage: int | None = None


class HorizontalPodAutoscalerStatus(Struct, frozen=True):
    currentCPUUtilizationPercentage: int | None = None
    currentReplicas: int = msgspec.field(default_factory=int)
    desiredReplicas: int = msgspec.field(default_factory=int)
    lastScaleTime: Time | None = None
    observedGeneration: int | None = None


class HorizontalPodAutoscaler(meta_v1.Object, frozen=True):
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)


class ScaleSpec(Struct, frozen=True):
    replicas: int = 0


class ScaleStatus(Struct, frozen=True):
    replicas: int = msgspec.field(default_factory=int)
    selector: str = ""


class Scale(meta_v1.Object, frozen=True):
    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus = msgspec.field(default_factory=ScaleStatus)
