"""The CIDRs of nodes on a real API server: both managers give each node the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Kind

Document = dict[str, Any]
EVENTS: Kind[Document] = Kind("", "v1", "Event", "events", True, dict)
FLAGS = (
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.244.0.0/22,fd00:10:244::/62",
    "--service-cluster-ip-range=10.244.0.0/24,fd00:10:96::/112",
)
"""Of the four IPv4 CIDRs one is that of the Services."""


def node(name: str, *cidrs: str) -> Document:
    spec = {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)} if cidrs else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


async def before(stage: Any) -> None:
    await stage.create(NODES, node("found", "10.244.2.0/24", "fd00:10:244:2::/64"))


def has_cidrs(found: Node) -> bool:
    return bool(found.spec.podCIDRs)


async def assigned(stage: Any, name: str) -> list[str]:
    return list((await stage.until(NODES, name, has_cidrs)).spec.podCIDRs)


async def tell(stage: Any) -> Document:
    cidrs: Document = {}
    for name in ("first", "second"):
        await stage.create(NODES, node(name))
        cidrs[name] = await assigned(stage, name)
    # There are no more: it waits until another is gone.
    await stage.create(NODES, node("third"))
    await replace(stage, namespace="default").told("CIDRNotAvailable", "third")
    await stage.api.delete(NODES, "", "found")
    cidrs["third"] = await assigned(stage, "third")
    # A node of elsewhere is left alone, and holds up no other.
    await stage.create(NODES, node("elsewhere", "192.168.0.0/24"))
    await stage.api.delete(NODES, "", "first")
    await stage.create(NODES, node("first"))
    cidrs["first again"] = await assigned(stage, "first")
    await stage.quiet()
    page = await stage.api.list(NODES.untyped)
    specs = {one["metadata"]["name"]: one["spec"] for one in page.items}
    for spec in specs.values():
        spec.pop("taints", None)
    events = (await stage.api.list(EVENTS, "default")).items
    told = {
        (event["involvedObject"]["name"], event["reason"], event["message"], event["source"]["component"])
        for event in events
        if event["reason"].startswith("CIDR")
    }
    return {"cidrs": cidrs, "specs": specs, "told": sorted(map(list, told))}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "cidrs", before=before, controllers=("node-ipam-controller",), kinds=(), flags=FLAGS
    )
    return found


def counted(end: dict[str, Any]) -> Document:
    return {name: count for name, count in end["counters"].items() if name.startswith("node_ipam_controller")}


def test_each_node_has_a_cidr_of_each_family(ends: dict[str, dict[str, Any]]) -> None:
    end = ends["steersman"]
    assert end["cidrs"] == {
        "first": ["10.244.1.0/24", "fd00:10:244::/64"],
        "second": ["10.244.3.0/24", "fd00:10:244:1::/64"],
        "third": ["10.244.2.0/24", "fd00:10:244:2::/64"],
        "first again": ["10.244.1.0/24", "fd00:10:244:3::/64"],
    }
    message = "Node third status is now: CIDRNotAvailable"
    assert end["told"] == [["third", "CIDRNotAvailable", message, "cidrAllocator"]]


@pytest.mark.parametrize("what", ["cidrs", "specs", "told"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, counted)
