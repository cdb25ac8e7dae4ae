"""endpointslice-mirroring-controller (a decision): mirrors the Endpoints of Services without a selector to EndpointSlices.

Such Endpoints are written by users and other controllers, while proxies read EndpointSlices only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.services import (
    ENDPOINTS,
    ENDPOINTSLICES,
    SERVICES,
    Endpoints,
    EndpointSlice,
    Service,
)
from steersman.api.scheme import Key
from steersman.controllers.endpointslicemirroring import metrics
from steersman.controllers.endpointslicemirroring.reconciler import (
    MIRROR,
    Changes,
    desired_endpoints,
    plan_changes,
)
from steersman.controllers.shared.endpoint_slices import (
    BY_SERVICE,
    MANAGED_BY,
    SLICED,
    SliceTracker,
    service_key,
)
from steersman.intent.actions import Create, Delete, Emit, Update
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

SYNCS = Flag(
    "mirroring-concurrent-service-endpoint-syncs",
    5,
    "How many Services are looked at concurrently by the mirroring controller: 1 to 50.",
)
MAX_ENDPOINTS = Flag(
    "mirroring-max-endpoints-per-subset", 1000, "How many endpoints of a subset are mirrored: 1 to 1000."
)
BATCH_PERIOD = Flag(
    "mirroring-endpointslice-updates-batch-period",
    0.0,
    "How long changes of Endpoints are gathered before their slices are written.",
)
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of Endpoints that are a leader election lock."""


class Memory:
    """The memory of the controller between rounds."""

    def __init__(self) -> None:
        self.tracker = SliceTracker()
        self.sizes = metrics.Sizes()


class Observation(msgspec.Struct, frozen=True):
    """Endpoints to mirror, and their slices."""

    key: Key
    endpoints: Endpoints | None
    """None: nothing is to be mirrored."""
    because: str
    """Why nothing is to be mirrored."""
    slices: tuple[EndpointSlice, ...]
    memory: Memory


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, Memory)
    endpoints, service = caches[ENDPOINTS].get(key), caches[SERVICES].get(key)
    slices = tuple(_mirrored(caches, key))
    if endpoints is None or not should_mirror(endpoints):
        because = "Endpoints are gone" if endpoints is None else "Endpoints are not to be mirrored"
    elif service is None or service.spec.selector:
        because = "there is no Service" if service is None else "the Service has a selector"
    else:
        return Observation(key, endpoints, "", slices, memory)
    return Observation(key, None, because, slices, memory) if slices or key in memory.sizes else None


def _mirrored(caches: Caches, key: Key) -> Iterator[EndpointSlice]:
    """The slices that mirror the Endpoints of a key."""
    for each in caches[ENDPOINTSLICES].by(BY_SERVICE, key):
        if is_mirrored(each):
            yield each


def should_mirror(endpoints: Endpoints) -> bool:
    """Whether Endpoints may be mirrored, as far as they themselves say."""
    meta = endpoints.metadata
    return meta.labels.get(SKIP_MIRROR) != "true" and LEADER not in meta.annotations


def is_mirrored(slice: EndpointSlice) -> bool:
    """Whether this controller manages a slice."""
    return slice.metadata.labels.get(MANAGED_BY) == MIRROR


async def decide(seen: Observation, now: datetime, *, limit: int = MAX_ENDPOINTS.default) -> Verdict:
    try:
        if seen.endpoints is None:
            verdict = await _clean_up(seen)
        else:
            verdict = await _mirror(seen, seen.endpoints, limit)
    except ApiError:
        await Measure(metrics.DURATION, await Elapsed())
        raise
    await Measure(metrics.DURATION, await Elapsed())
    return verdict


async def _clean_up(seen: Observation) -> Verdict:
    """Deletes the slices of Endpoints that are not mirrored."""
    for measure in seen.memory.sizes.put(seen.key, None):
        await measure
    for each in seen.slices:
        await _delete(seen.memory.tracker, each)
    return Rest(f"{seen.because}: deleted {len(seen.slices)} EndpointSlices")


