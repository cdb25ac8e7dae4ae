"""The status of workloads: counts that are not negative and no larger than the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import MUST_BE_NONNEGATIVE, FieldErrors

Status: TypeAlias = Callable[[FieldErrors, Any, Any], None]

_TOO_MANY = "cannot be greater than status.replicas"


def counted(*names: str, within: tuple[str, ...] = (), ready: str = "readyReplicas") -> Status:
    """A check of a status of these counts, of which some are ``within`` the replicas.

    What is available is ready, too; where a status has collisions, their count does not fall.
    """
    available = "availableReplicas" in within

    def check(errors: FieldErrors, new: Any, old: Any) -> None:
        meta.check_update(errors, new.metadata, old.metadata)
        status = new.status
        for name in names:
            number = getattr(status, name)
            if number is not None and number < 0:
                errors.invalid(f"status.{name}", number, MUST_BE_NONNEGATIVE)
        for name in within:
            if getattr(status, name) > status.replicas:
                errors.invalid(f"status.{name}", getattr(status, name), _TOO_MANY)
        if available and status.availableReplicas > status.readyReplicas:
            says = f"cannot be greater than {ready}"
            errors.invalid("status.availableReplicas", status.availableReplicas, says)
        _collisions(errors, status, old.status)

    return check


def _collisions(errors: FieldErrors, new: Any, old: Any) -> None:
    was = getattr(old, "collisionCount", None)
    if was is not None and (new.collisionCount is None or new.collisionCount < was):
        errors.invalid("status.collisionCount", new.collisionCount or 0, "cannot be decremented")


deployment = counted(
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
    within=("updatedReplicas", "readyReplicas", "availableReplicas"),
)
replica_set = counted(
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
    within=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
replication_controller = counted(
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    within=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
stateful_set = counted(
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
    within=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    ready="status.readyReplicas",
)
daemon_set = counted(
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)
autoscaler = counted("currentReplicas", "desiredReplicas")
