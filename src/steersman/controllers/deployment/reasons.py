"""Why a Deployment rests, in words with numbers."""

from __future__ import annotations

from steersman.api.conditions import find
from steersman.api.kinds import DeploymentStatus
from steersman.controllers.deployment import progress
from steersman.controllers.deployment.limits import Limits, deadline
from steersman.controllers.deployment.replicasets import Family, size


def pods(count: int, what: str = "") -> str:
    """``1 old pod``, ``3 old pods``."""
    return f"{count} {what}{' ' if what else ''}pod{'' if count == 1 else 's'}"


def standing(family: Family, status: DeploymentStatus, limits: Limits, old: int = 0) -> str:
    """How far a rollout is and what it waits for. ``old`` pods are waited for before any new one."""
    wanted = limits.replicas
    if progress.complete(family.deployment, status):
        return f"complete: {wanted} of {wanted} updated and available" if wanted else "complete: scaled to 0"
    condition = find(status.conditions, progress.PROGRESSING)
    reason = condition.reason if condition is not None else ""
    if reason == progress.AVAILABLE and status.replicas == status.updatedReplicas:
        say = f"rolled out, but {_missing(family, wanted)}"
    elif reason == progress.TIMED_OUT:
        seconds = deadline(family.deployment)
        say = f"rollout is stuck, no progress for {seconds}s: {_waiting(family, status, wanted, old)}"
    else:
        say = f"rollout waits: {_waiting(family, status, wanted, old)}"
    failure = find(status.conditions, progress.REPLICA_FAILURE)
    return f"{say}; {failure.reason}: {failure.message}" if failure is not None else say


def _waiting(family: Family, status: DeploymentStatus, wanted: int, old: int) -> str:
    if old:
        return f"{pods(old, 'old')} must stop before new ones start"
    going = status.replicas - status.updatedReplicas
    left = f"{pods(going, 'old')} still there" if going > 0 else ""
    new = family.new
    if new is None or new.status.availableReplicas < wanted:
        missing = _missing(family, wanted, "new ")
        return f"{missing}, {left}" if left else missing
    if left:
        return left
    if new.status.replicas > size(new):
        return f"{pods(new.status.replicas - size(new))} too many"
    return "the ReplicaSets have not counted their pods yet"


def _missing(family: Family, wanted: int, kind: str = "") -> str:
    new = family.new
    there = new.status.availableReplicas if new is not None else 0
    if there >= wanted:
        return f"{there} {kind}pods available where {wanted} are wanted"
    return f"{wanted - there} of {wanted} {kind}pods not available yet"


def halted(status: DeploymentStatus, limits: Limits) -> str:
    """How a paused Deployment stands."""
    return (
        f"paused: {status.updatedReplicas} of {limits.replicas} updated, {status.availableReplicas} available"
    )
