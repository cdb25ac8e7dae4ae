"""The plan of a pod: its spec and annotations, as its kubelet will run it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.sim.kubelet.behaviour import FOREVER, NEVER_READY, PREFIX, Behaviour, behaviour, span
from steersman.sim.kubelet.pod_volumes import VolumeSource, volume_sources


class KubeletSettings(msgspec.Struct, frozen=True):
    """Timing of simulated kubelets, in seconds."""

    start_delay: float = 0.0
    """From the binding of a pod until its first container starts."""
    ready_delay: float = 0.0
    """From the start of a container until it is ready, beyond the initial delay of its readiness probe."""
    ready: bool = True
    """Whether containers become ready at all."""
    shutdown: float = 0.0
    """How long containers take to stop; their grace period is the limit."""
    work: float = 1.0
    """How long the containers of a Job run whose command cannot be interpreted."""
    pull_error: float = 10.0
    """How long ErrImagePull is reported before ImagePullBackOff."""
    reboot: float = 30.0
    """How long a reboot takes."""
    lease_interval: float = 10.0
    """Between two renewals of a node's lease; 0 disables heartbeats."""
    status_interval: float = 300.0
    """Between two periodic reports of a node's status."""


class ContainerPlan(NamedTuple):
    """The plan of a container."""

    name: str
    image: str
    behaviour: Behaviour
    pulls: bool
    ready_after: float | None
    """Seconds from running to ready; None is never."""
    role: Literal["main", "init", "sidecar"] = "main"


class PodPlan(NamedTuple):
    """The plan of a pod."""

    policy: str
    start_delay: float
    shutdown: float
    grace: float
    deadline: float | None
    pull_error: float
    inits: tuple[ContainerPlan, ...]
    mains: tuple[ContainerPlan, ...]
    host_network: bool
    gates: tuple[str, ...]
    volumes: tuple[VolumeSource, ...] = ()
    """What its volumes are made from."""


def plan(pod: v1.Pod, settings: KubeletSettings) -> PodPlan:
    """The plan of a pod."""
    spec, notes = pod.spec, pod.metadata.annotations
    pulls = NEVER_READY not in notes
    unknown = FOREVER
    if any(owner.kind == "Job" for owner in pod.metadata.ownerReferences):
        unknown = Behaviour(settings.work, 0)
    grace = pod.metadata.deletionGracePeriodSeconds
    if grace is None:
        grace = 30 if spec.terminationGracePeriodSeconds is None else spec.terminationGracePeriodSeconds
    ready = settings.ready and notes.get(PREFIX + "ready") != "false"
    delay = span(notes, "ready-delay", settings.ready_delay) if notes else settings.ready_delay
    after = delay if ready else None
    return PodPlan(
        policy=spec.restartPolicy or "Always",
        start_delay=span(notes, "start-delay", settings.start_delay) if notes else settings.start_delay,
        shutdown=span(notes, "shutdown", settings.shutdown) if notes else settings.shutdown,
        grace=float(grace),
        deadline=None if spec.activeDeadlineSeconds is None else float(spec.activeDeadlineSeconds),
        pull_error=settings.pull_error,
        inits=tuple([_init(pod, container, pulls, after) for container in spec.initContainers]),
        mains=tuple([_part(pod, container, pulls, after, unknown) for container in spec.containers]),
        host_network=spec.hostNetwork,
        gates=tuple([gate.conditionType for gate in spec.readinessGates]),
        volumes=volume_sources(pod) if spec.volumes else (),
    )


def _init(pod: v1.Pod, container: v1.Container, pulls: bool, after: float | None) -> ContainerPlan:
    """An init container whose command cannot be interpreted completes at once; a sidecar runs forever."""
    if container.restartPolicy == "Always":
        return _part(pod, container, pulls, after, FOREVER)._replace(role="sidecar")
    # Annotations apply to init containers only where they name them.
    own = {
        name: text for name, text in pod.metadata.annotations.items() if name.endswith(f".{container.name}")
    }
    does = behaviour(container.name, (*container.command, *container.args), own, Behaviour(0.0, 0))
    return ContainerPlan(
        container.name, container.image, does, pulls and "bad" not in container.image, None, "init"
    )


def _part(
    pod: v1.Pod, container: v1.Container, pulls: bool, after: float | None, unknown: Behaviour
) -> ContainerPlan:
    probe = container.readinessProbe
    if probe is not None and after is not None:
        after += probe.initialDelaySeconds or 0
    command = (*container.command, *container.args)
    does = behaviour(container.name, command, pod.metadata.annotations, unknown)
    return ContainerPlan(container.name, container.image, does, pulls and "bad" not in container.image, after)
