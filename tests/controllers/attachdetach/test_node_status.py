"""The node's volumesAttached: the patches that enter a volume or remove it."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.errors import ServerError
from steersman.api.kinds.nodes import Node
from steersman.controllers.attachdetach.memory import Memory
from steersman.controllers.attachdetach.node_status import StatusWriteUnderWay, report, reported_patch
from tests.harness.attach_detach import node


@pytest.mark.parametrize(
    ("listed", "volume", "attached", "written"),
    [
        ((), "a", True, ["a"]),
        (("a",), "b", True, ["a", "b"]),
        (("a", "b"), "a", False, ["b"]),
        (("a",), "a", False, None),
    ],
)
def test_the_list_is_written_as_a_whole(
    listed: tuple[str, ...], volume: str, attached: bool, written: list[str] | None
) -> None:
    patch = reported_patch(node(attached=listed), {volume: attached})
    assert patch is not None
    body: Any = patch.body
    entries = [{"name": name, "devicePath": ""} for name in written] if written is not None else None
    assert body["status"] == {"volumesAttached": entries}
    assert set(body["metadata"]) == {"uid", "resourceVersion"}


@pytest.mark.parametrize(
    ("listed", "volume", "attached"), [(("a",), "a", True), ((), "a", False), (("b",), "a", False)]
)
def test_nothing_is_written_where_the_list_is_right(
    listed: tuple[str, ...], volume: str, attached: bool
) -> None:
    assert reported_patch(node(attached=listed), {volume: attached}) is None


def written(patch: Any) -> list[str]:
    return [each["name"] for each in patch.body["status"]["volumesAttached"]]


def hand_over(memory: Memory, on: Node, volume: str, *, attached: bool) -> None:
    """Reports a volume while another write of the node's status is under way: nothing is sent."""
    with pytest.raises(StatusWriteUnderWay, match="the status of n1 is being written"):
        next(report(memory, on, volume, attached=attached).__await__())


def test_the_round_that_writes_the_status_of_a_node_writes_the_changes_of_others_too() -> None:
    memory, before = Memory(), node(attached=("old",))
    rounds = report(memory, before, "a", attached=True).__await__()
    assert written(next(rounds)) == ["old", "a"]
    hand_over(memory, before, "b", attached=True)
    hand_over(memory, before, "old", attached=False)
    assert written(rounds.send(node(attached=("old", "a")))) == ["a", "b"]
    with pytest.raises(StopIteration) as end:
        rounds.send(after := node(attached=("a", "b")))
    assert end.value.value is after
    assert memory.status_writes == {}


def test_a_change_handed_over_to_a_write_that_fails_is_written_by_its_own_round() -> None:
    memory, before = Memory(), node()
    rounds = report(memory, before, "a", attached=True).__await__()
    next(rounds)
    hand_over(memory, before, "b", attached=True)
    with pytest.raises(ServerError):
        rounds.throw(ServerError("down"))
    assert written(next(report(memory, before, "b", attached=True).__await__())) == ["b"]
