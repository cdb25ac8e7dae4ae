"""resourcepoolstatusrequest-controller (a decision): answers requests for the status of pools of devices.

A request names a driver, and maybe a pool. Its answer counts the devices of each pool in the driver's ResourceSlices, and those
that ResourceClaims have allocated. A request is answered once and deleted later:

    pending --all pools are complete--> answered --an hour later--> deleted
    pending --a day later----------------------------------------> deleted

A pool is complete when all its slices of the latest generation are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import Condition
from steersman.api.kinds.devices import (
    RESOURCECLAIMS,
    RESOURCEPOOLSTATUSREQUESTS,
    RESOURCESLICES,
    PoolStatus,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
)
from steersman.api.meta import truncate_to_seconds
from steersman.api.scheme import Key
from steersman.intent.actions import Delete, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.metrics import Elapsed, Measure, Metric, exponential
from steersman.intent.verdict import Rest, Verdict, Wake

ANSWERED_TTL = timedelta(hours=1)
PENDING_TTL = timedelta(days=1)
LIMIT = 100
"""Pools in an answer, where the request sets no limit."""
MAX_ERROR = 256
"""Bytes of the reason why a pool is incomplete."""
COMPLETE, FAILED = "Complete", "Failed"
PENDING, SLICES, ALLOCATED = "pending_by_driver", "slices_by_driver", "allocated_by_driver"
"""Indexes of requests, ResourceSlices and ResourceClaims."""
_LABELS = ("driver_name",)
_PREFIX = "resourcepoolstatusrequest_controller"
PROCESSED = Metric(
    f"{_PREFIX}_requests_processed_total", "Number of ResourcePoolStatusRequests processed", _LABELS
)
ERRORS = Metric(
    f"{_PREFIX}_request_processing_errors_total",
    "Number of errors while processing ResourcePoolStatusRequests",
    _LABELS,
)
SECONDS = Metric(
    f"{_PREFIX}_request_processing_duration_seconds",
    "Seconds that processing a ResourcePoolStatusRequest took",
    _LABELS,
    exponential(0.001, 2, 15),
)


class Observation(msgspec.Struct, frozen=True):
    """A request, and what its answer is computed from: the slices of its driver, and the claims that have its devices."""

    request: ResourcePoolStatusRequest
    slices: tuple[ResourceSlice, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()


def observe(caches: Caches, key: Key) -> Observation | None:
    request = caches[RESOURCEPOOLSTATUSREQUESTS].get(key)
    if request is None:
        return None
    if request.status is not None:
        return Observation(request)
    driver = request.spec.driver
    return Observation(
        request,
        tuple(caches[RESOURCESLICES].by(SLICES, driver)),
        tuple(caches[RESOURCECLAIMS].by(ALLOCATED, driver)),
    )


# -- pools ----------------------------------------------------------------------------------------


def pools_of(
    driver: str, pool: str, slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]
) -> list[PoolStatus]:
    """The pools of a driver, or the one of a name, in the order of their names."""
    found: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        if each.spec.driver == driver and pool in ("", each.spec.pool.name):
            found.setdefault(each.spec.pool.name, []).append(each)
    allocated = Counter(
        result.pool
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if result.driver == driver
    )
    return [_pool_status(driver, name, found[name], allocated[name]) for name in sorted(found)]


def _pool_status(driver: str, name: str, slices: list[ResourceSlice], allocated: int) -> PoolStatus:
    generation = max(each.spec.pool.generation for each in slices)
    # Slices of earlier generations are being replaced.
    current = [each for each in slices if each.spec.pool.generation == generation]
    nodes = {each.spec.nodeName or None for each in current}
    node = nodes.pop() if len(nodes) == 1 else None
    expected = current[0].spec.pool.resourceSliceCount
    if len(current) < expected:
        error = (
            f"pool {driver}/{name} is incomplete: observed {len(current)}/{expected} slices "
            f"at generation {generation}"
        )
        shown = error.encode()[:MAX_ERROR].decode(errors="ignore")
        return PoolStatus(
            driver=driver, poolName=name, generation=generation, nodeName=node, validationError=shown
        )
    total = sum(len(each.spec.devices) for each in current)
    return PoolStatus(
        driver=driver,
        poolName=name,
        generation=generation,
        resourceSliceCount=len(current),
        totalDevices=total,
        allocatedDevices=allocated,
        availableDevices=max(0, total - allocated),
        # As upstream, which does not look at taints and conditions of devices yet.
        unavailableDevices=0,
        nodeName=node,
    )


def answer(seen: Observation, now: datetime) -> ResourcePoolStatusRequestStatus:
    """The answer to a request. A pool that is not complete has a validation error in it."""
    spec = seen.request.spec
    pools = pools_of(spec.driver, spec.poolName or "", seen.slices, seen.claims)
    shown = tuple(pools[: LIMIT if spec.limit is None else spec.limit])
    condition = Condition(
        type=COMPLETE,
        status="True",
        reason="CalculationComplete",
        message=f"Calculated status for {len(shown)} pools",
        lastTransitionTime=truncate_to_seconds(now),
    )
    return ResourcePoolStatusRequestStatus(poolCount=len(pools), pools=shown, conditions=(condition,))


# -- requests -------------------------------------------------------------------------------------


def expiry(request: ResourcePoolStatusRequest) -> datetime | None:
    """When a request is deleted; None where it has no time to count from.

    differs: upstream looks every 10 minutes, and deletes those whose time is over.
    """
    since, ttl = request.metadata.creationTimestamp, PENDING_TTL
    if request.status is not None:
        ttl = ANSWERED_TTL
        ended = (each for each in request.status.conditions if each.type in (COMPLETE, FAILED))
        end = next(ended, None)
        since = since if end is None else end.lastTransitionTime
    return None if since is None else since + ttl


async def decide(seen: Observation, now: datetime) -> Verdict:
    request = seen.request
    # A request that is being deleted is answered all the same, as upstream does.
    due = expiry(request) if request.metadata.deletionTimestamp is None else None
    if due is not None and now >= due:
        try:
            await Delete(request)
        except NotFound:
            return Rest("already deleted")
        return Rest("its time is over: deleted")
    if request.status is not None:
        return _until(due, now, "answered, to be deleted later")
    status = answer(seen, now)
    incomplete = next((pool.validationError for pool in status.pools if pool.validationError), None)
    if incomplete is not None:
        # differs: upstream tries again within 0.2 s and then waits for the next change of the request. Here a change of
        # the driver's slices leads to the next round.
        return _until(due, now, incomplete)
    await _update(request, status)
    return Rest("answered")


async def _update(request: ResourcePoolStatusRequest, status: ResourcePoolStatusRequestStatus) -> None:
    labels = (request.spec.driver,)
    error: ApiError | None = None
    try:
        await UpdateStatus(request, status)
    except ApiError as refused:
        error = refused
        await Measure(ERRORS, labels=labels)
    await Measure(PROCESSED, labels=labels)
    await Measure(SECONDS, await Elapsed(), labels)
    if error is not None:
        raise error


def _until(due: datetime | None, now: datetime, because: str) -> Verdict:
    return Rest(because) if due is None else Wake(due - now, because)


# -- enqueue --------------------------------------------------------------------------------------


def _pending_driver(request: ResourcePoolStatusRequest) -> Iterable[str]:
    """Indexes a request that is not answered by its driver."""
    return (request.spec.driver,) if request.status is None else ()


def _slice_driver(each: ResourceSlice) -> Iterable[str]:
    return (each.spec.driver,)


def _allocated_drivers(claim: ResourceClaim) -> Iterable[str]:
    """Indexes a claim by the drivers whose devices it has."""
    allocation = claim.status.allocation
    return () if allocation is None else dict.fromkeys(each.driver for each in allocation.devices.results)


def _enqueue_pending(caches: Caches, change: Change[ResourceSlice]) -> Iterator[Key]:
    """The requests that wait for slices of a driver."""
    for request in caches[RESOURCEPOOLSTATUSREQUESTS].by(PENDING, change.obj.spec.driver):
        yield request.key


def _enqueue_none(caches: Caches, change: Change[ResourceClaim]) -> Iterable[Key]:
    """A claim is counted when a request is answered; its changes are no reason to answer one."""
    return ()


controller = Controller(
    name="resourcepoolstatusrequest-controller",
    watches=(
        Watch(RESOURCEPOOLSTATUSREQUESTS, indexes={PENDING: _pending_driver}),
        Watch(RESOURCESLICES, to=_enqueue_pending, indexes={SLICES: _slice_driver}),
        Watch(RESOURCECLAIMS, to=_enqueue_none, indexes={ALLOCATED: _allocated_drivers}),
    ),
    workers=1,
    observe=observe,
    decide=decide,
    metrics=(PROCESSED, ERRORS, SECONDS),
    feature_gates=("DRAResourcePoolStatus",),
    required_kinds=(RESOURCEPOOLSTATUSREQUESTS,),
)
