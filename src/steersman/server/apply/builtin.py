"""How owning is followed for a resource; here, for those that are made of structs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from steersman.server.apply import resets
from steersman.server.apply.lazy import Owning
from steersman.server.apply.structs import shape_of
from steersman.server.apply.updates import Document, Terms
from steersman.server.convert import document
from steersman.server.resources import Resource

_SCALE = resets.only(("spec.replicas",))


@lru_cache(maxsize=1024)
def owning(resource: Resource, subresource: str = "") -> Owning:
    """How owning is followed for a resource, or for one of its subresources."""
    if resource.strategy.owning is not None:
        made: Owning = resource.strategy.owning(subresource)
        return made
    allowed = resets.allowed(resource.id, subresource, has_status="status" in resource.subresources)
    terms = Terms(
        resource.api_version,
        resource.kind,
        shape_of(resource.type),
        subresource,
        _SCALE if subresource == "scale" else allowed,
    )
    read = reader(resource.api_version, resource.kind)
    blank = resource.type()
    return Owning(terms, read, read(blank), blank)


def reader(api_version: str, kind: str) -> Callable[[Any], Document]:
    """What makes a document of a stored object, without its ``managedFields``."""

    def read(obj: Any) -> Document:
        # What is put off there must not be worked out just to be looked away from.
        meta = replace(obj.metadata, managedFields=())
        return document(api_version, kind, replace(obj, metadata=meta))

    return read
