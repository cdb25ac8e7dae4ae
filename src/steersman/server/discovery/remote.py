"""Discovery of aggregated API servers: what their documents tell of a group version, made part of our own.

Documents come from other programs: whatever is malformed in one is left out, and the rest of discovery is as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.api.generated import Resource, Subresource


class RemoteVersion(msgspec.Struct, frozen=True):
    """A group version that another server serves."""

    group: str
    version: str
    group_priority: int
    version_priority: int
    document: Mapping[str, Any]
    """Its APIVersionDiscovery. One that is ``Stale`` could not be read, which is not to say that it has no resources."""


def stale_version(version: str) -> dict[str, Any]:
    """The APIVersionDiscovery of a group version whose server does not answer."""
    return {"version": version, "freshness": "Stale"}


class _Kind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class _SubresourceDiscovery(msgspec.Struct, frozen=True, omit_defaults=True):
    subresource: str = ""
    responseKind: _Kind | None = None
    acceptedTypes: tuple[_Kind, ...] = ()
    verbs: tuple[str, ...] = ()


class _ResourceDiscovery(msgspec.Struct, frozen=True, omit_defaults=True):
    resource: str = ""
    responseKind: _Kind | None = None
    scope: str = ""
    singularResource: str = ""
    verbs: tuple[str, ...] = ()
    shortNames: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[_SubresourceDiscovery, ...] = ()


class _VersionDiscovery(msgspec.Struct, frozen=True):
    version: str = ""
    resources: tuple[_ResourceDiscovery, ...] = ()


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _GroupDiscovery(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    versions: tuple[_VersionDiscovery, ...] = ()


class _GroupDiscoveryList(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[_GroupDiscovery, ...] = ()


def aggregated_version(body: bytes, group: str, version: str) -> dict[str, Any] | None:
    """The APIVersionDiscovery of a group version in an aggregated document; None if the document is none.

    One that does not tell of the group version has no resources of it.
    """
    try:
        found = msgspec.json.decode(body, type=_GroupDiscoveryList)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found.kind != "APIGroupDiscoveryList":
        return None
    for item in found.items:
        for each in item.versions:
            if (item.metadata.name, each.version) == (group, version):
                return {
                    "version": version,
                    "resources": [_resource_discovery(one) for one in each.resources],
                    "freshness": "Current",
                }
    return {"version": version, "freshness": "Current"}


def _resource_discovery(resource: _ResourceDiscovery) -> dict[str, Any]:
    """As upstream, clients that expect a kind are given an empty one."""
    made: dict[str, Any] = {**msgspec.to_builtins(resource)}
    made["responseKind"] = _kind(resource.responseKind)
    if resource.subresources:
        made["subresources"] = [
            {**msgspec.to_builtins(each), "responseKind": _kind(each.responseKind)}
            for each in resource.subresources
        ]
    return made


def _kind(kind: _Kind | None) -> dict[str, str]:
    return {"group": "", "version": "", "kind": ""} if kind is None else msgspec.structs.asdict(kind)


# -- legacy documents -------------------------------------------------------------------------


class _APIResource(msgspec.Struct, frozen=True):
    name: str
    kind: str = ""
    namespaced: bool = False
    singularName: str = ""
    verbs: tuple[str, ...] = ()
    shortNames: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    group: str = ""
    version: str = ""


class _APIResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_APIResource, ...] = ()


def legacy_rows(group: str, version: str, body: bytes) -> tuple[Resource, ...] | None:
    """The resources of an APIResourceList; None if it is malformed."""
    try:
        found = msgspec.json.decode(body, type=_APIResourceList).resources
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    subresources: dict[str, list[Subresource]] = {}
    for each in found:
        plural, slash, name = each.name.partition("/")
        if slash:
            one = Subresource(name, each.group or group, each.version or version, each.kind, each.verbs)
            subresources.setdefault(plural, []).append(one)
    return tuple(_row(group, version, each, subresources) for each in found if "/" not in each.name)


def _row(
    group: str, version: str, resource: _APIResource, subresources: Mapping[str, Iterable[Subresource]]
) -> Resource:
    return Resource(
        group,
        version,
        resource.kind,
        resource.name,
        resource.singularName,
        resource.namespaced,
        resource.shortNames,
        resource.categories,
        resource.verbs,
        tuple(subresources.get(resource.name, ())),
        "",
    )
