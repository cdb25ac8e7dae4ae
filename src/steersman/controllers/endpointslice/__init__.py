"""endpointslice-controller (a decision): keeps the EndpointSlices of Services that have a selector.

Each IP family of a Service has slices of its own, of at most ``--max-endpoints-per-slice`` endpoints each. New slices
are created and others updated before any is deleted, so that no endpoint is missing from all slices meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.ip_addresses import Family
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.services import ENDPOINTSLICES, SERVICES, EndpointSlice, Service
from steersman.api.scheme import Key
from steersman.controllers.endpointslice import metrics, topology
from steersman.controllers.endpointslice.endpoints import ZONE, address_types, is_managed
from steersman.controllers.endpointslice.hints import (
    prefer_close,
    remove_hints,
    topology_mode_is_auto,
    traffic_distribution,
)
from steersman.controllers.endpointslice.memory import Memory
from steersman.controllers.endpointslice.reconciler import SliceChanges, reconcile, reuse_deleted
from steersman.controllers.shared.endpoint_slices import (
    BY_SERVICE,
    SERVICE_NAME,
    SLICED,
    SliceTracker,
    edited,
    service_key,
)
from steersman.controllers.shared.service_pods import SELECTING, enqueue_services, selected_pods
from steersman.controllers.shared.trigger_time import observed_times, trigger_time, with_trigger_time
from steersman.intent.actions import Create, Delete, Emit, Update
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

WORKERS = Flag("concurrent-service-endpoint-syncs", 5)
BATCH_PERIOD = Flag("endpointslice-updates-batch-period", 0.0)
MAX_ENDPOINTS = Flag("max-endpoints-per-slice", 100)
PREFER_SAME_GATE = "PreferSameTrafficDistribution"

SLICE_DELAY = 1.0
"""The least seconds from another writer's change of a slice until its Service is looked at."""
COALESCE_WITHIN = 1.0
"""The longest a Service waits between two rounds, in seconds: many pods becoming ready are one write of a slice.

Upstream waits as long where its cache does not show its own writes yet.
"""
MIN_BACKOFF = 1.0
"""Seconds after the first failed round of a Service, for a round may write many slices."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags and feature gates."""

    max_endpoints: int = MAX_ENDPOINTS.default
    prefer_same: bool = True


class Observation(msgspec.Struct, frozen=True):
    """A Service, the pods it selects, their nodes and its slices."""

    service: Service
    pods: tuple[Pod, ...]
    nodes: Mapping[str, Node]
    """The nodes of the pods, by name."""
    slices: tuple[EndpointSlice, ...]
    ratios: Mapping[str, float] | None
    """The shares of the zones, for a Service that asks for topology-aware hints."""
    memory: Memory


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, Memory)
    service = caches[SERVICES].get(key)
    if service is None:
        memory.forget(key)
        return None
    pods = tuple(selected_pods(caches[PODS], service)) if _is_selecting(service) else ()
    nodes: dict[str, Node] = {}
    for name in dict.fromkeys(pod.spec.nodeName for pod in pods):
        node = caches[NODES].get(Key("", name))
        if node is not None:
            nodes[name] = node
    slices = tuple(
        slice
        for slice in caches[ENDPOINTSLICES].by(BY_SERVICE, key)
        if is_managed(slice) and slice.metadata.deletionTimestamp is None
    )
    auto = topology_mode_is_auto(service.metadata.annotations)
    ratios = memory.hinted.ratios(caches[NODES].list) if auto else None
    return Observation(service, pods, nodes, slices, ratios, memory)


def _is_selecting(service: Service) -> bool:
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


async def decide(seen: Observation, now: datetime, config: Config = Config()) -> Verdict:
    service, memory = seen.service, seen.memory
    if not _is_selecting(service):
        await Measure(metrics.SYNCS, labels=("success",))
        external = service.spec.type == "ExternalName"
        return Rest("an ExternalName has no endpoints" if external else "no selector: its slices are others'")
    families = address_types(service)
    observed = observed_times(service, seen.pods)
    sync = Sync(seen, config, trigger_time(memory.trigger_times.get(service.key), observed))
    for family in families:
        await sync.reconcile(family)
    for slice in seen.slices:
        if slice.addressType not in families:
            await sync.delete_unsupported(slice)
    if sync.failures:
        await Measure(metrics.SYNCS, labels=("error",))
        await sync.fail()
    # differs: upstream records the times before it writes, and a write that is tried again loses its trigger time.
    memory.trigger_times.record(service.key, observed)
    await Measure(metrics.SYNCS, labels=("success",))
    if sync.written:
        return Rest(f"{sync.written} EndpointSlices written")
    return Rest("EndpointSlices up to date")


