"""The reconciler: which slices to create, update and delete, with as few writes as possible.

The endpoints of one IP family and the same ports are packed in three steps: endpoints that are no longer desired leave
their slices; slices that change anyway are filled up; the rest goes into one other slice where it fits, or into new
ones. Slices are never rebalanced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from steersman.api.ip_addresses import Family
from steersman.api.kinds import Pod
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import Endpoint, EndpointSlice, Service
from steersman.controllers.endpointslice.endpoints import (
    PortGroup,
    desired_endpoints,
    is_placeholder,
    new_slice,
    owned_by,
    slice_labels,
)
from steersman.controllers.shared.endpoint_slices import (
    Identity,
    PortsKey,
    edited,
    identity,
    ports_key,
    same_beyond_identity,
    slice_to_fill,
)


class SliceChanges(msgspec.Struct, frozen=True):
    """The slices of a Service in one IP family, by what is to be done with them."""

    create: tuple[EndpointSlice, ...] = ()
    update: tuple[EndpointSlice, ...] = ()
    delete: tuple[EndpointSlice, ...] = ()
    unchanged: tuple[EndpointSlice, ...] = ()


class Reconciliation(msgspec.Struct, frozen=True):
    """The changes of the slices of one IP family, before hints are set, and what metrics tell of them."""

    changes: SliceChanges
    unplaced: tuple[Pod, ...] = ()
    """Pods that are left out because their node does not exist."""
    added: int = 0
    removed: int = 0
    """Endpoints added to and removed from slices."""
    efficiency: tuple[tuple[int, int], ...] = ()
    """For each set of ports: the number of endpoints, and of slices that hold them."""


def reconcile(
    service: Service,
    pods: Iterable[Pod],
    nodes: Mapping[str, Node],
    existing: Sequence[EndpointSlice],
    family: Family,
    limit: int,
) -> Reconciliation:
    """Compares the endpoints of a Service's pods with the slices there are. ``limit`` is the most of one slice."""
    desired = desired_endpoints(service, pods, nodes, family)
    slices: dict[PortsKey, list[EndpointSlice]] = {}
    delete: list[EndpointSlice] = []
    for slice in existing:
        if owned_by(slice, service):
            slices.setdefault(ports_key(slice.ports), []).append(slice)
        else:
            delete.append(slice)
    create: list[EndpointSlice] = []
    update: list[EndpointSlice] = []
    added = removed = 0
    efficiency: dict[PortsKey, tuple[int, int]] = {}
    for key, group in desired.groups.items():
        packed = pack(service, slices.get(key, ()), group, family, limit)
        create += packed.changes.create
        update += packed.changes.update
        delete += packed.changes.delete
        added += packed.added
        removed += packed.removed
        efficiency[key] = packed.efficiency[0]
    for key, undesired in slices.items():
        if key not in desired.groups:
            delete += undesired
    if len(existing) == len(delete) and not create:
        # A Service without endpoints has an empty slice, which tells it from one that was never looked at.
        placeholder = new_slice(service, family)
        if len(delete) == 1 and is_placeholder(delete[0], placeholder):
            delete.clear()
        else:
            create.append(placeholder)
        efficiency[()] = (0, 1)
    changed = {slice.metadata.name for slice in (*update, *delete)}
    unchanged = tuple(slice for slice in existing if slice.metadata.name not in changed)
    changes = SliceChanges(tuple(create), tuple(update), tuple(delete), unchanged)
    return Reconciliation(changes, desired.unplaced, added, removed, tuple(efficiency.values()))


class _Draft(msgspec.Struct):
    """A slice that is being filled."""

    slice: EndpointSlice
    endpoints: list[Endpoint]
    labels: Mapping[str, str] | None = None

    def fill(self, remaining: dict[Identity, Endpoint], limit: int) -> None:
        """Moves endpoints into the slice until it is full."""
        taken = list(islice(remaining, max(0, limit - len(self.endpoints))))
        self.endpoints += [remaining.pop(key) for key in taken]

    def finish(self) -> EndpointSlice:
        return edited(self.slice, endpoints=self.endpoints, labels=self.labels)


