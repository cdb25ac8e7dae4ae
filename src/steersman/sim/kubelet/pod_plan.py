"""The plan of a pod: its spec and annotations, as its kubelet will run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.sim.kubelet.behaviour import FOREVER, NEVER_READY, PREFIX, Behaviour, behaviour, span
from steersman.sim.kubelet.pod_environment import EnvironmentSource, environment_sources
from steersman.sim.kubelet.pod_volumes import VolumeSource, volume_sources

HELM_HOOK = "helm.sh/hook"
"""The annotation of objects that Helm creates at one point of a release, such as the pods of ``helm test``."""


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
    """How long the containers of a Job or of a Helm hook run whose command cannot be interpreted."""
    pull_error: float = 10.0
    """How long ErrImagePull is reported before ImagePullBackOff."""
    reboot: float = 30.0
    """How long a reboot takes."""
    lease_interval: float = 10.0
    """Between two renewals of a node's lease; 0 disables heartbeats."""
    status_interval: float = 300.0
    """Between two periodic reports of a node's status."""
    missing_images: tuple[str, ...] | None = None
    """Images that cannot be pulled; None: those with ``bad`` in their name."""

    def pulls(self, image: str) -> bool:
        """Whether an image can be pulled."""
        return "bad" not in image if self.missing_images is None else image not in self.missing_images


class ContainerPlan(NamedTuple):
    """The plan of a container."""

    name: str
    image: str
    behaviour: Behaviour
    pulls: bool
    ready_after: float | None
    """Seconds from running to ready; None is never."""
    role: Literal["main", "init", "sidecar", "ephemeral"] = "main"
    probed_after: float | None = None
    """Seconds from running to its first readiness probe; None is without a probe."""
    environment: tuple[EnvironmentSource, ...] = ()
    """The ConfigMaps and Secrets of its environment."""
    config_error: str = ""
    """Why its environment cannot be made at present."""


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
    ephemerals: tuple[ContainerPlan, ...]
    host_network: bool
    gates: tuple[str, ...]
    volumes: tuple[VolumeSource, ...] = ()
    """The sources of the pod's volumes."""
    configured: bool = False
    """Whether the environment of a container is made from ConfigMaps or Secrets."""
    ephemeral_names: tuple[str, ...] = ()


def plan(pod: v1.Pod, settings: KubeletSettings) -> PodPlan:
    """The plan of a pod."""
    spec, notes = pod.spec, pod.metadata.annotations
    pulls = NEVER_READY not in notes
    # Helm waits for a pod that is a hook to succeed: `helm test` of what `helm create` writes runs wget.
    completes = HELM_HOOK in notes or any(owner.kind == "Job" for owner in pod.metadata.ownerReferences)
    unknown = Behaviour(settings.work, 0) if completes else FOREVER
    grace = pod.metadata.deletionGracePeriodSeconds
    if grace is None:
        grace = 30 if spec.terminationGracePeriodSeconds is None else spec.terminationGracePeriodSeconds
    ready = settings.ready and notes.get(PREFIX + "ready") != "false"
    delay = span(notes, "ready-delay", settings.ready_delay) if notes else settings.ready_delay
    after = delay if ready else None
    can_pull = settings.pulls if pulls else _pulls_nothing
    inits = tuple([_init(pod, container, can_pull, after) for container in spec.initContainers])
    mains = tuple([_part(pod, container, can_pull, after, unknown) for container in spec.containers])
    ephemerals = (
        tuple([_ephemeral(pod, container, can_pull) for container in spec.ephemeralContainers])
        if spec.ephemeralContainers
        else ()
    )
    return PodPlan(
        policy=spec.restartPolicy or "Always",
        start_delay=span(notes, "start-delay", settings.start_delay) if notes else settings.start_delay,
        shutdown=span(notes, "shutdown", settings.shutdown) if notes else settings.shutdown,
        grace=float(grace),
        deadline=None if spec.activeDeadlineSeconds is None else float(spec.activeDeadlineSeconds),
        pull_error=settings.pull_error,
        inits=inits,
        mains=mains,
        ephemerals=ephemerals,
        host_network=spec.hostNetwork,
        gates=tuple([gate.conditionType for gate in spec.readinessGates]),
        volumes=volume_sources(pod) if spec.volumes else (),
        ephemeral_names=tuple([each.name for each in ephemerals]),
        configured=any(each.environment for each in (*inits, *mains, *ephemerals)),
    )


def with_config_errors(plan: PodPlan, error: Callable[[ContainerPlan], str]) -> PodPlan:
    """The plan with the errors of its containers' environments."""
    inits, mains, ephemerals = (
        tuple([each._replace(config_error=error(each)) if each.environment else each for each in plans])
        for plans in (plan.inits, plan.mains, plan.ephemerals)
    )
    return plan._replace(inits=inits, mains=mains, ephemerals=ephemerals)


def _pulls_nothing(image: str) -> bool:
    return False


def _init(
    pod: v1.Pod, container: v1.Container, pulls: Callable[[str], bool], after: float | None
) -> ContainerPlan:
    """An init container whose command cannot be interpreted completes at once; a sidecar runs forever."""
    if container.restartPolicy == "Always":
        return _part(pod, container, pulls, after, FOREVER)._replace(role="sidecar")
    # Annotations apply to init containers only where they name them.
    own = {
        name: text for name, text in pod.metadata.annotations.items() if name.endswith(f".{container.name}")
    }
    unknown = FOREVER if is_pause(container.image) else Behaviour(0.0, 0)
    does = behaviour(container.name, (*container.command, *container.args), own, unknown)
    return ContainerPlan(
        container.name,
        container.image,
        does,
        pulls(container.image),
        None,
        "init",
        environment=environment_sources(container),
    )


def _ephemeral(pod: v1.Pod, container: v1.EphemeralContainer, pulls: Callable[[str], bool]) -> ContainerPlan:
    """An ephemeral container: one whose command cannot be interpreted, such as a shell, runs forever."""
    does = behaviour(container.name, (*container.command, *container.args), {})
    sources, can_pull = environment_sources(container), pulls(container.image)
    return ContainerPlan(
        container.name, container.image, does, can_pull, None, "ephemeral", environment=sources
    )


def _part(
    pod: v1.Pod,
    container: v1.Container,
    pulls: Callable[[str], bool],
    after: float | None,
    unknown: Behaviour,
) -> ContainerPlan:
    probe, probed_after = container.readinessProbe, None
    if probe is not None:
        probed_after = float(probe.initialDelaySeconds or 0)
        if after is not None:
            after += probed_after
    if unknown is not FOREVER and is_pause(container.image):
        unknown = FOREVER
    command = (*container.command, *container.args)
    does = behaviour(container.name, command, pod.metadata.annotations, unknown)
    return ContainerPlan(
        container.name,
        container.image,
        does,
        pulls(container.image),
        after,
        probed_after=probed_after,
        environment=environment_sources(container) if container.env or container.envFrom else (),
    )


def is_pause(image: str) -> bool:
    """Whether an image is called ``pause``, whatever its registry and tag: its program does nothing, forever."""
    return image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[0] == "pause"
