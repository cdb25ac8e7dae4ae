"""ObjectMeta: the metadata that the server sets on create and update."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from random import Random

import msgspec

from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The finalizers that make the garbage collector orphan or delete the dependents first."""


def new_uid(random: Random) -> str:
    """A random (version 4) UUID."""
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def meta_for_create(
    meta: ObjectMeta, *, name: str, namespace: str, uid: str, now: datetime, generation: int
) -> ObjectMeta:
    """The metadata of a new object, with the fields only the server may set."""
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
        ownerReferences=deduplicate(meta.ownerReferences),
    )


def meta_for_update(meta: ObjectMeta, old: ObjectMeta, *, namespace: str) -> ObjectMeta:
    """The metadata of an update; fields only the server may set stay as they were."""
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
        # The field manager sets the new ones when the object is written.
        managedFields=old.managedFields,
        ownerReferences=deduplicate(meta.ownerReferences),
    )


def duplicate_warnings(references: tuple[OwnerReference, ...], *, patched: bool) -> list[str]:
    """The warning for owner references that are dropped because they are there twice, by a patch or in a body."""
    unique = deduplicate(references)
    if len(unique) == len(references):
        return []
    counts = Counter(reference.uid for reference in references)
    counts.subtract(reference.uid for reference in unique)
    uids = ", ".join(uid for uid, count in counts.items() if count)
    when = " after mutating admission happens" if patched else ""
    return [
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and "
        f"may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    ]


def deduplicate(references: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    """Owner references without duplicates."""
    if len(references) < 2:
        return references
    unique: list[OwnerReference] = []
    for reference in references:
        if reference not in unique:
            unique.append(reference)
    return references if len(unique) == len(references) else tuple(unique)