def pack(
    service: Service, existing: Iterable[EndpointSlice], group: PortGroup, family: Family, limit: int
) -> Reconciliation:
    """Packs the endpoints that have the same ports into slices of these ports."""
    remaining = dict(group.endpoints)
    drafts: list[_Draft] = []
    delete: list[EndpointSlice] = []
    unchanged: dict[str, EndpointSlice] = {}
    removed = 0
    for slice in existing:
        current = slice.endpoints or ()
        kept: list[Endpoint] = []
        updated = False
        for endpoint in current:
            # An endpoint that a slice before this one has, too, stays only there.
            desired = remaining.pop(identity(endpoint), None)
            if desired is not None:
                kept.append(desired)
                updated = updated or not same_beyond_identity(desired, endpoint)
        labels, labels_changed = slice_labels(slice.metadata.labels, service)
        removed += len(current) - len(kept)
        if len(kept) == len(current) and not updated:
            if labels_changed:
                drafts.append(_Draft(slice, list(current), labels))
            else:
                unchanged[slice.metadata.name] = slice
        elif kept:
            drafts.append(_Draft(slice, kept, labels))
        else:
            delete.append(slice)
    added = len(remaining)
    for draft in sorted(drafts, key=lambda draft: len(draft.endpoints), reverse=True):
        draft.fill(remaining, limit)
    create: list[_Draft] = []
    while remaining:
        found = slice_to_fill(unchanged.values(), len(remaining), limit) if len(remaining) < limit else None
        if found is not None:
            del unchanged[found.metadata.name]
            draft = _Draft(found, list(found.endpoints or ()))
            drafts.append(draft)
        else:
            draft = _Draft(new_slice(service, family, group.ports), [])
            create.append(draft)
        draft.fill(remaining, max(1, limit))
    changes = SliceChanges(
        tuple(draft.finish() for draft in create),
        tuple(draft.finish() for draft in drafts),
        tuple(delete),
        tuple(unchanged.values()),
    )
    count = len(changes.create) + len(changes.update) + len(changes.unchanged)
    return Reconciliation(changes, added=added, removed=removed, efficiency=((len(group.endpoints), count),))


def reuse_deleted(service: Service, changes: SliceChanges) -> SliceChanges:
    """Turns creates into updates of slices that would otherwise be deleted, as far as there are such slices.

    Only slices that this Service owns are reused: others are being garbage collected.

    differs: upstream pairs them at random. Here a slice takes the place of the one that has most of its addresses, so
    that few endpoints are missing between two writes.
    """
    create, update = list(changes.create), list(changes.update)
    reusable = {slice.metadata.name: slice for slice in changes.delete if owned_by(slice, service)}
    places = {
        address: name
        for name, slice in reusable.items()
        for endpoint in slice.endpoints or ()
        for address in endpoint.addresses
    }
    reused: dict[str, None] = {}
    while create and reusable:
        new = create.pop()
        held = Counter(
            name
            for endpoint in new.endpoints or ()
            for address in endpoint.addresses
            if (name := places.get(address)) in reusable
        )
        name = held.most_common(1)[0][0] if held else next(iter(reusable))
        assert name is not None
        old = reusable.pop(name)
        reused[name] = None
        # As upstream, without a resourceVersion: what has changed in it meanwhile is replaced.
        update.append(
            EndpointSlice(
                metadata=replace(new.metadata, name=name, uid=old.metadata.uid),
                addressType=new.addressType,
                endpoints=new.endpoints,
                ports=new.ports,
            )
        )
    delete = tuple(slice for slice in changes.delete if slice.metadata.name not in reused)
    return SliceChanges(tuple(create), tuple(update), delete, changes.unchanged)
