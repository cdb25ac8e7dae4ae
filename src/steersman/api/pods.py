"""Pods as workload controllers count them, and which of them will be missed least."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from steersman.api.kinds import Condition, Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation that says how much a pod would be missed."""

# -- what state a pod is in -------------------------------------------------------------------


def _readiness(pod: Pod) -> Condition | None:
    """The condition that says the pod is ready, if it says so."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition if condition.status == "True" else None
    return None


def is_ready(pod: Pod) -> bool:
    """Whether the pod serves."""
    return _readiness(pod) is not None


def ready_since(pod: Pod) -> datetime | None:
    """Since when a ready pod has been ready; None also where its condition does not tell."""
    condition = _readiness(pod)
    return condition.lastTransitionTime if condition is not None else None


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether the pod has been ready for long enough. To the second is long enough."""
    condition = _readiness(pod)
    if condition is None or min_ready_seconds == 0:
        return condition is not None
    since = condition.lastTransitionTime
    return since is not None and now - since >= timedelta(seconds=min_ready_seconds)


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """How long until a ready pod becomes available, if all stays as it is.

    None if waiting alone changes nothing: it is not ready, it is available already, or its
    condition does not tell since when it has been ready.
    """
    since = ready_since(pod)
    if since is None or min_ready_seconds <= 0:
        return None
    wait = timedelta(seconds=min_ready_seconds) - (now - since)
    return wait if wait > timedelta() else None


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> timedelta | None:
    """How long until the first of the pods becomes available; None where waiting alone changes nothing."""
    if min_ready_seconds <= 0:
        return None
    waits = (available_in(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait is not None), default=None)


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has run its course: no container will ever run again."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether the pod counts as a replica."""
    return pod.metadata.deletionTimestamp is None and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is asked to go and still runs: what ``terminatingReplicas`` counts."""
    return pod.metadata.deletionTimestamp is not None and not is_terminal(pod)


class Restarts(NamedTuple):
    """How often a pod's most restarted container was restarted."""

    regular: int
    sidecar: int


def restarts(pod: Pod) -> Restarts:
    """The most restarts of any container, and of any sidecar: an init container that keeps running."""
    sidecars = [c.name for c in pod.spec.initContainers if c.restartPolicy == "Always"]
    return Restarts(
        max((s.restartCount for s in pod.status.containerStatuses), default=0),
        max((s.restartCount for s in pod.status.initContainerStatuses if s.name in sidecars), default=0),
    )


_COST = re.compile(r"0|[1-9][0-9]{0,9}|-[0-9]{1,40}")


def deletion_cost(pod: Pod) -> int:
    """The pod's deletion cost; 0 if it has none, or one that is not a plain 32-bit integer."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


# -- which pods to delete first ---------------------------------------------------------------

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def sort_for_deletion(
    pods: Sequence[Pod], ranks: Sequence[int], now: datetime, *, costs: bool = True
) -> list[Pod]:
    """The pods in the order in which they should go. ``ranks`` counts each pod's company on its node; ``costs``:
    whether it counts what they would cost.

    First go pods that do not run yet, then those that are not ready, then what costs least, then
    where most are together; then those that serve for the shortest time, restart most, and are
    youngest. Times are compared by their order of magnitude, so that scaling down again and again
    does not always take the newest; within a magnitude it is up to the uid, which is random.
    """
    standing = sorted(
        ((_standing(pod, rank, now, costs), pod) for pod, rank in zip(pods, ranks, strict=True)),
        key=lambda pair: pair[0],
    )
    order: list[Pod] = []
    for _, group in groupby(standing, key=lambda pair: pair[0]):
        order += _among_equals([pod for _, pod in group], now)
    return order


def _standing(pod: Pod, rank: int, now: datetime, costs: bool) -> tuple[Any, ...]:
    ready = _readiness(pod)
    return (
        bool(pod.spec.nodeName),
        _PHASES.get(pod.status.phase, 0),
        ready is not None,
        deletion_cost(pod) if costs else 0,
        -rank,
        _magnitude(ready.lastTransitionTime, now) if ready is not None else 0,
    )


def _among_equals(pods: list[Pod], now: datetime) -> list[Pod]:
    """The order of pods between which only restarts and creation decide.

    Upstream lets these decide between pods that are ready since the same instant, and only the uid
    between the others of the same magnitude, which is not an order: the three comparisons among
    three pods can contradict each other.
    """
    # differs: uids say which places go to pods of the same instant, the rest who of them gets which
    # place. Without contradictions that is upstream's order, and it is always one.
    pods.sort(key=_identity)
    by_instant: dict[datetime | None, list[int]] = {}
    for place, pod in enumerate(pods):
        by_instant.setdefault(ready_since(pod), []).append(place)
    order = list(pods)
    for places in by_instant.values():
        alike = sorted((pods[place] for place in places), key=lambda pod: _last_resort(pod, now))
        for place, pod in zip(places, alike, strict=True):
            order[place] = pod
    return order


def _last_resort(pod: Pod, now: datetime) -> tuple[Any, ...]:
    regular, sidecar = restarts(pod)
    return (-regular, -sidecar, _magnitude(pod.metadata.creationTimestamp, now), *_identity(pod))


def _identity(pod: Pod) -> tuple[str, str, str]:
    return (pod.metadata.uid, pod.metadata.namespace, pod.metadata.name)


def _magnitude(since: datetime | None, now: datetime) -> int:
    """The binary logarithm of an age in nanoseconds; what has no age comes before what is young."""
    if since is None:
        return -2
    age = (now - since) // timedelta(microseconds=1) * 1000
    return age.bit_length() - 1 if age > 0 else -1
