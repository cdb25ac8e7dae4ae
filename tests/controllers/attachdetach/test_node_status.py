"""The node's volumesAttached: the patches that enter a volume or remove it."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.controllers.attachdetach.node_status import reported_patch
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
    patch = reported_patch(node(attached=listed), volume, attached=attached)
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
    assert reported_patch(node(attached=listed), volume, attached=attached) is None
