"""Finds the volume for a claim: one reserved for it, or the smallest free one that satisfies it.

Free volumes are filed by class, volume mode and VolumeAttributesClass, then by access modes, and ordered by size, so that
a claim looks at few volumes however many there are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.api.label_selectors import EVERYTHING, Selector, compile_selector
from steersman.api.volume_binding import (
    AccessModes,
    access_modes,
    class_of_claim,
    class_of_volume,
    is_claimed_for,
    mode_of,
    storage_of,
)
from steersman.intent.verdict import InvalidSpec

FREE_PHASES = ("", "Pending", "Available")
"""differs: upstream binds available volumes only, so a new volume has one more write before it is bound."""

Sized: TypeAlias = tuple[int, str]
"""The size of a volume in nanos and its name."""


class Group(msgspec.Struct, frozen=True):
    """The classes and the volume mode that a claim and its volume must share."""

    storage_class: str
    mode: str
    attributes_class: str


class Request(msgspec.Struct, frozen=True):
    """The requirements of a claim on a volume: its group, size, access modes and labels."""

    group: Group
    size: int
    """In nanos."""
    modes: AccessModes
    selector: Selector

    def admits(self, volume: PersistentVolume) -> bool:
        """Whether a free volume satisfies the claim."""
        return (
            group_of(volume) == self.group
            and storage_of(volume.spec.capacity).nanos >= self.size
            and set(self.modes) <= set(volume.spec.accessModes)
            and self.selector.matches(volume.metadata.labels)
        )


def request_of(claim: PersistentVolumeClaim) -> Request:
    """Raises `InvalidSpec` for a claim that no volume can satisfy."""
    spec = claim.spec
    group = Group(class_of_claim(claim), mode_of(spec), spec.volumeAttributesClassName or "")
    try:
        selector = EVERYTHING if spec.selector is None else compile_selector(spec.selector)
        return Request(group, storage_of(spec.resources.requests).nanos, spec.accessModes, selector)
    except ValueError as error:
        raise InvalidSpec(f'error finding PV for claim "{claim.key}": {error}') from None


def group_of(volume: PersistentVolume) -> Group:
    spec = volume.spec
    return Group(class_of_volume(volume), mode_of(spec), spec.volumeAttributesClassName or "")


def is_free(volume: PersistentVolume) -> bool:
    """Whether any claim may take a volume. One without capacity could not be decoded."""
    return (
        volume.spec.claimRef is None
        and bool(volume.spec.capacity)
        and volume.metadata.deletionTimestamp is None
        and volume.status.phase in FREE_PHASES
    )


class FreeVolumes:
    """The free volumes in the cache of volumes."""

    def __init__(self) -> None:
        self._groups: dict[Group, dict[AccessModes, list[Sized]]] = {}
        self._filed: dict[str, tuple[Group, AccessModes, int]] = {}

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, name: str) -> bool:
        return name in self._filed

    def put(self, volume: PersistentVolume) -> None:
        """File a volume, or drop it if it is not free."""
        name = volume.metadata.name
        at = _filed_at(volume)
        if self._filed.get(name) == at:
            return
        self.remove(name)
        if at is None:
            return
        group, modes, size = self._filed[name] = at
        insort(self._groups.setdefault(group, {}).setdefault(modes, []), (size, name))

    def remove(self, name: str) -> None:
        at = self._filed.pop(name, None)
        if at is None:
            return
        group, modes, size = at
        by_modes = self._groups[group]
        volumes = by_modes[modes]
        del volumes[bisect_left(volumes, (size, name))]
        if not volumes:
            del by_modes[modes]
        if not by_modes:
            del self._groups[group]

    def modes(self, group: Group) -> Iterable[AccessModes]:
        """The sets of access modes that the volumes of a group have."""
        return self._groups.get(group, {})

    def at_least(self, group: Group, modes: AccessModes, size: int) -> Iterator[str]:
        """The names of volumes with exactly these access modes and at least this size, the smallest first."""
        volumes = self._groups.get(group, {}).get(modes, [])
        for index in range(bisect_left(volumes, (size, "")), len(volumes)):
            yield volumes[index][1]


def _filed_at(volume: PersistentVolume) -> tuple[Group, AccessModes, int] | None:
    if not is_free(volume):
        return None
    try:
        size = storage_of(volume.spec.capacity).nanos
    except ValueError:
        return None
    return group_of(volume), access_modes(volume.spec.accessModes), size


def find_volume(
    claim: PersistentVolumeClaim,
    reserved: Iterable[PersistentVolume],
    free: FreeVolumes,
    volume_named: Callable[[str], PersistentVolume | None],
    *,
    delayed: bool = False,
) -> PersistentVolume | None:
    """The volume for a claim; None if there is none.

    Volumes with fewer access modes come first. Among volumes of the same access modes, one that is ``reserved`` for the
    claim by its claimRef comes before the smallest free one. ``volume_named`` returns a free volume by its name, or
    None if another claim is about to take it. With ``delayed`` binding the scheduler chooses among free volumes.
    """
    request = request_of(claim)
    wanted = access_modes(request.modes)
    mine = sorted(
        (volume for volume in reserved if _is_reserved(volume, claim, request)),
        key=lambda volume: volume.metadata.name,
    )
    possible = {access_modes(volume.spec.accessModes) for volume in mine}
    if not delayed:
        possible.update(free.modes(request.group))
    for modes in sorted(possible, key=lambda modes: (len(modes), modes)):
        if not set(wanted) <= set(modes):
            continue
        for volume in mine:
            if access_modes(volume.spec.accessModes) == modes:
                return volume
        if delayed:
            continue
        for name in free.at_least(request.group, modes, request.size):
            found = volume_named(name)
            if found is not None and request.selector.matches(found.metadata.labels):
                return found
    return None


def _is_reserved(volume: PersistentVolume, claim: PersistentVolumeClaim, request: Request) -> bool:
    """Whether a volume is reserved for a claim, whatever its class, and has what the claim needs."""
    spec = volume.spec
    return (
        is_claimed_for(volume, claim)
        and volume.metadata.deletionTimestamp is None
        and mode_of(spec) == request.group.mode
        and (spec.volumeAttributesClassName or "") == request.group.attributes_class
        and storage_of(spec.capacity).nanos >= request.size
    )
