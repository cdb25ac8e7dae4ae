"""EndpointSlices as their controllers compare, group and track them; upstream's k8s.io/endpointslice/util.

Caches may hold the types of `steersman.api.generated` in place of the views, which never equal them. So endpoints and
ports are compared by their fields, and a slice to write is a new view.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated_names import fnv128a
from steersman.api.kinds import ObjectReference
from steersman.api.kinds.services import Endpoint, EndpointHints, EndpointPort, EndpointSlice
from steersman.api.scheme import Key
from steersman.intent.controller import Index

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"

BY_SERVICE = "by_service"

MAX_TRACKED = 65_536
"""The most slices that a `SliceTracker` knows."""
DELETED = -1

Identity: TypeAlias = tuple[tuple[str, ...], str, str, str]
"""Addresses, hostname, and the namespace and name of the target: an endpoint that keeps these is updated in place."""
PortsKey: TypeAlias = tuple[tuple[str | None, str | None, int | None, str | None], ...]
"""Name, protocol, port and application protocol of each port, in the order of `port_hash`."""


def service_key(slice: EndpointSlice) -> Key | None:
    """The key of the Service that a slice belongs to, by its label; None without one."""
    name = slice.metadata.labels.get(SERVICE_NAME)
    return Key(slice.metadata.namespace, name) if name else None


def by_service(slice: EndpointSlice) -> Iterable[Hashable]:
    """Indexes a slice by the key of its Service."""
    key = service_key(slice)
    return (key,) if key is not None else ()


SLICED: Mapping[str, Index] = {BY_SERVICE: by_service}
"""The indexes for a watch of EndpointSlices."""


# -- endpoints --------------------------------------------------------------------------------


def identity(endpoint: Endpoint) -> Identity:
    """The identity by which an endpoint is found in existing slices: addresses, hostname and target."""
    target, addresses = endpoint.targetRef, endpoint.addresses
    return (
        tuple(sorted(addresses)) if len(addresses) > 1 else tuple(addresses),
        endpoint.hostname or "",
        target.namespace if target is not None else "",
        target.name if target is not None else "",
    )


def same_beyond_identity(a: Endpoint, b: Endpoint) -> bool:
    """Whether two endpoints of one identity are equal. Hints and the target's resourceVersion do not count."""
    one, other = a.conditions, b.conditions
    return (
        a.nodeName == b.nodeName
        and a.zone == b.zone
        and one.ready == other.ready
        and one.serving == other.serving
        and one.terminating == other.terminating
        and _reference(a.targetRef) == _reference(b.targetRef)
    )


def _reference(target: ObjectReference | None) -> tuple[str, ...] | None:
    if target is None:
        return None
    return (target.kind, target.namespace, target.name, target.uid, target.apiVersion, target.fieldPath)


def with_hints(endpoint: Endpoint, hints: EndpointHints | None) -> Endpoint:
    """The endpoint with these hints; the endpoint itself where it has none and needs none."""
    if hints is None and endpoint.hints is None:
        return endpoint
    return Endpoint(
        addresses=endpoint.addresses,
        conditions=endpoint.conditions,
        hostname=endpoint.hostname,
        targetRef=endpoint.targetRef,
        deprecatedTopology=endpoint.deprecatedTopology,
        nodeName=endpoint.nodeName,
        zone=endpoint.zone,
        hints=hints,
    )


# -- ports ------------------------------------------------------------------------------------


def order_ports(ports: Iterable[EndpointPort]) -> tuple[EndpointPort, ...]:
    """The ports in the order in which upstream writes them: that of their hashes."""
    return tuple(
        sorted(ports, key=lambda port: port_hash(port.name, port.protocol, port.port, port.appProtocol))
    )


def ports_key(ports: Iterable[EndpointPort] | None) -> PortsKey:
    """The key by which slices of the same ports are grouped, whatever the order of the ports."""
    return tuple((port.name, port.protocol, port.port, port.appProtocol) for port in order_ports(ports or ()))


@lru_cache(4096)
def port_hash(name: str | None, protocol: str | None, port: int | None, app_protocol: str | None) -> int:
    """The 128-bit FNV-1a hash of a port, as upstream dumps it."""
    fields = (
        ("Name", "string", name),
        ("Protocol", "v1.Protocol", protocol),
        ("Port", "int32", port),
        ("AppProtocol", "string", app_protocol),
    )
    dump = " ".join(
        f"{field}:(*{type_}){'<nil>' if value is None else value}" for field, type_, value in fields
    )
    return fnv128a(f"(v1.EndpointPort){{{dump}}}".encode())


# -- slices -----------------------------------------------------------------------------------


def edited(
    slice: EndpointSlice,
    *,
    endpoints: Sequence[Endpoint] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> EndpointSlice:
    """A copy of a slice with other endpoints, labels or annotations. None leaves them as they are."""
    meta = slice.metadata
    if labels is not None:
        meta = replace(meta, labels=labels)
    if annotations is not None and annotations is not meta.annotations:
        meta = replace(meta, annotations=annotations)
    return EndpointSlice(
        metadata=meta,
        addressType=slice.addressType,
        endpoints=tuple(endpoints) if endpoints is not None else slice.endpoints,
        ports=slice.ports,
    )


def slice_to_fill(slices: Iterable[EndpointSlice], count: int, limit: int) -> EndpointSlice | None:
    """The slice that is fullest once ``count`` endpoints are added to it; None where they fit in none."""
    found, least = None, limit
    for slice in slices:
        room = limit - count - len(slice.endpoints or ())
        if 0 <= room < least:
            found, least = slice, room
    return found


class SliceTracker:
    """The generations of the slices this process has written, so that its own writes do not enqueue a Service again.

    A slice that is forgotten costs one more look at its Service. Whether a cache is out of date is not the tracker's
    concern: a key waits for its own writes anyway.
    """

    def __init__(self) -> None:
        self._generations: BoundedCache[str, int] = BoundedCache(MAX_TRACKED)
        """Slice uid -> the generation written; `DELETED`: the slice was deleted."""

    def wrote(self, slice: EndpointSlice) -> None:
        """Records that a slice was created or updated."""
        self._generations.put(slice.metadata.uid, slice.metadata.generation)

    def deleted(self, slice: EndpointSlice) -> None:
        """Records that a slice was deleted."""
        self._generations.put(slice.metadata.uid, DELETED)

    def is_own_write(self, slice: EndpointSlice) -> bool:
        """Whether a new or changed slice is as this process wrote it, or older."""
        generation = self._generations.get(slice.metadata.uid)
        return generation is not None and (generation == DELETED or slice.metadata.generation <= generation)

    def was_deleted(self, slice: EndpointSlice) -> bool:
        """Whether this process deleted a slice that is gone now. The slice is forgotten."""
        generation = self._generations.get(slice.metadata.uid)
        self._generations.discard(slice.metadata.uid)
        return generation == DELETED

    def __len__(self) -> int:
        return len(self._generations)
