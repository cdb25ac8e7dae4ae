"""The history of a DaemonSet's templates: which revision is the one of now, and which may go."""

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


class Past(msgspec.Struct, frozen=True):
    """The revisions of a DaemonSet, and its pods as they are labelled now."""

    hash: str
    """What the pods of the template of now are labelled with."""
    olds: tuple[ControllerRevision, ...]
    """The revisions of other templates, the oldest first."""
    pods: tuple[Pod, ...]


async def look_back(
    daemonset: DaemonSet, revisions: Iterable[ControllerRevision], pods: Sequence[Pod]
) -> Past | Wake:
    """Find the revision of the template, or make it; a verdict where the round has to end without it."""
    labelled = [await _labelled(revision) for revision in history.sort_revisions(revisions)]
    data = history.data_of(daemonset.spec.template)
    alike = history.find_equal(data, labelled)
    olds = tuple(revision for revision in labelled if revision not in alike)
    number = history.next_revision(olds)
    if not alike:
        made = await _make(daemonset, number)
        return made if isinstance(made, Wake) else Past(hash_of(made), olds, tuple(pods))
    *twins, current = alike
    pods = await _merge(twins, current, pods)
    if current.revision < number:
        await history.renumber(current, number)
    return Past(hash_of(current), olds, tuple(pods))


def hash_of(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(REVISION, "")


async def _labelled(revision: ControllerRevision) -> ControllerRevision:
    """One of before revisions had hashes is told apart by its name."""
    if REVISION in revision.metadata.labels:
        return revision
    metadata = {"uid": revision.metadata.uid, "labels": {REVISION: revision.metadata.name}}
    labelled: ControllerRevision = await Patch(revision, {"metadata": metadata})
    return labelled


async def _make(daemonset: DaemonSet, number: int) -> ControllerRevision | Wake:
    template, status = daemonset.spec.template, daemonset.status
    hash_ = history.digest(history.data_of(template), status.collisionCount)
    body = history.new_revision(daemonset, template, number, label=REVISION, hash_=hash_)
    made: ControllerRevision
    try:
        made = await Create(CONTROLLERREVISIONS, daemonset.metadata.namespace, body)
        return made
    except AlreadyExists:
        made = await Read(body)
    if history.same(made.data, body.data):
        return made
    collisions = (status.collisionCount or 0) + 1
    await UpdateStatus(daemonset, replace(status, collisionCount=collisions))
    name = body.metadata.name
    return Wake(timedelta(), f"{name} holds another template; trying another name (number {collisions})")


async def _merge(
    twins: Sequence[ControllerRevision], current: ControllerRevision, pods: Sequence[Pod]
) -> Sequence[Pod]:
    """Let one revision stand for all that hold the same; answers the pods, labelled so.

    differs: upstream labels every pod with the one that stays, also those of other templates, which would
    then never be rolled.
    """
    if not twins:
        return pods
    names = [hash_of(twin) for twin in twins if hash_of(twin) != hash_of(current)]
    label = {"metadata": {"labels": {REVISION: hash_of(current)}}}
    pods = [await Patch(pod, label) if pod.metadata.labels.get(REVISION) in names else pod for pod in pods]
    for twin in twins:
        await Delete(twin)
    return pods


async def tidy(daemonset: DaemonSet, past: Past) -> ApiError | None:
    """Delete the oldest revisions beyond the limit that no pod is of; answers why it could not."""
    limit = daemonset.spec.revisionHistoryLimit
    too_many = len(past.olds) - limit if limit is not None else 0
    if too_many <= 0:
        return None
    live = {pod.metadata.labels.get(REVISION) for pod in past.pods}
    idle = [revision for revision in past.olds if hash_of(revision) not in live]
    outcomes = await Batch(tuple(map(Delete, idle[:too_many]))) if idle else []
    failed = (outcome.error for outcome in outcomes if isinstance(outcome, Failed))
    return next((error for error in failed if not isinstance(error, NotFound)), None)
