"""A pod as its kubelet means to run it: the spec and annotations, read once."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.sim.kubelet.behaviour import FOREVER, NEVER_READY, PREFIX, Behaviour, behaviour, span


class KubeletSettings(msgspec.Struct, frozen=True):
    """How simulated kubelets take their time, in seconds."""

    start_delay: float = 0.0
    """From a pod's arrival on its node until its first container is started."""
    ready_delay: float = 0.0
    """From a container's start until it is ready, beyond its readiness probe's initial delay."""
    ready: bool = True
    """Whether containers get ready at all."""
    shutdown: float = 0.0
    """How long containers take to stop when asked to; their grace period is the limit."""
    work: float = 1.0
    """How long the containers of a Job run whose command says nothing."""
    pull_error: float = 10.0
    """How long ErrImagePull is shown before it becomes ImagePullBackOff."""
    reboot: float = 30.0
    """How long a node that reboots is away."""
    lease_interval: float = 10.0
    """Between two renewals of a node's lease; 0 for no heartbeats at all."""
    status_interval: float = 300.0
    """Between two reports of a node's status when nothing changed."""


class Part(NamedTuple):
    """A container as it will behave."""

    name: str
    image: str
    does: Behaviour
    pulls: bool
    ready_after: float | None
    """Seconds from running to ready; None is never."""
    role: Literal["main", "init", "sidecar"] = "main"


class Plan(NamedTuple):
    """A pod as it will behave."""

    policy: str
    start_delay: float
    shutdown: float
    grace: float
    deadline: float | None
    pull_error: float
    inits: tuple[Part, ...]
    mains: tuple[Part, ...]
    host_network: bool
    gates: tuple[str, ...]


def plan(pod: v1.Pod, settings: KubeletSettings) -> Plan:
    """What is to become of a pod."""
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
    return Plan(
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
    )


def _init(pod: v1.Pod, container: v1.Container, pulls: bool, after: float | None) -> Part:
    """An init container whose command says nothing is done at once; a sidecar stays."""
    if container.restartPolicy == "Always":
        return _part(pod, container, pulls, after, FOREVER)._replace(role="sidecar")
    # The annotations are about the containers proper, unless they name this one.
    own = {
        name: text for name, text in pod.metadata.annotations.items() if name.endswith(f".{container.name}")
    }
    does = behaviour(container.name, (*container.command, *container.args), own, Behaviour(0.0, 0))
    return Part(container.name, container.image, does, pulls and "bad" not in container.image, None, "init")


def _part(pod: v1.Pod, container: v1.Container, pulls: bool, after: float | None, unknown: Behaviour) -> Part:
    probe = container.readinessProbe
    if probe is not None and after is not None:
        after += probe.initialDelaySeconds or 0
    command = (*container.command, *container.args)
    does = behaviour(container.name, command, pod.metadata.annotations, unknown)
    return Part(container.name, container.image, does, pulls and "bad" not in container.image, after)