class Sync:
    """One sync of a Service: the slices of each IP family are written, whatever fails in another."""

    def __init__(self, seen: Observation, config: Config, trigger: datetime | None) -> None:
        self.failures: list[str] = []
        self.written = 0
        self._error: ApiError | None = None
        self._seen = seen
        self._service = seen.service
        self._name = str(seen.service.key)
        self._config = config
        self._trigger = trigger
        self._auto = topology_mode_is_auto(seen.service.metadata.annotations)
        self._distribution = traffic_distribution(seen.service, prefer_same=config.prefer_same)

    async def reconcile(self, family: Family) -> None:
        """Writes the slices of one IP family."""
        seen, service, memory = self._seen, self._service, self._seen.memory
        existing = tuple(slice for slice in seen.slices if slice.addressType == family)
        limit = self._config.max_endpoints
        found = reconcile(service, seen.pods, seen.nodes, existing, family, limit)
        for pod in found.unplaced:
            self.failures.append(
                f"skipping Pod {pod.metadata.name} for Service {self._name}: Node {pod.spec.nodeName} Not Found"
            )
        await Measure(metrics.ADDED, found.added)
        await Measure(metrics.REMOVED, found.removed)
        # As upstream, the counts of a dual-stack Service are those of one family.
        counts = metrics.count(found.efficiency, limit, self._distribution)
        for measure in memory.totals.set(service.key, counts):
            await measure
        changes, events = self._hinted(found.changes, family)
        changes = reuse_deleted(service, changes)
        try:
            await self._write(changes, existing)
        except ApiError as error:
            self._error = self._error or error
        else:
            written = len(changes.create) + len(changes.update) + len(changes.delete)
            labels = ("Auto" if self._auto else "Disabled", self._distribution)
            await Measure(metrics.CHANGED_PER_SYNC, written, labels)
        for event in events:
            await event

    def _hinted(self, changes: SliceChanges, family: Family) -> tuple[SliceChanges, list[Emit]]:
        """Sets the hints of the slices; also returns the events to tell of it."""
        hinted, key = self._seen.memory.hinted, self._service.key
        if self._auto:
            result = topology.add_hints(changes, self._seen.ratios)
            if result.problem:
                hinted.remove(key, family)
                return result.changes, [self._disabled(result.problem, family)]
            if not hinted.set(key, family, result.zones):
                return result.changes, []
            message = f"{topology.ENABLED}, addressType: {family}"
            return result.changes, [Emit(self._service, "Normal", "TopologyAwareHintsEnabled", message)]
        events = [self._disabled(topology.DISABLED, family)] if hinted.remove(key, family) else []
        if self._distribution:
            return prefer_close(changes, self._distribution), events
        return remove_hints(changes), events

    def _disabled(self, why: str, family: Family) -> Emit:
        return Emit(self._service, "Warning", "TopologyAwareHintsDisabled", f"{why}, addressType: {family}")

    async def _write(self, changes: SliceChanges, existing: Iterable[EndpointSlice]) -> None:
        """Creates, updates and deletes slices, in this order. The first error ends it."""
        tracker, current = self._seen.memory.tracker, {one.metadata.name: one for one in existing}
        # A Service that is being deleted gets no new slices: they would be garbage collected anyway.
        deleting = self._service.metadata.deletionTimestamp is not None
        for slice in () if deleting else changes.create:
            try:
                created = await Create(ENDPOINTSLICES, slice.metadata.namespace, self._stamped(slice))
            except ApiError as error:
                if error.caused_by("NamespaceTerminating"):
                    return
                self.failures.append(f"failed to create EndpointSlice for Service {self._name}: {error}")
                raise
            await self._count("create", tracker, created)
        for slice in changes.update:
            stamped, old = self._stamped(slice), current[slice.metadata.name]
            if _is_same(stamped, old):
                continue  # The server would store nothing new.
            try:
                updated = await Update(stamped)
            except ApiError as error:
                self._failed("update", slice, error)
                raise
            await self._count("update", tracker, updated)
        for slice in changes.delete:
            try:
                await Delete(slice)
            except NotFound:
                pass  # differs: upstream tells of a failure, and tries again.
            except ApiError as error:
                self._failed("delete", slice, error)
                raise
            await self._deleted(slice)

    async def delete_unsupported(self, slice: EndpointSlice) -> None:
        """Deletes a slice of an IP family that the Service no longer has."""
        family: Family = "IPv6" if slice.addressType == "IPv6" else "IPv4"
        self._seen.memory.hinted.remove(self._service.key, family)
        try:
            await Delete(slice)
        except ApiError as error:
            if isinstance(error, NotFound):
                return
            self._error = self._error or error
            name = slice.metadata.name
            self.failures.append(f"error deleting {name} EndpointSlice for Service {self._name}: {error}")
        else:
            await self._deleted(slice)

    async def fail(self) -> None:
        """Tells of the failures in an event, and raises the first."""
        failures = list(dict.fromkeys(self.failures))
        text = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        message = f"Error updating Endpoint Slices for Service {self._name}: {text}"
        await Emit(self._service, "Warning", "FailedToUpdateEndpointSlices", message)
        raise self._error or InvalidSpec(text)

    def _failed(self, verb: str, slice: EndpointSlice, error: ApiError) -> None:
        name = slice.metadata.name
        self.failures.append(f"failed to {verb} {name} EndpointSlice for Service {self._name}: {error}")

    def _stamped(self, slice: EndpointSlice) -> EndpointSlice:
        return edited(slice, annotations=with_trigger_time(slice.metadata.annotations, self._trigger))

    async def _count(self, operation: str, tracker: SliceTracker, slice: EndpointSlice) -> None:
        self.written += 1
        tracker.wrote(slice)
        await Measure(metrics.CHANGES, labels=(operation,))

    async def _deleted(self, slice: EndpointSlice) -> None:
        self.written += 1
        self._seen.memory.tracker.deleted(slice)
        await Measure(metrics.CHANGES, labels=("delete",))


