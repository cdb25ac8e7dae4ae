"""The slices that mirror Endpoints: which endpoints they must have, and what to create, update and delete for that.

Each canonical subset has one slice for each IP family. Upstream's pkg/controller/endpointslicemirroring/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.api.ip_addresses import canonical_ip
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.services import (
    ENDPOINTS,
    Endpoint,
    EndpointAddress,
    EndpointConditions,
    EndpointPort,
    Endpoints,
    EndpointSlice,
    EndpointsPort,
)
from steersman.api.label_syntax import MAX_SUBDOMAIN
from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.api.meta import owner_reference
from steersman.controllers.shared.endpoint_slices import (
    MANAGED_BY,
    SERVICE_NAME,
    Identity,
    PortsKey,
    identity,
    order_ports,
    ports_key,
    same_beyond_identity,
)
from steersman.controllers.shared.endpoint_subsets import repack_subsets, views_of
from steersman.controllers.shared.trigger_time import LAST_CHANGE_TRIGGER_TIME

MIRROR = "endpointslicemirroring-controller.k8s.io"
"""The manager of mirrored slices."""
FAMILIES = ("IPv4", "IPv6")


class GroupKey(msgspec.Struct, frozen=True):
    """The address type and the ports that all endpoints of a slice share."""

    address_type: str
    ports: PortsKey


class Group(msgspec.Struct, frozen=True):
    """The endpoints of one IP family and the same ports."""

    ports: tuple[EndpointPort, ...]
    endpoints: dict[Identity, Endpoint]


class Desired(msgspec.Struct, frozen=True):
    """The endpoints to mirror."""

    groups: Mapping[GroupKey, Group]
    invalid: int
    """Addresses that are no IP addresses."""
    skipped: int
    """Addresses that are not mirrored: invalid ones, and those beyond the limit of a subset."""


class Size(NamedTuple):
    """The number of mirrored endpoints and of their slices."""

    endpoints: int = 0
    slices: int = 0
    desired_slices: int = 0


class Changes(msgspec.Struct, frozen=True):
    """The writes that mirror Endpoints, and their numbers for metrics."""

    create: tuple[EndpointSlice, ...]
    update: tuple[EndpointSlice, ...]
    delete: tuple[EndpointSlice, ...]
    added: int
    updated: int
    removed: int
    size: Size
    kept: tuple[EndpointSlice, ...]
    """Slices that are right as they are."""


# -- desired endpoints ------------------------------------------------------------------------


def desired_endpoints(endpoints: Endpoints, limit: int) -> Desired:
    """The endpoints of each slice; at most ``limit`` addresses of a subset are mirrored."""
    groups: dict[GroupKey, Group] = {}
    invalid = skipped = 0
    for subset in repack_subsets(views_of(endpoints.subsets)):
        ports = order_ports(map(_slice_port, subset.ports))
        key = ports_key(ports)
        for family in FAMILIES:
            groups.setdefault(GroupKey(family, key), Group(ports, {}))
        added = 0
        for addresses, ready in ((subset.addresses, True), (subset.notReadyAddresses, False)):
            for address in addresses:
                if added >= limit:
                    break
                converted = _endpoint(address, ready)
                if converted is None:
                    invalid += 1
                    continue
                family, endpoint = converted
                groups[GroupKey(family, key)].endpoints[identity(endpoint)] = endpoint
                added += 1
        skipped += len(subset.addresses) + len(subset.notReadyAddresses) - added
    return Desired(groups, invalid, skipped)


def _endpoint(address: EndpointAddress, ready: bool) -> tuple[str, Endpoint] | None:
    parsed = canonical_ip(address.ip)
    if parsed is None:
        return None
    family, ip = parsed
    return family, Endpoint(
        addresses=(ip,),
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname or None,
        targetRef=address.targetRef,
        nodeName=address.nodeName,
    )


def _slice_port(port: EndpointsPort) -> EndpointPort:
    return EndpointPort(name=port.name, port=port.port, protocol=port.protocol, appProtocol=port.appProtocol)


# -- slices -----------------------------------------------------------------------------------


def plan_changes(
    endpoints: Endpoints, existing: Iterable[EndpointSlice], desired: Desired, limit: int
) -> Changes:
    """The changes that make the slices mirror the endpoints."""
    by_key: dict[GroupKey, list[EndpointSlice]] = {}
    for each in existing:
        by_key.setdefault(GroupKey(each.addressType, ports_key(each.ports)), []).append(each)
    create: list[EndpointSlice] = []
    update: list[EndpointSlice] = []
    delete: list[EndpointSlice] = []
    kept: list[EndpointSlice] = []
    added = updated = removed = 0
    size = Size()
    for key, group in desired.groups.items():
        slices, wanted = by_key.pop(key, []), group.endpoints
        if not wanted:
            delete += slices
            removed += sum(len(each.endpoints or ()) for each in slices)
            continue
        new = _new_slice(endpoints, key.address_type, group)
        if not slices:
            added += len(wanted)
            create.append(new)
        else:
            first, *rest = slices
            delete += rest
            changed = _count_changes(first, wanted)
            added, updated, removed = added + changed[0], updated + changed[1], removed + changed[2]
            if changed == (0, 0, 0) and _is_labelled(first, new) and not _has_former_owner(first, endpoints):
                kept.append(first)
            else:
                update.append(_named(new, first))
        size = Size(
            size.endpoints + len(wanted), size.slices + 1, size.desired_slices + ceil(len(wanted) / limit)
        )
    delete += (each for slices in by_key.values() for each in slices)
    create, recycled, delete = recycle(create, delete)
    return Changes(
        tuple(create), (*update, *recycled), tuple(delete), added, updated, removed, size, tuple(kept)
    )


def recycle(
    create: list[EndpointSlice], delete: list[EndpointSlice]
) -> tuple[list[EndpointSlice], list[EndpointSlice], list[EndpointSlice]]:
    """Replaces creations by updates of slices of the same IP family that would be deleted.

    Returns the slices to create, to update and to delete.
    """
    spare: dict[str, list[EndpointSlice]] = {}
    for each in delete:
        spare.setdefault(each.addressType, []).append(each)
    new: list[EndpointSlice] = []
    updated: list[EndpointSlice] = []
    for each in create:
        of_family = spare.get(each.addressType)
        if of_family:
            updated.append(_named(each, of_family.pop(0)))
        else:
            new.append(each)
    left = [each for slices in spare.values() for each in slices]
    return new, updated, left


def _new_slice(endpoints: Endpoints, address_type: str, group: Group) -> EndpointSlice:
    meta = endpoints.metadata
    ignored = (LAST_CHANGE_TRIGGER_TIME, LAST_APPLIED)
    return EndpointSlice(
        metadata=ObjectMeta(
            generateName=f"{meta.name}-" if len(meta.name) < MAX_SUBDOMAIN else meta.name,
            namespace=meta.namespace,
            labels={**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: MIRROR},
            annotations={key: value for key, value in meta.annotations.items() if key not in ignored},
            ownerReferences=(owner_reference(endpoints, ENDPOINTS),),
        ),
        addressType=address_type,
        endpoints=tuple(group.endpoints.values()),
        ports=group.ports,
    )


def _named(new: EndpointSlice, old: EndpointSlice) -> EndpointSlice:
    """The new slice in the place of an old one."""
    # differs: upstream's update has no resourceVersion, and overwrites what it has not seen.
    meta = replace(
        new.metadata,
        generateName="",
        name=old.metadata.name,
        uid=old.metadata.uid,
        resourceVersion=old.metadata.resourceVersion,
    )
    return replace(new, metadata=meta)


def _count_changes(existing: EndpointSlice, wanted: Mapping[Identity, Endpoint]) -> tuple[int, int, int]:
    """How many endpoints are added to a slice, updated and removed."""
    matching = updated = removed = 0
    for endpoint in existing.endpoints or ():
        found = wanted.get(identity(endpoint))
        if found is None:
            removed += 1
        else:
            matching += 1
            updated += not same_beyond_identity(found, endpoint)
    return len(wanted) - matching, updated, removed


def _is_labelled(existing: EndpointSlice, new: EndpointSlice) -> bool:
    """Whether a slice has the labels and annotations of the new one."""
    old, meta = existing.metadata, new.metadata
    return dict(old.labels) == meta.labels and dict(old.annotations) == meta.annotations


def _has_former_owner(existing: EndpointSlice, endpoints: Endpoints) -> bool:
    """Whether the owner of a slice is a former object of the same name."""
    meta = endpoints.metadata
    return any(
        owner.kind == ENDPOINTS.name and owner.name == meta.name and owner.uid != meta.uid
        for owner in existing.metadata.ownerReferences
    )
