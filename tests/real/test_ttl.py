"""The TTL of nodes on a real API server: both managers write the same, in small clusters and across a boundary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds.nodes import NODES, Node

Document = dict[str, Any]
TTL = "node.alpha.kubernetes.io/ttl"


def node(name: str, **annotations: str) -> Document:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


async def before(stage: Any) -> None:
    await stage.create(
        NODES,
        node("bare"),
        node("other", **{"example.com/note": "kept"}),
        node("wrong", **{TTL: "300"}),
        node("right", **{TTL: "0"}),
        node("spelled", **{TTL: "+0"}),
        node("words", **{TTL: "soon"}),
    )


def has(value: str) -> Callable[[Node], bool]:
    return lambda found: found.metadata.annotations.get(TTL) == value


async def all_have(stage: Any, value: str, *names: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(stage.until(NODES, name, has(value)))


async def written(stage: Any) -> Document:
    page = await stage.api.list(NODES.untyped)
    return {one["metadata"]["name"]: one["metadata"].get("annotations") for one in page.items}


async def tell(stage: Any) -> Document:
    await all_have(stage, "0", "bare", "other", "wrong", "right", "words")
    await stage.patch(NODES, "bare", {"metadata": {"annotations": {TTL: None}}})
    await all_have(stage, "0", "bare")
    few = await written(stage)
    more = [f"more-{number}" for number in range(95)]
    await stage.create(NODES, *map(node, more))
    await all_have(stage, "15", more[-1])
    # The reference manager looks at a node with its next heartbeat.
    names = [*more, "bare", "other", "wrong", "right", "spelled", "words"]
    for name in names:
        await stage.patch(NODES, name, {"metadata": {"labels": {"beat": "1"}}})
    await all_have(stage, "15", *names)
    many = await written(stage)
    for name in more[:11]:
        await stage.api.delete(NODES, "", name)
    for name in names[11:]:
        await stage.patch(NODES, name, {"metadata": {"labels": {"beat": "2"}}})
    await stage.quiet()
    between = await written(stage)
    await stage.api.delete(NODES, "", more[11])
    for name in names[12:]:
        await stage.patch(NODES, name, {"metadata": {"labels": {"beat": "3"}}})
    await all_have(stage, "0", *names[12:])
    return {"few": few, "many": many, "between": between, "few again": await written(stage)}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "ttl", before=before, controllers=("ttl-controller",), kinds=()
    )
    return found


def test_the_ttl_changes_at_different_sizes_up_and_down(ends: dict[str, dict[str, Any]]) -> None:
    end = ends["steersman"]
    assert end["few"]["other"] == {"example.com/note": "kept", TTL: "0"}
    assert end["few"]["spelled"] == {TTL: "+0"}, "it is the same number"
    assert {each[TTL] for each in end["many"].values()} == {"15"}
    assert (len(end["between"]), {each[TTL] for each in end["between"].values()}) == (90, {"15"})


@pytest.mark.parametrize("what", ["few", "many", "between", "few again"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
