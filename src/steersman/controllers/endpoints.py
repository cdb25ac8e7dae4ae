"""endpoints-controller (a decision): keeps the Endpoints of each Service that has a selector.

Endpoints are the older form of EndpointSlices: one object for each Service, with the addresses of one IP family only,
and at most 1,000 of them. Services without a selector and those of type ExternalName get none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.api.ip_addresses import canonical_ip
from steersman.api.kinds import PODS, ObjectMeta, ObjectReference, Pod
from steersman.api.kinds.services import (
    ENDPOINTS,
    SERVICES,
    EndpointAddress,
    Endpoints,
    EndpointsPort,
    EndpointSubset,
    Service,
)
from steersman.api.pods import is_ready
from steersman.api.scheme import Key
from steersman.controllers.shared.endpoint_subsets import Subsets, equal_subsets, repack_subsets, truncate
from steersman.controllers.shared.service_pods import (
    SELECTING,
    enqueue_services,
    find_port,
    selected_pods,
    should_be_in_endpoints,
    should_set_hostname,
)
from steersman.controllers.shared.trigger_time import (
    ObservedTimes,
    TriggerTimes,
    observed_times,
    trigger_time,
    with_trigger_time,
)
from steersman.intent.actions import Create, Delete, Emit, Update
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

SYNCS = Flag("concurrent-endpoint-syncs", 5, "How many Endpoints are looked at concurrently.")
BATCH_PERIOD = Flag(
    "endpoint-updates-batch-period",
    0.0,
    "How long changes of pods are gathered before Endpoints are written.",
)
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
HEADLESS = "service.kubernetes.io/headless"
"""The label of Endpoints whose Service has no cluster IP."""
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
"""The annotation of Endpoints that do not have all addresses."""
TRUNCATED = "truncated"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of Endpoints that are a leader election lock and have no Service."""
LEFTOVERS = Key("", "leftover endpoints")
"""The key of the round at start that finds Endpoints whose Service is gone."""


class Observation(msgspec.Struct, frozen=True):
    """A Service, the pods it selects, and its Endpoints."""

    service: Service
    pods: tuple[Pod, ...]
    endpoints: Endpoints | None
    times: TriggerTimes
    """The controller's memory of trigger times."""


class Leftovers(msgspec.Struct, frozen=True):
    """Endpoints without a Service."""

    endpoints: tuple[Endpoints, ...]


def observe(caches: Caches, key: Key) -> Observation | Leftovers | None:
    if key == LEFTOVERS:
        leftovers = tuple(_leftovers(caches))
        return Leftovers(leftovers) if leftovers else None
    times, service = memory_of(caches, TriggerTimes), caches[SERVICES].get(key)
    endpoints = caches[ENDPOINTS].get(key)
    if service is None:
        times.forget(key)
        return Leftovers((endpoints,)) if endpoints is not None else None
    return Observation(service, tuple(selected_pods(caches[PODS], service)), endpoints, times)


def _leftovers(caches: Caches) -> Iterator[Endpoints]:
    for endpoints in caches[ENDPOINTS].list():
        if LEADER not in endpoints.metadata.annotations and caches[SERVICES].get(endpoints.key) is None:
            yield endpoints


async def decide(seen: Observation | Leftovers, now: datetime) -> Verdict:
    if isinstance(seen, Leftovers):
        return await _delete(seen.endpoints)
    service, current = seen.service, seen.endpoints
    if service.spec.type == "ExternalName":
        return Rest("Service of type ExternalName has no Endpoints")
    if not service.spec.selector:
        return Rest("Endpoints of a Service without a selector are not managed")
    observed = observed_times(service, seen.pods)
    wanted = _wanted(seen, observed)
    if current is not None and _is_written(current, wanted):
        seen.times.record(service.key, observed)
        return Rest("Endpoints are up to date")
    if current is None:
        verdict = await _create(wanted)
    else:
        verdict = await _update(wanted)
    seen.times.record(service.key, observed)
    return verdict


async def _delete(leftovers: tuple[Endpoints, ...]) -> Verdict:
    for endpoints in leftovers:
        try:
            await Delete(endpoints)
        except NotFound:
            continue
    return Rest(f"deleted {len(leftovers)} Endpoints without a Service")


async def _create(wanted: Endpoints) -> Verdict:
    namespace, name = wanted.key
    try:
        await Create(ENDPOINTS, namespace, wanted)
    except ApiError as error:
        if isinstance(error, Forbidden) and error.caused_by("NamespaceTerminating"):
            return Rest("namespace is terminating")
        # differs: upstream's event has no namespace and ends up in "default".
        message = f"Failed to create endpoint for service {namespace}/{name}: {error}"
        await Emit(wanted, "Warning", "FailedToCreateEndpoint", message)
        raise
    return Rest("Endpoints created")


async def _update(wanted: Endpoints) -> Verdict:
    try:
        await Update(wanted)
    except ApiError as error:
        message = f"Failed to update endpoint {wanted.metadata.namespace}/{wanted.metadata.name}: {error}"
        await Emit(wanted, "Warning", "FailedToUpdateEndpoint", message)
        raise
    return Rest("Endpoints updated")


# -- the wanted object ------------------------------------------------------------------------


