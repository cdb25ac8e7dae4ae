"""A Deployment's status: counts, the conditions Available, Progressing and ReplicaFailure, and the verdict on them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from steersman.api.conditions import find_condition, remove_condition, set_condition
from steersman.api.kinds import Condition, Deployment, DeploymentStatus, ReplicaSet
from steersman.api.meta import truncate_to_seconds
from steersman.controllers.deployment.replicasets import (
    LONG_AGO,
    Limits,
    ReplicaSets,
    desired,
    progress_deadline,
    size,
)

AVAILABLE = "Available"
PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"

# Reasons of the Progressing condition.
UPDATED = "ReplicaSetUpdated"
CREATE_ERROR = "ReplicaSetCreateError"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
NEW_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"


# -- counts -----------------------------------------------------------------------------------


def new_status(
    sets: ReplicaSets,
    limits: Limits,
    conditions: tuple[Condition, ...],
    now: datetime,
    *,
    count_terminating: bool = True,
) -> DeploymentStatus:
    """The status with the given conditions and Available; ``count_terminating``: with ``terminatingReplicas``."""
    available = sum(rs.status.availableReplicas for rs in sets)
    return replace(
        sets.deployment.status,
        observedGeneration=sets.deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in sets),
        updatedReplicas=sets.new.status.replicas if sets.new is not None else 0,
        readyReplicas=sum(rs.status.readyReplicas for rs in sets),
        availableReplicas=available,
        # While a ReplicaSet is scaled down more pods are available than desired: then none is unavailable.
        unavailableReplicas=max(0, sets.total_size - available),
        terminatingReplicas=terminating_replicas(sets) if count_terminating else None,
        conditions=set_condition(conditions, availability(available >= limits.min_available, now)),
    )


def same_counts(one: DeploymentStatus, other: DeploymentStatus) -> bool:
    """Whether two statuses have the same replica counts, apart from unavailable and terminating ones."""
    return (
        one.replicas == other.replicas
        and one.updatedReplicas == other.updatedReplicas
        and one.readyReplicas == other.readyReplicas
        and one.availableReplicas == other.availableReplicas
    )


def terminating_replicas(sets: Iterable[ReplicaSet]) -> int | None:
    """The terminating pods of all ReplicaSets; None while one of them has not reported its own.

    A ReplicaSet that no controller has observed yet has no pods and counts as 0.
    """
    total = 0
    for rs in sets:
        if rs.status.terminatingReplicas is not None:
            total += rs.status.terminatingReplicas
        elif rs.status.observedGeneration != 0:
            return None
    return total


# -- conditions -------------------------------------------------------------------------------


def new_condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    """A condition that changed now."""
    at = truncate_to_seconds(now)
    return Condition(
        type=type_, status=status, reason=reason, message=message, lastUpdateTime=at, lastTransitionTime=at
    )


def availability(enough: bool, now: datetime) -> Condition:
    """The Available condition."""
    if enough:
        return new_condition(
            AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now
        )
    return new_condition(
        AVAILABLE,
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
        now,
    )


def with_paused(deployment: Deployment, now: datetime) -> tuple[Condition, ...]:
    """The Deployment's conditions, updated where it was just paused or resumed.

    The progress deadline of a paused rollout starts anew when it is resumed. A rollout that failed before stays
    failed.
    """
    conditions = deployment.status.conditions
    condition = find_condition(conditions, PROGRESSING)
    reason = condition.reason if condition is not None else ""
    if progress_deadline(deployment) is None or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != PAUSED:
        return set_condition(
            conditions, new_condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
        )
    if not deployment.spec.paused and reason == PAUSED:
        return set_condition(
            conditions, new_condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
        )
    return conditions


def with_created(
    deployment: Deployment, conditions: tuple[Condition, ...], name: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions after a new ReplicaSet was created."""
    if progress_deadline(deployment) is None:
        return conditions
    message = f'Created new replica set "{name}"'
    return set_condition(conditions, new_condition(PROGRESSING, "True", CREATED, message, now))


