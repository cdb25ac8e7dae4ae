"""Recreate: all old pods go before the first new one comes."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.controllers.deployment.limits import Limits
from steersman.controllers.deployment.replicasets import Family
from steersman.controllers.deployment.scale import resized


def drain(family: Family, limits: Limits) -> Family:
    """Every old ReplicaSet at nought."""
    return family.having({rs.metadata.name: resized(rs, 0, limits) for rs in family.olds})


def fill(family: Family, limits: Limits) -> Family:
    """The new ReplicaSet, if it is there, at its full size."""
    if family.new is None:
        return family
    return family.having({family.new.metadata.name: resized(family.new, limits.replicas, limits)})


def old_pods(family: Family, running: Mapping[str, int]) -> int:
    """How many pods of old ReplicaSets may still run.

    A set's own count leaves out pods that are terminating, so the pods themselves are counted too:
    ``running`` has, by uid of their ReplicaSet, how many are not in a final phase.
    """
    return sum(max(rs.status.replicas, running.get(rs.metadata.uid, 0)) for rs in family.olds)
