"""The node's ``volumesAttached``: tells the kubelet which volumes it may mount.

A volume is entered after it is attached, and removed before it is detached. The kubelet in turn enters a volume in
``volumesInUse`` before it looks at ``volumesAttached``, so one of the two always sees the other.

Rounds of several volumes overlap only where a request hangs. Then one of them writes the status of a node, and the others
hand their changes over to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds.nodes import NODES, Node
from steersman.controllers.attachdetach.memory import Memory
from steersman.intent.actions import Address, Patch, PatchType, Read

ATTEMPTS = 5
"""How often the list is written anew after a conflict, before the round fails."""


class StatusWriteUnderWay(Exception):
    """The round of another volume writes the status of the node, and has been handed the change of this one."""

    def __init__(self, node: str) -> None:
        super().__init__(f"the status of {node} is being written for another volume")


def reported_patch(node: Node, changes: Mapping[str, bool]) -> Patch[Node] | None:
    """The patch that enters volumes in a node's ``volumesAttached`` or removes them; None where there is nothing to do.

    ``changes`` says of each volume whether it is to be there. The list is replaced as a whole, so the patch requires the
    resourceVersion it was read at.
    """
    listed = [{"name": each.name, "devicePath": each.devicePath} for each in node.status.volumesAttached]
    wanted = [each for each in listed if changes.get(each["name"], True)]
    names = {each["name"] for each in listed}
    # All plugins leave it to the node to find the device.
    wanted += [
        {"name": name, "devicePath": ""}
        for name, attached in changes.items()
        if attached and name not in names
    ]
    if wanted == listed:
        return None
    metadata = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resourceVersion}
    body: dict[str, Any] = {"metadata": metadata, "status": {"volumesAttached": wanted or None}}
    return Patch(node, body, PatchType.STRATEGIC, subresource="status")


async def report(memory: Memory, node: Node, volume: str, *, attached: bool) -> Node | None:
    """Enter a volume in a node's ``volumesAttached``, or remove it; returns the node as written, None if it is gone.

    Raises `StatusWriteUnderWay` while the round of another volume writes it. That one writes this change, too, and the
    node's change leads to the next round of this volume.

    differs: upstream overwrites the list with its own, and writes all volumes of a node at once.
    """
    name = node.metadata.name
    under_way = memory.status_writes.get(name)
    if under_way is not None:
        under_way[volume] = attached
        raise StatusWriteUnderWay(name)
    changes = memory.status_writes[name] = {volume: attached}
    try:
        conflicts = 0
        while (patch := reported_patch(node, changes)) is not None:
            try:
                node = await patch
            except NotFound:
                return None
            except Conflict as error:
                conflicts += 1
                if conflicts == ATTEMPTS:
                    raise Conflict(f"the status of node {name} keeps changing") from error
                live = await read_node(name)
                if live is None:
                    return None
                node = live
    finally:
        del memory.status_writes[name]
    return node


async def read_node(name: str) -> Node | None:
    """The node as the server has it; None if it is gone."""
    try:
        node: Node = await Read(Address(NODES, "", name))
    except NotFound:
        return None
    return node
