"""What is counted about StatefulSets that may have several pods updated at once, under upstream's names."""

from __future__ import annotations

from steersman.controllers.statefulset.order import may_miss
from steersman.controllers.statefulset.roster import Roster
from steersman.intent.metrics import Measure, Metric

_SET = ("statefulset_namespace", "statefulset_name", "pod_management_policy")
MAX_UNAVAILABLE = Metric(
    "statefulset_controller_statefulset_max_unavailable",
    "How many pods of a StatefulSet may be unavailable while it is updated",
    _SET,
    gauge=True,
)
UNAVAILABLE = Metric(
    "statefulset_controller_statefulset_unavailable_replicas",
    "How many pods of a StatefulSet are missing or unavailable",
    _SET,
    gauge=True,
)
METRICS = (MAX_UNAVAILABLE, UNAVAILABLE)


async def measure(roster: Roster) -> None:
    """Say how many pods are unavailable, and how many may be."""
    metadata = roster.set.metadata
    labels = (metadata.namespace, metadata.name, roster.set.spec.podManagementPolicy)
    await Measure(MAX_UNAVAILABLE, may_miss(roster.set), labels)
    # differs: upstream counts only when it is about to update, so the figure stays behind while pods are missing.
    await Measure(UNAVAILABLE, roster.unavailable, labels)
