"""The pod lifecycle on a node: which containers run, what changes next, and when. Pure functions.

`advance` computes a pod at an instant, `due` the instant of its next change. Instants are seconds of the clock's monotonic time;
nothing here waits or knows the API.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import msgspec

from steersman.sim.kubelet.pod_plan import ContainerPlan, PodPlan

BACKOFF = 10.0
MAX_BACKOFF = 300.0
BACKOFF_RESET = 600.0
"""Seconds after which a running container's restart back-off is reset."""
KILLED_EXIT_CODE = 137
REBOOT_EXIT_CODE = 255
"""Exit code of a container whose node rebooted."""


class State(Enum):
    WAITING = "waiting"
    """Not started yet."""
    UNPULLED = "unpulled"
    """Its image cannot be pulled."""
    PULL_BACK_OFF = "pull back-off"
    """Its image could not be pulled a while ago."""
    UNCONFIGURED = "unconfigured"
    """A ConfigMap or Secret of its environment is missing."""
    RUNNING = "running"
    ENDED = "ended"
    """Terminated, for good or until it is restarted."""


class Termination(msgspec.Struct, frozen=True):
    """The termination of a container."""

    began: float | None
    """None where it never ran."""
    at: float
    code: int


class ContainerRun(NamedTuple):
    """The current state of a container."""

    state: State = State.WAITING
    since: float = 0.0
    image: str = ""
    restarts: int = 0
    streak: int = 0
    """Consecutive quick restarts, which increase the back-off."""
    ended: Termination | None = None
    """The last termination."""
    restart_at: float | None = None
    """When a terminated container is restarted; None is never."""
    unhealthy: bool = False
    """Whether its readiness probe fails."""

    @property
    def launches(self) -> int:
        """How often it was started."""
        ran = self.state is State.RUNNING or (self.ended is not None and self.ended.began is not None)
        return self.restarts + ran


class PodRun(NamedTuple):
    """The current state of a pod."""

    accepted: float
    inits: tuple[ContainerRun, ...]
    mains: tuple[ContainerRun, ...]
    ephemerals: tuple[ContainerRun, ...] = ()
    ephemeral_names: tuple[str, ...] = ()
    """Their names: ephemeral containers are added while a pod runs, at any place of the list."""
    ips: tuple[str, ...] = ()
    """The addresses of the pod: one of each IP family of its node, the primary one first."""
    mounted: float = -math.inf
    """When its volumes were mounted: before it was accepted where it has none, and never while it waits for some."""
    stop_requested: float | None = None
    """When it was asked to stop."""
    terminated: bool = False
    """Whether all its containers have terminated for good."""
    reason: str = ""
    """Why it failed, if not because of its containers."""


def starts_at(plan: PodPlan, run: PodRun) -> float:
    """When its sandbox and images are there."""
    return max(run.accepted, run.mounted) + plan.start_delay


def has_started(run: PodRun) -> bool:
    """Whether one of its containers has ever been started."""
    return run.terminated or any(each.state is not State.WAITING for each in (*run.inits, *run.mains))


def may_start(plan: PodPlan, run: PodRun) -> bool:
    """Whether a container may be started, now or later."""
    if run.terminated or run.ephemeral_names != plan.ephemeral_names:
        return not run.terminated
    return any(_may_start(*each) for each in containers(plan, run))


def _may_start(container_plan: ContainerPlan, container: ContainerRun) -> bool:
    if container.state is State.RUNNING:
        return container_plan.behaviour.duration is not None or container.image != container_plan.image
    return container.state is not State.ENDED or container.restart_at is not None


def containers(plan: PodPlan, run: PodRun) -> Iterator[tuple[ContainerPlan, ContainerRun]]:
    """All containers of a pod: its init, main and ephemeral containers."""
    yield from zip(plan.inits, run.inits, strict=True)
    yield from zip(plan.mains, run.mains, strict=True)
    yield from zip(plan.ephemerals, run.ephemerals, strict=True)


def begin(plan: PodPlan, now: float) -> PodRun:
    """A pod that was just bound to its node."""
    return PodRun(
        now,
        (ContainerRun(),) * len(plan.inits),
        (ContainerRun(),) * len(plan.mains),
        (ContainerRun(),) * len(plan.ephemerals),
        plan.ephemeral_names,
    )


def advance(plan: PodPlan, run: PodRun, now: float) -> PodRun:
    """The pod at this instant."""
    if run.ephemeral_names != plan.ephemeral_names:
        run = _with_ephemerals(plan, run, now)
    while not run.terminated:
        moved = _step(plan, run, now)
        if moved == run:
            break
        run = moved
    return run


