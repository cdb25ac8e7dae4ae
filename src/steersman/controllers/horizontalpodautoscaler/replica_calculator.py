"""How many replicas a metric asks for.

Pods that say nothing, or are too young to say anything that counts, are taken to speak against a change: for
nothing used where there would be more, for just the target (or all they asked for) where there would be fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from steersman.api.conditions import find
from steersman.api.kinds import Container, InitContainer, Pod
from steersman.api.pods import is_ready
from steersman.api.quantity import Quantity
from steersman.api.quota.compute import total, with_overhead

MOST = 2**31 - 1


class Unmeasured(Exception):
    """Nobody can tell how many there should be."""


class Reading(msgspec.Struct, frozen=True):
    """What one pod used, in thousandths."""

    value: int
    at: datetime | None = None
    window: timedelta = timedelta(minutes=1)


class Tolerance(msgspec.Struct, frozen=True):
    """How far off the target is near enough."""

    down: float
    up: float

    def __contains__(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Tuning(msgspec.Struct, frozen=True):
    """When the first words of a pod count, and whether its own requests do."""

    initialization: timedelta
    readiness: timedelta
    pod_level: bool = True
    """Where a pod asks for something as a whole, that counts, and not what its containers ask for."""


class Groups(msgspec.Struct, frozen=True):
    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def grouped(
    pods: Iterable[Pod], readings: Mapping[str, Reading], resource: str, now: datetime, tuning: Tuning
) -> Groups:
    """Which pods count, and how."""
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletionTimestamp is not None or pod.status.phase == "Failed":
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif name not in readings:
            missing.add(name)
        elif resource == "cpu" and _too_young(pod, readings[name], now, tuning):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _too_young(pod: Pod, reading: Reading, now: datetime, tuning: Tuning) -> bool:
    """Whether a pod's CPU is still that of starting up."""
    condition, started = find(pod.status.conditions, "Ready"), pod.status.startTime
    if condition is None or started is None:
        return True
    since = condition.lastTransitionTime or started
    if started + tuning.initialization > now:
        early = reading.at is not None and reading.at < since + reading.window
        return condition.status == "False" or early
    return condition.status == "False" and started + tuning.readiness > since


def requested(
    pods: Iterable[Pod], container: str, resource: str, *, pod_level: bool = True
) -> dict[str, int]:
    """What each pod asked for, in thousandths. Raises `Unmeasured` where one does not say."""
    return {pod.metadata.name: _request(pod, container, resource, pod_level) for pod in pods}


def _request(pod: Pod, container: str, resource: str, pod_level: bool) -> int:
    spec, name = pod.spec, pod.metadata.name
    if pod_level and not container and spec.resources is not None and spec.resources.requests:
        amounts = with_overhead(spec, total(spec, "requests"), "requests")
        if resource not in amounts:
            raise Unmeasured(f"missing pod-level request for {resource} in Pod {name}")
        return amounts[resource].milli()
    asked = 0
    sidecars = tuple(one for one in spec.initContainers if one.restartPolicy == "Always")
    containers: tuple[Container | InitContainer, ...] = (*spec.containers, *sidecars)
    for one in containers:
        if container in ("", one.name):
            amount = one.resources.requests.get(resource)
            if amount is None:
                raise Unmeasured(f"missing request for {resource} in container {one.name} of Pod {name}")
            asked += Quantity.parse(amount).milli()
        if container == one.name:
            return asked
    if container:
        raise Unmeasured(f"container {container} not found in Pod {name}")
    return asked


# -- ratios ---------------------------------------------------------------------------------------


def utilization(
    readings: Mapping[str, Reading], requests: Mapping[str, int], target: int
) -> tuple[float, int, int]:
    """Use over target, use in per cent of what was asked for, and use on average."""
    both = [name for name in readings if name in requests]
    asked = sum(requests[name] for name in both)
    used = sum(readings[name].value for name in both)
    if not asked:
        raise Unmeasured("no metrics returned matched known pods")
    current = used * 100 // asked
    return current / target, current, used // len(both)


