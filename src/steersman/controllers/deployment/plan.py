"""Which way a round goes (pause, rollback, scale, rolling update, recreate), and its target ReplicaSets."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from steersman.controllers.deployment import revision, rolling, scale
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, size
from steersman.controllers.deployment.rollback import requested_revision
from steersman.controllers.deployment.scale import resized
from steersman.intent.verdict import InvalidSpec


class Plan(msgspec.Struct, frozen=True):
    """The next steps of a Deployment, for one round to carry out."""

    target: ReplicaSets
    """The ReplicaSets as they should be."""
    create_new: bool = False
    """The new ReplicaSet is missing and has to be created before a target is known."""
    rollout: bool = False
    """A rollout is under way, so its progress is checked."""
    cleanup: bool = False
    """Old ReplicaSets beyond the history limit may be deleted whatever the status."""
    old_pods: int = 0
    """The old pods that must stop before the rollout goes on."""
    rollback_to: int | None = None
    """The revision to roll back to."""


def make_plan(sets: ReplicaSets, limits: Limits, running: Mapping[str, int]) -> Plan:
    """Plans a round from cached state alone.

    ``running`` has, by uid of a ReplicaSet, the number of its pods that have not ended.
    """
    deployment = sets.deployment
    synced = revision.sync_new(sets)
    rollback_to = requested_revision(deployment)
    if deployment.metadata.deletionTimestamp is not None:
        return Plan(synced)
    if deployment.spec.paused:
        return Plan(scale.scale(synced, limits), cleanup=rollback_to is None)
    if rollback_to is not None:
        # The present template becomes a revision first, so that a later rollback can return to it.
        return Plan(synced, create_new=sets.new is None, rollback_to=rollback_to)
    if scale.is_scaling_event(sets):
        return Plan(scale.scale(synced, limits))
    match deployment.spec.strategy.type:
        case "RollingUpdate":
            return Plan(rolling.step(synced, limits), create_new=sets.new is None, rollout=True)
        case "Recreate":
            return _recreate(synced, limits, running)
        case other:
            raise InvalidSpec(f"unexpected deployment strategy type: {other}")


# -- Recreate ---------------------------------------------------------------------------------


def _recreate(sets: ReplicaSets, limits: Limits, running: Mapping[str, int]) -> Plan:
    """All old pods stop before the first new one is created."""
    old = old_pods(sets, running)
    if old or any(size(rs) > 0 for rs in sets.old):
        drained = sets.updated({rs.metadata.name: resized(rs, 0, limits) for rs in sets.old})
        return Plan(drained, rollout=True, old_pods=old)
    if sets.new is None:
        return Plan(sets, create_new=True, rollout=True)
    filled = sets.updated({sets.new.metadata.name: resized(sets.new, limits.replicas, limits)})
    return Plan(filled, rollout=True)


def old_pods(sets: ReplicaSets, running: Mapping[str, int]) -> int:
    """The pods of old ReplicaSets that may still run.

    ``status.replicas`` leaves out terminating pods, so the pods themselves are counted too: ``running`` has, by uid
    of their ReplicaSet, the number that are not in a final phase.
    """
    return sum(max(rs.status.replicas, running.get(rs.metadata.uid, 0)) for rs in sets.old)