def _with_ephemerals(plan: PodPlan, run: PodRun, now: float) -> PodRun:
    """The pod with the ephemeral containers that it has by now; those that come too late never run."""
    new = ContainerRun()
    if run.terminated:
        new = new._replace(state=State.ENDED, since=now, ended=Termination(None, now, KILLED_EXIT_CODE))
    known = dict(zip(run.ephemeral_names, run.ephemerals, strict=True))
    ephemerals = tuple([known.get(name, new) for name in plan.ephemeral_names])
    return run._replace(ephemerals=ephemerals, ephemeral_names=plan.ephemeral_names)


def request_stop(run: PodRun, now: float) -> PodRun:
    """The pod once it was asked to stop; a second request changes nothing."""
    return run if run.stop_requested is not None or run.terminated else run._replace(stop_requested=now)


def rebooted(plan: PodPlan, run: PodRun, now: float) -> PodRun:
    """The pod after its node rebooted."""
    if run.terminated:
        return run
    inits, mains, ephemerals = (
        tuple([_killed_by_reboot(*each, plan.policy, now) for each in zip(plans, found, strict=True)])
        for plans, found in (
            (plan.inits, run.inits),
            (plan.mains, run.mains),
            (plan.ephemerals, run.ephemerals),
        )
    )
    return run._replace(inits=inits, mains=mains, ephemerals=ephemerals)


def due(plan: PodPlan, run: PodRun, now: float) -> float | None:
    """When the pod next changes by itself."""
    if run.terminated:
        return None
    times = []
    if run.stop_requested is not None:
        times.append(run.stop_requested + min(plan.shutdown, plan.grace))
    if plan.deadline is not None:
        times.append(run.accepted + plan.deadline)
    starts = starts_at(plan, run)
    if now < starts < math.inf:
        times.append(starts)
    for container_plan, container in containers(plan, run):
        if container.state is State.RUNNING:
            if container_plan.behaviour.duration is not None:
                times.append(container.since + container_plan.behaviour.duration)
            if container_plan.ready_after:
                times.append(container.since + container_plan.ready_after)
            if container_plan.probed_after:
                times.append(container.since + container_plan.probed_after)
        elif container.state is State.UNPULLED:
            times.append(container.since + plan.pull_error)
        elif container.restart_at is not None and run.stop_requested is None:
            times.append(container.restart_at)
    return min((at for at in times if at > now), default=None)


def initialized(plan: PodPlan, run: PodRun) -> bool:
    """Whether all init containers have completed, and all sidecars started."""
    return all(map(_passed, plan.inits, run.inits))


def is_ready(container_plan: ContainerPlan, container: ContainerRun, now: float) -> bool:
    """Whether a container runs, and has for long enough to be ready."""
    after = container_plan.ready_after
    return container.state is State.RUNNING and after is not None and now >= container.since + after


def backoff(streak: int) -> float:
    """Seconds until the next restart: none, then 10 s doubling up to five minutes."""
    return min(BACKOFF * 2.0 ** min(streak - 1, 16), MAX_BACKOFF) if streak else 0.0


# -- one step ---------------------------------------------------------------------------------


def _step(plan: PodPlan, run: PodRun, now: float) -> PodRun:
    if run.stop_requested is not None and now >= run.stop_requested + min(plan.shutdown, plan.grace):
        return _stopped(run, now, KILLED_EXIT_CODE if plan.shutdown > plan.grace else 0)
    if plan.deadline is not None and now >= run.accepted + plan.deadline:
        return _stopped(run, now, KILLED_EXIT_CODE)._replace(reason="DeadlineExceeded")
    if now < starts_at(plan, run):
        return run
    stopping = run.stop_requested is not None
    if run.ephemerals:
        # Upstream starts them before init containers, so that these can be debugged.
        ephemerals = [
            _step_container(plan, *each, now, not stopping, stopping)
            for each in zip(plan.ephemerals, run.ephemerals, strict=True)
        ]
        run = run._replace(ephemerals=tuple(ephemerals))
    inits, turn = [], not stopping
    for container_plan, container in zip(plan.inits, run.inits, strict=True):
        container = _step_container(plan, container_plan, container, now, turn, stopping)
        inits.append(container)
        turn = turn and _passed(container_plan, container)
        if (
            container.state is State.ENDED
            and container.restart_at is None
            and not _passed(container_plan, container)
            and not stopping
        ):
            return _stopped(run._replace(inits=(*inits, *run.inits[len(inits) :])), now, KILLED_EXIT_CODE)
    mains = [
        _step_container(plan, container_plan, container, now, turn, stopping)
        for container_plan, container in zip(plan.mains, run.mains, strict=True)
    ]
    run = run._replace(inits=tuple(inits), mains=tuple(mains))
    if mains and all(container.state is State.ENDED and container.restart_at is None for container in mains):
        return _stopped(run, now, 0)  # only sidecars are left
    return run


