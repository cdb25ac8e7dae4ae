"""Whether workloads have come to rest, judged by the API alone: no manager's inside is looked at."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.kinds import Deployment, ReplicaSet, ReplicationController


def replicas_settled(found: ReplicaSet | ReplicationController) -> bool:
    """Whether a set has all its pods, available, and says so."""
    status, wanted = found.status, found.spec.replicas
    counts = (status.replicas, status.fullyLabeledReplicas, status.readyReplicas, status.availableReplicas)
    return (
        status.observedGeneration >= found.metadata.generation
        and all(count == wanted for count in counts)
        # A ReplicationController does not say how many of its pods are leaving.
        and not (isinstance(found, ReplicaSet) and found.status.terminatingReplicas)
    )


def deployment_settled(found: Deployment, sets: Iterable[ReplicaSet], generation: int = 0) -> bool:
    """Whether a Deployment, in this generation at least, has been rolled out and says so.

    ``sets`` are all that it owns: the old ones must be empty.
    """
    status, wanted = found.status, found.spec.replicas
    counts = (status.replicas, status.updatedReplicas, status.readyReplicas, status.availableReplicas)
    return (
        status.observedGeneration >= found.metadata.generation >= generation
        and all(count == wanted for count in counts)
        and not status.unavailableReplicas
        and not status.terminatingReplicas
        and any(c.type == "Progressing" and c.reason == "NewReplicaSetAvailable" for c in status.conditions)
        and _agree(sets, wanted)
    )


def _agree(sets: Iterable[ReplicaSet], wanted: int | None) -> bool:
    total = 0
    for owned in sets:
        if not replicas_settled(owned):
            return False
        total += owned.status.replicas
    return total == wanted
