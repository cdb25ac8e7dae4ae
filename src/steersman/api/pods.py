"""Pod states as workload controllers count them, and the order in which pods are deleted when scaling down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from steersman.api.kinds import Condition, Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation with a pod's deletion cost."""

# -- pod state --------------------------------------------------------------------------------


def _readiness(pod: Pod) -> Condition | None:
    """Return the Ready condition of a ready pod, or None."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition if condition.status == "True" else None
    return None


def is_ready(pod: Pod) -> bool:
    """Report whether the Ready condition is True."""
    return _readiness(pod) is not None


def ready_since(pod: Pod) -> datetime | None:
    """Return the time since which a pod has been ready; None if it is not ready or the time is unknown."""
    condition = _readiness(pod)
    return condition.lastTransitionTime if condition is not None else None


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Report whether a pod has been ready for at least ``min_ready_seconds``."""
    condition = _readiness(pod)
    if condition is None or min_ready_seconds == 0:
        return condition is not None
    since = condition.lastTransitionTime
    return since is not None and now - since >= timedelta(seconds=min_ready_seconds)


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Return the time until a ready pod becomes available, if nothing else changes.

    None if the pod is not ready, is available already, or does not say since when it has been ready.
    """
    since = ready_since(pod)
    if since is None or min_ready_seconds <= 0:
        return None
    wait = timedelta(seconds=min_ready_seconds) - (now - since)
    return wait if wait > timedelta() else None


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Return the time until the first of the pods becomes available; None if none will by waiting alone."""
    if min_ready_seconds <= 0:
        return None
    waits = (available_in(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait is not None), default=None)


def is_terminal(pod: Pod) -> bool:
    """Report whether the pod has succeeded or failed: its containers will not run again."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_terminated(pod: Pod) -> bool:
    """Report whether the pod's volumes are no longer in use: it is terminal, or is being deleted and no container runs."""
    if is_terminal(pod):
        return True
    status = pod.status
    return pod.metadata.deletionTimestamp is not None and not any(
        container.state.terminated is None and container.state.waiting is None
        for containers in (
            status.initContainerStatuses,
            status.containerStatuses,
            status.ephemeralContainerStatuses,
        )
        for container in containers
    )


def is_active(pod: Pod) -> bool:
    """Report whether the pod counts as a replica: neither terminal nor being deleted."""
    return pod.metadata.deletionTimestamp is None and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Report whether the pod is being deleted and may still run, as ``terminatingReplicas`` counts."""
    return pod.metadata.deletionTimestamp is not None and not is_terminal(pod)


class Restarts(NamedTuple):
    """The highest restart counts of a pod's containers."""

    regular: int
    sidecar: int


def restarts(pod: Pod) -> Restarts:
    """Return the highest restart count of any container and of any sidecar (restartable init container)."""
    sidecars = [c.name for c in pod.spec.initContainers if c.restartPolicy == "Always"]
    return Restarts(
        max((s.restartCount for s in pod.status.containerStatuses), default=0),
        max((s.restartCount for s in pod.status.initContainerStatuses if s.name in sidecars), default=0),
    )


_COST = re.compile(r"0|[1-9][0-9]{0,9}|-[0-9]{1,40}")


def deletion_cost(pod: Pod) -> int:
    """Return the pod's deletion cost; 0 without one, or if it is not a valid 32-bit integer."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


# -- order of deletion ------------------------------------------------------------------------

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def sort_for_deletion(
    pods: Sequence[Pod], ranks: Sequence[int], now: datetime, *, costs: bool = True
) -> list[Pod]:
    """Return the pods in the order in which they are deleted, as upstream's ActivePodsWithRanks.

    ``ranks`` is the number of related pods on each pod's node; ``costs`` enables the deletion cost.

    First are pods that are not assigned or not running, then those that are not ready, then those with the lowest
    deletion cost, then those with the highest rank; then those that have been ready for the shortest time, have the
    most restarts, and are youngest. Times are compared on a logarithmic scale, so that repeated scaling down does
    not always delete the newest; equal magnitudes are ordered by uid, which is random.
    """
    ranked = sorted(
        ((_deletion_key(pod, rank, now, costs), pod) for pod, rank in zip(pods, ranks, strict=True)),
        key=lambda pair: pair[0],
    )
    order: list[Pod] = []
    for _, group in groupby(ranked, key=lambda pair: pair[0]):
        order += _order_equals([pod for _, pod in group], now)
    return order


def _deletion_key(pod: Pod, rank: int, now: datetime, costs: bool) -> tuple[Any, ...]:
    ready = _readiness(pod)
    return (
        bool(pod.spec.nodeName),
        _PHASES.get(pod.status.phase, 0),
        ready is not None,
        deletion_cost(pod) if costs else 0,
        -rank,
        _magnitude(ready.lastTransitionTime, now) if ready is not None else 0,
    )


def _order_equals(pods: list[Pod], now: datetime) -> list[Pod]:
    """Return the order of pods that differ only in restarts and age.

    Upstream compares these for pods that became ready at the same instant, and only the uid for other pods of the
    same magnitude. That is not an order: the comparisons among three pods can contradict each other.
    """
    # differs: uids determine the places of pods that became ready at the same instant; restarts and age determine
    # which of these pods gets which place. Without contradictions this is upstream's order.
    pods.sort(key=_identity)
    by_instant: dict[datetime | None, list[int]] = {}
    for place, pod in enumerate(pods):
        by_instant.setdefault(ready_since(pod), []).append(place)
    order = list(pods)
    for places in by_instant.values():
        alike = sorted((pods[place] for place in places), key=lambda pod: _tie_breaker(pod, now))
        for place, pod in zip(places, alike, strict=True):
            order[place] = pod
    return order


def _tie_breaker(pod: Pod, now: datetime) -> tuple[Any, ...]:
    regular, sidecar = restarts(pod)
    return (-regular, -sidecar, _magnitude(pod.metadata.creationTimestamp, now), *_identity(pod))


def _identity(pod: Pod) -> tuple[str, str, str]:
    return (pod.metadata.uid, pod.metadata.namespace, pod.metadata.name)


def _magnitude(since: datetime | None, now: datetime) -> int:
    """Return the binary logarithm of an age in nanoseconds; without a time, a value below all others."""
    if since is None:
        return -2
    age = (now - since) // timedelta(microseconds=1) * 1000
    return age.bit_length() - 1 if age > 0 else -1
