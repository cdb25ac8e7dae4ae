"""RollingUpdate: scales the new ReplicaSet up and the old ones down, a step at a time.

Two bounds hold after every step: there are at most ``replicas + maxSurge`` pods, and at least
``replicas - maxUnavailable`` of them are available.
"""

from __future__ import annotations

from steersman.api.kinds import ReplicaSet
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, available, size
from steersman.controllers.deployment.scale import resized


def step(sets: ReplicaSets, limits: Limits) -> ReplicaSets:
    """The ReplicaSets after the next step of a rollout.

    differs: upstream takes the two halves in two rounds. Scaling up the new ReplicaSet does not change how far the
    old ones may be scaled down, since pods just created are not available; so the old ones are scaled down first,
    and the new one may use their room at once.
    """
    return reconcile_new(reconcile_old(sets, limits), limits)


def new_size(sets: ReplicaSets, limits: Limits) -> int:
    """The size the new ReplicaSet may have now."""
    current = size(sets.new) if sets.new is not None else 0
    if current >= limits.replicas:
        return limits.replicas
    room = limits.max_total - sets.total_size
    return current + max(0, min(room, limits.replicas - current))


def reconcile_new(sets: ReplicaSets, limits: Limits) -> ReplicaSets:
    """The new ReplicaSet scaled up as far as the surge allows, or down where it is too large."""
    if sets.new is None:
        return sets
    new = resized(sets.new, new_size(sets, limits), limits)
    return sets.updated({new.metadata.name: new})


def reconcile_old(sets: ReplicaSets, limits: Limits) -> ReplicaSets:
    """The old ReplicaSets scaled down as far as availability allows, unhealthy pods first."""
    new = sets.new
    old = [rs for rs in sets.old if size(rs) > 0]
    if new is None or not old:
        return sets
    # Unavailable pods of the new ReplicaSet count as missing: however many of them crash, old pods stay.
    spare = sets.total_size - limits.min_available - (size(new) - available(new))
    if spare <= 0:
        return sets
    sizes = scale_down_available(old, remove_unhealthy(old, spare), limits.min_available - available(new))
    return sets.updated(
        {rs.metadata.name: resized(rs, replicas, limits) for rs, replicas in zip(old, sizes, strict=True)}
    )


def remove_unhealthy(old: list[ReplicaSet], spare: int) -> list[int]:
    """The sizes of old ReplicaSets, oldest first, less at most ``spare`` unavailable pods.

    A ReplicaSet deletes pods that are not ready before others, so no available pod is lost. Kept, they would block
    the rollout.
    """
    sizes = []
    for rs in old:
        removed = min(spare, size(rs) - available(rs))
        spare -= removed
        sizes.append(size(rs) - removed)
    return sizes


def scale_down_available(old: list[ReplicaSet], sizes: list[int], needed: int) -> list[int]:
    """The sizes less available pods, oldest first, as long as ``needed`` of them remain."""
    excess = max(0, sum(map(available, old)) - needed)
    after = []
    for replicas in sizes:
        removed = min(replicas, excess)
        excess -= removed
        after.append(replicas - removed)
    return after
