"""Objects of which only the metadata is known: for whoever looks at every resource there is.

Of the metadata only what tells one object from all others is kept, who owns it, and whether it is going:
a cluster has many more objects than any controller looks into.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from steersman.api.kinds import Object, OwnerReference, Struct
from steersman.api.scheme import Kind


class PartialObjectMeta(Struct, frozen=True):
    """The part of an object's metadata that a `PartialObject` has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    deletionTimestamp: datetime | None = None
    ownerReferences: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class PartialObject(Object, frozen=True):
    """An object of any kind, by its identity. Its type says nothing of its kind: `kind_of` knows it not."""

    metadata: PartialObjectMeta = PartialObjectMeta()  # type: ignore[assignment]  # fewer fields than an ObjectMeta


@lru_cache(maxsize=4096)
def partial_kind(group: str, version: str, kind: str, plural: str, namespaced: bool) -> Kind[PartialObject]:
    """A resource, read for its metadata alone. The same resource is the same `Kind` each time."""
    return Kind(group, version, kind, plural, namespaced, PartialObject)


def metadata_only(kind: Kind[Any]) -> bool:
    """Whether nothing but metadata is asked for."""
    return getattr(kind.type, "__struct_fields__", None) == ("metadata",)
