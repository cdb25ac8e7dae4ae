"""service-cidr-controller (a dialogue): protects ServiceCIDRs from deletion while Services have their addresses.

A ServiceCIDR gets a finalizer and the condition Ready. One that is being deleted keeps the finalizer while an IPAddress
is in its ranges and in those of no other ServiceCIDR, and for at least ten seconds, in which API servers stop
allocating from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from ipaddress import IPv4Network

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.errors import ApiError, NotFound
from steersman.api.ip_addresses import Address, Network, parse_cidr, parse_ip
from steersman.api.kinds.services import IPADDRESSES, SERVICECIDRS, IPAddress, ServiceCIDR
from steersman.api.meta import format_time
from steersman.api.scheme import Key
from steersman.intent.actions import Emit, List, Patch, PatchType
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

NAME = "service-cidr-controller"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"
"""The manager of IPAddresses that API servers allocate to Services."""
GRACE_PERIOD = timedelta(seconds=10)
"""How long the deletion of a ServiceCIDR takes at least."""
READY = "Kubernetes Service CIDR is ready"
IN_USE = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)


class Observation(msgspec.Struct, frozen=True):
    """A ServiceCIDR; and where it is being deleted, what may block that."""

    cidr: ServiceCIDR
    all_cidrs: tuple[ServiceCIDR, ...] = ()
    addresses: tuple[IPAddress, ...] = ()


def observe(caches: Caches, key: Key) -> Observation | None:
    cidr = caches[SERVICECIDRS].get(key)
    if cidr is None or cidr.metadata.deletionTimestamp is None:
        return Observation(cidr) if cidr is not None else None
    return Observation(cidr, tuple(caches[SERVICECIDRS].list()), tuple(caches[IPADDRESSES].list()))


async def decide(seen: Observation, now: datetime) -> Verdict:
    cidr, deleted = seen.cidr, seen.cidr.metadata.deletionTimestamp
    if deleted is None:
        return await _protect(cidr, now)
    if not can_delete(cidr, seen.all_cidrs, seen.addresses):
        await _set_ready(cidr, "False", "Terminating", IN_USE, now)
        return Rest("IP addresses of Services are in no other ServiceCIDR")
    left = GRACE_PERIOD - (now - deleted)
    if left > timedelta():
        return Wake(left, "API servers may still allocate from a ServiceCIDR that is being deleted")
    if FINALIZER not in cidr.metadata.finalizers:
        return Rest("finalizer is gone")
    # differs: upstream trusts its caches here. A cache that is behind would cost Services their addresses.
    if not can_delete(cidr, await List(SERVICECIDRS, ""), await List(IPADDRESSES, "")):
        return Wake(GRACE_PERIOD, "caches do not show all ServiceCIDRs and IPAddresses yet")
    await _patch_finalizers(cidr, "$deleteFromPrimitiveList/finalizers")
    return Rest("finalizer removed")


async def _protect(cidr: ServiceCIDR, now: datetime) -> Verdict:
    if FINALIZER not in cidr.metadata.finalizers:
        await _patch_finalizers(cidr, "finalizers")
    try:
        await _set_ready(cidr, "True", "", READY, now)
    except ApiError:
        message = "The ServiceCIDR Status can not be set to Ready=True"
        await Emit(cidr, "Warning", "KubernetesServiceCIDRError", message)
        raise
    return Rest("ServiceCIDR is ready")


async def _patch_finalizers(cidr: ServiceCIDR, field: str) -> None:
    try:
        await Patch(cidr, {"metadata": {field: [FINALIZER]}}, PatchType.STRATEGIC)
    except NotFound:
        return


async def _set_ready(cidr: ServiceCIDR, status: str, reason: str, message: str, now: datetime) -> None:
    """Sets the condition Ready, unless it is set already."""
    known = find_condition(cidr.status.conditions, "Ready")
    if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
        return
    condition = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(now),
    }
    body = {
        "apiVersion": SERVICECIDRS.api_version,
        "kind": SERVICECIDRS.name,
        "metadata": {"name": cidr.metadata.name},
        "status": {"conditions": [condition]},
    }
    await Patch(cidr, body, PatchType.APPLY, subresource="status", field_manager=NAME, force=True)


# -- ranges -----------------------------------------------------------------------------------


def can_delete(cidr: ServiceCIDR, all_cidrs: Iterable[ServiceCIDR], addresses: Iterable[IPAddress]) -> bool:
    """Whether each address of a ServiceCIDR is in another one, too, which stays longer."""
    others = [networks_of(each) for each in all_cidrs if _outlives(each, cidr)]
    own = networks_of(cidr)
    if all(any(contains(other, network) for each in others for other in each) for network in own):
        return True
    return not any(
        is_allocatable(own, address) and not any(is_allocatable(each, address) for each in others)
        for address in map(_address_of, addresses)
        if address is not None
    )


def _outlives(other: ServiceCIDR, cidr: ServiceCIDR) -> bool:
    """Whether another ServiceCIDR stays longer than one that is being deleted.

    differs: upstream counts each of two that are being deleted for the other, so that both may go. Here the wider one
    stays until the narrower one is gone.
    """
    if other.metadata.name == cidr.metadata.name:
        return False
    return other.metadata.deletionTimestamp is None or _width(other) < _width(cidr)


def _width(cidr: ServiceCIDR) -> tuple[int, str]:
    return (min((network.prefixlen for network in networks_of(cidr)), default=0), cidr.metadata.name)


def networks_of(cidr: ServiceCIDR) -> tuple[Network, ...]:
    """The ranges of a ServiceCIDR."""
    return tuple(network for text in cidr.spec.cidrs if (network := parse_cidr(text)) is not None)


def contains(network: Network, other: Network) -> bool:
    """Whether a range contains another, or is the same."""
    return overlaps(network, other) and network.prefixlen <= other.prefixlen


def overlaps(network: Network, other: Network) -> bool:
    return network.version == other.version and network.overlaps(other)


def is_allocatable(networks: Iterable[Network], address: Address) -> bool:
    """Whether an address of the ranges can be a Service's: neither a network address nor an IPv4 broadcast address."""
    return any(
        address in network
        and address != network.network_address
        and not (isinstance(network, IPv4Network) and address == network.broadcast_address)
        for network in networks
        if network.version == address.version
    )


