"""Detaching: removes a volume from a node's report, then deletes its VolumeAttachment.

A mounted volume stays, unless its node is out of service, or not ready and out of time.
"""

from __future__ import annotations

from contextlib import suppress

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.storage import VOLUMEATTACHMENTS
from steersman.api.pods import is_terminated
from steersman.api.scheme import Key
from steersman.controllers.attachdetach.memory import VolumeMemory
from steersman.controllers.attachdetach.metrics import (
    FAILURE,
    FORCED_DETACHES,
    OUT_OF_SERVICE,
    SUCCESS,
    TIMEOUT,
    measure,
)
from steersman.controllers.attachdetach.node_status import read_node, report
from steersman.controllers.attachdetach.operations import (
    DETACH,
    OPERATION_TIMEOUT,
    UNMOUNT_TIMEOUT,
    Config,
    Operation,
    Progress,
)
from steersman.controllers.attachdetach.world import NodeState, World
from steersman.controllers.shared.pod_claims import claim_names
from steersman.controllers.shared.volumes import CSI, attachment_name, inline_volumes
from steersman.intent.actions import Address, Delete, List, Read
from steersman.intent.metrics import Measure

CACHE_DELAY = 1.0
"""Seconds after which a pod is looked for in the cache again."""


async def detach(seen: World, node: NodeState, memory: VolumeMemory, config: Config) -> Progress:
    name, volume = node.name, node.volume
    under_way = memory.operations.get(name)
    if not node.present:
        memory.succeeded(name, volume.exclusive)
        if under_way is not None and under_way.name == DETACH:
            await measure(node, under_way, SUCCESS, seen.monotonic)
        memory.detached(name)
        seen.memory.attachments.pop(attachment_name(volume, name), None)
        return Progress(f"detached from {name}")
    if under_way is not None and under_way.name == DETACH:
        return await await_detached(seen, node, memory, under_way)
    if under_way is not None and not _is_answered(node):
        left = under_way.started + OPERATION_TIMEOUT - seen.monotonic
        if left > 0:
            return Progress(f"being attached to {name}, though no pod uses it any more", left)
    memory.operations.pop(name, None)
    if not node.attached and not node.reported:
        memory.uncertain[name] = None
    wait = memory.backoff(DETACH, name, volume.exclusive, seen.monotonic)
    if wait:
        return Progress(f"detaching from {name} failed, to be tried again", wait)
    if node.mounted and name in memory.used and config.verify and await _is_attachment_gone(node):
        # Another client has deleted it, and the driver has let it go: it may be attached elsewhere, as with upstream.
        await unreport(seen, node, memory)
        return Progress(f"no longer attached to {name}")
    requested = memory.detach_requested.setdefault(name, seen.monotonic)
    left = requested + UNMOUNT_TIMEOUT - seen.monotonic
    timed_out = left <= 0 and config.force_detach
    if node.mounted and not node.out_of_service and not (timed_out and not node.healthy):
        because = f"still mounted on {name}"
        return Progress(because, left if left > 0 and config.force_detach and not node.healthy else None)
    if name not in memory.used and node.managed and await _is_used(seen, node):
        return Progress(f"used on {name} by a pod that the cache does not show yet", CACHE_DELAY)
    forced = OUT_OF_SERVICE if node.out_of_service and not timed_out else TIMEOUT if timed_out else ""
    # differs: upstream first lets an attach of the volume to another node end, which may wait for this detach.
    # The kubelet must not mount the volume any more from here on.
    live = await unreport(seen, node, memory)
    if not forced and live is not None and volume.name in live.status.volumesInUse:
        # The kubelet was about to mount it, and the cache does not show that yet.
        begun = Operation(DETACH, seen.monotonic)
        return await _detach_failed(seen, node, memory, begun, f"in use on {name} again")
    if forced:
        await Measure(FORCED_DETACHES, labels=(forced,))
    if volume.plugin == CSI and not node.deleting:
        await _delete_attachment(node)
    return await await_detached(seen, node, memory, memory.begin(DETACH, name, seen.monotonic))


async def _is_used(seen: World, node: NodeState) -> bool:
    """Whether a pod uses the volume that the cache does not show.

    A process that never saw a pod use the volume may have begun with a list of pods from before there was one.

    differs: upstream trusts the list.
    """
    for pod in await List(PODS, "", field_selector=f"spec.nodeName={node.name}"):
        if pod.metadata.uid in seen.known_pods or is_terminated(pod):
            continue
        if any(Key(pod.metadata.namespace, name) in seen.claims for name in claim_names(pod)):
            return True
        if any(volume.name == seen.name for volume in inline_volumes(pod)):
            return True
    return False


async def _is_attachment_gone(node: NodeState) -> bool:
    """Whether the server has no VolumeAttachment for a volume that needs one. The cache may be older than the report."""
    if node.volume.plugin != CSI or node.attachment is not None:
        return False
    try:
        await Read(Address(VOLUMEATTACHMENTS, "", attachment_name(node.volume, node.name)))
    except NotFound:
        return True
    return False


def _is_answered(node: NodeState) -> bool:
    """Whether the driver has answered the VolumeAttachment of an attach."""
    attachment = node.attachment
    return attachment is None or attachment.status.attached or attachment.status.attachError is not None


async def unreport(seen: World, node: NodeState, memory: VolumeMemory) -> Node | None:
    """Remove a volume from the node's ``volumesAttached``; returns the live node, None if it is gone.

    Attaching it again, even with the same VolumeAttachment, is told in events again.
    """
    memory.attached.pop(node.name, None)
    current = node.node if node.reported else await read_node(node.name)
    if current is None:
        return None
    return await report(seen.memory, current, node.volume.name, attached=False)


async def _delete_attachment(node: NodeState) -> None:
    """Delete a VolumeAttachment, even one that the cache does not show."""
    name = attachment_name(node.volume, node.name)
    with suppress(NotFound):
        await Delete(node.attachment if node.attachment is not None else Address(VOLUMEATTACHMENTS, "", name))


async def await_detached(
    seen: World, node: NodeState, memory: VolumeMemory, operation: Operation
) -> Progress:
    """Wait until the driver has let the VolumeAttachment go. A failure lets another node attach the volume."""
    attachment = node.attachment
    error = attachment.status.detachError if attachment is not None and node.deleting else None
    left = operation.started + OPERATION_TIMEOUT - seen.monotonic
    if error is None and left > 0:
        return Progress(f"being detached from {node.name}", left)
    if not node.deleting:
        # Another client has created the VolumeAttachment or the report again.
        because = f"detaching from {node.name} failed, to be tried again"
        return await _detach_failed(seen, node, memory, operation, because)
    if node.name not in memory.uncertain:
        memory.uncertain[node.name] = None
        await measure(node, operation, FAILURE, seen.monotonic)
    return Progress(f"detaching from {node.name} failed; the driver tries again")


async def _detach_failed(
    seen: World, node: NodeState, memory: VolumeMemory, operation: Operation, because: str
) -> Progress:
    """End a detach that is to be tried again."""
    memory.uncertain[node.name] = None
    memory.failed(DETACH, node.name, node.volume.exclusive, seen.monotonic)
    await measure(node, operation, FAILURE, seen.monotonic)
    return Progress(because, memory.backoff(DETACH, node.name, node.volume.exclusive, seen.monotonic))
