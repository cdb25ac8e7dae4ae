"""The types of policy/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import IntOrString, Time
from steersman.api.generated.merge import Merge
from steersman.api.kinds import EMPTY, Struct


class Eviction(meta_v1.Object, frozen=True):
    deleteOptions: meta_v1.NestedDeleteOptions | None = None


class PodDisruptionBudgetSpec(Struct, frozen=True):
    maxUnavailable: IntOrString | None = None
    minAvailable: IntOrString | None = None
    selector: Annotated[meta_v1.LabelSelector | None, Merge(strategy="replace")] = None
    unhealthyPodEvictionPolicy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    currentHealthy: int = msgspec.field(default_factory=int)
    desiredHealthy: int = msgspec.field(default_factory=int)
    disruptedPods: Mapping[str, Time | None] = EMPTY
    disruptionsAllowed: int = msgspec.field(default_factory=int)
    expectedPods: int = msgspec.field(default_factory=int)
    observedGeneration: int = 0


class PodDisruptionBudget(meta_v1.Object, frozen=True):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)
