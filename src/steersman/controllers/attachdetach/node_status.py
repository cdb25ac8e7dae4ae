"""The node's ``volumesAttached``: tells the kubelet which volumes it may mount.

A volume is entered after it is attached, and removed before it is detached. The kubelet in turn enters a volume in
``volumesInUse`` before it looks at ``volumesAttached``, so one of the two always sees the other.
"""

from __future__ import annotations

from typing import Any

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds.nodes import NODES, Node
from steersman.intent.actions import Address, Patch, PatchType, Read

ATTEMPTS = 5
"""How often the list is written anew after a conflict, before the round fails."""


def reported_patch(node: Node, volume: str, *, attached: bool) -> Patch[Node] | None:
    """The patch that enters a volume in a node's ``volumesAttached`` or removes it; None where there is nothing to do.

    The list is replaced as a whole, so the patch requires the resourceVersion it was read at.
    """
    listed = [{"name": each.name, "devicePath": each.devicePath} for each in node.status.volumesAttached]
    others = [each for each in listed if each["name"] != volume]
    if attached == (len(others) < len(listed)):
        return None
    # CSI and Fibre Channel leave it to the node to find the device.
    wanted: list[dict[str, str]] = [*listed, {"name": volume, "devicePath": ""}] if attached else others
    metadata = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resourceVersion}
    body: dict[str, Any] = {"metadata": metadata, "status": {"volumesAttached": wanted or None}}
    return Patch(node, body, PatchType.STRATEGIC, subresource="status")


async def report(node: Node, volume: str, *, attached: bool) -> Node | None:
    """Enter a volume in a node's ``volumesAttached``, or remove it; returns the node as written, None if it is gone.

    differs: upstream overwrites the list with its own, and writes all volumes of a node at once.
    """
    for _ in range(ATTEMPTS):
        patch = reported_patch(node, volume, attached=attached)
        if patch is None:
            return node
        try:
            return await patch
        except NotFound:
            return None
        except Conflict:
            live = await read_node(node.metadata.name)
            if live is None:
                return None
            node = live
    raise Conflict(f"the status of node {node.metadata.name} keeps changing")


async def read_node(name: str) -> Node | None:
    """The node as the server has it; None if it is gone."""
    try:
        node: Node = await Read(Address(NODES, "", name))
    except NotFound:
        return None
    return node
