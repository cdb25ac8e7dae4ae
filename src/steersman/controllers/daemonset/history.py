"""ControllerRevisions of a DaemonSet: finds or creates the present one, and deletes those beyond the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.controllers.shared import history
from steersman.controllers.shared.history import REVISION
from steersman.intent.actions import Batch, Create, Delete, Failed, Patch, Read, UpdateStatus
from steersman.intent.verdict import Wake


class History(msgspec.Struct, frozen=True):
    """The revisions of a DaemonSet, and its pods with their present labels."""

    hash: str
    """The hash of the present template's revision, which labels its pods."""
    old: tuple[ControllerRevision, ...]
    """The revisions of other templates, oldest first."""
    pods: tuple[Pod, ...]


async def construct_history(
    daemonset: DaemonSet, revisions: Iterable[ControllerRevision], pods: Sequence[Pod]
) -> History | Wake:
    """Finds the revision of the present template, or creates it; a verdict where the round has to end without it."""
    labelled = [await _with_hash(revision) for revision in history.sort_revisions(revisions)]
    data = history.data_of(daemonset.spec.template)
    equal = history.find_equal(data, labelled)
    old = tuple(revision for revision in labelled if revision not in equal)
    number = history.next_revision(old)
    if not equal:
        created = await _create(daemonset, number)
        return created if isinstance(created, Wake) else History(hash_of(created), old, tuple(pods))
    *duplicates, current = equal
    pods = await _merge(duplicates, current, pods)
    if current.revision < number:
        await history.renumber(current, number)
    return History(hash_of(current), old, tuple(pods))


def hash_of(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(REVISION, "")


async def _with_hash(revision: ControllerRevision) -> ControllerRevision:
    """A revision from before revisions had hashes is labelled with its name."""
    if REVISION in revision.metadata.labels:
        return revision
    metadata = {"uid": revision.metadata.uid, "labels": {REVISION: revision.metadata.name}}
    labelled: ControllerRevision = await Patch(revision, {"metadata": metadata})
    return labelled


async def _create(daemonset: DaemonSet, number: int) -> ControllerRevision | Wake:
    template, status = daemonset.spec.template, daemonset.status
    hash_ = history.digest(history.data_of(template), status.collisionCount)
    body = history.new_revision(daemonset, template, number, label=REVISION, hash_=hash_)
    revision: ControllerRevision
    try:
        revision = await Create(CONTROLLERREVISIONS, daemonset.metadata.namespace, body)
        return revision
    except AlreadyExists:
        revision = await Read(body)
    if history.same(revision.data, body.data):
        return revision
    collisions = (status.collisionCount or 0) + 1
    await UpdateStatus(daemonset, replace(status, collisionCount=collisions))
    name = body.metadata.name
    return Wake(
        timedelta(),
        f"ControllerRevision {name} has another template; retrying with collisionCount {collisions}",
    )


async def _merge(
    duplicates: Sequence[ControllerRevision], current: ControllerRevision, pods: Sequence[Pod]
) -> Sequence[Pod]:
    """Deletes duplicates of the current revision, and returns the pods relabelled with the current one.

    differs: upstream relabels every pod, also those of other templates, which would then never be updated.
    """
    if not duplicates:
        return pods
    hashes = [hash_of(duplicate) for duplicate in duplicates if hash_of(duplicate) != hash_of(current)]
    label = {"metadata": {"labels": {REVISION: hash_of(current)}}}
    pods = [await Patch(pod, label) if pod.metadata.labels.get(REVISION) in hashes else pod for pod in pods]
    for duplicate in duplicates:
        await Delete(duplicate)
    return pods


async def cleanup_history(daemonset: DaemonSet, past: History) -> ApiError | None:
    """Deletes the oldest revisions beyond ``revisionHistoryLimit`` that no pod has; returns the first error."""
    limit = daemonset.spec.revisionHistoryLimit
    excess = len(past.old) - limit if limit is not None else 0
    if excess <= 0:
        return None
    live = {pod.metadata.labels.get(REVISION) for pod in past.pods}
    unused = [revision for revision in past.old if hash_of(revision) not in live]
    outcomes = await Batch(tuple(map(Delete, unused[:excess]))) if unused else []
    failed = (outcome.error for outcome in outcomes if isinstance(outcome, Failed))
    return next((error for error in failed if not isinstance(error, NotFound)), None)
