"""Status and metrics of a StatefulSet."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api import pods
from steersman.api.kinds.statefulsets import StatefulSet, StatefulSetStatus
from steersman.controllers.statefulset.history import Revisions
from steersman.controllers.statefulset.identity import revision_of
from steersman.controllers.statefulset.order import PodsByOrdinal, max_unavailable
from steersman.intent.metrics import Measure, Metric

_LABELS = ("statefulset_namespace", "statefulset_name", "pod_management_policy")
MAX_UNAVAILABLE = Metric(
    "statefulset_controller_statefulset_max_unavailable",
    "The most pods of a StatefulSet that may be unavailable during an update",
    _LABELS,
    gauge=True,
)
UNAVAILABLE = Metric(
    "statefulset_controller_statefulset_unavailable_replicas",
    "The pods of a StatefulSet that are missing or unavailable",
    _LABELS,
    gauge=True,
)
METRICS = (MAX_UNAVAILABLE, UNAVAILABLE)


def new_status(by_ordinal: PodsByOrdinal, revisions: Revisions, updating: int = 0) -> StatefulSetStatus:
    """The status. ``updating`` pods of the current revision were deleted in this round."""
    set_, everything = by_ordinal.set, by_ordinal.all
    ready = [pod for pod in everything if pod.status.phase == "Running" and pods.is_ready(pod)]
    not_deleted = [revision_of(pod) for pod in everything if pod.metadata.deletionTimestamp is None]
    current, update = revisions.names
    status = replace(
        set_.status,
        observedGeneration=set_.metadata.generation,
        replicas=len(everything),
        readyReplicas=len(ready),
        availableReplicas=sum(map(by_ordinal.is_available, ready)),
        currentReplicas=not_deleted.count(current) - updating,
        updatedReplicas=not_deleted.count(update),
        currentRevision=current,
        updateRevision=update,
        collisionCount=revisions.collisions,
        conditions=(),
    )
    return _complete_rolling_update(set_, status)


def _complete_rolling_update(set_: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """The status with the update revision as the current one, once all pods are updated and ready."""
    done = status.updatedReplicas == status.readyReplicas == status.replicas == set_.spec.replicas
    if set_.spec.updateStrategy.type != "RollingUpdate" or not done:
        return status
    return replace(status, currentReplicas=status.updatedReplicas, currentRevision=status.updateRevision)


def is_inconsistent(set_: StatefulSet, status: StatefulSetStatus) -> bool:
    """Whether a status has to be written: by the fields that upstream compares, and no others."""
    old = set_.status
    return status.observedGeneration > old.observedGeneration or _compared(status) != _compared(old)


def _compared(status: StatefulSetStatus) -> tuple[object, ...]:
    return (
        status.replicas,
        status.readyReplicas,
        status.availableReplicas,
        status.currentReplicas,
        status.updatedReplicas,
        status.currentRevision,
        status.updateRevision,
    )


async def measure(by_ordinal: PodsByOrdinal) -> None:
    """Updates the metrics of unavailable pods."""
    metadata = by_ordinal.set.metadata
    labels = (metadata.namespace, metadata.name, by_ordinal.set.spec.podManagementPolicy)
    await Measure(MAX_UNAVAILABLE, max_unavailable(by_ordinal.set), labels)
    # differs: upstream only counts when it is about to update, so the gauge is outdated while pods are missing.
    await Measure(UNAVAILABLE, by_ordinal.unavailable, labels)
