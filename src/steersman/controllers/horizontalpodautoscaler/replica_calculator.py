"""Replica calculator: turns metrics into a number of replicas, as upstream's replica_calculator.go.

Pods without a metric, and pods that are not ready, never help a change along: when scaling up they count as
using nothing, when scaling down as using the target (or all they request). Metric values are in thousandths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.kinds import Container, InitContainer, Pod
from steersman.api.pods import is_ready
from steersman.api.quantity import Quantity
from steersman.api.quota.compute import pod_total, with_overhead

MAX_REPLICAS = 2**31 - 1
MAX_USAGE = 2**63 - 1
ZERO_TIME = datetime.min.replace(tzinfo=UTC)
"""Go's zero time: when a missing time counts as."""


class MetricError(Exception):
    """A metric cannot be read, or gives no number of replicas. The message is upstream's."""


class PodMetric(msgspec.Struct, frozen=True):
    """The value of a metric for one pod, in thousandths."""

    value: int
    timestamp: datetime | None = None
    window: timedelta = timedelta(minutes=1)


PodMetrics: TypeAlias = Mapping[str, PodMetric]
"""By the name of the pod."""


class Tolerance(msgspec.Struct, frozen=True):
    """The ratios of usage to target that change nothing."""

    scale_down: float
    scale_up: float

    def __contains__(self, ratio: float) -> bool:
        return 1.0 - self.scale_down <= ratio <= 1.0 + self.scale_up


