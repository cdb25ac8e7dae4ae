"""Status: what a StatefulSet says of its pods."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api import pods
from steersman.api.kinds.statefulsets import StatefulSet, StatefulSetStatus
from steersman.controllers.statefulset.identity import revision_of
from steersman.controllers.statefulset.revisions import Revisions
from steersman.controllers.statefulset.roster import Roster

_TELLING = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "currentReplicas",
    "updatedReplicas",
    "currentRevision",
    "updateRevision",
)


def new_status(roster: Roster, revisions: Revisions, dismissed: int = 0) -> StatefulSetStatus:
    """What the status should say. ``dismissed`` pods of the current revision were just asked to go."""
    set_, everybody = roster.set, roster.everybody
    ready = [pod for pod in everybody if pod.status.phase == "Running" and pods.is_ready(pod)]
    staying = [revision_of(pod) for pod in everybody if pod.metadata.deletionTimestamp is None]
    current, update = revisions.names
    status = replace(
        set_.status,
        observedGeneration=set_.metadata.generation,
        replicas=len(everybody),
        readyReplicas=len(ready),
        availableReplicas=sum(map(roster.is_available, ready)),
        currentReplicas=staying.count(current) - dismissed,
        updatedReplicas=staying.count(update),
        currentRevision=current,
        updateRevision=update,
        collisionCount=revisions.collisions,
        conditions=(),
    )
    return _completed(set_, status)


def _completed(set_: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """The status once all pods are updated: the revision that was to come is the current one."""
    done = status.updatedReplicas == status.readyReplicas == status.replicas == set_.spec.replicas
    if set_.spec.updateStrategy.type != "RollingUpdate" or not done:
        return status
    return replace(status, currentReplicas=status.updatedReplicas, currentRevision=status.updateRevision)


def is_news(set_: StatefulSet, status: StatefulSetStatus) -> bool:
    """Whether a status says something that the set's own does not: what upstream looks at, no more."""
    old = set_.status
    return status.observedGeneration > old.observedGeneration or any(
        getattr(status, name) != getattr(old, name) for name in _TELLING
    )