def _step_container(
    plan: PodPlan,
    container_plan: ContainerPlan,
    container: ContainerRun,
    now: float,
    turn: bool,
    stopping: bool,
) -> ContainerRun:
    """A container after one transition."""
    match container.state:
        case State.WAITING if turn:
            return _started(container_plan, container, now)
        case State.UNPULLED | State.PULL_BACK_OFF if container_plan.pulls and not stopping:
            return _started(container_plan, container, now)
        case State.UNPULLED if now >= container.since + plan.pull_error:
            return container._replace(state=State.PULL_BACK_OFF)
        case State.UNCONFIGURED if not container_plan.config_error and not stopping:
            return _started(container_plan, container, now)
        case State.RUNNING if container.image != container_plan.image and not stopping:
            return _started(container_plan, _ended(plan, container_plan, container, now, 0, True), now)
        case State.RUNNING if (
            container_plan.behaviour.duration is not None
            and now >= container.since + container_plan.behaviour.duration
        ):
            return _ended(plan, container_plan, container, now, container_plan.behaviour.code, stopping)
        case State.RUNNING if container_plan.probed_after is not None:
            fails = now >= container.since + container_plan.probed_after
            fails = fails and not is_ready(container_plan, container, now)
            return container if fails is container.unhealthy else container._replace(unhealthy=fails)
        case State.ENDED if container.restart_at is not None and now >= container.restart_at and not stopping:
            return _started(container_plan, container, now)
    return container


def _started(container_plan: ContainerPlan, container: ContainerRun, now: float) -> ContainerRun:
    if not container_plan.pulls:
        return container._replace(state=State.UNPULLED, since=now, image=container_plan.image)
    if container_plan.config_error:
        return container._replace(
            state=State.UNCONFIGURED, since=now, image=container_plan.image, restart_at=None
        )
    restarted = container.ended is not None
    return container._replace(
        state=State.RUNNING,
        since=now,
        image=container_plan.image,
        restarts=container.restarts + restarted,
        streak=container.streak + restarted,
        restart_at=None,
        unhealthy=False,
    )


def _ended(
    plan: PodPlan,
    container_plan: ContainerPlan,
    container: ContainerRun,
    now: float,
    code: int,
    stopping: bool,
) -> ContainerRun:
    streak = 0 if now - container.since >= BACKOFF_RESET else container.streak
    again = restarts(container_plan, plan.policy, code) and not stopping
    restart_at = now + backoff(streak) if again else None
    return container._replace(
        state=State.ENDED,
        since=now,
        streak=streak,
        ended=Termination(container.since, now, code),
        restart_at=restart_at,
    )


def restarts(container_plan: ContainerPlan, policy: str, code: int) -> bool:
    """Whether a container that terminated this way is restarted."""
    match container_plan.role:
        case "sidecar":
            return True
        case "ephemeral":
            return False
        case "init":
            return code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _passed(container_plan: ContainerPlan, container: ContainerRun) -> bool:
    """Whether the next init container may start."""
    if container_plan.role == "sidecar":
        # A sidecar counts once it was started, even if it restarts.
        return container.state in (State.RUNNING, State.ENDED)
    return container.state is State.ENDED and container.ended is not None and container.ended.code == 0


def _stopped(run: PodRun, now: float, code: int) -> PodRun:
    """Terminate all running containers with this code, for good."""
    inits, mains, ephemerals = (
        tuple([_final(container, now, code) for container in found])
        for found in (run.inits, run.mains, run.ephemerals)
    )
    return run._replace(inits=inits, mains=mains, ephemerals=ephemerals, terminated=True)


def _final(container: ContainerRun, now: float, code: int) -> ContainerRun:
    if container.state is State.RUNNING:
        return container._replace(
            state=State.ENDED, since=now, ended=Termination(container.since, now, code), restart_at=None
        )
    if container.state is State.ENDED or container.ended is not None:
        return container._replace(state=State.ENDED, restart_at=None)
    # It never ran, or is not restarted: it has no exit code of its own.
    return container._replace(
        state=State.ENDED, since=now, ended=Termination(None, now, KILLED_EXIT_CODE), restart_at=None
    )


def _killed_by_reboot(
    container_plan: ContainerPlan, container: ContainerRun, policy: str, now: float
) -> ContainerRun:
    if container.state is not State.RUNNING:
        return container
    restart_at = now if restarts(container_plan, policy, REBOOT_EXIT_CODE) else None
    return container._replace(
        state=State.ENDED,
        since=now,
        streak=0,
        ended=Termination(container.since, now, REBOOT_EXIT_CODE),
        restart_at=restart_at,
    )
