"""Metadata: what the server sets itself."""

from __future__ import annotations

from datetime import datetime
from random import Random

import msgspec

from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The finalizers by which the garbage collector is asked to see to the dependents first."""


def uid(random: Random) -> str:
    """A random (version 4) uuid."""
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def begun(
    meta: ObjectMeta, *, name: str, namespace: str, uid: str, now: datetime, generation: int
) -> ObjectMeta:
    """The metadata of a new object: what only the server may say is said by the server."""
    return msgspec.structs.replace(
        meta,
        name=name,
        namespace=namespace,
        uid=uid,
        creationTimestamp=now,
        deletionTimestamp=None,
        deletionGracePeriodSeconds=None,
        generation=generation,
        selfLink="",
        ownerReferences=deduplicated(meta.ownerReferences),
    )


def continued(meta: ObjectMeta, old: ObjectMeta, *, namespace: str) -> ObjectMeta:
    """The metadata of an update: what only the server may say stays as it was."""
    grace = meta.deletionGracePeriodSeconds
    return msgspec.structs.replace(
        meta,
        namespace=namespace,
        uid=meta.uid or old.uid,
        creationTimestamp=old.creationTimestamp,
        deletionTimestamp=old.deletionTimestamp or meta.deletionTimestamp,
        deletionGracePeriodSeconds=old.deletionGracePeriodSeconds if grace is None else grace,
        generation=old.generation,
        selfLink="",
        # Who owns what from now on is decided when it is written.
        managedFields=old.managedFields,
        ownerReferences=deduplicated(meta.ownerReferences),
    )


def deduplicated(references: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    """Each owner once."""
    if len(references) < 2:
        return references
    unique: list[OwnerReference] = []
    for reference in references:
        if reference not in unique:
            unique.append(reference)
    return references if len(unique) == len(references) else tuple(unique)
