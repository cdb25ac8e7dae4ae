"""The registrar of the simulated CSI driver: enters the driver in the CSINode of each simulated node."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import AlreadyExists
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, storage_v1
from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference
from steersman.api.scheme import Key, Kind
from steersman.intent.actions import Create, Patch
from steersman.intent.controller import Caches, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.kubelet.node import is_simulated
from steersman.sim.storage.failures import PREFIX
from steersman.sim.storage.provisioner import NODES
from steersman.sim.storage.simulated_storage import DRIVER

CSI_NODES: Kind[storage_v1.CSINode] = load("storage.k8s.io", "v1", "CSINode")
LIMIT = f"{PREFIX}volume-limit"
"""An annotation of a Node: how many volumes of the simulated CSI driver can be attached to it."""
DEFAULT_LIMIT = 25
"""Volumes that can be attached to a node: about as many as to a virtual machine of a cloud."""


class RegisteredNode(msgspec.Struct, frozen=True):
    """A Node, and its CSINode."""

    node: v1.Node
    csi_node: storage_v1.CSINode | None


def observe(caches: Caches, key: Key) -> RegisteredNode | None:
    node = caches[NODES].get(key)
    return None if node is None else RegisteredNode(node, caches[CSI_NODES].get(key))


async def decide(seen: RegisteredNode, now: datetime) -> Verdict:
    node, csi_node = seen.node, seen.csi_node
    if not is_simulated(node):
        return Rest("not a simulated node")
    driver = driver_of(node)
    known = () if csi_node is None else csi_node.spec.drivers or ()
    if driver in known:
        return Rest("registered")
    if csi_node is None:
        try:
            await Create(CSI_NODES, "", new_csi_node(node, driver))
        except AlreadyExists:
            return Rest("another client created the CSINode")
        return Rest("registered")
    drivers = [*(each for each in known if each.name != DRIVER), driver]
    body: dict[str, Any] = {"spec": {"drivers": msgspec.to_builtins(drivers)}}
    await Patch(csi_node, body)
    return Rest("registered")


def driver_of(node: v1.Node) -> storage_v1.CSINodeDriver:
    """The entry of the driver in the CSINode of a node."""
    limit = node.metadata.annotations.get(LIMIT, "")
    count = int(limit) if limit.isdecimal() and len(limit) < 9 else DEFAULT_LIMIT
    return storage_v1.CSINodeDriver(
        name=DRIVER,
        nodeID=node.metadata.name,
        topologyKeys=(),
        allocatable=storage_v1.VolumeNodeResources(count=count),
    )


def new_csi_node(node: v1.Node, driver: storage_v1.CSINodeDriver) -> storage_v1.CSINode:
    """The CSINode of a node, as its kubelet creates it."""
    owner = OwnerReference(apiVersion="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
    return storage_v1.CSINode(
        metadata=ObjectMeta(name=node.metadata.name, ownerReferences=(owner,)),
        spec=storage_v1.CSINodeSpec(drivers=(driver,)),
    )


controller = Controller(
    name="sim-registrar",
    watches=(Watch(NODES), Watch(CSI_NODES)),
    observe=observe,
    decide=decide,
    workers=1,
)
