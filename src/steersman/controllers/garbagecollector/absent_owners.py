"""The owners that are known not to exist.

A uid never comes back, so what was absent once is absent for good: to note it can do no harm, whoever does.
"""

from __future__ import annotations

from typing import NamedTuple

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds import Object, OwnerReference
from steersman.api.scheme import Kind

ENTRIES = 500
"""Upstream's number."""


class Coordinates(NamedTuple):
    """All that a reference says of an owner, and the namespace it must be in; none for a cluster's."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


def coordinates(reference: OwnerReference, namespace: str) -> Coordinates:
    """Where a reference points to, if its owner is in this namespace."""
    return Coordinates(reference.apiVersion, reference.kind, namespace, reference.name, reference.uid)


def coordinates_of(kind: Kind[object], obj: Object) -> Coordinates:
    """Where an object is."""
    meta = obj.metadata
    return Coordinates(kind.api_version, kind.name, meta.namespace, meta.name, meta.uid)


class Absent:
    """Remembers the latest of them."""

    def __init__(self, entries: int = ENTRIES) -> None:
        self._known: BoundedCache[Coordinates, bool] = BoundedCache(entries)

    def add(self, owner: Coordinates) -> None:
        self._known.put(owner, True)

    def __contains__(self, owner: Coordinates) -> bool:
        return self._known.use(owner) is not None

    def __len__(self) -> int:
        return len(self._known)
