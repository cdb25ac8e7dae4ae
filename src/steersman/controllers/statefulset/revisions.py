"""Revisions: the template pods were made of so far, and the one they are to be made of."""

from __future__ import annotations

import msgspec

from steersman.api.kinds import NewPod
from steersman.api.kinds.revisions import ControllerRevision
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.shared import history
from steersman.controllers.statefulset.identity import new_pod, ordinals
from steersman.controllers.statefulset.order import partition


class Revisions(msgspec.Struct, frozen=True):
    """Where an update comes from and where it goes; the same where there is none under way."""

    current: ControllerRevision
    update: ControllerRevision
    collisions: int

    @property
    def names(self) -> tuple[str, str]:
        return self.current.metadata.name, self.update.metadata.name


async def settle(set_: StatefulSet, known: list[ControllerRevision], *, semantic: bool) -> Revisions:
    """Find the revisions of a set among those known, in order; make or renumber one where need be.

    ``semantic``: where no revision holds just the set's template, the last one will do if pods of it would
    be alike, so that a server which fills in more than it used to rolls nothing.
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
        made = history.new_revision(
            set_,
            template,
            history.next_revision(known),
            label=history.HASH,
            hash_=history.digest(data, collisions),
        )
        update, collisions = await history.create_revision(set_, made, collisions)
    named = (one for one in known if one.metadata.name == set_.status.currentRevision)
    return Revisions(next(named, update), update, collisions)


def birth(set_: StatefulSet, ordinal: int, revisions: Revisions) -> NewPod:
    """The pod of an ordinal, of the revision it is to have."""
    strategy, index = set_.spec.updateStrategy, ordinal - ordinals(set_).start
    if strategy.rollingUpdate is not None:
        behind = index < partition(set_)
    else:
        behind = strategy.type == "RollingUpdate" and index < set_.status.currentReplicas
    revision = revisions.current if behind else revisions.update
    return new_pod(set_, ordinal, history.template_of(revision), revision.metadata.name)