def _is_same(slice: EndpointSlice, old: EndpointSlice) -> bool:
    """Whether a slice to write is the one there is, for hints may be looked at and stay as they are."""
    return (
        slice.endpoints == old.endpoints
        and slice.ports == old.ports
        and slice.metadata.labels == old.metadata.labels
        and slice.metadata.annotations == old.metadata.annotations
    )


# -- enqueue --------------------------------------------------------------------------------------


def _slice_changed(caches: Caches, change: Change[EndpointSlice]) -> Iterable[Key]:
    """The Service of a slice that another client has changed.

    differs: upstream does not notice that a slice is deleted which it has not written since it started.
    """
    tracker, slice, old = memory_of(caches, Memory).tracker, change.obj, change.old
    if change.new is None:
        expected = tracker.was_deleted(slice)
        return _service_of(slice) if is_managed(slice) and not expected else ()
    if old is not None and old.metadata.labels.get(SERVICE_NAME) != slice.metadata.labels.get(SERVICE_NAME):
        return (*_service_of(slice), *_service_of(old))
    if old is not None and is_managed(old) != is_managed(slice):
        return _service_of(slice)
    return _service_of(slice) if is_managed(slice) and not tracker.is_own_write(slice) else ()


def _service_of(slice: EndpointSlice) -> tuple[Key, ...]:
    key = service_key(slice)
    return (key,) if key is not None else ()


def _node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """The Services with topology-aware hints that are overloaded once a node comes, goes or changes its zone."""
    old, new = change.old, change.new
    if old is not None and new is not None:
        same_zone = old.metadata.labels.get(ZONE) == new.metadata.labels.get(ZONE)
        if same_zone and topology.is_node_ready(old) == topology.is_node_ready(new):
            return ()
    return memory_of(caches, Memory).hinted.nodes_changed(caches[NODES].list)


def _service_measures(caches: Caches, change: Change[Service]) -> Iterable[Measure]:
    """The gauges without the counts of a Service that is gone."""
    return memory_of(caches, Memory).totals.set(change.obj.key, None) if change.new is None else ()


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(settings[MAX_ENDPOINTS], settings.enabled(PREFER_SAME_GATE))
    batch_period = settings[BATCH_PERIOD]
    return Controller(
        name="endpointslice-controller",
        aliases=("endpointslice",),
        service_account="endpointslice-controller",
        event_component="endpoint-slice-controller",
        watches=(
            Watch(SERVICES, indexes=SELECTING, measures=_service_measures),
            Watch(PODS, to=enqueue_services, delay=batch_period),
            Watch(ENDPOINTSLICES, to=_slice_changed, indexes=SLICED, delay=max(SLICE_DELAY, batch_period)),
            Watch(NODES, to=_node_changed),
        ),
        workers=WORKERS,
        flags=(BATCH_PERIOD, MAX_ENDPOINTS),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        coalesce_within=COALESCE_WITHIN,
        rest_after_round=True,
        min_backoff=MIN_BACKOFF,
        memory=Memory,
        metrics=metrics.METRICS,
    )


controller = configure(DEFAULTS)
