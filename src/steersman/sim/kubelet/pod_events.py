"""Events of kubelets about pods: the difference between two states of a pod, in the words of kubelet 1.36. Pure functions.

differs: upstream repeats the events of a container that waits or is not ready (BackOff, Unhealthy, Failed) at every attempt. Here an
event is written when something happens, so that a pod that only waits costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.go_duration import format_duration
from steersman.sim.kubelet.pod_lifecycle import ContainerRun, PodRun, State
from steersman.sim.kubelet.pod_plan import ContainerPlan, PodPlan
from steersman.sim.kubelet.status import DEADLINE, pull_error

NORMAL, WARNING = "Normal", "Warning"
_FIELDS = {"init": "initContainers", "sidecar": "initContainers", "ephemeral": "ephemeralContainers"}


class PodEvent(msgspec.Struct, frozen=True):
    """An event about a pod, or about one of its containers."""

    field: str
    """The field of the container, such as ``spec.containers{web}``; empty for the pod."""
    type: str
    reason: str
    message: str


def pod_events(
    pod: v1.Pod, plan: PodPlan, before: PodRun, after: PodRun, is_present: Callable[[str], bool]
) -> Iterator[PodEvent]:
    """The events of what happened to a pod between two states. ``is_present`` is whether its node has an image."""
    stopped = after.stop_requested is not None and before.stop_requested is None
    expired = after.reason == "DeadlineExceeded" and not before.reason
    if expired:
        yield PodEvent("", NORMAL, "DeadlineExceeded", DEADLINE)
    spec, ephemerals = pod.spec, before.ephemerals
    if before.ephemeral_names != after.ephemeral_names:
        known = dict(zip(before.ephemeral_names, ephemerals, strict=True))
        ephemerals = tuple(known.get(name, ContainerRun()) for name in after.ephemeral_names)
    groups = (
        (spec.initContainers, plan.inits, before.inits, after.inits),
        (spec.containers, plan.mains, before.mains, after.mains),
        (spec.ephemeralContainers, plan.ephemerals, ephemerals, after.ephemerals),
    )
    for specs, plans, old, new in groups:
        for i, (was, now) in enumerate(zip(old, new, strict=True)):
            if now is not was:
                yield from _container_events(pod, plan, specs[i], plans[i], was, now, is_present)
            # A sidecar is stopped when the main containers have completed.
            ends = stopped or expired or (after.terminated and plans[i].role == "sidecar")
            if ends and was.state is State.RUNNING and (stopped or before.stop_requested is None):
                name = plans[i].name
                yield PodEvent(field_path(plans[i]), NORMAL, "Killing", f"Stopping container {name}")


def _container_events(
    pod: v1.Pod,
    plan: PodPlan,
    spec: v1.Container | v1.EphemeralContainer,
    container_plan: ContainerPlan,
    was: ContainerRun,
    now: ContainerRun,
    is_present: Callable[[str], bool],
) -> Iterator[PodEvent]:
    field, name, image = field_path(container_plan), container_plan.name, container_plan.image
    started = now.launches - was.launches
    if started and was.state is State.RUNNING and was.image != now.image:
        message = f"Container {name} definition changed, will be restarted"
        yield PodEvent(field, NORMAL, "Killing", message)
    for _ in range(started):
        yield from _pull_events(plan, field, spec, is_present)
        yield PodEvent(field, NORMAL, "Created", "Container created")
        yield PodEvent(field, NORMAL, "Started", "Container started")
    if now.state is not was.state:
        match now.state:
            case State.UNPULLED | State.PULL_BACK_OFF if was.state is not State.UNPULLED:
                yield PodEvent(field, NORMAL, "Pulling", f'Pulling image "{image}"')
                message = f'Failed to pull image "{image}": {pull_error(image)}'
                yield PodEvent(field, WARNING, "Failed", message)
                yield PodEvent(field, WARNING, "Failed", "Error: ErrImagePull")
            case State.UNCONFIGURED:
                yield from _pull_events(plan, field, spec, is_present)
                yield PodEvent(field, WARNING, "Failed", f"Error: {container_plan.config_error}")
        if now.state is State.PULL_BACK_OFF:
            yield PodEvent(field, NORMAL, "BackOff", f'Back-off pulling image "{image}"')
            yield PodEvent(field, WARNING, "Failed", "Error: ImagePullBackOff")
    if now.restart_at is not None and now.ended is not was.ended:
        meta = pod.metadata
        where = f"{meta.name}_{meta.namespace}({meta.uid})"
        message = f"Back-off restarting failed container {name} in pod {where}"
        yield PodEvent(field, WARNING, "BackOff", message)
    if now.unhealthy and not was.unhealthy:
        message = f"Readiness probe failed: {_probe_output(pod, spec.readinessProbe)}"
        yield PodEvent(field, WARNING, "Unhealthy", message)


def _pull_events(
    plan: PodPlan, field: str, spec: v1.Container | v1.EphemeralContainer, is_present: Callable[[str], bool]
) -> Iterator[PodEvent]:
    image = spec.image
    present = is_present(image)
    if spec.imagePullPolicy != "Always" and (present or spec.imagePullPolicy == "Never"):
        message = f'Container image "{image}" already present on machine and can be accessed by the pod'
        yield PodEvent(field, NORMAL, "Pulled", message)
        return
    took = format_duration(plan.start_delay)
    yield PodEvent(field, NORMAL, "Pulling", f'Pulling image "{image}"')
    message = (
        f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: 0 bytes.'
    )
    yield PodEvent(field, NORMAL, "Pulled", message)


def _probe_output(pod: v1.Pod, probe: v1.Probe | None) -> str:
    """The output of a probe that fails."""
    if probe is None or probe.exec is not None:
        return ""
    if probe.tcpSocket is not None:
        where = probe.tcpSocket.host or pod.status.podIP
        return f"dial tcp {where}:{probe.tcpSocket.port}: connect: connection refused"
    if probe.grpc is not None:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return "HTTP probe failed with statuscode: 503"


def field_path(container_plan: ContainerPlan) -> str:
    """The field of a container in its pod, as events name it."""
    return f"spec.{_FIELDS.get(container_plan.role, 'containers')}{{{container_plan.name}}}"
