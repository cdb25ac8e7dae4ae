"""How owning is followed for custom resources, whose schema is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from steersman.server.apply import reset_fields
from steersman.server.apply.deferred_owners import Owning
from steersman.server.apply.openapi import custom
from steersman.server.apply.ownership import Document, Filter, Terms
from steersman.server.apply.owning import reader


def following(
    api_version: str,
    kind: str,
    schema: Callable[[], Mapping[str, Any]],
    blank: Any,
    *,
    has_status: bool,
    replicas: str = "",
    alone: bool = True,
) -> Callable[[str], Owning]:
    """How owning is followed for one version of a custom resource, by subresource.

    ``schema`` makes its structural schema when that is first needed; ``replicas`` is the path of what
    ``scale`` sets; ``alone`` is whether there are no other versions.
    """

    @cache
    def shape() -> Any:
        return custom(schema())

    @cache
    def owning(subresource: str) -> Owning:
        terms = Terms(api_version, kind, shape(), subresource, _allowed(subresource, has_status, replicas))
        if not alone:
            terms = replace(terms, convert=_relabelled, at=lambda version: _at(terms, version))
        read = reader(api_version, kind)
        return Owning(terms, read, read(blank), blank)

    return owning


def _allowed(subresource: str, has_status: bool, replicas: str) -> Filter:
    if subresource == "status":
        return reset_fields.but(reset_fields.CUSTOM_STATUS)
    if subresource == "scale":
        return reset_fields.only((replicas.lstrip("."),))
    return reset_fields.but(("status",) if has_status else ())


# -- between versions -------------------------------------------------------------------------

# differs: a field that only the other version knows has an owner there no more once this one is written


def _relabelled(document: Document, version: str) -> Document | None:
    return {**document, "apiVersion": version}


def _at(terms: Terms, version: str) -> Terms | None:
    same = version.rpartition("/")[0] == terms.api_version.rpartition("/")[0]
    return replace(terms, api_version=version) if same else None
