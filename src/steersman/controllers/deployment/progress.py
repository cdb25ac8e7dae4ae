"""Progress: whether a rollout moves, is done, or has been stuck for longer than its deadline."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from steersman.api.conditions import drop, find, put
from steersman.api.kinds import Condition, Deployment, DeploymentStatus, ReplicaSet
from steersman.controllers.deployment.limits import deadline
from steersman.controllers.deployment.replicasets import LONG_AGO, Family, desired
from steersman.controllers.deployment.status import stated

PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"

UPDATED = "ReplicaSetUpdated"
CREATE_ERROR = "ReplicaSetCreateError"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"


def paused(deployment: Deployment, now: datetime) -> tuple[Condition, ...]:
    """The Deployment's conditions, saying that it was paused or resumed where that is news.

    A paused rollout makes no progress and must not be blamed for it: its deadline starts anew
    when it is resumed. A rollout that had failed before stays failed.
    """
    shown = deployment.status.conditions
    condition = find(shown, PROGRESSING)
    reason = condition.reason if condition is not None else ""
    if deadline(deployment) is None or reason == TIMED_OUT:
        return shown
    if deployment.spec.paused and reason != PAUSED:
        return put(shown, stated(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now))
    if not deployment.spec.paused and reason == PAUSED:
        return put(shown, stated(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now))
    return shown


def created(
    deployment: Deployment, shown: tuple[Condition, ...], name: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions after a new ReplicaSet was created."""
    if deadline(deployment) is None:
        return shown
    return put(shown, stated(PROGRESSING, "True", CREATED, f'Created new replica set "{name}"', now))


def found(
    deployment: Deployment, shown: tuple[Condition, ...], name: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions when a new ReplicaSet is there and nothing was said about progress so far."""
    if deadline(deployment) is None or find(shown, PROGRESSING) is not None:
        return shown
    return put(shown, stated(PROGRESSING, "True", FOUND, f'Found new replica set "{name}"', now))


def refused(
    deployment: Deployment, shown: tuple[Condition, ...], message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions after the new ReplicaSet could not be created."""
    if deadline(deployment) is None:
        return shown
    return put(shown, stated(PROGRESSING, "False", CREATE_ERROR, message, now))


def complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all wanted pods are updated and available, and no other is left."""
    return (
        status.updatedReplicas == status.replicas == status.availableReplicas == desired(deployment)
        and status.observedGeneration >= deployment.metadata.generation
    )


def moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """Whether new pods came, became ready or available, or old ones went."""
    return (
        after.updatedReplicas > before.updatedReplicas
        or after.replicas - after.updatedReplicas < before.replicas - before.updatedReplicas
        or after.readyReplicas > before.readyReplicas
        or after.availableReplicas > before.availableReplicas
    )


def expiry(deployment: Deployment, shown: tuple[Condition, ...]) -> datetime | None:
    """When the rollout will have been without progress for too long; None: that is not watched."""
    limit = deadline(deployment)
    condition = find(shown, PROGRESSING)
    if limit is None or condition is None or condition.reason in (AVAILABLE, TIMED_OUT):
        return None
    return (condition.lastUpdateTime or LONG_AGO) + timedelta(seconds=limit)


def estimated(family: Family, status: DeploymentStatus, now: datetime) -> DeploymentStatus:
    """A status with what is to be said about a rollout's progress and failures.

    ``status`` has the counts of now; what they were is in the Deployment.
    """
    deployment = family.deployment
    shown = status.conditions
    shown = drop(shown, PROGRESSING) if deadline(deployment) is None else _progress(family, status, now)
    failure = failure_of(family)
    shown = put(shown, failure) if failure is not None else drop(shown, REPLICA_FAILURE)
    return replace(status, conditions=shown) if shown != status.conditions else status


def _progress(family: Family, status: DeploymentStatus, now: datetime) -> tuple[Condition, ...]:
    deployment, shown = family.deployment, status.conditions
    condition = find(shown, PROGRESSING)
    if condition is not None and condition.reason == AVAILABLE and status.replicas == status.updatedReplicas:
        # The last rollout is over and no other has begun: pods that come and go are no progress.
        return shown
    who = (
        f'ReplicaSet "{family.new.metadata.name}"'
        if family.new is not None
        else f'Deployment "{deployment.metadata.name}"'
    )
    if complete(deployment, status):
        return put(shown, stated(PROGRESSING, "True", AVAILABLE, f"{who} has successfully progressed.", now))
    if moved(deployment.status, status):
        moving = stated(PROGRESSING, "True", UPDATED, f"{who} is progressing.", now)
        if condition is not None and condition.status == "True":
            moving = replace(moving, lastTransitionTime=condition.lastTransitionTime)
        # Every sign of progress counts, so the time is new even where reason and status are not.
        return (*drop(shown, PROGRESSING), moving)
    due = expiry(deployment, shown)
    # differs: at the very instant, not a moment later, so that waking then is enough.
    if due is not None and due <= now:
        return put(shown, stated(PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.", now))
    return shown


def failure_of(family: Family) -> Condition | None:
    """Why pods cannot be created or deleted: of the new ReplicaSet, or else of another."""
    sets: Iterable[ReplicaSet] = family if family.new is None else (family.new, *family.olds)
    for rs in sets:
        failure = find(rs.status.conditions, REPLICA_FAILURE)
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