def _address_of(ip: IPAddress) -> Address | None:
    """The address of an IPAddress that an API server manages."""
    if ip.metadata.labels.get(MANAGED_BY) != ALLOCATOR:
        return None
    return parse_ip(ip.metadata.name)


# -- enqueue ----------------------------------------------------------------------------------


def _enqueue_overlapping(caches: Caches, change: Change[ServiceCIDR]) -> Iterator[Key]:
    """A changed ServiceCIDR; and those that are being deleted and may go now that it is there."""
    yield change.obj.key
    if change.old is None:
        own = networks_of(change.obj)
        for cidr in _terminating(caches):
            if any(overlaps(one, other) for one in own for other in networks_of(cidr)):
                yield cidr.key


def _enqueue_containing(caches: Caches, change: Change[IPAddress]) -> Iterator[Key]:
    """The ServiceCIDRs whose deletion a new or deleted IPAddress may block or unblock."""
    if change.old is not None and change.new is not None:
        return
    address = _address_of(change.obj)
    if address is not None:
        for cidr in _terminating(caches):
            if is_allocatable(networks_of(cidr), address):
                yield cidr.key


def _terminating(caches: Caches) -> Iterator[ServiceCIDR]:
    """The ServiceCIDRs that are being deleted: addresses and other ranges make no difference to the rest."""
    for cidr in caches[SERVICECIDRS].list():
        if cidr.metadata.deletionTimestamp is not None:
            yield cidr


controller = Controller(
    name=NAME,
    service_account="service-cidrs-controller",
    event_component=NAME,
    watches=(
        Watch(SERVICECIDRS, to=_enqueue_overlapping),
        Watch(IPADDRESSES, to=_enqueue_containing),
    ),
    workers=5,
    feature_gates=("MultiCIDRServiceAllocator",),
    observe=observe,
    decide=decide,
)
