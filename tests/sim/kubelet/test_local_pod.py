"""What a simulated kubelet leaves as it found it, when it takes over a node of a real cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.sim.kubelet.heartbeats import SimulatedNode
from steersman.sim.kubelet.local_pod import stays_as_found
from steersman.sim.kubelet.node import Shape, confirmed, node

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUNNING = v1.ContainerState(running=v1.ContainerStateRunning(startedAt=NOW - timedelta(minutes=5)))
YOUNG = v1.ContainerState(running=v1.ContainerStateRunning(startedAt=NOW - timedelta(seconds=5)))
DONE = v1.ContainerState(terminated=v1.ContainerStateTerminated(exitCode=0))


def waiting(reason: str) -> v1.ContainerState:
    return v1.ContainerState(waiting=v1.ContainerStateWaiting(reason=reason))


def pod(*states: v1.ContainerState, ready: bool = False, phase: str = "Running", **status: Any) -> v1.Pod:
    containers = tuple(
        v1.ContainerStatus(name=f"c{number}", state=state, ready=ready, containerID="containerd://1")
        for number, state in enumerate(states)
    )
    made = {"startTime": NOW, "containerStatuses": containers, **status}
    return v1.Pod(metadata=ObjectMeta(name="a"), status=v1.PodStatus(phase=phase, **made))


@pytest.mark.parametrize(
    ("found", "stays"),
    [
        (pod(RUNNING, ready=True), True),
        (pod(RUNNING), True),
        (pod(YOUNG), False),
        (pod(waiting("CrashLoopBackOff")), True),
        (pod(waiting("ImagePullBackOff"), phase="Pending"), True),
        (pod(waiting("ContainerCreating"), phase="Pending"), False),
        (pod(waiting("PodInitializing"), phase="Pending"), False),
        (pod(DONE, phase="Succeeded"), True),
        (pod(DONE, RUNNING, ready=True), True),
        (pod(phase="Pending"), False),
        (pod(RUNNING, ready=True, startTime=None), False),
    ],
)
def test_pods_that_run_or_fail_stay_as_they_are_and_those_that_start_go_on(
    found: v1.Pod, stays: bool
) -> None:
    assert stays_as_found(found, NOW, ready_delay=20.0) is stays


def test_a_node_is_taken_over_with_its_address_and_its_conditions() -> None:
    found = node("n", 1, Shape(), NOW - timedelta(hours=1))
    machine = SimulatedNode("n", 7)
    machine.adopt(found)
    assert (machine.address, machine.down) == ("172.16.0.1", False)
    again = confirmed(found, NOW)
    assert {each.lastHeartbeatTime for each in again.status.conditions} == {NOW}
    assert [each.reason for each in again.status.conditions] == [
        each.reason for each in found.status.conditions
    ]


def test_a_node_that_is_not_ready_has_no_kubelet() -> None:
    machine = SimulatedNode("n", 7)
    machine.adopt(v1.Node(metadata=ObjectMeta(name="n")))
    assert machine.down
