"""What a DaemonSet's status says: on how many nodes it is as it should be."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from steersman.api.kinds.daemonsets import DaemonSet, DaemonSetStatus
from steersman.api.pods import available_in, is_available, is_ready
from steersman.controllers.daemonset.nodes import Station
from steersman.controllers.daemonset.template import generation_of, is_updated


def counted(daemonset: DaemonSet, stations: Iterable[Station], hash_: str, now: datetime) -> DaemonSetStatus:
    """The status. Of several pods on a node the first counts."""
    generation, wait = generation_of(daemonset), daemonset.spec.minReadySeconds
    desired = current = misscheduled = ready = updated = available = 0
    for station in stations:
        if not station.there:
            continue
        if not station.fit.runs:
            misscheduled += bool(station.pods)
            continue
        desired += 1
        if station.pods:
            pod = station.pods[0]
            current += 1
            if is_ready(pod):
                ready += 1
                available += is_available(pod, wait, now)
            updated += is_updated(pod, hash_, generation)
    return replace(
        daemonset.status,
        observedGeneration=daemonset.metadata.generation,
        desiredNumberScheduled=desired,
        currentNumberScheduled=current,
        numberMisscheduled=misscheduled,
        numberReady=ready,
        updatedNumberScheduled=updated,
        numberAvailable=available,
        numberUnavailable=desired - available,
    )


def next_available(daemonset: DaemonSet, stations: Iterable[Station], now: datetime) -> timedelta | None:
    """How long until a pod has been ready for long enough, if one is about to."""
    wait = daemonset.spec.minReadySeconds
    if wait <= 0:
        return None
    waits = (available_in(pod, wait, now) for station in stations for pod in station.pods)
    return min((left for left in waits if left is not None), default=None)
