"""Printers of Pods and PodTemplates: a pod's status in one word, ready containers, restarts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from steersman.server.tables import cells
from steersman.server.tables.cells import age
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
"""The reason in a pod's status while its node is unreachable."""


class _PodSummary(msgspec.Struct, frozen=True):
    """The cells that depend on all containers of a pod."""

    reason: str
    ready: int
    restart_statuses: tuple[ContainerStatus, ...]
    """The statuses whose restarts are counted."""


def pod_cells(pod: Pod, now: datetime) -> tuple[Cell, ...]:
    """The cells of a pod."""
    summary = _summarize(pod)
    total = len(pod.spec.containers) + len(_sidecar_names(pod))
    return (
        pod.metadata.name,
        f"{summary.ready}/{total}",
        _pod_status(pod, summary.reason),
        _restarts(summary.restart_statuses, now),
        age(pod.metadata.creationTimestamp, now),
        next((item.ip for item in pod.status.podIPs[:1]), "") or "<none>",
        pod.spec.nodeName or "<none>",
        pod.status.nominatedNodeName or "<none>",
        _readiness_gates(pod),
    )


def _completed_condition(pod: Pod) -> tuple[Condition, ...]:
    condition = _COMPLETED.get(pod.status.phase)
    return (condition,) if condition else ()


def _pod_status(pod: Pod, reason: str) -> str:
    if pod.metadata.deletionTimestamp is not None:
        if pod.status.reason == _NODE_LOST:
            return "Unknown"
        if pod.status.phase not in _COMPLETED:
            return "Terminating"
    return reason


def _summarize(pod: Pod) -> _PodSummary:
    status, sidecars = pod.status, _sidecar_names(pod)
    reason = status.reason or status.phase
    if any(item.type == "PodScheduled" and item.reason == "SchedulingGated" for item in status.conditions):
        reason = "SchedulingGated"
    init_reason, init_statuses = _init_progress(pod, sidecars)
    sidecar_statuses = tuple(item for item in init_statuses if item.name in sidecars)
    ready = sum(item.ready for item in sidecar_statuses if item.started and not _succeeded(item))
    if init_reason and not _has_condition(pod, "Initialized"):
        return _PodSummary(init_reason, ready, init_statuses)
    running = [item for item in status.containerStatuses if _is_ready(item)]
    reasons = [stopped for item in status.containerStatuses if (stopped := _stopped_reason(item))]
    reason = reasons[0] if reasons else init_reason or reason
    if reason == "Completed":
        reason = _status_of_completed(pod, bool(running)) or reason
    return _PodSummary(reason, ready + len(running), (*sidecar_statuses, *status.containerStatuses))


def _init_progress(pod: Pod, sidecars: tuple[str, ...]) -> tuple[str, tuple[ContainerStatus, ...]]:
    """The reason initialization is incomplete (empty where it is done), and the statuses up to that container."""
    statuses = pod.status.initContainerStatuses
    for index, status in enumerate(statuses):
        terminated, waiting = status.state.terminated, status.state.waiting
        if _succeeded(status) or (status.name in sidecars and status.started):
            continue
        if terminated is not None:
            stopped = _termination_reason(terminated)
        elif waiting is not None and waiting.reason not in ("", "PodInitializing"):
            stopped = waiting.reason
        else:
            stopped = f"{index}/{len(pod.spec.initContainers)}"
        return f"Init:{stopped}", statuses[: index + 1]
    return "", statuses


def _status_of_completed(pod: Pod, running: bool) -> str:
    """The status of a pod whose first container has completed."""
    if running and _has_condition(pod, "Ready"):
        return "Running"
    for status in pod.status.containerStatuses:
        terminated = status.state.terminated
        if not _is_waiting(status) and terminated is not None and terminated.exitCode != 0:
            return _termination_reason(terminated)
    return "NotReady" if running else ""


def _sidecar_names(pod: Pod) -> tuple[str, ...]:
    """The names of the sidecars: init containers with restartPolicy Always."""
    return tuple(item.name for item in pod.spec.initContainers if item.restartPolicy == "Always")


def _has_condition(pod: Pod, condition: str) -> bool:
    return any(item.type == condition and item.status == "True" for item in pod.status.conditions)


def _is_waiting(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason != ""


def _succeeded(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exitCode == 0


def _is_ready(status: ContainerStatus) -> bool:
    state = status.state
    return status.ready and state.running is not None and not _is_waiting(status) and state.terminated is None


def _stopped_reason(status: ContainerStatus) -> str:
    """The reason why a container is waiting or terminated; empty for a running one."""
    if status.state.waiting is not None and status.state.waiting.reason:
        return status.state.waiting.reason
    return _termination_reason(status.state.terminated) if status.state.terminated is not None else ""


def _termination_reason(terminated: ContainerStateTerminated) -> str:
    if terminated.reason:
        return terminated.reason
    return f"Signal:{terminated.signal}" if terminated.signal else f"ExitCode:{terminated.exitCode}"


def _restarts(statuses: Iterable[ContainerStatus], now: datetime) -> str:
    count, last = 0, None
    for status in statuses:
        count += status.restartCount
        terminated = status.lastState.terminated
        if (
            terminated is not None
            and terminated.finishedAt is not None
            and (last is None or last < terminated.finishedAt)
        ):
            last = terminated.finishedAt
    return f"{count} ({age(last, now)} ago)" if count and last is not None else str(count)


def _readiness_gates(pod: Pod) -> str:
    gates = pod.spec.readinessGates
    if not gates:
        return "<none>"
    statuses: dict[str, str] = {}
    for condition in pod.status.conditions:
        statuses.setdefault(condition.type, condition.status)
    return f"{sum(statuses.get(gate.conditionType) == 'True' for gate in gates)}/{len(gates)}"


def pod_template_cells(template: PodTemplate, now: datetime) -> tuple[Cell, ...]:
    """The cells of a pod template."""
    names, images = cells.container_cells(template.template.spec.containers)
    return template.metadata.name, names, images, cells.format_labels(template.template.metadata.labels)


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
        pod_cells,
        conditions=_completed_condition,
    ),
    "podtemplates": Printer(columns(NAME, "Containers", "Images", "Pod Labels"), pod_template_cells),
}
