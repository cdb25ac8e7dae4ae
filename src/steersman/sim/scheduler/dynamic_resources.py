"""The scheduler's part of dynamic resource allocation: checks the ResourceClaims of a pod, allocates and reserves them.

As kube-scheduler's plugin DynamicResources::

    PreEnqueue   missing_claim   a pod waits until its claims exist
    PreFilter    check           in use by too many, without a class: no node is considered
    Filter       filter          devices for the claims that are not allocated, on one node
    PostFilter   deallocate      a claim whose devices no node of the pod can use is allocated anew
    Reserve      reserve         the devices are taken, before anything is written
    PreBind      write           finalizer, then allocation and reservation in the status of each claim
    Unreserve    release         what was taken is given back

`place` does the first half for a pod, up to Reserve.

differs: PodGroups, extended resources, DeviceTaintRules and binding conditions are not considered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.errors import Conflict
from steersman.api.generated import core_v1, load
from steersman.api.generated import resource_v1 as v1
from steersman.api.kinds import Pod
from steersman.api.kinds.devices import DELETE_PROTECTION, ResourceClaim
from steersman.api.resource_claims import (
    ClaimNotCreated,
    UnsupportedClaim,
    claim_name,
    is_reserved_for,
    not_made_for,
)
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer
from steersman.sim.dynamicresources.allocator import (
    AllocationError,
    DeviceId,
    allocate,
    allocated_devices,
    selects,
)
from steersman.sim.scheduler.filters import DEVICES, DEVICES_ELSEWHERE
from steersman.sim.scheduler.node_info import NodeInfo, NodeInfos
from steersman.sim.scheduler.placement import (
    NOTHING_TO_DEALLOCATE,
    DeviceFilter,
    Scheduled,
    SchedulerError,
    Unschedulable,
)

CLAIMS: Kind[v1.ResourceClaim] = load("resource.k8s.io", "v1", "ResourceClaim")
SLICES: Kind[v1.ResourceSlice] = load("resource.k8s.io", "v1", "ResourceSlice")
CLASSES: Kind[v1.DeviceClass] = load("resource.k8s.io", "v1", "DeviceClass")
MAX_CONSUMERS = 256
"""Pods that a claim can be reserved for."""
ATTEMPTS = 5
"""Attempts to write the status of a claim that changes meanwhile."""

STILL_UNSCHEDULABLE = "still not schedulable"
DEALLOCATED = "deallocation of ResourceClaim completed"


class PodClaims:
    """The claims of a pod in one attempt to schedule it, and what the attempt found out."""

    def __init__(self, claims: tuple[v1.ResourceClaim, ...], in_use: set[DeviceId]) -> None:
        self.claims = claims
        self.in_use = in_use
        self.unavailable: dict[str, v1.ResourceClaim] = {}
        """Allocated claims whose devices a node cannot use, by uid."""

    @property
    def unallocated(self) -> tuple[v1.ResourceClaim, ...]:
        """The claims that need devices."""
        return tuple(claim for claim in self.claims if claim.status.allocation is None)


class _Reservation(msgspec.Struct, frozen=True):
    pod: core_v1.Pod
    claims: tuple[v1.ResourceClaim, ...]
    allocations: Mapping[str, v1.AllocationResult]
    """New allocations, by the uid of their claim."""


class DynamicResources:
    """The claims, devices and classes of a cluster, as the scheduler knows them."""

    def __init__(self, api: Api, clock: Clock, changed: Callable[[], None]) -> None:
        """``changed`` is called when a pod that does not fit may do so now."""
        self._api = api
        self._clock = clock
        self._changed = changed
        self._claims = Informer(CLAIMS, api, clock)
        self._slices = Informer(SLICES, api, clock)
        self._classes = Informer(CLASSES, api, clock)
        self._in_flight: dict[str, v1.AllocationResult] = {}
        """Allocations that the cache does not show yet, by the uid of their claim."""
        self._reserved: dict[Key, _Reservation] = {}
        self._refused: dict[Key, PodClaims] = {}
        """The claims of pods that do not fit, as the last attempt found them."""

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Start to watch; returns when the caches are synced."""
        self._claims.subscribe(self._on_claim)
        self._slices.subscribe(lambda change: self._changed())
        self._classes.subscribe(lambda change: self._changed())
        for informer in (self._claims, self._slices, self._classes):
            group.create_task(informer.run(), name=f"scheduler: {informer.kind.plural}")
        for informer in (self._claims, self._slices, self._classes):
            await informer.wait_synced()

    def _on_claim(self, change: Change[v1.ResourceClaim]) -> None:
        new = change.new
        if new is None or new.status.allocation is not None:
            self._in_flight.pop(change.obj.metadata.uid, None)
        old = change.old
        if old is None or new is None or old.status != new.status:
            self._changed()

    # -- before nodes are considered ----------------------------------------------------------

    def missing_claim(self, pod: core_v1.Pod) -> str:
        """Why a pod is not to be scheduled yet: a claim of it does not exist, or is not its own. Empty if it may be."""
        found = self._claims_of(pod)
        return found if isinstance(found, str) else ""

    def _claims_of(self, pod: core_v1.Pod) -> tuple[v1.ResourceClaim, ...] | str:
        view = cast("Pod", pod)  # the views have the same fields
        claims = []
        for reference in pod.spec.resourceClaims:
            try:
                name = claim_name(view, cast("Any", reference))
            except (ClaimNotCreated, UnsupportedClaim) as error:
                return str(error)
            if name.name is None:
                continue
            claim = self._claims.store.get(Key(pod.metadata.namespace, name.name))
            if claim is None:
                return f'resourceclaim "{name.name}" not found'
            if claim.metadata.deletionTimestamp is not None:
                return f'resourceclaim "{name.name}" is being deleted'
            if name.generated and (why := not_made_for(view, cast("ResourceClaim", claim))):
                return why
            claims.append(claim)
        return tuple(claims)

    def check(self, pod: core_v1.Pod) -> PodClaims | str:
        """The claims of a pod, or why no node is to be considered for it."""
        claims = self._claims_of(pod)
        if isinstance(claims, str):
            return claims
        for claim in claims:
            if claim.status.allocation is not None:
                mine = is_reserved_for(cast("Pod", pod), cast("ResourceClaim", claim))
                if len(claim.status.reservedFor) >= MAX_CONSUMERS and not mine:
                    return "resourceclaim in use"
            elif claim.metadata.uid in self._in_flight:
                return f"resource claim {claim.key} is in the process of being allocated"
            elif why := self._unknown_class(claim):
                return why
        allocations = (claim.status.allocation for claim in self._claims.store.list())
        return PodClaims(claims, allocated_devices([*allocations, *self._in_flight.values()]))

    def _unknown_class(self, claim: v1.ResourceClaim) -> str:
        for request in claim.spec.devices.requests or ():
            named = [(request.name, request.exactly.deviceClassName)] if request.exactly is not None else []
            named += [
                (f"{request.name}/{each.name}", each.deviceClassName) for each in request.firstAvailable
            ]
            for name, class_name in named:
                if self._classes.store.get(Key("", class_name)) is None:
                    return f"request {name}: device class {class_name} does not exist"
        return ""

    # -- placing ------------------------------------------------------------------------------

    def place(
        self,
        pod: core_v1.Pod,
        node_infos: NodeInfos,
        schedule: Callable[[DeviceFilter], Scheduled | Unschedulable],
    ) -> Scheduled | Unschedulable | SchedulerError:
        """Schedule a pod that has claims, by ``schedule``. Where there is a node, its devices are reserved."""
        self._refused.pop(pod.key, None)
        found = self.check(pod)
        if isinstance(found, str):
            return Unschedulable({node_info.name: (found,) for node_info in node_infos}, found)
        allocations: dict[str, Mapping[str, v1.AllocationResult]] = {}

        def lacks(node_info: NodeInfo) -> tuple[str, ...]:
            result = self.filter(found, node_info.node)
            if isinstance(result, tuple):
                return result
            allocations[node_info.name] = result
            return ()

        try:
            decision = schedule(lacks)
        except AllocationError as error:
            return SchedulerError(f'running "DynamicResources" filter plugin: {error}')
        if isinstance(decision, Scheduled):
            self.reserve(pod, found, allocations[decision.node])
        else:
            self._refused[pod.key] = found
        return decision

    # -- one node -----------------------------------------------------------------------------

    def filter(
        self, found: PodClaims, node: core_v1.Node
    ) -> Mapping[str, v1.AllocationResult] | tuple[str, ...]:
        """The new allocations on a node, by the uid of their claim, or why the node does not fit.

        Raises `AllocationError` where a claim or class makes no sense.
        """
        unallocated = found.unallocated
        allocations: tuple[v1.AllocationResult, ...] | None = ()
        if unallocated:
            allocations = allocate(
                unallocated,
                node,
                self._slices.store.list(),
                lambda name: self._classes.store.get(Key("", name)),
                found.in_use,
            )
        if allocations is None:
            return (DEVICES,)
        elsewhere = [
            claim
            for claim in found.claims
            if claim.status.allocation is not None
            and claim.status.allocation.nodeSelector is not None
            and not selects(claim.status.allocation.nodeSelector, node)
        ]
        if elsewhere:
            found.unavailable.update({claim.metadata.uid: claim for claim in elsewhere})
            return (DEVICES_ELSEWHERE,)
        return {
            claim.metadata.uid: allocation for claim, allocation in zip(unallocated, allocations, strict=True)
        }

    # -- a node was chosen --------------------------------------------------------------------

    def reserve(
        self, pod: core_v1.Pod, found: PodClaims, allocations: Mapping[str, v1.AllocationResult]
    ) -> None:
        """Take the devices for a pod, until `write` or `release`."""
        self._in_flight.update(allocations)
        self._reserved[pod.key] = _Reservation(pod, found.claims, allocations)

    def release(self, key: Key) -> None:
        """Give back what was taken for a pod and is not written."""
        self._refused.pop(key, None)
        reservation = self._reserved.pop(key, None)
        if reservation is not None:
            for uid in reservation.allocations:
                self._in_flight.pop(uid, None)

    async def write(self, key: Key) -> None:
        """Write the allocations and reservations of a pod. Raises `ApiError`; then the pod is released."""
        reservation = self._reserved.get(key)
        if reservation is None:
            return
        written: dict[str, None] = {}
        try:
            for claim in reservation.claims:
                allocation = reservation.allocations.get(claim.metadata.uid)
                await self._bind_claim(reservation.pod, claim, allocation)
                written[claim.metadata.uid] = None
        except BaseException:
            self._reserved.pop(key, None)
            for uid in reservation.allocations.keys() - written.keys():
                self._in_flight.pop(uid, None)
            raise
        # Allocations stay in flight until the cache shows them.
        self._reserved.pop(key, None)

    async def _bind_claim(
        self, pod: core_v1.Pod, claim: v1.ResourceClaim, allocation: v1.AllocationResult | None
    ) -> None:
        """Allocate a claim, where it needs devices, and reserve it for the pod. A claim that changed is read again."""
        meta = claim.metadata
        for attempt in range(ATTEMPTS):
            if attempt:
                claim = await self._api.get(CLAIMS, meta.namespace, meta.name)
            if claim.metadata.uid != meta.uid or claim.metadata.deletionTimestamp is not None:
                raise Conflict(f"claim {claim.key} got deleted in the meantime")
            if allocation is not None and claim.status.allocation is not None:
                raise Conflict(f"claim {claim.key} got allocated elsewhere in the meantime")
            if allocation is None and claim.status.allocation is None:
                raise Conflict(f"claim {claim.key} got deallocated elsewhere in the meantime")
            try:
                return await self._write_status(pod, claim, allocation)
            except Conflict:
                continue
        raise Conflict(f"claim {meta.namespace}/{meta.name} keeps changing")

    async def _write_status(
        self, pod: core_v1.Pod, claim: v1.ResourceClaim, allocation: v1.AllocationResult | None
    ) -> None:
        namespace, name = claim.key
        if allocation is not None and DELETE_PROTECTION not in claim.metadata.finalizers:
            finalizers = (*claim.metadata.finalizers, DELETE_PROTECTION)
            claim = await self._api.update(
                CLAIMS,
                namespace,
                name,
                replace(claim, metadata=replace(claim.metadata, finalizers=finalizers)),
            )
        status = claim.status
        if not any(each.uid == pod.metadata.uid for each in status.reservedFor):
            consumer = v1.ResourceClaimConsumerReference(
                resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
            )
            status = replace(status, reservedFor=(*status.reservedFor, consumer))
        if allocation is not None:
            now = self._clock.now().replace(microsecond=0)
            status = replace(status, allocation=replace(allocation, allocationTimestamp=now))
        if status != claim.status:
            await self._api.update_status(CLAIMS, namespace, name, replace(claim, status=status))

    # -- no node fits -------------------------------------------------------------------------

    async def deallocate(self, pod: core_v1.Pod) -> str:
        """Deallocate one claim that keeps a pod from all nodes and that no other pod uses; returns upstream's words."""
        found = self._refused.pop(pod.key, None)
        if found is None or not found.claims:
            return NOTHING_TO_DEALLOCATE
        for claim in found.unavailable.values():
            if all(each.uid == pod.metadata.uid for each in claim.status.reservedFor):
                status = replace(claim.status, allocation=None, reservedFor=(), devices=())
                await self._api.update_status(CLAIMS, *claim.key, replace(claim, status=status))
                return DEALLOCATED
        return STILL_UNSCHEDULABLE
