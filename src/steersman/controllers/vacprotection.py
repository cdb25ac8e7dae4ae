"""volumeattributesclass-protection-controller (a dialogue): keeps a VolumeAttributesClass while claims or volumes refer to it.

A claim refers to the class that it asks for, to the one that its volume has, and to the one that its volume is being
modified to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from steersman.api.kinds import Object
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTRIBUTESCLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttributesClass,
)
from steersman.api.scheme import Key
from steersman.controllers.shared.protection import (
    add_finalizer,
    is_deletion_candidate,
    needs_finalizer,
    needs_sync,
    remove_finalizer,
)
from steersman.intent.actions import List
from steersman.intent.controller import Caches, Change, Controller, Index, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

O = TypeVar("O", bound=Object)

FINALIZER = "kubernetes.io/vac-protection"
BY_CLASS = "by_volume_attributes_class"
CACHE_LAG = timedelta(seconds=10)
"""The delay of the next round where the caches do not show a claim or volume that the API server lists."""


class Observation(msgspec.Struct, frozen=True):
    """A class, and whether the caches have a claim or volume that refers to it."""

    class_: VolumeAttributesClass
    used: bool


def observe(caches: Caches, key: Key) -> Observation | None:
    class_ = caches[VOLUMEATTRIBUTESCLASSES].get(key)
    if class_ is None:
        return None
    used = any(caches[PERSISTENTVOLUMES].by(BY_CLASS, key.name)) or any(
        caches[PERSISTENTVOLUMECLAIMS].by(BY_CLASS, key.name)
    )
    return Observation(class_, used)


def classes_of_claim(claim: PersistentVolumeClaim) -> Iterable[str]:
    """The names of the classes that a claim refers to, each once."""
    modified = claim.status.modifyVolumeStatus
    names = (
        claim.spec.volumeAttributesClassName,
        claim.status.currentVolumeAttributesClassName,
        modified.targetVolumeAttributesClassName if modified is not None else None,
    )
    return {name: None for name in names if name}


def classes_of_volume(volume: PersistentVolume) -> Iterable[str]:
    """The name of the class that a volume has."""
    name = volume.spec.volumeAttributesClassName
    return (name,) if name else ()


async def decide(seen: Observation, now: datetime) -> Verdict:
    class_ = seen.class_
    if is_deletion_candidate(class_, FINALIZER):
        if seen.used:
            return Rest("class is in use")
        # differs: upstream trusts its caches here. One that is behind would cost a new claim its class.
        if await _is_referred_to(class_.metadata.name):
            return Wake(CACHE_LAG, "the caches do not show all claims and volumes yet")
        await remove_finalizer(class_, FINALIZER)
        return Rest("finalizer removed")
    if needs_finalizer(class_, FINALIZER):
        await add_finalizer(class_, FINALIZER)
        return Rest("finalizer added")
    return Rest("class is protected")


async def _is_referred_to(name: str) -> bool:
    """Whether the API server has a claim or volume that refers to a class."""
    if any(name in classes_of_volume(volume) for volume in await List(PERSISTENTVOLUMES, "")):
        return True
    return any(name in classes_of_claim(claim) for claim in await List(PERSISTENTVOLUMECLAIMS, ""))


# -- enqueue --------------------------------------------------------------------------------------


def _needs_sync(class_: VolumeAttributesClass) -> bool:
    return needs_sync(class_, FINALIZER)


def _no_longer(caches: Caches, change: Change[O], classes_of: Index) -> Iterator[Key]:
    """The classes being deleted that an object no longer refers to.

    differs: upstream ignores a deletion of the object that happened while the watch was interrupted.
    """
    if change.old is None:
        return
    kept = classes_of(change.new) if change.new is not None else ()
    for name in classes_of(change.old):
        class_ = caches[VOLUMEATTRIBUTESCLASSES].get(Key("", str(name)))
        if name not in kept and class_ is not None and is_deletion_candidate(class_, FINALIZER):
            yield class_.key


def _claim_changed(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterator[Key]:
    return _no_longer(caches, change, classes_of_claim)


def _volume_changed(caches: Caches, change: Change[PersistentVolume]) -> Iterator[Key]:
    return _no_longer(caches, change, classes_of_volume)


controller = Controller(
    name="volumeattributesclass-protection-controller",
    watches=(
        Watch(VOLUMEATTRIBUTESCLASSES, when=_needs_sync),
        Watch(PERSISTENTVOLUMECLAIMS, to=_claim_changed, indexes={BY_CLASS: classes_of_claim}),
        Watch(PERSISTENTVOLUMES, to=_volume_changed, indexes={BY_CLASS: classes_of_volume}),
    ),
    works_on=(VOLUMEATTRIBUTESCLASSES,),
    workers=1,
    feature_gates=("VolumeAttributesClass",),
    observe=observe,
    decide=decide,
)
