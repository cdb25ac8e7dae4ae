"""Pods: how they begin, what a status update may change, how long they are given to stop."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import Container, Pod, PodCondition, PodSpec, PodStatus
from steersman.api.quota.compute import quality_of
from steersman.server import status_errors
from steersman.server.registry.strategy import WriteContext

_initial_status: BoundedCache[int, tuple[PodSpec, PodStatus]] = BoundedCache(256)
"""By the id of a spec: that spec, and the status of its new pods."""


def created(pod: Pod, context: WriteContext) -> Pod:
    """A new pod is pending. Its class of service is decided once."""
    spec = pod.spec
    known = _initial_status.get(id(spec))
    if known is None:
        try:
            quality = quality_of(spec)
        except ValueError as error:
            why = f'Pod in version "v1" cannot be handled as a Pod: {error}'
            raise status_errors.bad_request(why) from None
        status = PodStatus(phase="Pending", qosClass=quality)
        known = (spec, status)
        _initial_status.put(id(spec), known)
    status = known[1]
    return replace(pod, status=_gated(status, context.now) if spec.schedulingGates else status)


def _gated(status: PodStatus, now: datetime) -> PodStatus:
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        reason="SchedulingGated",
        message="Scheduling is blocked due to non-empty scheduling gates",
        lastTransitionTime=now,
    )
    return replace(status, conditions=(condition,))


def status_updated(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """The status, and of the metadata all but the owners, which old kubelets used to break."""
    status, before = new.status, old.status
    status = replace(
        status,
        qosClass=status.qosClass or before.qosClass,
        observedGeneration=status.observedGeneration or before.observedGeneration,
        conditions=_observed(status.conditions, before.conditions),
    )
    metadata = replace(
        new.metadata,
        ownerReferences=old.metadata.ownerReferences,
        deletionTimestamp=old.metadata.deletionTimestamp,
    )
    return replace(old, metadata=metadata, status=status)


def _observed(new: tuple[PodCondition, ...], old: tuple[PodCondition, ...]) -> tuple[PodCondition, ...]:
    """Conditions keep the generation they were observed at, where a writer does not say."""
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


def grace(pod: Pod, asked: int | None) -> int:
    """How long the pod is given: nothing where no kubelet has it, or nothing runs any more."""
    if not pod.spec.nodeName or pod.status.phase in ("Failed", "Succeeded"):
        return 0
    period = asked if asked is not None else pod.spec.terminationGracePeriodSeconds or 0
    return 1 if period < 0 else period


def conditioned(
    known: tuple[PodCondition, ...], new: PodCondition, now: datetime
) -> tuple[PodCondition, ...]:
    """A pod's conditions with one set, in its place; its time moves only when its status does."""
    for i, old in enumerate(known):
        if old.type == new.type:
            since = old.lastTransitionTime if old.status == new.status else now
            return (*known[:i], replace(new, lastTransitionTime=since), *known[i + 1 :])
    return (*known, replace(new, lastTransitionTime=now))


# -- quality of service -----------------------------------------------------------------------


# -- parts of them ----------------------------------------------------------------------------


def joined(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """Ephemeral containers, and nothing else."""
    return replace(old, spec=replace(old.spec, ephemeralContainers=new.spec.ephemeralContainers))


def resized(new: Pod, old: Pod, context: WriteContext) -> Pod:
    """What containers ask for, and nothing else."""
    spec = replace(
        old.spec,
        containers=_sized(new.spec.containers, old.spec.containers),
        initContainers=_sized(new.spec.initContainers, old.spec.initContainers),
        resources=new.spec.resources,
    )
    return replace(old, spec=spec)


def _sized(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    """Containers with other sizes; other containers are left for the rules to refuse."""
    if [each.name for each in new] != [each.name for each in old]:
        return new
    return tuple(
        replace(was, resources=now.resources, resizePolicy=now.resizePolicy)
        for now, was in zip(new, old, strict=True)
    )
