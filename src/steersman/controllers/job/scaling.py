"""How many pods a Job is to have now, and making it so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import NewPod, Pod
from steersman.api.pods import is_ready, is_terminating
from steersman.controllers.job.backoff import NOT_AT_ALL, Streak, remaining, remaining_after
from steersman.controllers.job.counting import Tally, indexes_of
from steersman.controllers.job.metrics import created
from steersman.controllers.job.pods import is_tracked, let_go, surplus
from steersman.controllers.job.spec import (
    completions_of,
    is_indexed,
    is_suspended,
    limits_each_index,
    parallelism_of,
    replaces_only_failed,
)
from steersman.controllers.job.template import new_pod
from steersman.controllers.shared.pod_control import PodWrites, create_pods, delete_pods
from steersman.intent.actions import Batch, Failed
from steersman.intent.verdict import InvalidSpec

BURST = 500
"""The most pods created or deleted in one round; upstream's MaxPodCreateDeletePerSync."""


class Plan(msgspec.Struct, frozen=True):
    """What is to be done about a Job's pods: at most one of these."""

    remove: tuple[Pod, ...] = ()
    create: tuple[int | None, ...] = ()
    """For which indexes; None is for none."""
    wait: timedelta = NOT_AT_ALL
    """Pods are missing, and may not be made before that long."""

    @property
    def deed(self) -> str:
        """What metrics call a look with this plan."""
        if self.remove:
            return "pods_deleted"
        return "pods_created" if self.create or self.wait else "tracking"


class Scaled(msgspec.Struct, frozen=True):
    """What came of it."""

    active: int
    ready: int
    terminating: int
    failure: ApiError | InvalidSpec | None = None


# -- what to do -----------------------------------------------------------------------------------


def wanted(seen: Tally) -> int:
    """How many pods should be active."""
    job, active = seen.job, len(seen.active)
    if is_suspended(job):
        return 0
    if job.spec.completions is None:
        # One that succeeded has done it for all; the others may end what they do.
        return active if seen.succeeded > 0 else parallelism_of(job)
    return max(0, min(job.spec.completions - seen.succeeded, parallelism_of(job)))


def plan(seen: Tally, streak: Streak, now: datetime) -> Plan:
    """What to do now. Where pods must go, none is created in the same round."""
    job, active, want = seen.job, len(seen.active), wanted(seen)
    remove = surplus(job, seen.active, max(0, active - want))
    if is_suspended(job):
        return Plan(remove=tuple(remove))
    if remove:
        return Plan(remove=tuple(remove[:BURST]))
    missing = want - active - (seen.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return Plan()
    if not limits_each_index(job):
        wait = remaining(failures(seen, streak), streak.last, now)
        if wait > NOT_AT_ALL:
            return Plan(wait=wait)
    missing = min(missing, BURST)
    if not is_indexed(job):
        return Plan(create=(None,) * missing)
    pending = _pending(seen, missing)
    if not limits_each_index(job):
        return Plan(create=tuple(pending))
    waits = {index: remaining_after(seen.awaiting.get(index), now) for index in pending}
    due = tuple(index for index in pending if waits[index] == NOT_AT_ALL)
    return Plan(create=due) if due else Plan(wait=min(waits.values(), default=NOT_AT_ALL))


def failures(seen: Tally, streak: Streak) -> int:
    """How often it has failed in a row. The status knows of pods that are long gone, until one succeeds."""
    return max(len(streak.failures), seen.failed if seen.succeeded == 0 else 0)


def _pending(seen: Tally, count: int) -> list[int]:
    """The first indexes that have neither a pod nor an end."""
    taken = seen.done | indexes_of(seen.active)
    if replaces_only_failed(seen.job):
        taken |= indexes_of(filter(is_terminating, seen.pods))
    if seen.lost is not None:
        taken |= seen.lost
    return taken.lacking(completions_of(seen.job), count)


# -- doing it -------------------------------------------------------------------------------------


async def carry_out(seen: Tally, plan: Plan) -> Scaled:
    """Create or delete, and say how many there are then."""
    if plan.remove:
        return await _remove(seen, plan.remove)
    if plan.create:
        return await _create(seen, plan.create)
    return Scaled(len(seen.active), seen.ready, seen.terminating)


async def end(seen: Tally) -> Scaled:
    """Delete all that is active. Finalizers stay: these pods are still to be counted."""
    return await _delete(seen, seen.active)


async def _remove(seen: Tally, going: tuple[Pod, ...]) -> Scaled:
    """Delete pods nobody wants any more. They are not counted, so the finalizer goes first."""
    tracked = [pod for pod in going if is_tracked(pod)]
    kept: dict[str, ApiError] = {}
    gone: dict[str, None] = {}
    if tracked:
        outcomes = await Batch(tuple(map(let_go, tracked)), slow_start=False)
        for pod, outcome in zip(tracked, outcomes, strict=True):
            match outcome:
                case Failed(NotFound()):
                    gone[pod.metadata.uid] = None
                case Failed(error):
                    kept[pod.metadata.uid] = error
                case _:
                    pass
    free = [pod for pod in going if pod.metadata.uid not in kept and pod.metadata.uid not in gone]
    scaled = await _delete(seen, free, gone=len(gone))
    return (
        scaled
        if not kept
        else Scaled(
            scaled.active, scaled.ready, scaled.terminating, scaled.failure or next(iter(kept.values()))
        )
    )


async def _delete(seen: Tally, going: Iterable[Pod], gone: int = 0) -> Scaled:
    pods = tuple(going)
    written = await delete_pods(seen.job, pods) if pods else PodWrites()
    done = gone + len(written.done)
    ready = sum(map(is_ready, written.done))
    return Scaled(len(seen.active) - done, seen.ready - ready, seen.terminating + done, written.failure)


async def _create(seen: Tally, indexes: tuple[int | None, ...]) -> Scaled:
    job = seen.job
    active = len(seen.active)
    if not job.spec.template.metadata.labels:
        problem = InvalidSpec("unable to create pods, no labels")
        return Scaled(active, seen.ready, seen.terminating, problem)
    made = await create_pods(job, _new_pods(seen, indexes))
    await created(job, seen.failed, seen.terminating, len(made.done), made.failed)
    return Scaled(active + len(made.done), seen.ready, seen.terminating, made.failure)


def _new_pods(seen: Tally, indexes: tuple[int | None, ...]) -> Iterable[NewPod]:
    job = seen.job
    if not is_indexed(job):
        return (new_pod(job),) * len(indexes)
    return (new_pod(job, index, seen.awaiting.get(index)) for index in indexes if index is not None)
