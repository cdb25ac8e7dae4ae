"""The trigger time of endpoints: when the change happened that made a controller write Endpoints or EndpointSlices.

It is written as the annotation `LAST_CHANGE_TRIGGER_TIME`, from which kube-proxy measures how long a change takes to
reach the nodes; upstream's TriggerTimeTracker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.kinds import Pod
from steersman.api.kinds.services import Service
from steersman.api.scheme import Key

LAST_CHANGE_TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"


class ObservedTimes(msgspec.Struct, frozen=True):
    """The trigger times of a Service and its pods at one instant."""

    service: datetime | None
    pods: Mapping[str, datetime]
    """Pod name -> the last transition of its Ready condition."""


def observed_times(service: Service, pods: Iterable[Pod]) -> ObservedTimes:
    """The trigger times of a Service and the pods it selects."""
    times: dict[str, datetime] = {}
    for pod in pods:
        ready = find_condition(pod.status.conditions, "Ready")
        if ready is not None and ready.lastTransitionTime is not None:
            times[pod.metadata.name] = ready.lastTransitionTime
    return ObservedTimes(service.metadata.creationTimestamp, times)


def trigger_time(before: ObservedTimes | None, now: ObservedTimes) -> datetime | None:
    """The earliest of the times that changed since the last sync; None where none has changed.

    Before the first sync of a Service it is the Service's creation.
    """
    if before is None:
        return now.service
    changed = [time for name, time in now.pods.items() if name not in before.pods or time > before.pods[name]]
    if now.service is not None and (before.service is None or now.service > before.service):
        changed.append(now.service)
    return min(changed, default=None)


class TriggerTimes:
    """The trigger times of the last sync of each Service, for a controller's memory."""

    def __init__(self) -> None:
        self._observed: dict[Key, ObservedTimes] = {}

    def get(self, key: Key) -> ObservedTimes | None:
        """The times at the last sync of a Service; None before the first."""
        return self._observed.get(key)

    def record(self, key: Key, observed: ObservedTimes) -> None:
        """Records that a Service was synced with these times."""
        self._observed[key] = observed

    def forget(self, key: Key) -> None:
        """Drops a Service that is gone."""
        self._observed.pop(key, None)

    def __len__(self) -> int:
        return len(self._observed)


def with_trigger_time(annotations: Mapping[str, str], time: datetime | None) -> Mapping[str, str]:
    """The annotations with this trigger time, or without one."""
    if time is not None:
        return {**annotations, LAST_CHANGE_TRIGGER_TIME: rfc3339_nano(time)}
    if LAST_CHANGE_TRIGGER_TIME not in annotations:
        return annotations
    return {key: value for key, value in annotations.items() if key != LAST_CHANGE_TRIGGER_TIME}


def rfc3339_nano(time: datetime) -> str:
    """A time as Go's time.RFC3339Nano writes it, in UTC: without trailing zeros of the fraction."""
    utc = time.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{utc:%Y-%m-%dT%H:%M:%S}{fraction}Z"
