"""Subsets of Endpoints: their canonical form, their order, and the truncation to the capacity of one object.

Upstream's pkg/api/v1/endpoints. Subsets and ports are ordered by the FNV-1a hash of a dump of their fields, as
kube-controller-manager orders them, so that either manager leaves what the other has written alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import TypeAlias

from msgspec.structs import replace

from steersman.api.generated_names import fnv128a
from steersman.api.kinds import ObjectReference
from steersman.api.kinds.services import EndpointAddress, EndpointsPort, EndpointSubset

MAX_CAPACITY = 1000
"""The number of addresses that one Endpoints object holds."""
MAX_HASHED = 100
"""The number of addresses up to which subsets are ordered by the hash of all their fields."""

Subsets: TypeAlias = tuple[EndpointSubset, ...]
_Identity: TypeAlias = tuple[str, str]
"""The address and the uid of the object behind it: pods that share the address of a node are distinct."""

_NO_PORT = EndpointsPort(port=-1)
"""Stands for the missing port of a headless Service without ports."""

# -- the canonical form -----------------------------------------------------------------------


def repack_subsets(subsets: Iterable[EndpointSubset]) -> Subsets:
    """The canonical form of subsets: the ports that have the same addresses are in one subset, all in a fixed order.

    An address that is both ready and not ready at a port is not ready; of two entries of an address, the first stays.
    """
    known: dict[_Identity, EndpointAddress] = {}
    by_port: dict[EndpointsPort, dict[_Identity, bool]] = {}
    for subset in subsets:
        for port in subset.ports or (_NO_PORT,):
            for addresses, ready in ((subset.addresses, True), (subset.notReadyAddresses, False)):
                for address in addresses:
                    identity = _identity(address)
                    known.setdefault(identity, address)
                    readiness = by_port.setdefault(port, {})
                    readiness[identity] = ready and readiness.get(identity, True)
    ports_of: dict[frozenset[tuple[_Identity, bool]], list[EndpointsPort]] = {}
    for port, readiness in by_port.items():
        ports = ports_of.setdefault(frozenset(readiness.items()), [])
        if port.port > 0:
            ports.append(port)
    return sort_subsets(_subset(known, dict(readiness), ports) for readiness, ports in ports_of.items())


def _subset(
    known: Mapping[_Identity, EndpointAddress],
    readiness: Mapping[_Identity, bool],
    ports: list[EndpointsPort],
) -> EndpointSubset:
    return EndpointSubset(
        addresses=tuple(known[identity] for identity, ready in readiness.items() if ready),
        notReadyAddresses=tuple(known[identity] for identity, ready in readiness.items() if not ready),
        ports=tuple(ports),
    )


def _identity(address: EndpointAddress) -> _Identity:
    return (address.ip, address.targetRef.uid if address.targetRef is not None else "")


def views_of(subsets: Iterable[EndpointSubset], *, versions: bool = True) -> Subsets:
    """Copies of subsets as views, because the in-process server's objects have types of their own and never equal them.

    Without ``versions`` they lack the resourceVersions of pods, which change with every write of a pod.
    """

    def address_of(address: EndpointAddress) -> EndpointAddress:
        target = address.targetRef
        return EndpointAddress(
            ip=address.ip,
            hostname=address.hostname,
            nodeName=address.nodeName,
            targetRef=target
            and ObjectReference(
                kind=target.kind,
                namespace=target.namespace,
                name=target.name,
                uid=target.uid,
                apiVersion=target.apiVersion,
                resourceVersion=target.resourceVersion if versions else "",
                fieldPath=target.fieldPath,
            ),
        )

    return tuple(
        EndpointSubset(
            addresses=tuple(map(address_of, subset.addresses)),
            notReadyAddresses=tuple(map(address_of, subset.notReadyAddresses)),
            ports=tuple(
                EndpointsPort(
                    name=port.name, port=port.port, protocol=port.protocol, appProtocol=port.appProtocol
                )
                for port in subset.ports
            ),
        )
        for subset in subsets
    )


def equal_subsets(written: Subsets, wanted: Subsets) -> bool:
    """Whether written subsets equal canonical ones, regardless of their order and of resourceVersions."""
    return written == wanted or repack_subsets(views_of(written, versions=False)) == wanted


# -- order ------------------------------------------------------------------------------------


def sort_subsets(subsets: Iterable[EndpointSubset]) -> Subsets:
    """Subsets, addresses and ports in upstream's order."""
    ordered = [
        EndpointSubset(
            addresses=tuple(sorted(subset.addresses, key=_address_order)),
            notReadyAddresses=tuple(sorted(subset.notReadyAddresses, key=_address_order)),
            ports=_sorted_ports(subset.ports),
        )
        for subset in subsets
    ]
    if len(ordered) > 1:
        addresses = sum(len(subset.addresses) + len(subset.notReadyAddresses) for subset in ordered)
        # differs: upstream hashes subsets of any size, which would hold up the event loop here. Upstream repacks what
        # it compares, so another order is no reason for it to write.
        ordered.sort(key=_subset_hash if addresses <= MAX_HASHED else _ports_hash)
    return tuple(ordered)


