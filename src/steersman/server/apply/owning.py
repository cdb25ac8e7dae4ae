"""How owning is followed for a resource; here, for those that are made of structs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec.structs import replace
from msgspec.structs import replace as replaced

from steersman.server.apply import reset_fields
from steersman.server.apply.deferred_owners import Owning
from steersman.server.apply.ownership import Document, Terms
from steersman.server.apply.structs import shape_of
from steersman.server.codec.convert import adopt, document
from steersman.server.registry.resources import Resource
from steersman.server.registry.versions import Kin, kin

_SCALE = reset_fields.only(("spec.replicas",))


@lru_cache(maxsize=1024)
def owning(resource: Resource, subresource: str = "") -> Owning:
    """How owning is followed for a resource, or for one of its subresources."""
    if resource.strategy.owning is not None:
        made: Owning = resource.strategy.owning(subresource)
        return made
    allowed = reset_fields.allowed(resource.id, subresource, has_status="status" in resource.subresources)
    terms = Terms(
        resource.api_version,
        resource.kind,
        shape_of(resource.type),
        subresource,
        _SCALE if subresource == "scale" else allowed,
    )
    other = kin(resource.group, resource.version, resource.plural, resource.kind)
    if other is not None:
        terms = _shared(resource, terms, other)
    read = reader(resource.api_version, resource.kind)
    blank = resource.type()
    return Owning(terms, read, read(blank), blank)


def _shared(resource: Resource, terms: Terms, other: Kin) -> Terms:
    """The terms of objects that are written in another version, too."""
    there = replaced(terms, api_version=other.api_version, kind=other.kind, shape=shape_of(other.type))
    read = reader(other.api_version, other.kind)

    def convert(document: Document, version: str) -> Document | None:
        return read(other.turn(adopt(resource.type, document))) if version == other.api_version else None

    return replaced(
        terms, convert=convert, at=lambda version: there if version == other.api_version else None
    )


def reader(api_version: str, kind: str) -> Callable[[Any], Document]:
    """What makes a document of a stored object, without its ``managedFields``."""

    def read(obj: Any) -> Document:
        # What is put off there must not be worked out just to be looked away from.
        meta = replace(obj.metadata, managedFields=())
        return document(api_version, kind, replace(obj, metadata=meta))

    return read
