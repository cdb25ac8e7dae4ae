"""A pod's life read back from its status, for kubelets that come to a cluster others left. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from steersman.api.generated import core_v1 as v1
from steersman.sim.kubelet.pod_lifecycle import Box, Ended, Run, State, restarts
from steersman.sim.kubelet.pod_plan import Part, Plan


def resume(pod: v1.Pod, plan: Plan, now: float, instant: Callable[[datetime], float]) -> Run:
    """The pod as its status says it is. What was about to be restarted is restarted now."""
    status = pod.status
    inits = {each.name: each for each in status.initContainerStatuses}
    mains = {each.name: each for each in status.containerStatuses}
    return Run(
        accepted=instant(status.startTime) if status.startTime is not None else now,
        inits=tuple([_box(part, inits.get(part.name), plan, now, instant) for part in plan.inits]),
        mains=tuple([_box(part, mains.get(part.name), plan, now, instant) for part in plan.mains]),
        ip=status.podIP,
        over=status.phase in ("Succeeded", "Failed"),
        reason=status.reason,
    )


def _box(
    part: Part, known: v1.ContainerStatus | None, plan: Plan, now: float, instant: Callable[[datetime], float]
) -> Box:
    if known is None:
        return Box()
    count = known.restartCount
    box = Box(image=known.image, restarts=count, streak=count)
    state, last = known.state, known.lastState.terminated
    if last is not None:
        box = box._replace(ended=_ended(last, now, instant))
    if state.running is not None:
        began = state.running.startedAt
        return box._replace(state=State.RUNNING, since=now if began is None else instant(began))
    if state.terminated is not None:
        ended = _ended(state.terminated, now, instant)
        again = now if restarts(part, plan.policy, ended.code) else None
        return box._replace(state=State.ENDED, since=ended.at, ended=ended, again=again)
    if box.ended is not None:
        return box._replace(state=State.ENDED, since=box.ended.at, again=now)
    return box


def _ended(state: v1.ContainerStateTerminated, now: float, instant: Callable[[datetime], float]) -> Ended:
    began, at = state.startedAt, state.finishedAt
    return Ended(
        None if began is None else instant(began), now if at is None else instant(at), state.exitCode
    )
