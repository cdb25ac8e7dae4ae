"""Views of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from steersman.api.kinds import EMPTY, Condition, LabelSelector, Object, Struct
from steersman.api.scheme import Kind, register


class PodDisruptionBudgetSpec(Struct, frozen=True):
    minAvailable: int | str | None = None
    maxUnavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthyPodEvictionPolicy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    currentHealthy: int = 0
    desiredHealthy: int = 0
    disruptedPods: Mapping[str, datetime | None] = EMPTY
    disruptionsAllowed: int = 0
    expectedPods: int = 0
    observedGeneration: int = 0


class PodDisruptionBudget(Object, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


PODDISRUPTIONBUDGETS = register(
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, PodDisruptionBudget)
)