def with_found(
    deployment: Deployment, conditions: tuple[Condition, ...], name: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions where a new ReplicaSet exists and there is no Progressing condition yet."""
    if progress_deadline(deployment) is None or find_condition(conditions, PROGRESSING) is not None:
        return conditions
    return set_condition(
        conditions, new_condition(PROGRESSING, "True", FOUND, f'Found new replica set "{name}"', now)
    )


def with_create_error(
    deployment: Deployment, conditions: tuple[Condition, ...], message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions after the new ReplicaSet could not be created."""
    if progress_deadline(deployment) is None:
        return conditions
    return set_condition(conditions, new_condition(PROGRESSING, "False", CREATE_ERROR, message, now))


# -- progress ---------------------------------------------------------------------------------


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all desired pods are updated and available, and no old pod is left."""
    return (
        status.updatedReplicas == status.replicas == status.availableReplicas == desired(deployment)
        and status.observedGeneration >= deployment.metadata.generation
    )


def is_progressing(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """Whether new pods were created or became ready or available, or old ones were deleted."""
    return (
        after.updatedReplicas > before.updatedReplicas
        or after.replicas - after.updatedReplicas < before.replicas - before.updatedReplicas
        or after.readyReplicas > before.readyReplicas
        or after.availableReplicas > before.availableReplicas
    )


def deadline_at(deployment: Deployment, conditions: tuple[Condition, ...]) -> datetime | None:
    """When the rollout exceeds its progress deadline; None where no rollout is under way or it has no deadline."""
    seconds = progress_deadline(deployment)
    condition = find_condition(conditions, PROGRESSING)
    if seconds is None or condition is None or condition.reason in (NEW_AVAILABLE, TIMED_OUT):
        return None
    return (condition.lastUpdateTime or LONG_AGO) + timedelta(seconds=seconds)


def with_progress(sets: ReplicaSets, status: DeploymentStatus, now: datetime) -> DeploymentStatus:
    """A status with Progressing and ReplicaFailure.

    ``status`` has the present counts; the previous ones are in the Deployment.
    """
    deployment = sets.deployment
    conditions = status.conditions
    if progress_deadline(deployment) is None:
        conditions = remove_condition(conditions, PROGRESSING)
    else:
        conditions = _progress(sets, status, now)
    failure = replica_failure(sets)
    conditions = (
        set_condition(conditions, failure)
        if failure is not None
        else remove_condition(conditions, REPLICA_FAILURE)
    )
    return replace(status, conditions=conditions) if conditions != status.conditions else status


def _progress(sets: ReplicaSets, status: DeploymentStatus, now: datetime) -> tuple[Condition, ...]:
    deployment, conditions = sets.deployment, status.conditions
    condition = find_condition(conditions, PROGRESSING)
    if (
        condition is not None
        and condition.reason == NEW_AVAILABLE
        and status.replicas == status.updatedReplicas
    ):
        # The last rollout is over and no other has begun: pods that come and go are no progress.
        return conditions
    subject = (
        f'ReplicaSet "{sets.new.metadata.name}"'
        if sets.new is not None
        else f'Deployment "{deployment.metadata.name}"'
    )
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return set_condition(conditions, new_condition(PROGRESSING, "True", NEW_AVAILABLE, message, now))
    if is_progressing(deployment.status, status):
        updated = new_condition(PROGRESSING, "True", UPDATED, f"{subject} is progressing.", now)
        if condition is not None and condition.status == "True":
            updated = replace(updated, lastTransitionTime=condition.lastTransitionTime)
        # Any progress restarts the deadline, so lastUpdateTime is new even where reason and status are not.
        return (*remove_condition(conditions, PROGRESSING), updated)
    due = deadline_at(deployment, conditions)
    # differs: at the very instant, not a moment later, so that waking then is enough.
    if due is not None and due <= now:
        message = f"{subject} has timed out progressing."
        return set_condition(conditions, new_condition(PROGRESSING, "False", TIMED_OUT, message, now))
    return conditions


def replica_failure(sets: ReplicaSets) -> Condition | None:
    """The ReplicaFailure condition of the new ReplicaSet, or else of another."""
    ordered: Iterable[ReplicaSet] = sets if sets.new is None else (sets.new, *sets.old)
    for rs in ordered:
        failure = find_condition(rs.status.conditions, REPLICA_FAILURE)
        if failure is not None:
            return Condition(
                type=REPLICA_FAILURE,
                status=failure.status,
                reason=failure.reason,
                message=failure.message,
                lastUpdateTime=failure.lastTransitionTime,
                lastTransitionTime=failure.lastTransitionTime,
            )
    return None


# -- verdict ----------------------------------------------------------------------------------


def describe(sets: ReplicaSets, status: DeploymentStatus, limits: Limits, old_pods: int = 0) -> str:
    """The state of a rollout and what it waits for. ``old_pods`` must stop before any new pod is created."""
    replicas = limits.replicas
    if is_complete(sets.deployment, status):
        return f"{replicas} of {replicas} replicas updated and available"
    condition = find_condition(status.conditions, PROGRESSING)
    reason = condition.reason if condition is not None else ""
    if reason == NEW_AVAILABLE and status.replicas == status.updatedReplicas:
        text = f"rolled out; {_available(sets, replicas)}"
    elif reason == TIMED_OUT:
        seconds = progress_deadline(sets.deployment)
        text = f"rollout made no progress for {seconds}s: {_pending(sets, status, replicas, old_pods)}"
    else:
        text = f"rollout in progress: {_pending(sets, status, replicas, old_pods)}"
    failure = find_condition(status.conditions, REPLICA_FAILURE)
    return f"{text}; {failure.reason}: {failure.message}" if failure is not None else text


def describe_paused(status: DeploymentStatus, limits: Limits) -> str:
    """The state of a paused Deployment."""
    return (
        f"paused: {status.updatedReplicas} of {limits.replicas} replicas updated, "
        f"{status.availableReplicas} available"
    )


def _pending(sets: ReplicaSets, status: DeploymentStatus, replicas: int, old_pods: int) -> str:
    if old_pods:
        return f"waiting for {_pods(old_pods, 'old pod')} to stop"
    old = status.replicas - status.updatedReplicas
    remaining = f"{_pods(old, 'old pod')} remaining" if old > 0 else ""
    new = sets.new
    if new is None or new.status.availableReplicas < replicas:
        available = _available(sets, replicas, "new ")
        return f"{available}, {remaining}" if remaining else available
    if remaining:
        return remaining
    if new.status.replicas > size(new):
        return f"{_pods(new.status.replicas - size(new), 'surplus pod')} remaining"
    return "waiting for the status of ReplicaSets"


def _available(sets: ReplicaSets, replicas: int, kind: str = "") -> str:
    available, created = 0, 0
    if sets.new is not None:
        available, created = sets.new.status.availableReplicas, sets.new.status.replicas
    text = f"{available} of {replicas} {kind}replicas available"
    # A rollout that is stuck has created a part of its pods, and waits for these.
    return f"{text}, {created} created" if available < created < replicas else text


def _pods(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
