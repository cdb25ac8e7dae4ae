"""Which way a round goes, and what the ReplicaSets should be after it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from steersman.controllers.deployment import recreate, revision, rolling, scale
from steersman.controllers.deployment.limits import Limits
from steersman.controllers.deployment.replicasets import Family, size
from steersman.controllers.deployment.rollback import asked
from steersman.intent.verdict import Nonsense


class Plan(msgspec.Struct, frozen=True):
    """What a round is to do."""

    after: Family
    """The family as it should be."""
    missing: bool = False
    """The new ReplicaSet has to be created before anything else can be told."""
    rollout: bool = False
    """A rollout goes on, so its progress is watched."""
    tidy: bool = False
    """Old ReplicaSets past the history may go whatever the status says."""
    waiting: int = 0
    """Old pods that must stop before anything else can happen."""
    rollback: int | None = None
    """The revision to go back to."""


def make(family: Family, limits: Limits, running: Mapping[str, int]) -> Plan:
    """Decide from what is known alone.

    ``running`` has, by uid of a ReplicaSet, how many of its pods have not ended.
    """
    deployment = family.deployment
    recorded = revision.recorded(family)
    wish = asked(deployment)
    if deployment.metadata.deletionTimestamp is not None:
        return Plan(recorded)
    if deployment.spec.paused:
        return Plan(scale.scaled(recorded, limits), tidy=wish is None)
    if wish is not None:
        # The present template becomes a revision first, so that one can come back to it.
        return Plan(recorded, missing=family.new is None, rollback=wish)
    if scale.rescaled(family):
        return Plan(scale.scaled(recorded, limits))
    match deployment.spec.strategy.type:
        case "RollingUpdate":
            return Plan(rolling.step(recorded, limits), missing=family.new is None, rollout=True)
        case "Recreate":
            return _recreate(recorded, limits, running)
        case other:
            raise Nonsense(f"unexpected deployment strategy type: {other}")


def _recreate(family: Family, limits: Limits, running: Mapping[str, int]) -> Plan:
    waiting = recreate.old_pods(family, running)
    if waiting or any(size(rs) > 0 for rs in family.olds):
        return Plan(recreate.drain(family, limits), rollout=True, waiting=waiting)
    return Plan(recreate.fill(family, limits), missing=family.new is None, rollout=True)
