"""Logs of simulated containers: which run of a container is meant, what its log says, and which part of it is sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import BadRequest
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.kubelet_api import LogOptions
from steersman.sim.kubelet.container_log import Limit, LogLine, instance, log_lines, selected
from steersman.sim.kubelet.log_file import PIECE, follow_file, read_file

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(seconds=9)


def ended(code: int = 3, container: str = "sim://x") -> v1.ContainerState:
    found = v1.ContainerStateTerminated(exitCode=code, startedAt=START, finishedAt=END, containerID=container)
    return v1.ContainerState(terminated=found)


def running() -> v1.ContainerState:
    return v1.ContainerState(running=v1.ContainerStateRunning(startedAt=END))


def waiting(reason: str) -> v1.ContainerState:
    return v1.ContainerState(waiting=v1.ContainerStateWaiting(reason=reason))


def pod(state: v1.ContainerState, last: v1.ContainerState = v1.ContainerState(), **notes: str) -> v1.Pod:
    status = v1.ContainerStatus(
        name="main", image="app:1", imageID="", ready=False, restartCount=2, state=state, lastState=last
    )
    annotations = {f"sim.steersman.dev/{name.replace('_', '.')}": text for name, text in notes.items()}
    return v1.Pod(
        metadata=ObjectMeta(name="a", namespace="default", annotations=annotations),
        status=v1.PodStatus(containerStatuses=(status,)),
    )


def lines(found: v1.Pod, *, previous: bool = False) -> list[str]:
    return [line.text for line in log_lines(found, "main", instance(found, "main", previous=previous))]


@pytest.mark.parametrize(
    ("found", "previous", "said"),
    [
        (pod(running()), False, ["started container main with image app:1 (restart 2)"]),
        (
            pod(running(), ended()),
            True,
            [
                "started container main with image app:1 (restart 1)",
                "container main exited with code 3",
            ],
        ),
        (
            pod(waiting("CrashLoopBackOff"), ended(1)),
            False,
            [
                "started container main with image app:1 (restart 2)",
                "container main exited with code 1",
            ],
        ),
        (pod(running(), log="one\ntwo\n"), False, ["one", "two"]),
        (pod(running(), log="all", log_main="mine"), False, ["mine"]),
    ],
)
def test_a_log_is_that_of_one_run_of_the_container(found: v1.Pod, previous: bool, said: list[str]) -> None:
    assert lines(found, previous=previous) == said


@pytest.mark.parametrize(
    ("found", "previous", "said"),
    [
        (pod(waiting("ContainerCreating")), False, "is waiting to start: ContainerCreating"),
        (pod(waiting("ErrImagePull")), False, "is waiting to start: image can't be pulled"),
        (pod(waiting("ImagePullBackOff")), False, "is waiting to start: trying and failing to pull image"),
        (pod(v1.ContainerState()), False, "is waiting to start - no logs yet"),
        (pod(ended(container="")), False, "is terminated"),
        (pod(running()), True, "not found"),
    ],
)
def test_a_container_without_a_log_is_refused_in_the_words_of_a_kubelet(
    found: v1.Pod, previous: bool, said: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        instance(found, "main", previous=previous)
    prefix = "previous terminated container" if previous else "container"
    assert refused.value.message == f'{prefix} "main" in pod "a" {said}'


LINES = [LogLine(START + timedelta(seconds=n), str(n)) for n in range(5)]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (LogOptions(), b"0\n1\n2\n3\n4\n"),
        (LogOptions(tail=2), b"3\n4\n"),
        (LogOptions(tail=0), b""),
        (LogOptions(tail=9), b"0\n1\n2\n3\n4\n"),
        (LogOptions(since=START + timedelta(seconds=3)), b"3\n4\n"),
        (LogOptions(since=START + timedelta(seconds=4), tail=3), b"4\n"),
        (LogOptions(timestamps=True, tail=1), b"2026-01-01T00:00:04.000000000Z 4\n"),
    ],
)
def test_the_lines_that_are_asked_for_are_sent(options: LogOptions, sent: bytes) -> None:
    assert b"".join(selected(LINES, options)) == sent


def test_a_limit_cuts_within_a_line() -> None:
    limit = Limit(4)
    assert [limit.take(b"abc"), limit.reached] == [b"abc", False]
    assert [limit.take(b"def"), limit.reached] == [b"d", True]


# -- files ------------------------------------------------------------------------------------


def everything(pieces: AsyncIterator[bytes]) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in pieces])

    return asyncio.run(read())


@given(
    st.lists(st.integers(0, 3), max_size=8).map(lambda sizes: [b"x" * (size * PIECE // 2) for size in sizes]),
    st.booleans(),
    st.integers(0, 9),
)
def test_the_end_of_a_file_is_found_by_its_lines(
    tmp_path_factory: pytest.TempPathFactory, written: list[bytes], whole: bool, tail: int
) -> None:
    file = tmp_path_factory.mktemp("log") / "main.log"
    content = b"\n".join(written) + (b"\n" if whole and written else b"")
    file.write_bytes(content)
    expected = b"".join(content.splitlines(keepends=True)[-tail:]) if tail else b""
    assert everything(read_file(file, LogOptions(tail=tail))) == expected
    assert everything(read_file(file, LogOptions())) == content
    assert everything(read_file(file, LogOptions(limit=7))) == content[:7]


def test_a_file_that_has_not_changed_since_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    file.write_text("a\nb\n")
    os.utime(file, (START.timestamp(), START.timestamp()))
    assert everything(read_file(file, LogOptions(since=END))) == b""
    stamped = everything(read_file(file, LogOptions(timestamps=True, tail=1)))
    assert stamped == b"2026-01-01T00:00:00.000000000Z b\n"


def test_a_file_is_followed_to_its_end_when_the_container_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    file.write_text("a\n")
    looks: list[Any] = []

    def has_ended() -> bool:
        looks.append(None)
        with file.open("a") as more:
            more.write("last\n")
        return True

    assert everything(follow_file(file, LogOptions(follow=True), has_ended)) == b"a\nlast\n"
    assert len(looks) == 1
