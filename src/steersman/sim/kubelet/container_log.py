"""Logs of simulated containers: from an annotation of the pod, or what happened to the container. Pure functions.

The errors and the form of lines are those of kubelet 1.36. The annotation, with the prefix ``sim.steersman.dev/``, is about all containers of a
pod, or about one (``log.main``):

=======  ============================================================
``log``  what its containers have written, in lines, when they started
=======  ============================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from steersman.api.errors import BadRequest
from steersman.api.generated import core_v1 as v1
from steersman.server.kubelet_api import LogOptions
from steersman.sim.kubelet.behaviour import PREFIX

LOG = PREFIX + "log"
_UNPULLED = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogLine(msgspec.Struct, frozen=True):
    """A line of a log, without its end."""

    at: datetime
    text: str


class ContainerInstance(msgspec.Struct, frozen=True):
    """One run of a container, of which there is a log."""

    image: str
    started: datetime | None
    ended: v1.ContainerStateTerminated | None = None
    number: int = 0
    """How often it was restarted before."""


def container_spec(pod: v1.Pod, container: str) -> v1.Container | v1.EphemeralContainer | None:
    """The spec of a container, of whichever sort."""
    spec = pod.spec
    every: list[v1.Container | v1.EphemeralContainer] = [*spec.containers, *spec.initContainers]
    every += spec.ephemeralContainers
    return next((each for each in every if each.name == container), None)


def container_status(pod: v1.Pod, container: str) -> v1.ContainerStatus | None:
    """The status of a container, of whichever sort."""
    status = pod.status
    every = (
        *status.containerStatuses,
        *status.initContainerStatuses,
        *status.ephemeralContainerStatuses,
    )
    return next((each for each in every if each.name == container), None)


def instance(pod: v1.Pod, container: str, *, previous: bool) -> ContainerInstance:
    """The run of a container whose log is asked for: the current one, or the one before. Raises `BadRequest`."""
    where = f'container "{container}" in pod "{pod.metadata.name}"'
    status = container_status(pod, container)
    if status is None:
        raise _refused(f"{where} is not available")
    state, last, count = status.state, status.lastState.terminated, status.restartCount
    if previous:
        if last is None or not last.containerID:
            raise _refused(f"previous terminated {where} not found")
        return _ended(status, last, count - 1)
    if state.running is not None:
        return ContainerInstance(status.image, state.running.startedAt, None, count)
    ended = state.terminated
    if ended is not None and ended.containerID:
        return _ended(status, ended, count)
    if last is not None and last.containerID:
        return _ended(status, last, count)
    if ended is not None or last is not None:
        raise _refused(f"{where} is terminated")
    reason = state.waiting.reason if state.waiting is not None else ""
    if not reason:
        raise _refused(f"{where} is waiting to start - no logs yet")
    raise _refused(f"{where} is waiting to start: {_UNPULLED.get(reason, reason)}")


def _ended(status: v1.ContainerStatus, ended: v1.ContainerStateTerminated, number: int) -> ContainerInstance:
    return ContainerInstance(status.image, ended.startedAt, ended, max(number, 0))


def _refused(message: str) -> BadRequest:
    return BadRequest(message, reason="BadRequest")


def log_lines(pod: v1.Pod, container: str, run: ContainerInstance) -> list[LogLine]:
    """The log of one run of a container."""
    started = run.started or pod.metadata.creationTimestamp or datetime.fromtimestamp(0, UTC)
    notes = pod.metadata.annotations
    written = notes.get(f"{LOG}.{container}", notes.get(LOG))
    if written is not None:
        return [LogLine(started, text) for text in written.splitlines()]
    again = f" (restart {run.number})" if run.number else ""
    lines = [LogLine(started, f"started container {container} with image {run.image}{again}")]
    if run.ended is not None:
        text = f"container {container} exited with code {run.ended.exitCode}"
        lines.append(LogLine(run.ended.finishedAt or started, text))
    return lines


def selected(lines: Iterable[LogLine], options: LogOptions) -> Iterator[bytes]:
    """The lines that are asked for, as kubelets send them. The limit of bytes is not applied."""
    found = list(lines)
    if options.tail is not None:
        found = found[max(len(found) - options.tail, 0) :]
    for line in found:
        if options.since is None or line.at >= options.since:
            yield written_line(line, options.timestamps)


def written_line(line: LogLine, timestamps: bool) -> bytes:
    """A line with its end, and with its time where that is asked for."""
    prefix = (
        f"{line.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{line.at.microsecond:06d}000Z " if timestamps else ""
    )
    return f"{prefix}{line.text}\n".encode("utf-8", "replace")


class Limit:
    """Cuts a log off after so many bytes."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def take(self, data: bytes) -> bytes:
        """As much of the data as is left."""
        if self._left is None:
            return data
        data = data[: self._left]
        self._left -= len(data)
        return data

    @property
    def reached(self) -> bool:
        return self._left is not None and self._left <= 0
