"""ControllerRevisions of a StatefulSet: the current and the update revision, and cleanup beyond the limit."""

from __future__ import annotations

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import NewPod, Pod
from steersman.api.kinds.revisions import ControllerRevision
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.shared import history
from steersman.controllers.statefulset.identity import new_pod, ordinals, revision_of
from steersman.controllers.statefulset.order import partition
from steersman.intent.actions import Delete


class Revisions(msgspec.Struct, frozen=True):
    """The revision that pods are updated from and the one they are updated to; the same without an update."""

    current: ControllerRevision
    update: ControllerRevision
    collisions: int
    """The new ``status.collisionCount``."""

    @property
    def names(self) -> tuple[str, str]:
        return self.current.metadata.name, self.update.metadata.name


async def get_revisions(set_: StatefulSet, known: list[ControllerRevision], *, semantic: bool) -> Revisions:
    """Finds a set's revisions among its known ones, which are sorted; creates or renumbers one where needed.

    ``semantic``: where no revision has exactly the set's template, the last one is used if their pods would be equal,
    so that a server with new defaults does not roll all pods.
    """
    template, collisions = set_.spec.template, set_.status.collisionCount or 0
    data = history.data_of(template)
    equal = history.find_equal(data, known)
    if equal and equal[-1] is known[-1]:
        update = known[-1]
    elif equal:
        update = await history.renumber(equal[-1], history.next_revision(known))
    elif semantic and known and history.equivalent(template, known[-1]):
        update = known[-1]
    else:
        new = history.new_revision(
            set_,
            template,
            history.next_revision(known),
            label=history.HASH,
            hash_=history.digest(data, collisions),
        )
        update, collisions = await history.create_revision(set_, new, collisions)
    current = (revision for revision in known if revision.metadata.name == set_.status.currentRevision)
    return Revisions(next(current, update), update, collisions)


def new_versioned_pod(set_: StatefulSet, ordinal: int, revisions: Revisions) -> NewPod:
    """The pod of an ordinal, from the revision that applies to it."""
    strategy, index = set_.spec.updateStrategy, ordinal - ordinals(set_).start
    if strategy.rollingUpdate is not None:
        is_current = index < partition(set_)
    else:
        is_current = strategy.type == "RollingUpdate" and index < set_.status.currentReplicas
    revision = revisions.current if is_current else revisions.update
    return new_pod(set_, ordinal, history.template_of(revision), revision.metadata.name)


async def truncate_history(
    set_: StatefulSet, known: list[ControllerRevision], revisions: Revisions, owned: list[Pod]
) -> ApiError | None:
    """Deletes revisions beyond ``revisionHistoryLimit`` that no pod has; returns the error."""
    live = {*revisions.names, *map(revision_of, owned)}
    for revision in history.beyond_limit(known, live, set_.spec.revisionHistoryLimit):
        try:
            await Delete(revision)
        except NotFound:
            pass
        except ApiError as error:
            return error
    return None
