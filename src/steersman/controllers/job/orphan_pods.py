"""Pods that nobody will count any more: what keeps them is taken off."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.errors import NotFound
from steersman.api.kinds import JOBS, Job, Pod
from steersman.api.meta import controller_of
from steersman.api.scheme import Key
from steersman.controllers.job.pods import is_tracked, let_go
from steersman.controllers.job.spec import is_finished, is_managed_elsewhere
from steersman.intent.controller import Cache, Caches
from steersman.intent.verdict import Rest, Verdict

POD = "pod/"
"""Begins the names in keys of pods; no Job's name has a slash."""


def key_of(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, POD + pod.metadata.name)


def owner_of(jobs: Cache[Job], pod: Pod) -> Job | None:
    """The Job that controls the pod, where there is one."""
    reference = controller_of(pod)
    if reference is None or reference.kind != JOBS.name:
        return None
    job = jobs.get(Key(pod.metadata.namespace, reference.name))
    return job if job is not None and job.metadata.uid == reference.uid else None


def is_stray(caches: Caches, pod: Pod) -> bool:
    """Whether the pod waits to be counted, and nobody will."""
    if not is_tracked(pod):
        return False
    reference = controller_of(pod)
    if reference is None:
        return True
    if (reference.kind, reference.apiVersion) != (JOBS.name, JOBS.api_version):
        return False
    job = owner_of(caches[JOBS], pod)
    return job is None or (is_finished(job) and not is_managed_elsewhere(job))


def suspects(caches: Caches, pod: Pod) -> Iterator[Key]:
    """The pod itself, if a change of it says that it may have been left behind.

    One whose Job is unknown and that nobody asked to go is left to the garbage collector.
    """
    if is_stray(caches, pod) and (controller_of(pod) is None or pod.metadata.deletionTimestamp is not None):
        yield key_of(pod)


async def release(pod: Pod) -> Verdict:
    """Let a stray go."""
    try:
        await let_go(pod)
    except NotFound:
        return Rest("has gone")
    return Rest("nobody will count it: it may go")
