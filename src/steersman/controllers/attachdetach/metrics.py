"""Metrics of the attach/detach controller, with upstream's names and buckets."""

from __future__ import annotations

from collections import Counter

from steersman.controllers.attachdetach.operations import Operation
from steersman.controllers.attachdetach.world import NodeState, World
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from steersman.intent.metrics import Measure, Metric

FORCED_DETACHES = Metric(
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "Number of times the A/D Controller performed a forced detach",
    ("reason",),
)
TIMEOUT = "timeout"
OUT_OF_SERVICE = "out-of-service"

IN_USE = Metric(
    "storage_count_attachable_volumes_in_use",
    "Measure number of volumes in use",
    ("node", "volume_plugin"),
    gauge=True,
)
TOTAL = Metric(
    "attachdetach_controller_total_volumes",
    "Number of volumes in A/D Controller",
    ("plugin_name", "state"),
    gauge=True,
)
DESIRED_STATE = "desired_state_of_world"
ACTUAL_STATE = "actual_state_of_world"

SUCCESS = "success"
FAILURE = "fail-unknown"

METRICS = (FORCED_DETACHES, IN_USE, TOTAL, OPERATION_SECONDS)


async def measure(node: NodeState, operation: Operation, status: str, monotonic: float) -> None:
    volume = node.volume
    migrated = "true" if volume.migrated else "false"
    labels = (volume.qualified_plugin, operation.name, status, migrated)
    await Measure(OPERATION_SECONDS, monotonic - operation.started, labels)


async def count(seen: World) -> None:
    """Update the gauges that this volume has a part in."""
    counted = [node for node in seen.memory.counted_nodes(seen.name) if seen.only in ("", node)]
    parts: dict[str, Counter[tuple[str, str, str]]] = {node: Counter() for node in counted}
    for (node, plugin), number in seen.pods_in_use.items():
        parts.setdefault(node, Counter())[IN_USE.name, node, plugin] = number
    for state in seen.nodes:
        plugin = state.volume.qualified_plugin
        part = parts.setdefault(state.name, Counter())
        part[TOTAL.name, plugin, DESIRED_STATE] = state.desired
        part[TOTAL.name, plugin, ACTUAL_STATE] = state.present
    for node, part in parts.items():
        for (metric, first, second), value in seen.memory.count(seen.name, node, +part):
            await Measure(IN_USE if metric == IN_USE.name else TOTAL, value, (first, second))
