"""The load of pods in a rehearsal: from a file of metrics, or as their autoscalers saw it last. Pure functions of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import Quantity
from steersman.plan.assumptions import Assumptions, Load
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Selection
from steersman.sim.kubelet.usage import Usage
from steersman.sim.metrics import Measure

AUTOSCALERS = "horizontalpodautoscalers.autoscaling"


def assumed_loads(store: Store, assumptions: Assumptions) -> tuple[Load, ...]:
    """The loads of a file of metrics, or those that autoscalers have in their status."""
    if assumptions.loads is not None:
        return assumptions.loads
    return tuple(
        load for scaler in store.table(AUTOSCALERS).select(Selection()) if (load := _seen(scaler)) is not None
    )


def _seen(scaler: Any) -> Load | None:
    """The load that an autoscaler saw last: the average of its pods, times their number."""
    used: dict[str, int] = {}
    for metric in scaler.status.currentMetrics:
        resource = metric.resource
        average = resource.current.averageValue if resource is not None else None
        if resource is None or average is None:
            continue
        try:
            amount = Quantity.parse(average)
        except ValueError:
            continue
        pods = max(scaler.status.currentReplicas, 1)
        used[resource.name] = (amount.milli() if resource.name == "cpu" else amount.value()) * pods
    if not used:
        return None
    meta = scaler.metadata
    return Load(
        meta.namespace, scaler.spec.scaleTargetRef.name, used.get("cpu"), used.get("memory"), shared=True
    )


def measure(store: Store, loads: Sequence[Load]) -> Measure:
    """A function that tells what the containers of a pod use; nothing for pods without a load."""
    pods = store.table("pods")

    def running(pod: v1.Pod) -> bool:
        return pod.status.phase == "Running" and pod.metadata.deletionTimestamp is None

    def used(pod: v1.Pod) -> list[tuple[str, Usage]]:
        load = next((each for each in loads if belongs(pod, each)), None)
        if load is None or not running(pod):
            return []
        share = 1
        if load.shared:
            share = sum(
                1 for each in pods.select(Selection(load.namespace)) if belongs(each, load) and running(each)
            )
        names = [each.name for each in pod.spec.containers]
        divisor = max(share, 1) * len(names)
        return [(name, Usage((load.cpu or 0) // divisor, (load.memory or 0) // divisor)) for name in names]

    return used


def belongs(pod: v1.Pod, load: Load) -> bool:
    """Whether a pod belongs to a workload: its name is the workload's, a dash, and generated parts."""
    return pod.metadata.namespace == load.namespace and pod.metadata.name.startswith(f"{load.workload}-")
