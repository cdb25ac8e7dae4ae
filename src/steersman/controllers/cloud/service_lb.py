"""service-lb-controller (a service): keeps a load balancer in the cloud for each Service of type LoadBalancer.

A Service gets the finalizer before its load balancer is created, and loses it once the load balancer is deleted, so that none
is forgotten. A Service with a loadBalancerClass is left to another controller.

differs: upstream compares the states of a Service before and after a change; here a Service is compared with its state when
its load balancer was last ensured, so that no change is lost to a failed round.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from steersman.api.cloud import CloudError, ImplementedElsewhere, RetryLater
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.services import SERVICES, LoadBalancerStatus, Service
from steersman.api.scheme import Key
from steersman.controllers.cloud.load_balancer_nodes import (
    load_balancer_nodes,
    node_change_matters,
    same_nodes,
    shown_names,
)
from steersman.controllers.shared.flags import CLUSTER_NAME
from steersman.intent.actions import Emit, Patch, PatchType
from steersman.intent.cloud import (
    DeleteLoadBalancer,
    EnsureLoadBalancer,
    GetLoadBalancer,
    UpdateLoadBalancer,
)
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure, Metric, exponential
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
WORKERS = Flag("concurrent-service-syncs", 1, "The number of Services that are processed concurrently.")
MIN_BACKOFF, MAX_BACKOFF = 5.0, 300.0
"""Seconds between two attempts of a Service that fails: upstream's."""
_SECONDS = exponential(1, 2, 15)
SYNCS = Metric(
    "service_controller_loadbalancer_sync_total",
    "Number of times that a load balancer was configured because a Service or the nodes changed",
)
NODE_SYNC_ERRORS = Metric(
    "service_controller_nodesync_error_total",
    "Number of times that the nodes of a load balancer could not be updated",
)
NODE_SYNC_SECONDS = Metric(
    "service_controller_nodesync_latency_seconds",
    "Seconds from a change of the nodes until a load balancer is updated",
    buckets=_SECONDS,
)
UPDATE_SECONDS = Metric(
    "service_controller_update_loadbalancer_host_latency_seconds",
    "Seconds that the provider takes to update the nodes of a load balancer",
    buckets=_SECONDS,
)


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    cluster_name: str = CLUSTER_NAME.default


class Synced(msgspec.Struct, frozen=True):
    """A Service and the nodes that its load balancer was last ensured or updated with."""

    service: Service
    nodes: tuple[Node, ...]


class Memory:
    """The load balancers that this process has ensured, by the key of their Service."""

    def __init__(self) -> None:
        self.synced: dict[Key, Synced] = {}


class Observed(msgspec.Struct, frozen=True):
    """A Service (None: gone), the nodes for its load balancer, and what was last ensured."""

    key: Key
    service: Service | None
    nodes: tuple[Node, ...]
    last: Synced | None
    memory: Memory


# -- decisions about a Service ------------------------------------------------------------------


def wants_load_balancer(service: Service) -> bool:
    return service.spec.type == "LoadBalancer" and service.spec.loadBalancerClass is None


def needs_cleanup(service: Service) -> bool:
    """Whether the finalizer stands for a load balancer that is to be deleted."""
    if FINALIZER not in service.metadata.finalizers:
        return False
    return service.metadata.deletionTimestamp is not None or service.spec.type != "LoadBalancer"


def needs_update(old: Service, new: Service) -> bool:
    """Whether a change of a Service concerns its load balancer."""
    if not wants_load_balancer(old) and not wants_load_balancer(new):
        return False
    return wants_load_balancer(old) != wants_load_balancer(new) or _relevant(old) != _relevant(new)


def _relevant(service: Service) -> tuple[object, ...]:
    """The fields of a Service that make a difference to its load balancer."""
    spec, meta = service.spec, service.metadata
    return (
        spec.loadBalancerSourceRanges,
        spec.ports,
        spec.sessionAffinity,
        spec.sessionAffinityConfig,
        spec.loadBalancerIP,
        spec.externalIPs,
        dict(meta.annotations),
        meta.uid,
        spec.externalTrafficPolicy,
        spec.healthCheckNodePort,
        # Only the number: families cannot change in place.
        len(spec.ipFamilies),
    )


def add_finalizer(service: Service) -> Patch[Service] | None:
    """The patch that adds the finalizer; None if it is there."""
    if FINALIZER in service.metadata.finalizers:
        return None
    return _patch(service, {"metadata": {"uid": service.metadata.uid, "finalizers": [FINALIZER]}})