class PodGroups(msgspec.Struct, frozen=True):
    """The pods of a target, by how their metrics count."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    """Pods without a metric."""
    ignored: frozenset[str]
    """Pods that are failed or being deleted."""


class ReplicaCalculator(msgspec.Struct, frozen=True):
    """Computes the replicas of one target at one instant. Raises `MetricError`."""

    pods: tuple[Pod, ...]
    replicas: int
    """``spec.replicas`` of the scale."""
    tolerance: Tolerance
    now: datetime
    cpu_initialization_period: timedelta
    initial_readiness_delay: timedelta
    pod_level_resources: bool = True
    """Whether the requests of a pod as a whole count before those of its containers."""

    def by_utilization(
        self, metrics: PodMetrics, target: int, resource: str, container: str = ""
    ) -> tuple[int, int, int]:
        """Replicas for a target in percent of requests; also the utilization and the average value."""
        groups, counted = self._group(metrics, resource)
        requests = pod_requests(self.pods, container, resource, pod_level=self.pod_level_resources)
        ratio, percent, average = utilization_ratio(counted, requests, target)
        fallback = max(100, target)

        def recompute(filled: PodMetrics) -> float:
            return utilization_ratio(filled, requests, target)[0]

        def assume(name: str) -> int:
            return requests[name] * fallback // 100

        return self._propose(ratio, groups, counted, recompute, assume), percent, average

    def by_average(self, metrics: PodMetrics, target: int, resource: str = "") -> tuple[int, int]:
        """Replicas for a target that is an average over the pods; also the average value."""
        groups, counted = self._group(metrics, resource)
        ratio, average = usage_ratio(counted, target)

        def recompute(filled: PodMetrics) -> float:
            return usage_ratio(filled, target)[0]

        return self._propose(ratio, groups, counted, recompute, lambda name: target), average

    def by_ratio(self, ratio: float) -> int:
        """Replicas for a single value, given as the ratio of usage to target."""
        if not self.replicas:
            return min(MAX_REPLICAS, math.ceil(ratio))
        if ratio in self.tolerance:
            return self.replicas
        if not self.pods:
            why = "no pods returned by selector while calculating replica count"
            raise MetricError(f"unable to calculate ready pods: {why}")
        ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in self.pods)
        return min(MAX_REPLICAS, math.ceil(ratio * ready))

    def per_pod(self, status_replicas: int, usage: int, target: int) -> tuple[int, int]:
        """Replicas for a single value that is divided among the pods; also the value per pod."""
        ratio = usage / (target * status_replicas) if status_replicas else math.inf
        proposed = (
            status_replicas if ratio in self.tolerance else min(MAX_REPLICAS, math.ceil(usage / target))
        )
        if float(usage) >= float(MAX_USAGE):
            # As upstream, an overflow is shown as such and not divided.
            return proposed, MAX_USAGE
        return proposed, math.ceil(usage / status_replicas) if status_replicas else usage

    def _group(self, metrics: PodMetrics, resource: str) -> tuple[PodGroups, dict[str, PodMetric]]:
        """Groups the pods; also the metrics of those that count."""
        if not self.pods:
            raise MetricError("no pods returned by selector while calculating replica count")
        groups = group_pods(
            self.pods,
            metrics,
            resource,
            self.now,
            self.cpu_initialization_period,
            self.initial_readiness_delay,
        )
        excluded = groups.ignored | groups.unready
        counted = {name: metric for name, metric in metrics.items() if name not in excluded}
        if not counted:
            raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
        return groups, counted

    def _propose(
        self,
        ratio: float,
        groups: PodGroups,
        counted: Mapping[str, PodMetric],
        recompute: Callable[[PodMetrics], float],
        assume: Callable[[str], int],
    ) -> int:
        """Replicas for a ratio, with missing and unready pods counted against a change.

        ``assume`` is the value of a missing pod when scaling down; ``recompute`` is the ratio with all of them.
        """
        scale_up_with_unready = bool(groups.unready) and ratio > 1.0
        if not scale_up_with_unready and not groups.missing:
            return self.replicas if ratio in self.tolerance else math.ceil(ratio * groups.ready)
        filled = dict(counted)
        for name in sorted(groups.missing):
            if ratio < 1.0:
                filled[name] = PodMetric(assume(name))
            elif ratio > 1.0:
                filled[name] = PodMetric(0)
        if scale_up_with_unready:
            filled |= {name: PodMetric(0) for name in sorted(groups.unready)}
        adjusted = recompute(filled)
        if adjusted in self.tolerance or (ratio < 1.0 < adjusted) or (adjusted < 1.0 < ratio):
            return self.replicas
        replicas = math.ceil(adjusted * len(filled))
        opposite = (adjusted < 1.0 and replicas > self.replicas) or (
            adjusted > 1.0 and replicas < self.replicas
        )
        return self.replicas if opposite else replicas


def group_pods(
    pods: Iterable[Pod],
    metrics: PodMetrics,
    resource: str,
    now: datetime,
    cpu_initialization_period: timedelta,
    initial_readiness_delay: timedelta,
) -> PodGroups:
    """Groups pods by how their metrics count."""

    def is_initializing(pod: Pod, metric: PodMetric) -> bool:
        """Whether the CPU usage of a pod may still be that of its start."""
        condition, started = find_condition(pod.status.conditions, "Ready"), pod.status.startTime
        if condition is None or started is None:
            return True
        since = condition.lastTransitionTime or ZERO_TIME
        # Differences, not sums: a sum may lie beyond the year 9999, which Python's datetime cannot hold.
        if now - started < cpu_initialization_period:
            early = (metric.timestamp or ZERO_TIME) - since < metric.window
            return condition.status == "False" or early
        return condition.status == "False" and since - started < initial_readiness_delay

    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletionTimestamp is not None or pod.status.phase == "Failed":
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif name not in metrics:
            missing.add(name)
        elif resource == "cpu" and is_initializing(pod, metrics[name]):
            unready.add(name)
        else:
            ready += 1
    return PodGroups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def pod_requests(
    pods: Iterable[Pod], container: str, resource: str, *, pod_level: bool = True
) -> dict[str, int]:
    """The request of each pod, or of one container of it, in thousandths. Raises `MetricError` where one has none."""
    return {pod.metadata.name: _pod_request(pod, container, resource, pod_level) for pod in pods}


def _pod_request(pod: Pod, container: str, resource: str, pod_level: bool) -> int:
    spec, name = pod.spec, pod.metadata.name
    if pod_level and not container and spec.resources is not None and spec.resources.requests:
        requests = with_overhead(spec, pod_total(spec, "requests"), "requests")
        if resource not in requests:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return requests[resource].milli()
    request = 0
    sidecars = tuple(one for one in spec.initContainers if one.restartPolicy == "Always")
    containers: tuple[Container | InitContainer, ...] = (*spec.containers, *sidecars)
    for one in containers:
        if container in ("", one.name):
            quantity = one.resources.requests.get(resource)
            if quantity is None:
                raise MetricError(f"missing request for {resource} in container {one.name} of Pod {name}")
            request += Quantity.parse(quantity).milli()
        if container == one.name:
            return request
    if container:
        raise MetricError(f"container {container} not found in Pod {name}")
    return request


def utilization_ratio(
    metrics: PodMetrics, requests: Mapping[str, int], target: int
) -> tuple[float, int, int]:
    """The ratio of utilization to target, the utilization in percent of requests, and the average value."""
    both = [name for name in metrics if name in requests]
    requested = sum(requests[name] for name in both)
    used = sum(metrics[name].value for name in both)
    if not requested:
        raise MetricError("no metrics returned matched known pods")
    current = _divide(used * 100, requested)
    return current / target, current, _divide(used, len(both))


def usage_ratio(metrics: PodMetrics, target: int) -> tuple[float, int]:
    """The ratio of the average value to target, and the average value."""
    average = _divide(sum(metric.value for metric in metrics.values()), len(metrics))
    return average / target, average


def _divide(dividend: int, divisor: int) -> int:
    """The quotient, truncated towards zero as Go's."""
    quotient = abs(dividend) // divisor
    return -quotient if dividend < 0 else quotient
