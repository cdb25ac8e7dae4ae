"""Reads a live cluster with get and list only: all resources that can be listed, page by page, one resourceVersion per kind.

A list whose continue token has expired starts over, so the objects of a kind are always those of one moment. A resource that may
not be listed is named with the reason, and never mistaken for one without objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound, Unauthorized, Unreachable
from steersman.api.generated import gated_resources, resources
from steersman.api.scheme import Kind
from steersman.client.api import Api, UndecodableObject
from steersman.client.pager import PAGE_SIZE, PageRequest, list_all, list_page
from steersman.snapshot.model import Sink, SnapshotKind
from steersman.snapshot.redaction import Redactor, without_managed_fields

EVENTS = ("events", "events.events.k8s.io")
OMITTED: Mapping[str, str] = {
    "leases.coordination.k8s.io": "heartbeats and locks, which are void in a copy",
    "leasecandidates.coordination.k8s.io": "candidates of an election, which are void in a copy",
    "componentstatuses": "computed by the server",
    "pods.metrics.k8s.io": "measurements, not objects",
    "nodes.metrics.k8s.io": "measurements, not objects",
}
"""Resources that no snapshot holds."""
_APISERVICES: Kind[dict[str, Any]] = Kind(
    "apiregistration.k8s.io", "v1", "APIService", "apiservices", False, dict
)

_encoder = msgspec.json.Encoder()


class Progress(msgspec.Struct, frozen=True):
    """How far a snapshot is."""

    resource: str
    done: int
    """Resources that were read."""
    total: int
    objects: int


class ClusterReading(msgspec.Struct, frozen=True):
    """The outcome of reading a cluster: the server's version, and the resources that were not read."""

    server: str
    """The version of the server."""
    unread: Mapping[str, str]
    omitted: Mapping[str, str]


async def read_cluster(
    api: Api,
    sink: Sink,
    *,
    redactor: Redactor | None,
    events: bool = False,
    page_size: int = PAGE_SIZE,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> ClusterReading:
    """Read all objects into a sink. Raises `Unreachable`, `Unauthorized`, or the error of discovery.

    Without a ``redactor`` the data of Secrets and ConfigMaps stay as they are. ``events`` are left out unless wanted.
    """
    version = await _version(api)
    found = await api.discover()
    aggregated = await _aggregated(api)
    unread = {each.group_version: f"not discovered: {each.error}" for each in found.failed}
    omitted: dict[str, str] = {}
    wanted: list[ApiResource] = []
    for resource in choose_versions(found):
        reason = OMITTED.get(resource.id, "")
        if resource.id in EVENTS and (not events or resource.group):
            reason = "events are not kept unless asked for" if not events else "the same as events"
        if not reason and resource.api_version in aggregated:
            reason = f"served by another server ({aggregated[resource.api_version]})"
        if reason:
            omitted[resource.id] = reason
        else:
            wanted.append(resource)
    objects = 0
    for done, resource in enumerate(wanted):
        progress(Progress(resource.id, done, len(wanted), objects))

        def told(count: int, before: int = objects, done: int = done, name: str = resource.id) -> None:
            progress(Progress(name, done, len(wanted), before + count))

        try:
            objects += await _read(api, resource, sink, redactor, page_size, told)
        except (Unreachable, Unauthorized):
            raise
        except (NotFound, MethodNotAllowed):
            continue  # no longer served
        except Forbidden:
            unread[resource.id] = "no right to list them"
        except ApiError as error:
            unread[resource.id] = error.message or type(error).__name__
    progress(Progress("", len(wanted), len(wanted), objects))
    return ClusterReading(version, unread, omitted)


def choose_versions(found: DiscoveryResult) -> list[ApiResource]:
    """The resources that can be listed, each in the first of its versions that this program knows, else in the preferred one."""
    known = {(row.group, row.plural, row.version) for row in (*resources(), *gated_resources())}
    best: dict[str, ApiResource] = {}
    for each in found.resources:
        if "/" in each.name or not each.supports("list"):
            continue
        before = best.get(each.id)
        if before is None or (not _knows(known, before) and _knows(known, each)):
            best[each.id] = each
    return sorted(best.values(), key=_order)


def _knows(known: Iterable[tuple[str, str, str]], each: ApiResource) -> bool:
    return (each.group, each.name, each.version) in known


def _order(each: ApiResource) -> tuple[bool, bool, str]:
    """A key to sort resources by: CustomResourceDefinitions first, then cluster-scoped resources, then by name."""
    return each.name != "customresourcedefinitions", each.namespaced, each.id


async def _version(api: Api) -> str:
    """The version of the server; empty where it does not say."""
    try:
        return str((await api.document("/version")).get("gitVersion", ""))
    except (NotFound, Forbidden):
        return ""


async def _aggregated(api: Api) -> Mapping[str, str]:
    """The group versions that another server serves, with its Service; none where APIServices may not be listed."""
    try:
        page = await list_all(api, _APISERVICES)
    except (Unreachable, Unauthorized):
        raise
    except ApiError:
        return {}
    found: dict[str, str] = {}
    for item in page.items:
        spec = {} if isinstance(item, UndecodableObject) else item.get("spec") or {}
        service = spec.get("service")
        if service:
            group, version = spec.get("group", ""), spec.get("version", "")
            found[f"{group}/{version}" if group else version] = (
                f"{service.get('namespace', '')}/{service.get('name', '')}"
            )
    return found


async def _read(
    api: Api,
    resource: ApiResource,
    sink: Sink,
    redactor: Redactor | None,
    page_size: int,
    progress: Callable[[int], None],
) -> int:
    kind: Kind[dict[str, Any]] = Kind(
        resource.group, resource.version, resource.kind, resource.name, resource.namespaced, dict
    )
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    request: PageRequest | None = PageRequest(limit=page_size)
    listed_at, count, begun = "", 0, False
    while request is not None:
        try:
            page = await list_page(api, kind, request)
        except ApiError as error:
            request = request.restarted(error)
            if request is None:
                if begun:
                    # What was read so far is a part of the kind, and a part is not a snapshot.
                    sink.restart()
                    sink.end("")
                raise
            sink.restart()
            count = 0
            continue
        if not begun:
            sink.begin(
                SnapshotKind(
                    resource.group, resource.version, resource.kind, resource.name, resource.namespaced
                )
            )
            begun = True
        if not request.token:
            listed_at = page.resource_version
        for item in page.items:
            if isinstance(item, UndecodableObject):
                continue
            kept = without_managed_fields(item)
            if redactor is not None:
                kept = redactor.redacted(resource.group, resource.kind, kept)
            rest = {name: value for name, value in kept.items() if name not in head}
            sink.add(_encoder.encode(head | rest))
            count += 1
        progress(count)
        request = request.following(page.continue_) if page.continue_ else None
    sink.end(listed_at)
    return count