def remove_finalizer(service: Service) -> Patch[Service] | None:
    """The patch that removes the finalizer; None if it is not there."""
    if FINALIZER not in service.metadata.finalizers:
        return None
    meta = {"uid": service.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    return _patch(service, {"metadata": meta})


def set_status(service: Service, status: LoadBalancerStatus) -> Patch[Service] | None:
    """The patch that writes the status of the load balancer; None if it is equal."""
    if _ingress(service.status.loadBalancer) == _ingress(status):
        return None
    ingress = [msgspec.to_builtins(each) for each in status.ingress] or None
    body = {"metadata": {"uid": service.metadata.uid}, "status": {"loadBalancer": {"ingress": ingress}}}
    return _patch(service, body)


def _ingress(status: LoadBalancerStatus) -> list[tuple[object, ...]]:
    """The ingress points as plain values: in process, the status of a Service is of another type than that of a provider."""
    return [
        (
            each.ip,
            each.ipMode,
            each.hostname,
            *((port.port, port.protocol, port.error) for port in each.ports),
        )
        for each in status.ingress
    ]


def _patch(service: Service, body: dict[str, Any]) -> Patch[Service]:
    # The role of this controller has the right to patch the status only, which lets finalizers through.
    return Patch(service, body, PatchType.STRATEGIC, subresource="status")


# -- the round ----------------------------------------------------------------------------------


def observe(caches: Caches, key: Key) -> Observed | None:
    memory = memory_of(caches, Memory)
    service, last = caches[SERVICES].get(key), memory.synced.get(key)
    if service is None and last is None:
        return None
    return Observed(key, service, load_balancer_nodes(caches[NODES].list()), last, memory)


class _Failed(Exception):
    """A step of a round that failed, with the words for its event."""

    def __init__(self, step: str, error: ApiError) -> None:
        super().__init__(f"{step}: {error}" if step else str(error))
        self.error = error


async def decide(seen: Observed, now: datetime, config: Config = Config()) -> Verdict:
    service, last = seen.service, seen.last
    if last is not None and (service is None or service.metadata.uid != last.service.metadata.uid):
        # The Service was deleted although it had the finalizer, or without ever getting it.
        await _delete_without_finalizer(last.service, config)
        seen.memory.synced.pop(seen.key, None)
        if service is None:
            return Rest("gone, and so is its load balancer")
        last = None
    assert service is not None
    try:
        if not wants_load_balancer(service) or needs_cleanup(service):
            await _clean_up(service, config)
            seen.memory.synced.pop(seen.key, None)
            return Rest("load balancer deleted")
        if last is not None and not needs_update(last.service, service):
            if same_nodes(last.nodes, seen.nodes):
                return Rest("load balancer is up to date")
            if await _update(service, seen.nodes, config):
                seen.memory.synced[seen.key] = Synced(service, seen.nodes)
                return Rest("load balancer updated to the current nodes")
        because = await _ensure(service, seen.nodes, config)
        seen.memory.synced[seen.key] = Synced(service, seen.nodes)
        return Rest(because)
    except _Failed as failed:
        await Emit(service, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {failed}")
        if isinstance(failed.error, RetryLater):
            return Wake(timedelta(seconds=failed.error.seconds), f"the provider asks to wait: {failed}")
        raise failed.error from None


async def _ensure(service: Service, nodes: tuple[Node, ...], config: Config) -> str:
    await Emit(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
    finalizer = add_finalizer(service)
    if finalizer is not None:
        try:
            await finalizer
        except ApiError as error:
            raise _Failed("failed to add load balancer cleanup finalizer", error) from None
    if not nodes:
        await _no_nodes(service)
    try:
        status = await EnsureLoadBalancer(config.cluster_name, service, nodes)
    except ImplementedElsewhere:
        return "load balancer is left to another controller"
    except CloudError as error:
        raise _Failed("failed to ensure load balancer", error) from None
    await Emit(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
    await _write_status(service, status)
    return "load balancer ensured"


async def _clean_up(service: Service, config: Config) -> None:
    try:
        exists = await GetLoadBalancer(config.cluster_name, service) is not None
    except CloudError as error:
        raise _Failed("failed to check if load balancer exists before cleanup", error) from None
    if exists:
        await Emit(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
        try:
            await DeleteLoadBalancer(config.cluster_name, service)
        except ImplementedElsewhere:
            pass  # The other controller has a finalizer of its own.
        except CloudError as error:
            raise _Failed("failed to delete load balancer", error) from None
    finalizer = remove_finalizer(service)
    if finalizer is not None:
        try:
            await finalizer
        except ApiError as error:
            raise _Failed("failed to remove load balancer cleanup finalizer", error) from None
    await Emit(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")
    await _write_status(service, LoadBalancerStatus())


async def _write_status(service: Service, status: LoadBalancerStatus) -> None:
    patch = set_status(service, status)
    if patch is None:
        return
    try:
        await patch
    except NotFound:
        pass  # It was deleted when it lost the finalizer.
    except ApiError as error:
        raise _Failed("failed to update load balancer status", error) from None


async def _delete_without_finalizer(service: Service, config: Config) -> None:
    if not wants_load_balancer(service):
        return
    await Emit(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
    try:
        await DeleteLoadBalancer(config.cluster_name, service)
    except CloudError as error:
        await Emit(service, "Warning", "DeleteLoadBalancerFailed", f"Error deleting load balancer: {error}")
        raise
    await Emit(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")


async def _update(service: Service, nodes: tuple[Node, ...], config: Config) -> bool:
    """Update the nodes of a load balancer; returns whether that is done. If not, it is ensured anew, as upstream does."""
    began = await Elapsed()
    await Measure(SYNCS)
    failure: CloudError | None = None
    try:
        await UpdateLoadBalancer(config.cluster_name, service, nodes)
    except CloudError as error:
        failure = error
    took = await Elapsed() - began
    await Measure(UPDATE_SECONDS, took)
    await Measure(NODE_SYNC_SECONDS, took)
    if failure is None:
        if nodes:
            await Emit(service, "Normal", "UpdatedLoadBalancer", "Updated load balancer with new hosts")
        else:
            await _no_nodes(service)
        return True
    if isinstance(failure, ImplementedElsewhere) or not await _may_exist(service, config):
        return True
    message = (
        f"Error updating load balancer with new hosts {shown_names(nodes)} "
        f"[node names limited, total number of nodes: {len(nodes)}], error: {failure}"
    )
    await Emit(service, "Warning", "UpdateLoadBalancerFailed", message)
    await Measure(NODE_SYNC_ERRORS)
    return False


async def _may_exist(service: Service, config: Config) -> bool:
    """Whether the load balancer exists, or the provider cannot tell."""
    try:
        return await GetLoadBalancer(config.cluster_name, service) is not None
    except CloudError:
        return True


async def _no_nodes(service: Service) -> None:
    await Emit(service, "Warning", "UnAvailableLoadBalancer", "There are no available nodes for LoadBalancer")


# -- enqueue --------------------------------------------------------------------------------------


def _service_changed(caches: Caches, change: Change[Service]) -> Iterable[Key]:
    old, new = change.old, change.new
    if new is None:
        concerned = old is not None and wants_load_balancer(old)
    elif old is None:
        concerned = wants_load_balancer(new) or needs_cleanup(new)
    else:
        concerned = needs_update(old, new) or needs_cleanup(new)
    return (change.obj.key,) if concerned else ()


def _node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    if not node_change_matters(change.old, change.new):
        return ()
    return [service.key for service in caches[SERVICES].by("load balancer", True)]


def _by_load_balancer(service: Service) -> Iterable[bool]:
    return (True,) if wants_load_balancer(service) else ()


def configure(settings: Settings) -> Controller[Observed]:
    config = Config(settings[CLUSTER_NAME])
    return Controller(
        name="service-lb-controller",
        aliases=("service",),
        service_account="service-controller",
        watches=(
            Watch(SERVICES, to=_service_changed, indexes={"load balancer": _by_load_balancer}),
            Watch(NODES, to=_node_changed),
        ),
        workers=WORKERS,
        flags=(CLUSTER_NAME,),
        configure=configure,
        observe=observe,
        decide=partial(decide, config=config),
        memory=Memory,
        min_backoff=MIN_BACKOFF,
        max_backoff=MAX_BACKOFF,
        metrics=(SYNCS, NODE_SYNC_ERRORS, NODE_SYNC_SECONDS, UPDATE_SECONDS),
        cloud="load_balancers",
    )


controller = configure(DEFAULTS)
