"""The strategy of Pods: the initial status, status updates, grace periods, resize and ephemeral containers."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import Container, Pod, PodCondition, PodSpec, PodStatus
from steersman.api.quota.compute import qos_class
from steersman.server import status_errors
from steersman.server.registry.strategy import WriteContext

_initial_status: BoundedCache[int, tuple[PodSpec, PodStatus]] = BoundedCache(256)
"""The initial status by the id of a spec, and that spec, so that its id stays taken."""


def prepare_for_create(pod: Pod, context: WriteContext) -> Pod:
    """Sets the phase of a new pod to Pending, and its QoS class."""
    spec = pod.spec
    known = _initial_status.get(id(spec))
    if known is None:
        try:
            quality = qos_class(spec)
        except ValueError as error:
            raise status_errors.MalformedObject("Pod", "v1", str(error)) from None
        status = PodStatus(phase="Pending", qosClass=quality)
        known = (spec, status)
        _initial_status.put(id(spec), known)
    status = known[1]
    return replace(
        pod, status=_with_scheduling_gated(status, context.now) if spec.schedulingGates else status
    )


def _with_scheduling_gated(status: PodStatus, now: datetime) -> PodStatus:
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        reason="SchedulingGated",
        message="Scheduling is blocked due to non-empty scheduling gates",
        lastTransitionTime=now,
    )
    return replace(status, conditions=(condition,))


def prepare_for_status_update(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """Updates the status and the metadata except owner references, which old kubelets used to break."""
    status, before = new.status, old.status
    status = replace(
        status,
        qosClass=status.qosClass or before.qosClass,
        observedGeneration=status.observedGeneration or before.observedGeneration,
        conditions=_keep_observed_generation(status.conditions, before.conditions),
    )
    metadata = replace(
        new.metadata,
        ownerReferences=old.metadata.ownerReferences,
        deletionTimestamp=old.metadata.deletionTimestamp,
    )
    return replace(old, metadata=metadata, status=status)


def _keep_observed_generation(
    new: tuple[PodCondition, ...], old: tuple[PodCondition, ...]
) -> tuple[PodCondition, ...]:
    """The conditions with their old observedGeneration where a writer omits it."""
    known = {
        condition.type: condition.observedGeneration for condition in old if condition.observedGeneration
    }
    if not known:
        return new
    return tuple(
        condition
        if condition.observedGeneration or condition.type not in known
        else replace(condition, observedGeneration=known[condition.type])
        for condition in new
    )


def grace_period(pod: Pod, requested: int | None) -> int:
    """The grace period in seconds: 0 if the pod is not scheduled or has finished."""
    if not pod.spec.nodeName or pod.status.phase in ("Failed", "Succeeded"):
        return 0
    period = requested if requested is not None else pod.spec.terminationGracePeriodSeconds or 0
    return 1 if period < 0 else period


def set_condition(
    known: tuple[PodCondition, ...], new: PodCondition, now: datetime
) -> tuple[PodCondition, ...]:
    """The conditions of a pod with one set; lastTransitionTime changes only with the status."""
    for i, old in enumerate(known):
        if old.type == new.type:
            since = old.lastTransitionTime if old.status == new.status else now
            return (*known[:i], replace(new, lastTransitionTime=since), *known[i + 1 :])
    return (*known, replace(new, lastTransitionTime=now))


# -- subresources -----------------------------------------------------------------------------


def prepare_for_ephemeral_containers(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """Updates the ephemeral containers only."""
    return replace(old, spec=replace(old.spec, ephemeralContainers=new.spec.ephemeralContainers))


def prepare_for_resize(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """Updates the resources of containers only (the ``resize`` subresource)."""
    spec = replace(
        old.spec,
        containers=_resize_containers(new.spec.containers, old.spec.containers),
        initContainers=_resize_containers(new.spec.initContainers, old.spec.initContainers),
        resources=new.spec.resources,
    )
    return replace(old, spec=spec)


def _resize_containers(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    """Containers with new resources; if the containers differ, the new ones, for validation to refuse."""
    if [each.name for each in new] != [each.name for each in old]:
        return new
    return tuple(
        replace(was, resources=now.resources, resizePolicy=now.resizePolicy)
        for now, was in zip(new, old, strict=True)
    )