async def _mirror(seen: Observation, endpoints: Endpoints, limit: int) -> Verdict:
    desired = desired_endpoints(endpoints, limit)
    if desired.invalid:
        message = f"Skipped {desired.invalid} invalid IP addresses when mirroring to EndpointSlices"
        await Emit(endpoints, "Warning", "InvalidIPAddress", message)
    if desired.skipped > desired.invalid:
        message = (
            f"A max of {limit} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{desired.skipped} addresses were skipped"
        )
        await Emit(endpoints, "Warning", "TooManyAddressesToMirror", message)
    changes = plan_changes(endpoints, seen.slices, desired, limit)
    for measure in (*metrics.of_round(desired, changes), *seen.memory.sizes.put(seen.key, changes.size)):
        await measure
    for each in changes.kept:
        seen.memory.tracker.wrote(each)
    try:
        return await _write(seen, endpoints, changes)
    except ApiError as error:
        if error.caused_by("NamespaceTerminating"):
            return Rest("namespace is terminating")
        raise


async def _write(seen: Observation, endpoints: Endpoints, changes: Changes) -> Verdict:
    tracker, namespace = seen.memory.tracker, seen.key.namespace
    if endpoints.metadata.deletionTimestamp is None:
        for each in changes.create:
            tracker.wrote(await Create(ENDPOINTSLICES, namespace, each))
            await Measure(metrics.CHANGES, labels=("create",))
    for each in changes.update:
        tracker.wrote(await Update(each))
        await Measure(metrics.CHANGES, labels=("update",))
    for each in changes.delete:
        await _delete(tracker, each)
        await Measure(metrics.CHANGES, labels=("delete",))
    if not (changes.create or changes.update or changes.delete):
        return Rest("EndpointSlices are up to date")
    return Rest("Endpoints mirrored")


async def _delete(tracker: SliceTracker, slice: EndpointSlice) -> None:
    try:
        await Delete(slice)
    except NotFound:
        pass
    tracker.deleted(slice)


# -- enqueue ----------------------------------------------------------------------------------


def _enqueue_endpoints(caches: Caches, change: Change[Endpoints]) -> Iterable[Key]:
    """Endpoints that are to be mirrored, or were."""
    if not any(state is not None and should_mirror(state) for state in (change.old, change.new)):
        return ()
    key = change.obj.key
    service = caches[SERVICES].get(key)
    if service is not None and service.spec.selector and not any(_mirrored(caches, key)):
        # These are written by endpoints-controller, with every change of a pod, and are never mirrored.
        return ()
    return (key,)


def _enqueue_service(caches: Caches, change: Change[Service]) -> Iterable[Key]:
    """Services without a selector, and those that have gained or lost one."""
    if change.old is not None and change.new is not None:
        concerned = bool(change.old.spec.selector) != bool(change.new.spec.selector)
    else:
        concerned = not change.obj.spec.selector
    return (change.obj.key,) if concerned else ()


def _enqueue_slice(caches: Caches, change: Change[EndpointSlice]) -> Iterable[Key]:
    """The Endpoints of slices that another writer has changed."""
    tracker, old, new = memory_of(caches, Memory).tracker, change.old, change.new
    if new is None:
        concerned = is_mirrored(change.obj) and not tracker.was_deleted(change.obj)
        keys = (service_key(change.obj),)
    elif old is None:
        concerned = is_mirrored(new) and not tracker.is_own_write(new)
        keys = (service_key(new),)
    elif service_key(old) != service_key(new):
        return tuple(key for key in (service_key(new), service_key(old)) if key is not None)
    else:
        concerned = is_mirrored(old) != is_mirrored(new) or (
            is_mirrored(new) and not tracker.is_own_write(new)
        )
        keys = (service_key(new),)
    return tuple(key for key in keys if concerned and key is not None)


def configure(settings: Settings) -> Controller[Observation]:
    return Controller(
        name="endpointslice-mirroring-controller",
        aliases=("endpointslicemirroring",),
        service_account="endpointslicemirroring-controller",
        event_component="endpoint-slice-mirroring-controller",
        watches=(
            Watch(ENDPOINTS, to=_enqueue_endpoints),
            Watch(SERVICES, to=_enqueue_service),
            Watch(ENDPOINTSLICES, to=_enqueue_slice, indexes=SLICED, delay=settings[BATCH_PERIOD]),
        ),
        workers=SYNCS,
        flags=(MAX_ENDPOINTS, BATCH_PERIOD),
        configure=configure,
        observe=observe,
        decide=partial(decide, limit=settings[MAX_ENDPOINTS]),
        memory=Memory,
        metrics=metrics.METRICS,
        # Upstream's back-off for this controller: a round may change many slices.
        min_backoff=1.0,
        max_backoff=100.0,
    )


controller = configure(DEFAULTS)
