"""Attaching: creates a VolumeAttachment, waits for the driver's answer, and tells the kubelet and the pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from steersman.api.errors import AlreadyExists, ApiError, TooManyRequests
from steersman.api.go_quote import quote
from steersman.api.kinds import Pod
from steersman.api.kinds.storage import VOLUMEATTACHMENTS
from steersman.controllers.attachdetach.detach import await_detached, unreport
from steersman.controllers.attachdetach.memory import VolumeMemory
from steersman.controllers.attachdetach.metrics import FAILURE, SUCCESS, measure
from steersman.controllers.attachdetach.node_status import report
from steersman.controllers.attachdetach.operations import (
    ATTACH,
    DETACH,
    OPERATION_TIMEOUT,
    Config,
    Operation,
    Progress,
)
from steersman.controllers.attachdetach.world import NodeState, World
from steersman.controllers.shared.volumes import CSI, attachment_name
from steersman.intent.actions import Create, Emit


def attach_order(seen: World, memory: VolumeMemory) -> list[NodeState]:
    """The nodes that want the volume: one that has a VolumeAttachment first, one whose attach has failed last."""
    return sorted(
        (node for node in seen.nodes if node.desired),
        key=lambda node: (not node.attached, node.name not in memory.operations, node.attachment is not None),
    )


async def attach(seen: World, node: NodeState, memory: VolumeMemory, config: Config) -> Progress:
    name, volume = node.name, node.volume
    if node.reported and (node.attached or not config.verify):
        memory.detach_requested.pop(name, None)
        if not node.deleting:
            await _finish_attach(seen, node, memory, tell=False)
        return Progress(f"attached to {name}")
    if node.reported:
        await unreport(seen, node, memory)
    under_way = memory.operations.get(name)
    attaching = under_way is not None and under_way.name == ATTACH and node.attachment is not None
    if volume.exclusive and not attaching:
        held = await _await_others(seen, node, memory)
        if held is not None:
            return held
    if under_way is not None and under_way.name == DETACH:
        if node.attachment is not None:
            # The new VolumeAttachment will have the name of this one.
            progress = await await_detached(seen, node, memory, under_way)
            if name not in memory.uncertain:
                return progress
            memory.operations.pop(name, None)
        else:
            memory.succeeded(name, volume.exclusive)
            await measure(node, under_way, SUCCESS, seen.monotonic)
    wait = memory.backoff(ATTACH, name, volume.exclusive, seen.monotonic)
    if wait and (node.deleting or not node.attached):
        return Progress(f"attaching to {name} failed, to be tried again", wait)
    if volume.plugin == CSI and node.attachment is None:
        return await _create_attachment(seen, node, memory)
    return await _await_attached(seen, node, memory)


async def _await_others(seen: World, node: NodeState, memory: VolumeMemory) -> Progress | None:
    """Wait until no other node has the volume, which one node at a time may have; None: none has.

    As upstream, a node from which detaching failed does not count: the storage system decides whether the volume can be
    attached to another one.
    """
    others = [each for each in seen.nodes if each.name != node.name and each.name not in memory.uncertain]
    for other in others:
        if other.name in memory.operations or (other.attachment is not None and not other.attached):
            return Progress(f"waits for the operation on {other.name}")
    holders = [other for other in others if other.attached or other.reported]
    if not holders:
        return None
    if node.name not in memory.waiting_reported:
        memory.waiting_reported[node.name] = None
        for pod in node.pods:
            message = volume_message(node, "Waiting for detach", waiting_message(pod, holders))
            await Emit(pod, "Warning", "FailedAttachVolume", message)
    return Progress(f"attached to {', '.join(other.name for other in holders)} already")


def waiting_message(pod: Pod, holders: Iterable[NodeState]) -> str:
    """Why a pod must wait for a volume. It names only pods of the same namespace."""
    users = [user for holder in holders for user in holder.pods]
    if not users:
        return (
            "Volume is already exclusively attached to one node, "
            "waiting on detach before it can be attached to another node"
        )
    namespace = pod.metadata.namespace
    local = [user.metadata.name for user in users if user.metadata.namespace == namespace]
    foreign = f"{len(users) - len(local)} pod(s) in different namespaces"
    if not local:
        return f"Volume is already used by {foreign}"
    message = f"Volume is already used by pod(s) {', '.join(local)}"
    return f"{message} and {foreign}" if len(users) > len(local) else message


async def _create_attachment(seen: World, node: NodeState, memory: VolumeMemory) -> Progress:
    operation = memory.begin(ATTACH, node.name, seen.monotonic)
    try:
        await Create(VOLUMEATTACHMENTS, "", attachment_document(node))
    except AlreadyExists:
        pass
    except ApiError as error:
        if error.uncertain or error.code == TooManyRequests.code or not 400 <= error.code < 500:
            # differs: upstream tells the pods of every error, even of one that passes.
            raise
        message = f"{CSI}: attacher.Attach failed: {error}"
        return await _attach_failed(seen, node, memory, operation, message)
    seen.memory.attachments[attachment_name(node.volume, node.name)] = seen.name
    return Progress(f"being attached to {node.name}", OPERATION_TIMEOUT)


def attachment_document(node: NodeState) -> dict[str, Any]:
    """The VolumeAttachment of a volume and a node."""
    volume = node.volume
    inline = volume.inline_spec
    source = {"inlineVolumeSpec": inline} if inline is not None else {"persistentVolumeName": volume.pv}
    return {
        "metadata": {"name": attachment_name(volume, node.name)},
        "spec": {"attacher": volume.driver, "nodeName": node.name, "source": source},
    }


async def _await_attached(seen: World, node: NodeState, memory: VolumeMemory) -> Progress:
    """Wait until the driver has answered the VolumeAttachment, and tell the pods and the kubelet."""
    operation = memory.begin(ATTACH, node.name, seen.monotonic)
    attachment = node.attachment
    if attachment is None or (attachment.status.attached and not node.deleting):
        await _finish_attach(seen, node, memory, tell=True)
        if node.node is not None:
            await report(seen.memory, node.node, node.volume.name, attached=True)
        return Progress(f"attached to {node.name}")
    if node.deleting:
        return await _attach_failed(seen, node, memory, operation, "volume attachment is being deleted")
    if attachment.status.attachError is not None:
        return await _attach_failed(seen, node, memory, operation, attachment.status.attachError.message)
    left = operation.started + OPERATION_TIMEOUT - seen.monotonic
    if left > 0:
        return Progress(f"being attached to {node.name}", left)
    driver, handle = node.volume.driver, node.volume.handle
    message = f"timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}"
    return await _attach_failed(seen, node, memory, operation, message)


async def _finish_attach(seen: World, node: NodeState, memory: VolumeMemory, *, tell: bool) -> None:
    """End the attach of a node; ``tell``: with an event for each pod, unless this attachment already had it."""
    uid = node.attachment.metadata.uid if node.attachment is not None else ""
    operation = memory.operations.get(node.name)
    told = memory.attached.get(node.name) == uid
    memory.attached[node.name] = uid
    memory.uncertain.pop(node.name, None)
    memory.succeeded(node.name, node.volume.exclusive)
    if operation is not None and operation.name == ATTACH:
        await measure(node, operation, SUCCESS, seen.monotonic)
    if tell and not told:
        await _tell(node, "Normal", "SuccessfulAttachVolume", "AttachVolume.Attach succeeded", "")


async def _attach_failed(
    seen: World, node: NodeState, memory: VolumeMemory, operation: Operation, message: str
) -> Progress:
    memory.uncertain[node.name] = None
    memory.failed(ATTACH, node.name, node.volume.exclusive, seen.monotonic)
    await measure(node, operation, FAILURE, seen.monotonic)
    await _tell(node, "Warning", "FailedAttachVolume", "AttachVolume.Attach failed", f": {message}")
    wait = memory.backoff(ATTACH, node.name, node.volume.exclusive, seen.monotonic)
    return Progress(f"attaching to {node.name} failed: {message}", wait)


async def _tell(
    node: NodeState, type_: Literal["Normal", "Warning"], reason: str, prefix: str, suffix: str
) -> None:
    """Emits an event about each pod that waits for the volume."""
    for pod in node.pods:
        await Emit(pod, type_, reason, volume_message(node, prefix, suffix))


def volume_message(node: NodeState, prefix: str, suffix: str) -> str:
    """The message of an event, as upstream words it; without a suffix it ends in a space."""
    return f"{prefix} for volume {quote(node.volume.spec_name)} {suffix}"
