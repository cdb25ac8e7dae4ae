"""Discovers a server's resources: from the aggregated document, or from one document per group version.

A failure of discovery as a whole is raised. A group version that could not be discovered (an aggregated API whose
server is down) is listed in the result. Neither can be mistaken for "not served".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion, merge_results
from steersman.api.errors import ApiError, ServerError

Document: TypeAlias = Mapping[str, Any]

LIST = "APIGroupDiscoveryList"
ACCEPT = ",".join(
    (
        f"application/json;g=apidiscovery.k8s.io;v=v2;as={LIST}",
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1;as={LIST}",
        "application/json",
    )
)


class DocumentReader(Protocol):
    """Reads documents that are not resources, such as ``/apis``."""

    async def __call__(self, path: str, *, accept: str = ...) -> dict[str, Any]: ...


async def discover(document: DocumentReader) -> DiscoveryResult:
    """Return the resources that the server serves. Raises `ApiError` if discovery fails as a whole."""
    roots = await asyncio.gather(*(document(path, accept=ACCEPT) for path in ("/api", "/apis")))
    parts = [
        parse_aggregated(root) if root.get("kind") == LIST else await _legacy(document, root)
        for root in roots
    ]
    return merge_results(parts)


# -- one document ---------------------------------------------------------------------------------


def parse_aggregated(document: Document) -> DiscoveryResult:
    """Parse an aggregated discovery document. A version marked as stale counts as not discovered."""
    found: list[ApiResource] = []
    failed: list[FailedGroupVersion] = []
    for group in _each(document, "items"):
        name = str((group.get("metadata") or {}).get("name") or "")
        for version in _each(group, "versions"):
            label = str(version.get("version") or "")
            if version.get("freshness") == "Stale":
                missing = f"{name}/{label}" if name else label
                failed.append(FailedGroupVersion(missing, f"stale GroupVersion discovery: {missing}"))
                continue
            found.extend(_aggregated_resources(name, label, version))
    return DiscoveryResult(tuple(found), tuple(failed))


def _aggregated_resources(group: str, version: str, document: Document) -> Iterator[ApiResource]:
    for entry in _each(document, "resources"):
        kind = str((entry.get("responseKind") or {}).get("kind") or "")
        # An entry without a kind is only the parent of a subresource.
        if kind:
            name, verbs = str(entry.get("resource") or ""), tuple(entry.get("verbs") or ())
            parts = tuple(str(one.get("subresource") or "") for one in _each(entry, "subresources"))
            namespaced, short = entry.get("scope") == "Namespaced", tuple(entry.get("shortNames") or ())
            yield ApiResource(group, version, kind, name, namespaced, verbs, parts, short)


# -- many documents -------------------------------------------------------------------------------


async def _legacy(document: DocumentReader, root: Document) -> DiscoveryResult:
    versions = list(group_versions(root))
    known = [name for name in versions if name.count("/") <= 1]
    malformed = tuple(name for name in versions if name.count("/") > 1)
    answers = await asyncio.gather(*(_resources(document, name) for name in known))
    return merge_results((*answers, DiscoveryResult(malformed=malformed)))


def group_versions(root: Document) -> Iterator[str]:
    """Yield the group versions of ``/api`` or ``/apis``; the preferred version of each group first."""
    if root.get("kind") == "APIVersions":
        yield from map(str, root.get("versions") or ())
        return
    if root.get("kind") != "APIGroupList":
        raise ServerError(f"not a discovery document: {str(root.get('kind'))[:40]!r}")
    for group in _each(root, "groups"):
        preferred = str((group.get("preferredVersion") or {}).get("groupVersion") or "")
        names = [str(version.get("groupVersion") or "") for version in _each(group, "versions")]
        yield from sorted(names, key=lambda name: name != preferred)


async def _resources(document: DocumentReader, group_version: str) -> DiscoveryResult:
    path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
    try:
        answer = await document(path, accept="application/json")
    except ApiError as error:
        return DiscoveryResult(failed=(FailedGroupVersion(group_version, error.message),))
    return DiscoveryResult(tuple(legacy_resources(group_version, answer)))


def legacy_resources(group_version: str, document: Document) -> Iterator[ApiResource]:
    """Yield the resources of one group version, with their subresources."""
    group, _, version = group_version.rpartition("/")
    subresources: dict[str, list[str]] = {}
    for entry in _each(document, "resources"):
        name, slash, part = str(entry.get("name") or "").partition("/")
        if slash:
            subresources.setdefault(name, []).append(part)
    for entry in _each(document, "resources"):
        name = str(entry.get("name") or "")
        if name and "/" not in name:
            verbs = tuple(entry.get("verbs") or ())
            kind = str(entry.get("kind") or "")
            parts = tuple(subresources.get(name, ()))
            namespaced, short = bool(entry.get("namespaced")), tuple(entry.get("shortNames") or ())
            yield ApiResource(group, version, kind, name, namespaced, verbs, parts, short)


def _each(document: Document, field: str) -> Iterable[Document]:
    return [item for item in document.get(field) or () if isinstance(item, Mapping)]
