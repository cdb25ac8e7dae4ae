"""Controller references, and timestamps in the precision that objects have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Kind


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the controller reference of an object, of which there is at most one."""
    for reference in obj.metadata.ownerReferences:
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Report whether an owner controls an object. The uid decides: a later owner of the same name is another one."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.metadata.uid


def owner_reference(owner: Object, kind: Kind[Any]) -> OwnerReference:
    """Return the controller reference to ``owner``, for objects that it creates."""
    return OwnerReference(
        apiVersion=kind.api_version,
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        blockOwnerDeletion=True,
    )


def truncate_to_seconds(now: datetime) -> datetime:
    """Truncate a time to whole seconds, the precision of metav1.Time, so that it equals what is read back."""
    return now.replace(microsecond=0)


def format_time(at: datetime) -> str:
    """Write a time as metav1.Time does, in UTC, for the bodies of patches."""
    # strftime would write years before 1000 without leading zeros.
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_micro_time(at: datetime) -> str:
    """Write a time as metav1.MicroTime does, in UTC. The server refuses one without its six digits."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
