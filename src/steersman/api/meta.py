"""Metadata: who controls an object, and time as objects carry it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Kind


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that controls the object, of which there is at most one."""
    for reference in obj.metadata.ownerReferences:
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Whether this very owner controls the object. A namesake that came later is not it: the uid counts."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.metadata.uid


def owner_reference(owner: Object, kind: Kind[Any]) -> OwnerReference:
    """The reference that makes ``owner`` the controller of what carries it."""
    return OwnerReference(
        apiVersion=kind.api_version,
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        blockOwnerDeletion=True,
    )


def truncate_to_seconds(now: datetime) -> datetime:
    """The time as objects carry it: in whole seconds, so what is written equals what is read back."""
    return now.replace(microsecond=0)
