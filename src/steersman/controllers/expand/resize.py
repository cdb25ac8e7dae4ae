"""The resize of a claim as its status records it: conditions, and the size and state of storage that is allocated.

::

    (none) --> ControllerResizeInProgress --> NodeResizePending --> NodeResizeInProgress --> (none)
                          |                      ^        |
                          |                      |        v
                          |                   NodeResizeInfeasible
                          v
                       (none), where no node has to resize a file system

``allocatedResources`` has the size that a resize began with. It is resumed with that size, whatever is requested meanwhile,
since the volume may have been expanded already.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TypeAlias

from msgspec.structs import replace

from steersman.api.kinds import Condition
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from steersman.api.meta import truncate_to_seconds
from steersman.api.quantity import storage_of

STORAGE = "storage"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""The annotation of a volume with the capacity of its claim before a resize, until the node has done its part."""

CONTROLLER_IN_PROGRESS = "ControllerResizeInProgress"
CONTROLLER_INFEASIBLE = "ControllerResizeInfeasible"
NODE_PENDING = "NodeResizePending"
NODE_IN_PROGRESS = "NodeResizeInProgress"
NODE_INFEASIBLE = "NodeResizeInfeasible"

RESIZING = "Resizing"
FILE_SYSTEM_PENDING = "FileSystemResizePending"
RESIZE_CONDITIONS = frozenset({RESIZING, FILE_SYSTEM_PENDING, "ControllerResizeError", "NodeResizeError"})
FILE_SYSTEM_PENDING_MESSAGE = (
    "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
)

Size: TypeAlias = str | int | float
"""An amount of storage as it was written."""


class NodeStep(Enum):
    """The step that is left for the node where the volume itself needs no resize."""

    WAIT = "the node resizes the file system"
    MARK_PENDING = "the node is to try again"


# -- decisions ------------------------------------------------------------------------------------


def needs_expansion(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether a claim requests more than it has, or a resize is not finished."""
    requested = storage_of(claim.spec.resources.requests)
    return requested > storage_of(claim.status.capacity) or PRE_RESIZE_CAPACITY in volume.metadata.annotations


def is_complete(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the capacity of a claim is all that is requested and all that its volume has.

    Both are compared, because the request may have been lowered to recover from a failed expansion.
    """
    capacity = storage_of(claim.status.capacity)
    return capacity >= storage_of(claim.spec.resources.requests) and capacity >= storage_of(
        volume.spec.capacity
    )


def next_size(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Size | NodeStep:
    """The size to expand a volume to, or the step of the node that comes next."""
    requested = claim.spec.resources.requests.get(STORAGE, "0")
    allocated = claim.status.allocatedResources.get(STORAGE)
    state = claim.status.allocatedResourceStatuses.get(STORAGE, "")
    if storage_of(volume.spec.capacity) < storage_of(claim.spec.resources.requests):
        resumes = state in (CONTROLLER_IN_PROGRESS, NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE)
    elif state in (NODE_IN_PROGRESS, NODE_PENDING):
        return NodeStep.WAIT
    elif state == NODE_INFEASIBLE:
        return NodeStep.MARK_PENDING
    else:
        resumes = state in (CONTROLLER_IN_PROGRESS, CONTROLLER_INFEASIBLE, "")
    return allocated if resumes and allocated is not None else requested


# -- the status of a claim ------------------------------------------------------------------------


def merge_conditions(
    present: tuple[Condition, ...], new: tuple[Condition, ...] = (), *, keep_old: bool
) -> tuple[Condition, ...]:
    """The conditions with those of a resize replaced by the new ones; ``keep_old`` keeps the others of a resize.

    A condition that has the same status already stays as it is.
    """
    wanted = {condition.type: condition for condition in new}
    merged = []
    for condition in present:
        replacement = wanted.pop(condition.type, None) if condition.type in RESIZE_CONDITIONS else None
        if replacement is not None:
            merged.append(condition if replacement.status == condition.status else replacement)
        elif keep_old or condition.type not in RESIZE_CONDITIONS:
            merged.append(condition)
    return (*merged, *wanted.values())


def in_progress(claim: PersistentVolumeClaim, size: Size, now: datetime) -> PersistentVolumeClaimStatus:
    """The status of a claim whose volume is being expanded."""
    status = claim.status
    condition = Condition(type=RESIZING, status="True", lastTransitionTime=truncate_to_seconds(now))
    return replace(
        status,
        conditions=merge_conditions(status.conditions, (condition,), keep_old=False),
        allocatedResources={**status.allocatedResources, STORAGE: size},
        allocatedResourceStatuses={**status.allocatedResourceStatuses, STORAGE: CONTROLLER_IN_PROGRESS},
    )


def node_pending(claim: PersistentVolumeClaim, now: datetime) -> PersistentVolumeClaimStatus:
    """The status of a claim whose volume is expanded, and whose file system is not."""
    status = claim.status
    condition = Condition(
        type=FILE_SYSTEM_PENDING,
        status="True",
        lastTransitionTime=truncate_to_seconds(now),
        message=FILE_SYSTEM_PENDING_MESSAGE,
    )
    return replace(
        status,
        conditions=merge_conditions(status.conditions, (condition,), keep_old=True),
        allocatedResourceStatuses={**status.allocatedResourceStatuses, STORAGE: NODE_PENDING},
    )


def finished(claim: PersistentVolumeClaim, size: Size) -> PersistentVolumeClaimStatus:
    """The status of a claim that has its new size."""
    status = claim.status
    others = {name: state for name, state in status.allocatedResourceStatuses.items() if name != STORAGE}
    return replace(
        status,
        capacity={**status.capacity, STORAGE: size},
        conditions=merge_conditions(status.conditions, keep_old=False),
        allocatedResourceStatuses=others,
    )
