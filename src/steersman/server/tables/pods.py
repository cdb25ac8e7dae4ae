"""Pods: what one word says about a pod, and how often it was restarted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from steersman.server.tables import cells
from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Condition, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import (
        ContainerStateTerminated,
        ContainerStatus,
        Pod,
        PodTemplate,
    )

_COMPLETED = {
    "Succeeded": Condition("Completed", "True", "Succeeded", "The pod has completed successfully."),
    "Failed": Condition("Completed", "True", "Failed", "The pod failed."),
}
_NODE_LOST = "NodeLost"
"""The reason of a pod's status when its node does not answer."""


class _Sight(NamedTuple):
    """What the containers of a pod tell together."""

    reason: str
    ready: int
    restarted: tuple[ContainerStatus, ...]
    """Those whose restarts count."""


def pod(pod: Pod, now: datetime) -> tuple[Cell, ...]:
    """The cells of a pod."""
    sight = _sight(pod)
    total = len(pod.spec.containers) + len(_sidecars(pod))
    return (
        pod.metadata.name,
        f"{sight.ready}/{total}",
        _status(pod, sight.reason),
        _restarts(sight.restarted, now),
        since(pod.metadata.creationTimestamp, now),
        next((each.ip for each in pod.status.podIPs[:1]), "") or "<none>",
        pod.spec.nodeName or "<none>",
        pod.status.nominatedNodeName or "<none>",
        _gates(pod),
    )


def _completed(pod: Pod) -> tuple[Condition, ...]:
    condition = _COMPLETED.get(pod.status.phase)
    return (condition,) if condition else ()


def _status(pod: Pod, reason: str) -> str:
    if pod.metadata.deletionTimestamp is not None:
        if pod.status.reason == _NODE_LOST:
            return "Unknown"
        if pod.status.phase not in _COMPLETED:
            return "Terminating"
    return reason


def _sight(pod: Pod) -> _Sight:
    status, sidecars = pod.status, _sidecars(pod)
    reason = status.reason or status.phase
    if any(each.type == "PodScheduled" and each.reason == "SchedulingGated" for each in status.conditions):
        reason = "SchedulingGated"
    held_up, passed = _initialization(pod, sidecars)
    inner = tuple(each for each in passed if each.name in sidecars)
    ready = sum(each.ready for each in inner if each.started and not _succeeded(each))
    if held_up and not _is(pod, "Initialized"):
        return _Sight(held_up, ready, passed)
    running = [each for each in status.containerStatuses if _serves(each)]
    told = [word for each in status.containerStatuses if (word := _word(each))]
    reason = told[0] if told else held_up or reason
    if reason == "Completed":
        reason = _mixed(pod, bool(running)) or reason
    return _Sight(reason, ready + len(running), (*inner, *status.containerStatuses))


def _initialization(pod: Pod, sidecars: tuple[str, ...]) -> tuple[str, tuple[ContainerStatus, ...]]:
    """What initialization waits for, if it does, and the statuses it came to. One goes after the other."""
    statuses = pod.status.initContainerStatuses
    for place, status in enumerate(statuses):
        ended, waiting = status.state.terminated, status.state.waiting
        if _succeeded(status) or (status.name in sidecars and status.started):
            continue
        if ended is not None:
            word = _ending(ended)
        elif waiting is not None and waiting.reason not in ("", "PodInitializing"):
            word = waiting.reason
        else:
            word = f"{place}/{len(pod.spec.initContainers)}"
        return f"Init:{word}", statuses[: place + 1]
    return "", statuses


def _mixed(pod: Pod, running: bool) -> str:
    """The status of a pod of which the first container has completed."""
    if running and _is(pod, "Ready"):
        return "Running"
    for status in pod.status.containerStatuses:
        ended = status.state.terminated
        if not _waits(status) and ended is not None and ended.exitCode != 0:
            return _ending(ended)
    return "NotReady" if running else ""


def _sidecars(pod: Pod) -> tuple[str, ...]:
    """The init containers that keep running beside the others."""
    return tuple(each.name for each in pod.spec.initContainers if each.restartPolicy == "Always")


def _is(pod: Pod, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in pod.status.conditions)


def _waits(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason != ""


def _succeeded(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exitCode == 0


def _serves(status: ContainerStatus) -> bool:
    state = status.state
    return status.ready and state.running is not None and not _waits(status) and state.terminated is None


def _word(status: ContainerStatus) -> str:
    """What a container that does not run has to say."""
    if status.state.waiting is not None and status.state.waiting.reason:
        return status.state.waiting.reason
    return _ending(status.state.terminated) if status.state.terminated is not None else ""


def _ending(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exitCode}"


def _restarts(statuses: Iterable[ContainerStatus], now: datetime) -> str:
    count, last = 0, None
    for status in statuses:
        count += status.restartCount
        ended = status.lastState.terminated
        if ended is not None and ended.finishedAt is not None and (last is None or last < ended.finishedAt):
            last = ended.finishedAt
    return f"{count} ({since(last, now)} ago)" if count and last is not None else str(count)


def _gates(pod: Pod) -> str:
    gates = pod.spec.readinessGates
    if not gates:
        return "<none>"
    held: dict[str, str] = {}
    for condition in pod.status.conditions:
        held.setdefault(condition.type, condition.status)
    return f"{sum(held.get(gate.conditionType) == 'True' for gate in gates)}/{len(gates)}"


def template(template: PodTemplate, now: datetime) -> tuple[Cell, ...]:
    """The cells of a pod template."""
    names, images = cells.containers(template.template.spec.containers)
    return template.metadata.name, names, images, cells.labels(template.template.metadata.labels)


PRINTERS: Printers = {
    "pods": Printer(
        columns(
            NAME,
            "Ready",
            "Status",
            "Restarts",
            "Age",
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ),
        pod,
        conditions=_completed,
    ),
    "podtemplates": Printer(columns(NAME, "Containers", "Images", "Pod Labels"), template),
}
