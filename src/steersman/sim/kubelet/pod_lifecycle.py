"""The life of a pod on its node: which containers run, what comes next, and when. Pure functions.

`advance` brings a pod to an instant, `due` says when it is worth asking again. Instants are seconds of the
clock's monotonic time; nothing in here waits, and nothing knows of the API.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from steersman.sim.kubelet.pod_plan import Part, Plan

BACKOFF = 10.0
BACKOFF_MOST = 300.0
STEADY = 600.0
"""A container that ran this long has its failures forgiven."""
KILLED = 137
LOST = 255
"""What a container exits with whose node went down under it."""


class State(Enum):
    WAITING = "waiting"
    """Not its turn yet."""
    UNPULLED = "unpulled"
    """Its image does not come."""
    RUNNING = "running"
    ENDED = "ended"
    """For good, or until it is restarted."""


class Ended(NamedTuple):
    """How a container ended."""

    began: float | None
    """None where it never ran."""
    at: float
    code: int


class Box(NamedTuple):
    """One container as it is."""

    state: State = State.WAITING
    since: float = 0.0
    image: str = ""
    restarts: int = 0
    streak: int = 0
    """Restarts one soon after the other, which make the next one later."""
    ended: Ended | None = None
    """How it ended, or how it ended last."""
    again: float | None = None
    """When an ended container is restarted; None is never."""


class Run(NamedTuple):
    """A pod as it is."""

    accepted: float
    inits: tuple[Box, ...]
    mains: tuple[Box, ...]
    ip: str = ""
    asked: float | None = None
    """When it was asked to stop."""
    over: bool = False
    """Whether nothing of it will ever run again."""
    reason: str = ""
    """Why it failed, where that is not its containers' doing."""


def begin(plan: Plan, now: float) -> Run:
    """A pod that has just come to its node."""
    return Run(now, (Box(),) * len(plan.inits), (Box(),) * len(plan.mains))


def advance(plan: Plan, run: Run, now: float) -> Run:
    """The pod at this instant."""
    while not run.over:
        moved = _moved(plan, run, now)
        if moved == run:
            break
        run = moved
    return run


def asked(run: Run, now: float) -> Run:
    """The pod once it was asked to stop; asking twice changes nothing."""
    return run if run.asked is not None or run.over else run._replace(asked=now)


def lost(plan: Plan, run: Run, now: float) -> Run:
    """The pod once its node went down under it and came up again."""
    if run.over:
        return run
    inits = [_fell(part, box, plan.policy, now) for part, box in zip(plan.inits, run.inits, strict=True)]
    mains = [_fell(part, box, plan.policy, now) for part, box in zip(plan.mains, run.mains, strict=True)]
    return run._replace(inits=tuple(inits), mains=tuple(mains))


def due(plan: Plan, run: Run, now: float) -> float | None:
    """When the pod next changes of its own accord."""
    if run.over:
        return None
    times = []
    if run.asked is not None:
        times.append(run.asked + min(plan.shutdown, plan.grace))
    if plan.deadline is not None:
        times.append(run.accepted + plan.deadline)
    if now < run.accepted + plan.start_delay:
        times.append(run.accepted + plan.start_delay)
    for parts, boxes in ((plan.inits, run.inits), (plan.mains, run.mains)):
        for part, box in zip(parts, boxes, strict=True):
            if box.state is State.RUNNING:
                if part.does.lasts is not None:
                    times.append(box.since + part.does.lasts)
                if part.ready_after:
                    times.append(box.since + part.ready_after)
            elif box.state is State.UNPULLED:
                times.append(box.since + plan.pull_error)
            elif box.again is not None and run.asked is None:
                times.append(box.again)
    return min((at for at in times if at > now), default=None)


def initialized(plan: Plan, run: Run) -> bool:
    """Whether all init containers are done, and all sidecars started."""
    return all(map(_passed, plan.inits, run.inits))


def is_ready(part: Part, box: Box, now: float) -> bool:
    """Whether a container that should run does, and has for long enough."""
    after = part.ready_after
    return box.state is State.RUNNING and after is not None and now >= box.since + after


def backoff(streak: int) -> float:
    """How long the next restart waits: not at all, then 10 s doubling up to five minutes."""
    return min(BACKOFF * 2.0 ** min(streak - 1, 16), BACKOFF_MOST) if streak else 0.0


