"""What a kubelet says of a pod: its `PodStatus`. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.sim.kubelet.pod_lifecycle import Box, Ended, Run, State, backoff, initialized, is_ready
from steersman.sim.kubelet.pod_plan import Part, Plan

Wall: TypeAlias = Callable[[float], datetime]
"""From an instant of monotonic time to what is written."""

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_DEADLINE = "Pod was active on the node longer than the specified deadline"
_UNLOCATED = "The container could not be located when the pod was terminated"


def render(pod: v1.Pod, plan: Plan, run: Run, now: float, wall: Wall, host: str) -> v1.PodStatus:
    """The status of a pod at this instant. What others wrote into it stays."""
    old = pod.status
    phase = phase_of(plan, run)
    running = run.over or now >= run.accepted + plan.start_delay
    ip = "" if not running or not run.ip else run.ip
    return replace(
        old,
        phase=phase,
        reason=run.reason or old.reason,
        message=_DEADLINE if run.reason else old.message,
        startTime=old.startTime or wall(run.accepted),
        observedGeneration=pod.metadata.generation,
        hostIP=host,
        hostIPs=(v1.HostIP(ip=host),),
        podIP=ip,
        podIPs=(v1.PodIP(ip=ip),) if ip else (),
        conditions=_conditions(pod, plan, run, now, wall, phase),
        initContainerStatuses=tuple(
            [_container(pod, plan, run, *each, now, wall) for each in zip(plan.inits, run.inits, strict=True)]
        ),
        containerStatuses=tuple(
            [_container(pod, plan, run, *each, now, wall) for each in zip(plan.mains, run.mains, strict=True)]
        ),
    )


def phase_of(plan: Plan, run: Run) -> str:
    """The one word for it all."""
    if run.over:
        return "Failed" if run.reason or _has_failed(plan, run) else "Succeeded"
    if not initialized(plan, run) or any(
        box.state in (State.WAITING, State.UNPULLED) and box.ended is None for box in run.mains
    ):
        return "Pending"
    return "Running"


def _has_failed(plan: Plan, run: Run) -> bool:
    if any(box.ended is not None and box.ended.code for box in run.mains):
        return True
    inits = zip(plan.inits, run.inits, strict=True)
    return any(box.ended is not None and box.ended.code for part, box in inits if part.role == "init")


# -- conditions -------------------------------------------------------------------------------


def _conditions(
    pod: v1.Pod, plan: Plan, run: Run, now: float, wall: Wall, phase: str
) -> tuple[v1.PodCondition, ...]:
    old = {condition.type: condition for condition in pod.status.conditions}
    at, generation = wall(now), pod.metadata.generation

    def made(type_: str, status: bool, reason: str = "", message: str = "") -> v1.PodCondition:
        was, said = old.get(type_), "True" if status else "False"
        since = was.lastTransitionTime if was is not None and was.status == said else None
        return v1.PodCondition(
            type=type_,
            status=said,
            reason=reason,
            message=message,
            lastTransitionTime=since or at,
            observedGeneration=generation,
        )

    sandbox = not run.over and now >= run.accepted + plan.start_delay
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


def _uninitialized(plan: Plan, run: Run, phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    if not plan.inits or initialized(plan, run):
        return True, "", ""
    names = " ".join(
        part.name
        for part, box in zip(plan.inits, run.inits, strict=True)
        if box.state is not State.ENDED or (box.ended is not None and box.ended.code)
    )
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _unready(plan: Plan, run: Run, now: float, phase: str) -> tuple[str, str] | None:
    """Why the containers are not ready, or None."""
    if phase == "Succeeded":
        return "PodCompleted", ""
    if phase == "Failed":
        return "PodFailed", ""
    boxes = (*zip(plan.inits, run.inits, strict=True), *zip(plan.mains, run.mains, strict=True))
    names = [part.name for part, box in boxes if part.role != "init" and not is_ready(part, box, now)]
    if names:
        return "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]"
    return None


def _gated(plan: Plan, conditions: dict[str, v1.PodCondition]) -> tuple[str, str] | None:
    """Why the pod is not ready though its containers are: somebody has yet to say so."""
    said = []
    for gate in plan.gates:
        found = conditions.get(gate)
        if found is None:
            said.append(f'corresponding condition of pod readiness gate "{gate}" does not exist.')
        elif found.status != "True":
            said.append(f'the status of pod readiness gate "{gate}" is not "True", but {found.status}')
    return ("ReadinessGatesNotReady", ", ".join(said)) if said else None


# -- containers -------------------------------------------------------------------------------


def _container(
    pod: v1.Pod, plan: Plan, run: Run, part: Part, box: Box, now: float, wall: Wall
) -> v1.ContainerStatus:
    here = box.state in (State.RUNNING, State.ENDED) and (box.ended is None or box.ended.began is not None)
    running = box.state is State.RUNNING
    back_off = box.state is State.ENDED and box.again is not None
    ended, last = box.ended, v1.ContainerState()
    # Where it ended and is not to come again, how it ended is its state; else it is its past.
    if ended is not None and (running or back_off):
        last = _terminated(pod, part, box.restarts - running, ended, wall)
    return v1.ContainerStatus(
        name=part.name,
        image=part.image,
        imageID=f"sim://{part.image}" if here else "",
        containerID=_id(pod, part, box.restarts) if here else "",
        ready=_completed(box) if part.role == "init" else is_ready(part, box, now),
        started=running,
        restartCount=box.restarts,
        state=_state(pod, plan, run, part, box, now, wall),
        lastState=last,
    )


def _completed(box: Box) -> bool:
    return box.state is State.ENDED and box.ended is not None and box.ended.code == 0


def _state(
    pod: v1.Pod, plan: Plan, run: Run, part: Part, box: Box, now: float, wall: Wall
) -> v1.ContainerState:
    match box.state:
        case State.RUNNING:
            return v1.ContainerState(running=v1.ContainerStateRunning(startedAt=wall(box.since)))
        case State.ENDED if box.again is None:
            assert box.ended is not None
            return _terminated(pod, part, box.restarts, box.ended, wall)
        case State.ENDED:
            wait = (
                f"{backoff(box.streak):.0f}s" if backoff(box.streak) < 60 else _minutes(backoff(box.streak))
            )
            meta = pod.metadata
            where = f"pod={meta.name}_{meta.namespace}({meta.uid})"
            why = f"back-off {wait} restarting failed container={part.name} {where}"
            return _waiting("CrashLoopBackOff", why)
        case State.UNPULLED if now < box.since + plan.pull_error:
            return _waiting("ErrImagePull", f'failed to pull image "{part.image}": not found')
        case State.UNPULLED:
            return _waiting("ImagePullBackOff", f'Back-off pulling image "{part.image}"')
    started = now >= run.accepted + plan.start_delay
    return _waiting(
        "PodInitializing" if plan.inits and (started or part.role == "main") else "ContainerCreating"
    )


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}m{whole % 60}s"


def _waiting(reason: str, message: str = "") -> v1.ContainerState:
    return v1.ContainerState(waiting=v1.ContainerStateWaiting(reason=reason, message=message))


def _terminated(pod: v1.Pod, part: Part, number: int, ended: Ended, wall: Wall) -> v1.ContainerState:
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
            containerID=_id(pod, part, number),
        )
    )


def _id(pod: v1.Pod, part: Part, number: int) -> str:
    return f"sim://{pod.metadata.uid}/{part.name}/{number}"
