"""The status of an autoscaler while a round works on it."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from steersman.api.conditions import drop, is_true, revise
from steersman.api.errors import ApiError
from steersman.api.kinds import Condition
from steersman.api.kinds.autoscaling import HorizontalPodAutoscaler
from steersman.intent.actions import Emit, UpdateStatus


class Draft:
    """Starts as what the status is; becomes what it should be."""

    def __init__(self, scaler: HorizontalPodAutoscaler, now: datetime) -> None:
        self.scaler = scaler
        self.conditions = scaler.status.conditions
        self.current = scaler.status.currentReplicas
        self.desired = scaler.status.desiredReplicas
        self.metrics = scaler.status.currentMetrics
        self.scaled = scaler.status.lastScaleTime
        self._now = now

    def say(self, type_: str, status: bool, reason: str, message: str) -> None:
        word = "True" if status else "False"
        made = Condition(
            type=type_, status=word, reason=reason, message=message, lastTransitionTime=self._now
        )
        self.conditions = revise(self.conditions, made)

    def unsay(self, type_: str) -> None:
        self.conditions = drop(self.conditions, type_)

    def says(self, type_: str) -> bool:
        return is_true(self.conditions, type_)

    async def write(self) -> None:
        """Put the status where it is not what it was."""
        made = replace(
            self.scaler.status,
            currentReplicas=self.current,
            desiredReplicas=self.desired,
            currentMetrics=self.metrics,
            conditions=self.conditions,
            lastScaleTime=self.scaled,
        )
        if made == self.scaler.status:
            return
        try:
            await UpdateStatus(self.scaler, made)
        except ApiError as error:
            await Emit(self.scaler, "Warning", "FailedUpdateStatus", error.message)
            raise
