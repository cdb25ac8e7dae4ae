"""The usage of simulated pods and nodes, and the documents of metrics.k8s.io that tell it. Pure functions.

A container uses what the pod's annotations say, else half of what it requests, else next to nothing. The same pod always uses the
same. The annotations, all with the prefix ``sim.steersman.dev/``, are about all containers together, or about one (``cpu.main``):

==========  ==========================================
``cpu``     the CPU that a pod uses, such as ``250m``
``memory``  the memory that a pod uses, such as ``64Mi``
==========  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.meta import format_time
from steersman.api.quantity import Format, Quantity
from steersman.sim.kubelet.behaviour import PREFIX

SHARE = 2
"""A container without annotation uses this fraction of its requests."""
WINDOW = "30s"
_IDLE = {"cpu": 1, "memory": 16 * 1024 * 1024}
"""Millicores, and bytes."""


class Usage(msgspec.Struct, frozen=True):
    """Millicores, and bytes."""

    cpu: int = 0
    memory: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(self.cpu + other.cpu, self.memory + other.memory)

    def document(self) -> dict[str, str]:
        """As the metrics API writes it."""
        memory = Quantity.of(self.memory, Format.BINARY_SI)
        return {"cpu": str(Quantity.of_milli(self.cpu)), "memory": str(memory)}


def usage(pod: v1.Pod) -> Usage:
    """The usage of a pod; zero where it does not run."""
    total = Usage()
    for _, used in containers(pod):
        total = total.plus(used)
    return total


def containers(pod: v1.Pod) -> list[tuple[str, Usage]]:
    """The usage of each running container: sidecars and main containers."""
    if pod.status.phase != "Running" or pod.metadata.deletionTimestamp is not None:
        return []
    running = [
        each
        for each in (*pod.spec.initContainers, *pod.spec.containers)
        if any(
            status.name == each.name and status.state.running is not None
            for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
        )
    ]
    count = len(running)
    return [
        (each.name, Usage(_used(pod, each, "cpu", count), _used(pod, each, "memory", count)))
        for each in running
    ]


def pod_metrics(
    pod: v1.Pod, now: datetime, measured: list[tuple[str, Usage]] | None = None
) -> dict[str, Any] | None:
    """A ``metrics.k8s.io/v1beta1`` PodMetrics of what containers use; None for a pod that does not run."""
    found = containers(pod) if measured is None else measured
    if not found:
        return None
    meta = pod.metadata
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": _metadata(meta.name, meta.namespace, dict(meta.labels), now),
        "timestamp": format_time(now),
        "window": WINDOW,
        "containers": [{"name": name, "usage": used.document()} for name, used in found],
    }


def node_metrics(node: v1.Node, used: Iterable[Usage], now: datetime) -> dict[str, Any]:
    """A ``metrics.k8s.io/v1beta1`` NodeMetrics, of the containers on the node."""
    total = Usage()
    for each in used:
        total = total.plus(each)
    meta = node.metadata
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": _metadata(meta.name, "", dict(meta.labels), now),
        "timestamp": format_time(now),
        "window": WINDOW,
        "usage": total.document(),
    }


def _used(pod: v1.Pod, container: v1.Container, resource: str, count: int) -> int:
    notes = pod.metadata.annotations
    own = _amount(notes.get(f"{PREFIX}{resource}.{container.name}"), resource)
    if own is not None:
        return own
    shared = _amount(notes.get(PREFIX + resource), resource)
    if shared is not None:
        return shared // count
    requested = _amount(container.resources.requests.get(resource), resource)
    return requested // SHARE if requested else _IDLE[resource]


def _amount(amount: str | float | None, resource: str) -> int | None:
    if amount is None:
        return None
    try:
        quantity = Quantity.parse(amount)
    except ValueError:
        return None
    return max(0, quantity.milli() if resource == "cpu" else quantity.value())


def _metadata(name: str, namespace: str, labels: dict[str, str], now: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "creationTimestamp": format_time(now)}
    if namespace:
        found["namespace"] = namespace
    if labels:
        found["labels"] = labels
    return found
