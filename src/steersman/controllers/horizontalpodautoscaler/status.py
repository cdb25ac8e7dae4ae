"""The status of an autoscaler as a value: each step of a round returns the next one, and the round writes the last."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.conditions import is_condition_true, remove_condition, replace_condition
from steersman.api.errors import ApiError
from steersman.api.kinds import Condition
from steersman.api.kinds.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from steersman.api.meta import truncate_to_seconds
from steersman.intent.actions import Emit, UpdateStatus


class Desired(msgspec.Struct, frozen=True):
    """The replicas a target should have, and the status so far."""

    replicas: int
    reason: str
    status: HorizontalPodAutoscalerStatus
    error: str = "none"
    """The label ``error``: ``internal`` where some metrics are invalid and the others decided."""


class Result(msgspec.Struct, frozen=True):
    """The end of a reconciliation: the status to write, and the labels of its metrics."""

    status: HorizontalPodAutoscalerStatus
    because: str
    action: str = "none"
    error: str = "none"
    failed: bool = False


def with_condition(
    status: HorizontalPodAutoscalerStatus, now: datetime, type_: str, state: bool, reason: str, message: str
) -> HorizontalPodAutoscalerStatus:
    """The status with this condition in the place of the one of its type."""
    condition = Condition(
        type=type_,
        status="True" if state else "False",
        reason=reason,
        message=message,
        lastTransitionTime=truncate_to_seconds(now),
    )
    return replace(status, conditions=replace_condition(status.conditions, condition))


def without_condition(status: HorizontalPodAutoscalerStatus, type_: str) -> HorizontalPodAutoscalerStatus:
    """The status without the condition of this type."""
    return replace(status, conditions=remove_condition(status.conditions, type_))


def has_condition(status: HorizontalPodAutoscalerStatus, type_: str) -> bool:
    """Whether the condition of this type is True."""
    return is_condition_true(status.conditions, type_)


async def write_status(autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus) -> None:
    """Updates the status where it differs."""
    if status == autoscaler.status:
        return
    try:
        await UpdateStatus(autoscaler, status)
    except ApiError as error:
        await Emit(autoscaler, "Warning", "FailedUpdateStatus", error.message)
        raise