def _wanted(seen: Observation, observed: ObservedTimes) -> Endpoints:
    """The Endpoints to write."""
    service, current = seen.service, seen.endpoints
    subsets, truncated = truncate(desired_subsets(service, seen.pods))
    meta = (
        current.metadata
        if current is not None
        else ObjectMeta(name=service.metadata.name, namespace=service.metadata.namespace)
    )
    annotations = {key: value for key, value in meta.annotations.items() if key != OVER_CAPACITY}
    if truncated:
        annotations[OVER_CAPACITY] = TRUNCATED
    time = trigger_time(seen.times.get(service.key), observed)
    meta = replace(meta, labels=desired_labels(service), annotations=with_trigger_time(annotations, time))
    return Endpoints(metadata=meta, subsets=subsets)


def _is_written(current: Endpoints, wanted: Endpoints) -> bool:
    """Whether Endpoints need no write. The trigger time alone is no reason for one.

    differs: upstream writes truncated Endpoints in every round, because it compares them with all addresses.
    """
    return (
        current.metadata.annotations.get(OVER_CAPACITY) == wanted.metadata.annotations.get(OVER_CAPACITY)
        and _without_headless(current.metadata.labels) == _without_headless(wanted.metadata.labels)
        and equal_subsets(current.subsets, wanted.subsets)
    )


def desired_labels(service: Service) -> Mapping[str, str]:
    """The labels of a Service's Endpoints: those of the Service, and the controller's own."""
    labels = dict(_without_headless(service.metadata.labels))
    if service.spec.clusterIP in ("", "None"):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = MANAGER
    return labels


def _without_headless(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in labels.items() if key != HEADLESS} if HEADLESS in labels else labels


def desired_subsets(service: Service, pods: Iterable[Pod]) -> Subsets:
    """The canonical subsets of a Service, of any number of addresses."""
    publish = service.spec.publishNotReadyAddresses
    # Pods with the same ports and readiness share a subset, so that there is little to repack.
    groups: dict[tuple[bool, tuple[EndpointsPort, ...]], list[EndpointAddress]] = {}
    for pod in pods:
        if not should_be_in_endpoints(pod, include_terminating=publish):
            continue
        address = endpoint_address(service, pod)
        ports = endpoint_ports(service, pod)
        if address is not None and ports is not None:
            groups.setdefault((publish or is_ready(pod), ports), []).append(address)
    return repack_subsets(
        EndpointSubset(addresses=tuple(addresses), ports=ports)
        if ready
        else EndpointSubset(notReadyAddresses=tuple(addresses), ports=ports)
        for (ready, ports), addresses in groups.items()
    )


def endpoint_address(service: Service, pod: Pod) -> EndpointAddress | None:
    """The address of a pod in the first IP family of a Service; None where it has none."""
    family = ip_family(service, pod)
    for each in pod.status.podIPs:
        parsed = canonical_ip(each.ip)
        if parsed is not None and parsed[0] == family:
            break
    else:
        return None
    meta = pod.metadata
    return EndpointAddress(
        ip=parsed[1],
        hostname=pod.spec.hostname if should_set_hostname(pod, service) else "",
        nodeName=pod.spec.nodeName,
        targetRef=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
    )


def ip_family(service: Service, pod: Pod) -> str:
    """The IP family of a Service's Endpoints; where its spec has none, that of its cluster IP, else of the pod."""
    if service.spec.ipFamilies:
        return service.spec.ipFamilies[0]
    cluster_ip = service.spec.clusterIP
    parsed = canonical_ip(cluster_ip if cluster_ip not in ("", "None") else pod.status.podIP)
    return parsed[0] if parsed is not None else "IPv4"


def endpoint_ports(service: Service, pod: Pod) -> tuple[EndpointsPort, ...] | None:
    """The ports of a pod that a Service names; None where the pod has none of them and is no endpoint.

    A headless Service may have no ports at all.
    """
    if not service.spec.ports:
        return () if service.spec.clusterIP == "None" else None
    ports = tuple(
        EndpointsPort(name=port.name, port=number, protocol=port.protocol, appProtocol=port.appProtocol)
        for port in service.spec.ports
        if (number := find_port(pod, port)) is not None
    )
    return ports or None


# -- enqueue ----------------------------------------------------------------------------------


def _deleted_endpoints(caches: Caches, change: Change[Endpoints]) -> Iterable[Key]:
    """The Service of deleted Endpoints, which gets new ones."""
    return (change.obj.key,) if change.new is None else ()


def configure(settings: Settings) -> Controller[Observation | Leftovers]:
    return Controller(
        name="endpoints-controller",
        aliases=("endpoint",),
        service_account="endpoint-controller",
        watches=(
            Watch(SERVICES, indexes=SELECTING),
            Watch(PODS, to=enqueue_services, delay=settings[BATCH_PERIOD]),
            Watch(ENDPOINTS, to=_deleted_endpoints),
        ),
        workers=SYNCS,
        initial_keys=(LEFTOVERS,),
        flags=(BATCH_PERIOD,),
        configure=configure,
        observe=observe,
        decide=decide,
        memory=TriggerTimes,
    )


controller = configure(DEFAULTS)
