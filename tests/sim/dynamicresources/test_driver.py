"""The simulated driver: what it publishes for a node, and that it follows annotations."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated import core_v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.sim.dynamicresources import COUNT, UNHEALTHY, Devices
from steersman.sim.dynamicresources.driver import resource_slice, updated
from steersman.testing import Cluster


def node(**annotations: str) -> core_v1.Node:
    return core_v1.Node(metadata=ObjectMeta(name="node-1", uid="u", annotations=annotations))


@pytest.mark.parametrize(
    ("annotations", "devices", "names"),
    [
        ({}, Devices(count=2), ["device-0", "device-1"]),
        ({COUNT: "1"}, Devices(count=2), ["device-0"]),
        ({COUNT: " 3 "}, Devices(count=0), ["device-0", "device-1", "device-2"]),
        ({COUNT: "many"}, Devices(count=1), ["device-0"]),
        ({COUNT: "-1"}, Devices(count=1), ["device-0"]),
        ({COUNT: "0"}, Devices(count=1), []),
        ({COUNT: "999"}, Devices(count=1), [f"device-{number}" for number in range(128)]),
    ],
)
def test_a_node_has_as_many_devices_as_its_annotation_says(
    annotations: dict[str, str], devices: Devices, names: list[str]
) -> None:
    made = resource_slice(node(**annotations), devices)
    assert [each.name for each in made.spec.devices] == names if made is not None else not names


def test_a_slice_belongs_to_its_node_and_describes_its_devices() -> None:
    made = resource_slice(node(), Devices(count=3, attributes={"model": "x", "fast": True}))
    assert made is not None
    assert (made.spec.nodeName, made.spec.pool.name, made.metadata.ownerReferences[0].uid) == (
        "node-1",
        "node-1",
        "u",
    )
    found = made.spec.devices[2].attributes
    assert (found["index"].int, found["numa"].int, found["model"].string, found["fast"].bool) == (
        2,
        1,
        "x",
        True,
    )
    assert made.spec.devices[2].capacity["memory"].value == "16Gi"


def test_a_change_of_devices_is_a_new_generation_of_the_pool() -> None:
    two, three = (resource_slice(node(), Devices(count=count)) for count in (2, 3))
    assert two is not None
    assert three is not None
    assert updated(two, two) is None
    changed = updated(two, three)
    assert changed is not None
    assert (changed.spec.pool.generation, len(changed.spec.devices)) == (2, 3)
    sick = resource_slice(node(**{UNHEALTHY: "device-1, device-7"}), Devices(count=2))
    assert sick is not None
    assert [[taint.effect for taint in each.taints] for each in sick.spec.devices] == [[], ["NoExecute"]]


def slices(cluster: Cluster) -> dict[str, int]:
    return {each.spec.nodeName or "": len(each.spec.devices) for each in cluster.list("resourceslices")}


def annotate(cluster: Cluster, name: str, value: str | None) -> None:
    cluster.patch("Node", "node-1", {"metadata": {"annotations": {name: value}}})


def test_slices_follow_the_nodes_and_come_back_when_they_are_deleted() -> None:
    with Cluster(nodes=2, dra=Devices(count=2)) as cluster:
        assert slices(cluster) == {"node-1": 2, "node-2": 2}
        assert [each.metadata.name for each in cluster.list("deviceclasses")] == ["simulated"]
        annotate(cluster, COUNT, "5")
        cluster.settle()
        assert slices(cluster) == {"node-1": 5, "node-2": 2}
        annotate(cluster, UNHEALTHY, "device-1")
        cluster.settle()
        sick: Any = cluster.get("ResourceSlice", "node-1-sim.steersman.dev")
        assert [bool(each.taints) for each in sick.spec.devices] == [False, True, False, False, False]
        cluster.delete("ResourceSlice", "node-1-sim.steersman.dev")
        cluster.settle()
        assert slices(cluster) == {"node-1": 5, "node-2": 2}
        cluster.delete("Node", "node-2")
        cluster.settle()
        assert slices(cluster) == {"node-1": 5}
        annotate(cluster, COUNT, "0")
        cluster.settle()
        assert slices(cluster) == {}


def test_a_cluster_without_devices_has_no_part_of_it() -> None:
    with Cluster() as cluster:
        assert slices(cluster) == {}
        assert cluster.list("deviceclasses") == []