# -- one step ---------------------------------------------------------------------------------


def _moved(plan: Plan, run: Run, now: float) -> Run:
    if run.asked is not None and now >= run.asked + min(plan.shutdown, plan.grace):
        return _stopped(run, now, KILLED if plan.shutdown > plan.grace else 0)
    if plan.deadline is not None and now >= run.accepted + plan.deadline:
        return _stopped(run, now, KILLED)._replace(reason="DeadlineExceeded")
    if now < run.accepted + plan.start_delay:
        return run
    stopping = run.asked is not None
    inits, turn = [], not stopping
    for part, box in zip(plan.inits, run.inits, strict=True):
        box = _ticked(part, box, now, turn, plan.policy, stopping)
        inits.append(box)
        turn = turn and _passed(part, box)
        if box.state is State.ENDED and box.again is None and not _passed(part, box) and not stopping:
            return _stopped(run._replace(inits=(*inits, *run.inits[len(inits) :])), now, KILLED)
    mains = [
        _ticked(part, box, now, turn, plan.policy, stopping)
        for part, box in zip(plan.mains, run.mains, strict=True)
    ]
    run = run._replace(inits=tuple(inits), mains=tuple(mains))
    if mains and all(box.state is State.ENDED and box.again is None for box in mains):
        return _stopped(run, now, 0)  # what is left are sidecars
    return run


def _ticked(part: Part, box: Box, now: float, turn: bool, policy: str, stopping: bool) -> Box:
    """One container a step further."""
    match box.state:
        case State.WAITING if turn:
            return _started(part, box, now)
        case State.UNPULLED if part.pulls and not stopping:
            return _started(part, box, now)
        case State.RUNNING if box.image != part.image and not stopping:
            return _started(part, _ended(part, box, now, 0, "", True), now)
        case State.RUNNING if part.does.lasts is not None and now >= box.since + part.does.lasts:
            return _ended(part, box, now, part.does.code, policy, stopping)
        case State.ENDED if box.again is not None and now >= box.again and not stopping:
            return _started(part, box, now)
    return box


def _started(part: Part, box: Box, now: float) -> Box:
    if not part.pulls:
        return box._replace(state=State.UNPULLED, since=now, image=part.image)
    again = box.ended is not None
    return box._replace(
        state=State.RUNNING,
        since=now,
        image=part.image,
        restarts=box.restarts + again,
        streak=box.streak + again,
        again=None,
    )


def _ended(part: Part, box: Box, now: float, code: int, policy: str, stopping: bool) -> Box:
    streak = 0 if now - box.since >= STEADY else box.streak
    again = now + backoff(streak) if restarts(part, policy, code) and not stopping else None
    return box._replace(
        state=State.ENDED, since=now, streak=streak, ended=Ended(box.since, now, code), again=again
    )


def restarts(part: Part, policy: str, code: int) -> bool:
    """Whether a container that ended this way is started again."""
    match part.role:
        case "sidecar":
            return True
        case "init":
            return code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _passed(part: Part, box: Box) -> bool:
    """Whether the next container need not wait for this one."""
    if part.role == "sidecar":
        # Once started, it does not matter whether it has ended and comes again.
        return box.state in (State.RUNNING, State.ENDED)
    return box.state is State.ENDED and box.ended is not None and box.ended.code == 0


def _stopped(run: Run, now: float, code: int) -> Run:
    """All that runs ends with this code; nothing will run again."""
    inits, mains = (tuple([_final(box, now, code) for box in boxes]) for boxes in (run.inits, run.mains))
    return run._replace(inits=inits, mains=mains, over=True)


def _final(box: Box, now: float, code: int) -> Box:
    if box.state is State.RUNNING:
        return box._replace(state=State.ENDED, since=now, ended=Ended(box.since, now, code), again=None)
    if box.state is State.ENDED:
        return box._replace(again=None)
    # It never ran, or does not run again: nobody knows how it would have ended.
    return box._replace(state=State.ENDED, since=now, ended=Ended(None, now, KILLED), again=None)


def _fell(part: Part, box: Box, policy: str, now: float) -> Box:
    if box.state is not State.RUNNING:
        return box
    again = now if restarts(part, policy, LOST) else None
    return box._replace(
        state=State.ENDED, since=now, streak=0, ended=Ended(box.since, now, LOST), again=again
    )