def average(readings: Mapping[str, Reading], target: int) -> tuple[float, int]:
    """Use over target, and use on average."""
    used = sum(reading.value for reading in readings.values()) // len(readings)
    return used / target, used


def by_utilization(
    current: int,
    target: int,
    pods: tuple[Pod, ...],
    readings: Mapping[str, Reading],
    container: str,
    resource: str,
    tolerance: Tolerance,
    now: datetime,
    tuning: Tuning,
) -> tuple[int, int, int]:
    """Replicas for a target in per cent of requests; also the per cent and the average."""
    groups, counted = _counted(pods, readings, resource, now, tuning)
    requests = requested(pods, container, resource, pod_level=tuning.pod_level)
    ratio, percent, raw = utilization(counted, requests, target)
    fallback = max(100, target)

    def again(filled: Mapping[str, Reading]) -> float:
        return utilization(filled, requests, target)[0]

    def absent(name: str) -> int:
        return requests[name] * fallback // 100

    return _proposed(current, ratio, groups, counted, tolerance, again, absent), percent, raw


def by_average(
    current: int,
    target: int,
    pods: tuple[Pod, ...],
    readings: Mapping[str, Reading],
    resource: str,
    tolerance: Tolerance,
    now: datetime,
    tuning: Tuning,
) -> tuple[int, int]:
    """Replicas for a target on average; also the average."""
    groups, counted = _counted(pods, readings, resource, now, tuning)
    ratio, used = average(counted, target)

    def again(filled: Mapping[str, Reading]) -> float:
        return average(filled, target)[0]

    return _proposed(current, ratio, groups, counted, tolerance, again, lambda name: target), used


def _counted(
    pods: tuple[Pod, ...], readings: Mapping[str, Reading], resource: str, now: datetime, tuning: Tuning
) -> tuple[Groups, dict[str, Reading]]:
    if not pods:
        raise Unmeasured("no pods returned by selector while calculating replica count")
    groups = grouped(pods, readings, resource, now, tuning)
    left_out = groups.ignored | groups.unready
    counted = {name: reading for name, reading in readings.items() if name not in left_out}
    if not counted:
        raise Unmeasured("did not receive metrics for targeted pods (pods might be unready)")
    return groups, counted


def _proposed(
    current: int,
    ratio: float,
    groups: Groups,
    counted: dict[str, Reading],
    tolerance: Tolerance,
    again: Callable[[Mapping[str, Reading]], float],
    absent: Callable[[str], int],
) -> int:
    """Replicas for a ratio, with those that are missing or unready counted against a change."""
    more_with_unready = bool(groups.unready) and ratio > 1.0
    if not more_with_unready and not groups.missing:
        return current if ratio in tolerance else math.ceil(ratio * groups.ready)
    filled = dict(counted)
    for name in sorted(groups.missing):
        if ratio < 1.0:
            filled[name] = Reading(absent(name))
        elif ratio > 1.0:
            filled[name] = Reading(0)
    if more_with_unready:
        filled |= {name: Reading(0) for name in sorted(groups.unready)}
    then = again(filled)
    if then in tolerance or (ratio < 1.0 < then) or (then < 1.0 < ratio):
        return current
    replicas = math.ceil(then * len(filled))
    backwards = (then < 1.0 and replicas > current) or (then > 1.0 and replicas < current)
    return current if backwards else replicas


def by_ratio(current: int, ratio: float, pods: tuple[Pod, ...], tolerance: Tolerance) -> int:
    """Replicas for one value that stands for all pods."""
    if not current:
        return min(MOST, math.ceil(ratio))
    if ratio in tolerance:
        return current
    if not pods:
        why = "no pods returned by selector while calculating replica count"
        raise Unmeasured(f"unable to calculate ready pods: {why}")
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)
    return min(MOST, math.ceil(ratio * ready))


def per_pod(replicas: int, used: int, target: int, tolerance: Tolerance) -> tuple[int, int]:
    """Replicas for one value that is shared by all pods; also each one's share."""
    shared = used / (target * replicas) if replicas else math.inf
    proposed = replicas if shared in tolerance else min(MOST, math.ceil(used / target))
    return proposed, math.ceil(used / replicas) if replicas else used
