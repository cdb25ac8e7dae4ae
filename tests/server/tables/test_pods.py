"""The cells of pods: one status for all containers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.generated.core_v1 import Pod
from steersman.server.tables import generate_table, printer_for

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def ago(**span: float) -> str:
    return (NOW - timedelta(**span)).isoformat()


def pod(**document: Any) -> Pod:
    metadata = {"name": "p", "creationTimestamp": ago(minutes=5), **document.pop("metadata", {})}
    spec = {"containers": [{"name": "a"}, {"name": "b"}], **document.pop("spec", {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": document}, Pod)


def status(name: str = "a", **state: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        key: state.pop(key) for key in ("ready", "started", "restartCount", "lastState") if key in state
    }
    return {"name": name, "state": state, **known}


RUNNING = status("b", ready=True, running={})
COMPLETED = status("a", terminated={"exitCode": 0, "reason": "Completed"})
READY = {"type": "Ready", "status": "True"}
INITIALIZED = {"type": "Initialized", "status": "True"}
INIT = {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}, {"name": "j"}]}
GOING = {"deletionTimestamp": ago(seconds=5)}


def cells(pod: Pod) -> list[Any]:
    return list(printer_for("pods").cells(pod, NOW))


@pytest.mark.parametrize(
    ("found", "ready", "word"),
    [
        (pod(phase="Pending"), "0/2", "Pending"),
        (pod(phase="Failed", reason="Evicted"), "0/2", "Evicted"),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
            "0/2",
            "SchedulingGated",
        ),
        (pod(phase="Running", containerStatuses=[RUNNING]), "1/2", "Running"),
        (
            pod(phase="Running", containerStatuses=[RUNNING, status(waiting={"reason": "CrashLoopBackOff"})]),
            "1/2",
            "CrashLoopBackOff",
        ),
        (pod(phase="Pending", containerStatuses=[status(waiting={})]), "0/2", "Pending"),
        (
            pod(
                containerStatuses=[
                    status(waiting={"reason": "First"}),
                    status("b", waiting={"reason": "Second"}),
                ]
            ),
            "0/2",
            "First",
        ),
        (pod(containerStatuses=[status(terminated={"exitCode": 3})]), "0/2", "ExitCode:3"),
        (pod(containerStatuses=[status(terminated={"exitCode": 137, "signal": 9})]), "0/2", "Signal:9"),
        (
            pod(containerStatuses=[status(terminated={"exitCode": 1, "reason": "OOMKilled"})]),
            "0/2",
            "OOMKilled",
        ),
        (pod(containerStatuses=[COMPLETED, RUNNING], conditions=[READY]), "1/2", "Running"),
        (pod(containerStatuses=[COMPLETED, RUNNING]), "1/2", "NotReady"),
        (
            pod(containerStatuses=[COMPLETED, status("b", terminated={"exitCode": 1, "reason": "Error"})]),
            "0/2",
            "Error",
        ),
        (pod(containerStatuses=[COMPLETED]), "0/2", "Completed"),
        (pod(phase="Running", metadata=GOING), "0/2", "Terminating"),
        (pod(phase="Succeeded", metadata=GOING), "0/2", "Succeeded"),
        (pod(phase="Running", reason="NodeLost", metadata=GOING), "0/2", "Unknown"),
    ],
)
def test_the_containers_of_a_pod_make_one_word(found: Pod, ready: str, word: str) -> None:
    assert cells(found)[1:3] == [ready, word]


@pytest.mark.parametrize(
    ("statuses", "more", "ready", "word", "restarts"),
    [
        ([status("i", waiting={"reason": "PodInitializing"})], {}, "0/3", "Init:0/3", "0"),
        ([status("i", running={}, restartCount=2)], {}, "0/3", "Init:0/3", "2"),
        ([status("i", waiting={"reason": "ImagePullBackOff"})], {}, "0/3", "Init:ImagePullBackOff", "0"),
        ([status("i", terminated={"exitCode": 2})], {}, "0/3", "Init:ExitCode:2", "0"),
        ([status("i", terminated={"exitCode": 2, "signal": 6})], {}, "0/3", "Init:Signal:6", "0"),
        ([status("i", terminated={"exitCode": 2, "reason": "Error"})], {}, "0/3", "Init:Error", "0"),
        (
            [
                status("i", terminated={"exitCode": 0}, restartCount=1),
                status("s", running={}, started=True, ready=True, restartCount=2),
                status("j", running={}, restartCount=4),
            ],
            {},
            "1/3",
            "Init:2/3",
            "7",
        ),
        (
            [
                status("i", terminated={"exitCode": 0}, restartCount=1),
                status("s", running={}, started=True, ready=True, restartCount=2),
                status("j", terminated={"exitCode": 0}, restartCount=4),
            ],
            {"phase": "Running", "containerStatuses": [{**RUNNING, "restartCount": 8}]},
            "2/3",
            "Running",
            "10",
        ),
        (
            [status("i", terminated={"exitCode": 2, "reason": "Error"}, restartCount=3)],
            {"phase": "Running", "conditions": [INITIALIZED]},
            "0/3",
            "Init:Error",
            "0",
        ),
    ],
)
def test_initialization_shows_where_it_stands(
    statuses: list[Any], more: dict[str, Any], ready: str, word: str, restarts: str
) -> None:
    found = pod(spec=INIT, initContainerStatuses=statuses, **more)
    assert cells(found)[1:4] == [ready, word, restarts]


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = [
        {"terminated": {"exitCode": 1, "finishedAt": ago(**span)}} for span in ({"hours": 5}, {"minutes": 3})
    ]
    found = pod(
        containerStatuses=[
            status("a", restartCount=2, lastState=ended[0]),
            status("b", restartCount=1, lastState=ended[1]),
        ]
    )
    assert cells(found)[3] == "3 (3m ago)"


def test_the_wide_columns_say_none_where_there_is_nothing() -> None:
    assert cells(pod())[5:] == ["<none>"] * 4
    found = pod(
        spec={"nodeName": "n", "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]},
        podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        nominatedNodeName="m",
        conditions=[
            {"type": "x", "status": "True"},
            {"type": "y", "status": "False"},
            {"type": "y", "status": "True"},
        ],
    )
    assert cells(found)[5:] == ["10.0.0.1", "n", "m", "1/2"]


def test_a_pod_that_has_ended_is_marked_as_completed() -> None:
    rows = generate_table(printer_for("pods"), [pod(phase="Failed"), pod(phase="Running")], NOW).rows
    assert [[each.reason for each in row.conditions] for row in rows] == [["Failed"], []]
