"""Pod status: written as a kubelet reports it, and read back by a kubelet that takes over. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.go_duration import format_duration
from steersman.sim.kubelet.pod_lifecycle import (
    ContainerRun,
    PodRun,
    State,
    Termination,
    backoff,
    initialized,
    is_ready,
    restarts,
    starts_at,
)
from steersman.sim.kubelet.pod_plan import ContainerPlan, PodPlan

Wall: TypeAlias = Callable[[float], datetime]
"""Converts an instant of monotonic time to a timestamp."""

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
DEADLINE = "Pod was active on the node longer than the specified deadline"
_UNSTARTED = (State.WAITING, State.UNPULLED, State.PULL_BACK_OFF, State.UNCONFIGURED)
_UNLOCATED = "The container could not be located when the pod was terminated"


def render(pod: v1.Pod, plan: PodPlan, run: PodRun, now: float, wall: Wall, host: str) -> v1.PodStatus:
    """The status of a pod at this instant. Conditions of other writers are kept."""
    old = pod.status
    phase = phase_of(plan, run)
    running = run.terminated or now >= starts_at(plan, run)
    ips = run.ips if running else ()
    return replace(
        old,
        phase=phase,
        reason=run.reason or old.reason,
        message=DEADLINE if run.reason else old.message,
        startTime=old.startTime or wall(run.accepted),
        observedGeneration=pod.metadata.generation,
        hostIP=host,
        hostIPs=(v1.HostIP(ip=host),),
        podIP=ips[0] if ips else "",
        podIPs=tuple([v1.PodIP(ip=ip) for ip in ips]),
        conditions=_conditions(pod, plan, run, now, wall, phase),
        initContainerStatuses=tuple(
            [_container(pod, plan, run, *each, now, wall) for each in zip(plan.inits, run.inits, strict=True)]
        ),
        containerStatuses=tuple(
            [_container(pod, plan, run, *each, now, wall) for each in zip(plan.mains, run.mains, strict=True)]
        ),
        ephemeralContainerStatuses=tuple(
            [
                _container(pod, plan, run, *each, now, wall)
                for each in zip(plan.ephemerals, run.ephemerals, strict=True)
            ]
        )
        if plan.ephemerals
        else (),
    )


def phase_of(plan: PodPlan, run: PodRun) -> str:
    """The phase of a pod."""
    if run.terminated:
        return "Failed" if run.reason or _has_failed(plan, run) else "Succeeded"
    if not initialized(plan, run) or any(
        container.state in _UNSTARTED and container.ended is None for container in run.mains
    ):
        return "Pending"
    return "Running"


def _has_failed(plan: PodPlan, run: PodRun) -> bool:
    if any(container.ended is not None and container.ended.code for container in run.mains):
        return True
    inits = zip(plan.inits, run.inits, strict=True)
    return any(
        container.ended is not None and container.ended.code
        for container_plan, container in inits
        if container_plan.role == "init"
    )


# -- conditions -------------------------------------------------------------------------------


def _conditions(
    pod: v1.Pod, plan: PodPlan, run: PodRun, now: float, wall: Wall, phase: str
) -> tuple[v1.PodCondition, ...]:
    old = {condition.type: condition for condition in pod.status.conditions}
    at, generation = wall(now), pod.metadata.generation

    def made(type_: str, status: bool, reason: str = "", message: str = "") -> v1.PodCondition:
        was, value = old.get(type_), "True" if status else "False"
        since = was.lastTransitionTime if was is not None and was.status == value else None
        return v1.PodCondition(
            type=type_,
            status=value,
            reason=reason,
            message=message,
            lastTransitionTime=since or at,
            observedGeneration=generation,
        )

    sandbox = not run.terminated and now >= starts_at(plan, run)
    why = _unready(plan, run, now, phase)
    ready = why or _gated(plan, old)
    conditions = [
        made("PodReadyToStartContainers", sandbox),
        made("Initialized", *_uninitialized(plan, run, phase)),
        made("Ready", ready is None, *(ready or ())),
        made("ContainersReady", why is None, *(why or ())),
        made("PodScheduled", True),
    ]
    conditions += [condition for type_, condition in old.items() if type_ not in _OURS]
    return tuple(conditions)


def _uninitialized(plan: PodPlan, run: PodRun, phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    if not plan.inits or initialized(plan, run):
        return True, "", ""
    names = " ".join(
        container_plan.name
        for container_plan, container in zip(plan.inits, run.inits, strict=True)
        if container.state is not State.ENDED or (container.ended is not None and container.ended.code)
    )
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _unready(plan: PodPlan, run: PodRun, now: float, phase: str) -> tuple[str, str] | None:
    """Why the containers are not ready; None where they are."""
    if phase == "Succeeded":
        return "PodCompleted", ""
    if phase == "Failed":
        return "PodFailed", ""
    containers = (*zip(plan.inits, run.inits, strict=True), *zip(plan.mains, run.mains, strict=True))
    names = [
        container_plan.name
        for container_plan, container in containers
        if container_plan.role in ("main", "sidecar") and not is_ready(container_plan, container, now)
    ]
    if names:
        return "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]"
    return None


def _gated(plan: PodPlan, conditions: dict[str, v1.PodCondition]) -> tuple[str, str] | None:
    """Why the pod is not ready although its containers are: its readiness gates."""
    messages = []
    for gate in plan.gates:
        found = conditions.get(gate)
        if found is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate}" does not exist.')
        elif found.status != "True":
            messages.append(f'the status of pod readiness gate "{gate}" is not "True", but {found.status}')
    return ("ReadinessGatesNotReady", ", ".join(messages)) if messages else None


# -- containers -------------------------------------------------------------------------------


def _container(
    pod: v1.Pod,
    plan: PodPlan,
    run: PodRun,
    container_plan: ContainerPlan,
    container: ContainerRun,
    now: float,
    wall: Wall,
) -> v1.ContainerStatus:
    here = container.state in (State.RUNNING, State.ENDED) and (
        container.ended is None or container.ended.began is not None
    )
    running = container.state is State.RUNNING
    back_off = container.state in _UNSTARTED or (
        container.state is State.ENDED and container.restart_at is not None
    )
    ended, last = container.ended, v1.ContainerState()
    # A container that is not restarted reports its termination as its state; otherwise as its last state.
    if ended is not None and (running or back_off):
        last = _terminated(pod, container_plan, container.restarts - running, ended, wall)
    return v1.ContainerStatus(
        name=container_plan.name,
        image=container_plan.image,
        imageID=f"sim://{container_plan.image}" if here else "",
        containerID=_id(pod, container_plan, container.restarts) if here else "",
        ready=_completed(container)
        if container_plan.role == "init"
        else is_ready(container_plan, container, now),
        started=running,
        restartCount=container.restarts,
        state=_state(pod, plan, run, container_plan, container, now, wall),
        lastState=last,
    )


def _completed(container: ContainerRun) -> bool:
    return container.state is State.ENDED and container.ended is not None and container.ended.code == 0


def _state(
    pod: v1.Pod,
    plan: PodPlan,
    run: PodRun,
    container_plan: ContainerPlan,
    container: ContainerRun,
    now: float,
    wall: Wall,
) -> v1.ContainerState:
    match container.state:
        case State.RUNNING:
            return v1.ContainerState(running=v1.ContainerStateRunning(startedAt=wall(container.since)))
        case State.ENDED if container.restart_at is None:
            assert container.ended is not None
            return _terminated(pod, container_plan, container.restarts, container.ended, wall)
        case State.ENDED:
            meta, wait = pod.metadata, format_duration(backoff(container.streak))
            where = f"pod={meta.name}_{meta.namespace}({meta.uid})"
            why = f"back-off {wait} restarting failed container={container_plan.name} {where}"
            return _waiting("CrashLoopBackOff", why)
        case State.UNPULLED:
            return _waiting("ErrImagePull", pull_error(container_plan.image))
        case State.PULL_BACK_OFF:
            image = container_plan.image
            why = f'Back-off pulling image "{image}": ErrImagePull: {pull_error(image)}'
            return _waiting("ImagePullBackOff", why)
        case State.UNCONFIGURED:
            return _waiting("CreateContainerConfigError", container_plan.config_error)
    started = now >= starts_at(plan, run)
    return _waiting(
        "PodInitializing"
        if plan.inits and container_plan.role != "ephemeral" and (started or container_plan.role == "main")
        else "ContainerCreating"
    )


def pull_error(image: str) -> str:
    """Why an image cannot be pulled."""
    return f'failed to pull image "{image}": not found'


def _waiting(reason: str, message: str = "") -> v1.ContainerState:
    return v1.ContainerState(waiting=v1.ContainerStateWaiting(reason=reason, message=message))


def _terminated(
    pod: v1.Pod, container_plan: ContainerPlan, number: int, ended: Termination, wall: Wall
) -> v1.ContainerState:
    if ended.began is None:
        unknown = v1.ContainerStateTerminated(
            exitCode=ended.code, reason="ContainerStatusUnknown", message=_UNLOCATED
        )
        return v1.ContainerState(terminated=unknown)
    return v1.ContainerState(
        terminated=v1.ContainerStateTerminated(
            exitCode=ended.code,
            reason="Error" if ended.code else "Completed",
            startedAt=wall(ended.began),
            finishedAt=wall(ended.at),
            containerID=_id(pod, container_plan, number),
        )
    )


def _id(pod: v1.Pod, container_plan: ContainerPlan, number: int) -> str:
    return f"sim://{pod.metadata.uid}/{container_plan.name}/{number}"


# -- reading back -----------------------------------------------------------------------------


def pod_ips(status: v1.PodStatus) -> tuple[str, ...]:
    """The addresses that a status has, the primary one first."""
    return tuple([each.ip for each in status.podIPs]) or ((status.podIP,) if status.podIP else ())


def resume(pod: v1.Pod, plan: PodPlan, now: float, instant: Callable[[datetime], float]) -> PodRun:
    """Read the state of a pod back from its status. Containers in back-off are restarted now."""
    status = pod.status
    inits = {each.name: each for each in status.initContainerStatuses}
    mains = {each.name: each for each in status.containerStatuses}
    ephemerals = {each.name: each for each in status.ephemeralContainerStatuses}
    return PodRun(
        accepted=instant(status.startTime) if status.startTime is not None else now,
        inits=tuple(
            [
                _read_container(container_plan, inits.get(container_plan.name), plan, now, instant)
                for container_plan in plan.inits
            ]
        ),
        mains=tuple(
            [
                _read_container(container_plan, mains.get(container_plan.name), plan, now, instant)
                for container_plan in plan.mains
            ]
        ),
        ephemerals=tuple(
            [
                _read_container(container_plan, ephemerals.get(container_plan.name), plan, now, instant)
                for container_plan in plan.ephemerals
            ]
        ),
        ephemeral_names=plan.ephemeral_names,
        ips=pod_ips(status),
        terminated=status.phase in ("Succeeded", "Failed"),
        reason=status.reason,
    )


def _read_container(
    container_plan: ContainerPlan,
    known: v1.ContainerStatus | None,
    plan: PodPlan,
    now: float,
    instant: Callable[[datetime], float],
) -> ContainerRun:
    if known is None:
        return ContainerRun()
    count = known.restartCount
    container = ContainerRun(image=known.image, restarts=count, streak=count)
    state, last = known.state, known.lastState.terminated
    if last is not None:
        container = container._replace(ended=_read_termination(last, now, instant))
    if state.running is not None:
        began = state.running.startedAt
        return container._replace(state=State.RUNNING, since=now if began is None else instant(began))
    if state.terminated is not None:
        ended = _read_termination(state.terminated, now, instant)
        restart_at = now if restarts(container_plan, plan.policy, ended.code) else None
        return container._replace(state=State.ENDED, since=ended.at, ended=ended, restart_at=restart_at)
    if container.ended is not None:
        return container._replace(state=State.ENDED, since=container.ended.at, restart_at=now)
    return container


def _read_termination(
    state: v1.ContainerStateTerminated, now: float, instant: Callable[[datetime], float]
) -> Termination:
    began, at = state.startedAt, state.finishedAt
    return Termination(
        None if began is None else instant(began), now if at is None else instant(at), state.exitCode
    )
