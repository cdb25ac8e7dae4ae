"""`PartialObject`: an object of any resource, decoded for part of its metadata (PartialObjectMetadata).

The garbage collector caches every object of the cluster. So only identity, owners, finalizers and deletionTimestamp
are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.kinds import EMPTY, Object, OwnerReference, Struct
from steersman.api.scheme import Kind


class PartialObjectMeta(Struct, frozen=True):
    """The metadata of a `PartialObject`."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    deletionTimestamp: datetime | None = None
    ownerReferences: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class PartialObject(Object, frozen=True):
    """An object of any kind. The type does not determine the kind, so `kind_of` does not work for it."""

    metadata: PartialObjectMeta = PartialObjectMeta()  # type: ignore[assignment]  # fewer fields than an ObjectMeta


class LabelledPartialObjectMeta(PartialObjectMeta, frozen=True):
    """The metadata of a `LabelledPartialObject`."""

    labels: Mapping[str, str] = EMPTY


class LabelledPartialObject(PartialObject, frozen=True):
    """A `PartialObject` with its labels, for the few resources of which they are read."""

    metadata: LabelledPartialObjectMeta = LabelledPartialObjectMeta()


@lru_cache(maxsize=4096)
def partial_kind(group: str, version: str, kind: str, plural: str, namespaced: bool) -> Kind[PartialObject]:
    """Return the kind that decodes a resource as `PartialObject`. Equal arguments return the same `Kind`."""
    return Kind(group, version, kind, plural, namespaced, PartialObject)


def metadata_only(kind: Kind[Any]) -> bool:
    """Report whether the type of a kind has no field besides metadata."""
    return issubclass(kind.type, msgspec.Struct) and kind.type.__struct_fields__ == ("metadata",)
