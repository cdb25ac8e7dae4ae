"""Scaling: how many pods a Job should have now, and creating or deleting them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.generated_names import SUFFIX_LENGTH
from steersman.api.kinds import JOBS, Job, NewPod, ObjectMeta, Opaque, Pod
from steersman.api.label_syntax import MAX_NAME
from steersman.api.meta import owner_reference
from steersman.api.pods import is_ready, is_terminating
from steersman.api.scheme import encode_hook
from steersman.controllers.job.backoff import ZERO, FailureStreak, remaining, remaining_after
from steersman.controllers.job.metrics import count_creations
from steersman.controllers.job.pods import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
    completions_of,
    has_backoff_limit_per_index,
    ignored_index_failures,
    index_failures,
    is_indexed,
    is_suspended,
    is_tracked,
    only_replaces_failed,
    parallelism_of,
    remove_finalizer,
    surplus_pods,
)
from steersman.controllers.job.policies import match_failure_policy
from steersman.controllers.job.tally import Tally, indexes_of
from steersman.controllers.shared.pod_control import PodWrites, create_pods, delete_pods, pods_prefix
from steersman.intent.actions import Batch, Failed
from steersman.intent.verdict import InvalidSpec

BURST = 500
"""The most pods created or deleted in one round; upstream's MaxPodCreateDeletePerSync."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""The environment variable with the completion index."""


# -- plan -----------------------------------------------------------------------------------------


class ScalePlan(msgspec.Struct, frozen=True):
    """The pods to delete or to create, or the backoff to wait for: at most one of these."""

    delete: tuple[Pod, ...] = ()
    create: tuple[int | None, ...] = ()
    """The completion index of each pod; None for a NonIndexed Job."""
    wait: timedelta = ZERO
    """The rest of the backoff, where pods are missing and may not be created yet."""

    @property
    def action(self) -> str:
        """The ``action`` label of the sync metrics."""
        if self.delete:
            return "pods_deleted"
        return "pods_created" if self.create or self.wait else "tracking"


def desired_active(counts: Tally) -> int:
    """The number of pods that should be active."""
    job, active = counts.job, len(counts.active)
    if is_suspended(job):
        return 0
    if job.spec.completions is None:
        # Once one has succeeded no more are created, and the others may finish.
        return active if counts.succeeded > 0 else parallelism_of(job)
    return max(0, min(job.spec.completions - counts.succeeded, parallelism_of(job)))


def plan_scaling(counts: Tally, streak: FailureStreak, now: datetime) -> ScalePlan:
    """The pods to create or delete now. A round that deletes pods creates none."""
    job, active, desired = counts.job, len(counts.active), desired_active(counts)
    delete = surplus_pods(job, counts.active, max(0, active - desired))
    if is_suspended(job):
        return ScalePlan(delete=tuple(delete))
    if delete:
        return ScalePlan(delete=tuple(delete[:BURST]))
    missing = desired - active - (counts.terminating if only_replaces_failed(job) else 0)
    if missing <= 0:
        return ScalePlan()
    if not has_backoff_limit_per_index(job):
        wait = remaining(consecutive_failures(counts, streak), streak.last, now)
        if wait > ZERO:
            return ScalePlan(wait=wait)
    missing = min(missing, BURST)
    if not is_indexed(job):
        return ScalePlan(create=(None,) * missing)
    pending = _pending_indexes(counts, missing)
    if not has_backoff_limit_per_index(job):
        return ScalePlan(create=tuple(pending))
    waits = {index: remaining_after(counts.to_replace.get(index), now) for index in pending}
    due = tuple(index for index in pending if waits[index] == ZERO)
    return ScalePlan(create=due) if due else ScalePlan(wait=min(waits.values(), default=ZERO))


def consecutive_failures(counts: Tally, streak: FailureStreak) -> int:
    """The failures in a row. Until a pod succeeds, the status also counts failed pods that are long deleted."""
    return max(len(streak.failures), counts.failed if counts.succeeded == 0 else 0)


def _pending_indexes(counts: Tally, count: int) -> list[int]:
    """The first indexes that have no pod and have not finished."""
    taken = counts.succeeded_indexes | indexes_of(counts.active)
    if only_replaces_failed(counts.job):
        taken |= indexes_of(filter(is_terminating, counts.pods))
    if counts.failed_indexes is not None:
        taken |= counts.failed_indexes
    return taken.missing(completions_of(counts.job), count)


# -- writes ---------------------------------------------------------------------------------------


class ScaleResult(msgspec.Struct, frozen=True):
    """The counts after scaling, and the first error."""

    active: int
    ready: int
    terminating: int
    failure: ApiError | InvalidSpec | None = None


async def apply_scaling(counts: Tally, plan: ScalePlan) -> ScaleResult:
    """Creates or deletes the pods of a plan."""
    if plan.delete:
        return await _delete_surplus(counts, plan.delete)
    if plan.create:
        return await _create(counts, plan.create)
    return ScaleResult(len(counts.active), counts.ready, counts.terminating)


async def delete_active(counts: Tally) -> ScaleResult:
    """Deletes all active pods of a Job that ends. Their finalizers stay until they are counted."""
    return await _delete(counts, counts.active)