def _address_order(address: EndpointAddress) -> tuple[str, bool, str]:
    target = address.targetRef
    return (address.ip, target is not None, target.uid if target is not None else "")


def _sorted_ports(ports: tuple[EndpointsPort, ...]) -> tuple[EndpointsPort, ...]:
    return tuple(sorted(ports, key=_port_hash)) if len(ports) > 1 else ports


def _port_hash(port: EndpointsPort) -> int:
    return fnv128a(f"(v1.EndpointPort){_dump_port(port)}".encode())


def _ports_hash(subset: EndpointSubset) -> int:
    return fnv128a(_dump_list("v1.EndpointPort", map(_dump_port, subset.ports)).encode())


def _subset_hash(subset: EndpointSubset) -> int:
    dump = (
        f"(v1.EndpointSubset){{Addresses:{_dump_list('v1.EndpointAddress', map(_dump_address, subset.addresses))} "
        f"NotReadyAddresses:{_dump_list('v1.EndpointAddress', map(_dump_address, subset.notReadyAddresses))} "
        f"Ports:{_dump_list('v1.EndpointPort', map(_dump_port, subset.ports))}}}"
    )
    return fnv128a(dump.encode())


# The dumps are those of Go's spew with "%#v", which name each type.


def _dump_list(type_: str, dumps: Iterable[str]) -> str:
    content = " ".join(dumps)
    return f"([]{type_})[{content}]" if content else f"([]{type_})<nil>"


def _dump_port(port: EndpointsPort) -> str:
    return (
        f"{{Name:(string){port.name} Port:(int32){port.port} Protocol:(v1.Protocol){port.protocol} "
        f"AppProtocol:(*string){_dump_optional(port.appProtocol)}}}"
    )


def _dump_address(address: EndpointAddress) -> str:
    target = address.targetRef
    return (
        f"{{IP:(string){address.ip} Hostname:(string){address.hostname} "
        f"NodeName:(*string){_dump_optional(address.nodeName)} "
        f"TargetRef:(*v1.ObjectReference){_dump_reference(target) if target is not None else '<nil>'}}}"
    )


def _dump_reference(target: ObjectReference) -> str:
    return (
        f"{{Kind:(string){target.kind} Namespace:(string){target.namespace} Name:(string){target.name} "
        f"UID:(types.UID){target.uid} APIVersion:(string){target.apiVersion} "
        f"ResourceVersion:(string){target.resourceVersion} FieldPath:(string){target.fieldPath}}}"
    )


def _dump_optional(text: str | None) -> str:
    return "<nil>" if text is None else text


# -- capacity ---------------------------------------------------------------------------------


def truncate(subsets: Subsets, capacity: int = MAX_CAPACITY) -> tuple[Subsets, bool]:
    """The subsets with at most ``capacity`` addresses, and whether addresses were left out.

    Ready addresses come first. Those that do not all fit are taken from each subset in proportion, rounded up, so the
    last subset may get less than its share.
    """
    ready = sum(len(subset.addresses) for subset in subsets)
    not_ready = sum(len(subset.notReadyAddresses) for subset in subsets)
    if ready + not_ready <= capacity:
        return subsets, False
    only_ready = ready > capacity
    room, total = (capacity, ready) if only_ready else (capacity - ready, not_ready)
    left, truncated = room, []
    for subset in subsets:
        candidates = subset.addresses if only_ready else subset.notReadyAddresses
        taken = candidates[: min(ceil(len(candidates) / total * room), left)]
        left -= len(taken)
        if only_ready:
            truncated.append(replace(subset, addresses=taken, notReadyAddresses=()))
        else:
            truncated.append(replace(subset, notReadyAddresses=taken))
    return tuple(truncated), True