async def _delete_surplus(counts: Tally, surplus: tuple[Pod, ...]) -> ScaleResult:
    """Deletes surplus pods. They are not counted, so their finalizer is removed first."""
    tracked = [pod for pod in surplus if is_tracked(pod)]
    errors: dict[str, ApiError] = {}
    gone: dict[str, None] = {}
    if tracked:
        outcomes = await Batch(tuple(map(remove_finalizer, tracked)), slow_start=False)
        for pod, outcome in zip(tracked, outcomes, strict=True):
            match outcome:
                case Failed(NotFound()):
                    gone[pod.metadata.uid] = None
                case Failed(error):
                    errors[pod.metadata.uid] = error
                case _:
                    pass
    released = [pod for pod in surplus if pod.metadata.uid not in errors and pod.metadata.uid not in gone]
    result = await _delete(counts, released, gone=len(gone))
    if not errors:
        return result
    failure = result.failure or next(iter(errors.values()))
    return ScaleResult(result.active, result.ready, result.terminating, failure)


async def _delete(counts: Tally, victims: Iterable[Pod], gone: int = 0) -> ScaleResult:
    pods = tuple(victims)
    deleted = await delete_pods(counts.job, pods) if pods else PodWrites()
    done = gone + len(deleted.done)
    ready = sum(map(is_ready, deleted.done))
    return ScaleResult(
        len(counts.active) - done, counts.ready - ready, counts.terminating + done, deleted.failure
    )


async def _create(counts: Tally, indexes: tuple[int | None, ...]) -> ScaleResult:
    job = counts.job
    active = len(counts.active)
    if not job.spec.template.metadata.labels:
        invalid = InvalidSpec("unable to create pods, no labels")
        return ScaleResult(active, counts.ready, counts.terminating, invalid)
    created = await create_pods(job, _new_pods(counts, indexes))
    await count_creations(job, counts.failed, counts.terminating, len(created.done), created.failed)
    return ScaleResult(active + len(created.done), counts.ready, counts.terminating, created.failure)


def _new_pods(counts: Tally, indexes: tuple[int | None, ...]) -> Iterable[NewPod]:
    job = counts.job
    if not is_indexed(job):
        return (new_pod(job),) * len(indexes)
    return (new_pod(job, index, counts.to_replace.get(index)) for index in indexes if index is not None)


# -- new pods -------------------------------------------------------------------------------------


def new_pod(job: Job, index: int | None = None, previous: Pod | None = None) -> NewPod:
    """A pod from the Job's template, for a completion index if any; ``previous`` is the last pod that failed at it."""
    template, name = job.spec.template, job.metadata.name
    labels, annotations, spec = template.metadata.labels, template.metadata.annotations, template.spec
    prefix = pods_prefix(name)
    if index is not None:
        labels = {**labels, COMPLETION_INDEX: str(index)}
        annotations = {**annotations, COMPLETION_INDEX: str(index)}
        if has_backoff_limit_per_index(job):
            annotations |= _failure_annotations(job, previous)
        spec = _with_hostname(spec, f"{name}-{index}")
        prefix = index_prefix(name, index)
    finalizers = template.metadata.finalizers
    return NewPod(
        metadata=ObjectMeta(
            generateName=prefix,
            labels=labels,
            annotations=annotations,
            finalizers=finalizers if TRACKING_FINALIZER in finalizers else (*finalizers, TRACKING_FINALIZER),
            ownerReferences=(owner_reference(job, JOBS),),
        ),
        spec=spec,
    )


def index_prefix(name: str, index: int) -> str:
    """The ``generateName`` of an index's pods: shortened so that the index stays in the name."""
    suffix, room = f"-{index}-", MAX_NAME - SUFFIX_LENGTH
    prefix = name + suffix
    return prefix if len(prefix) <= room else prefix[: room - len(suffix)] + suffix


def _failure_annotations(job: Job, previous: Pod | None) -> dict[str, str]:
    """The annotations with the failures of an index so far."""
    if previous is None:
        return {INDEX_FAILURES: "0"}
    counts = match_failure_policy(job, previous).counts
    ignored = ignored_index_failures(previous) + (not counts)
    failures = {INDEX_FAILURES: str(index_failures(previous) + counts)}
    return {**failures, INDEX_IGNORED_FAILURES: str(ignored)} if ignored else failures


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


def _with_hostname(spec: Opaque, hostname: str) -> Opaque:
    raw = bytes(spec) if isinstance(spec, msgspec.Raw) else _encoder.encode(spec)
    rest = _with_index_variable(raw)
    head = b'{"hostname":' + _encoder.encode(hostname)
    return msgspec.Raw(head + (b"}" if rest == b"{}" else b"," + rest[1:]))


@lru_cache(maxsize=64)
def _with_index_variable(raw: bytes) -> bytes:
    """The pod spec with the index in the environment of every container, and without a hostname."""
    document: dict[str, Any] = msgspec.json.decode(raw)
    document.pop("hostname", None)
    for field in ("initContainers", "containers"):
        for container in document.get(field) or ():
            env = container.get("env") or []
            if not any(variable.get("name") == INDEX_VARIABLE for variable in env):
                container["env"] = [*env, _VARIABLE]
    return _encoder.encode(document)


_VARIABLE = {
    "name": INDEX_VARIABLE,
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
}
