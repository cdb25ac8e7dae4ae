"""RollingUpdate: the new ReplicaSet grows and the old ones shrink, a step at a time.

Two bounds hold after every step: there are never more pods than asked for plus ``maxSurge``, and
never fewer available ones than asked for less ``maxUnavailable``.
"""

from __future__ import annotations

from steersman.api.kinds import ReplicaSet
from steersman.controllers.deployment.limits import Limits
from steersman.controllers.deployment.replicasets import Family, available, size
from steersman.controllers.deployment.scale import resized


def step(family: Family, limits: Limits) -> Family:
    """The family after the next step of a rollout.

    differs: upstream takes the two halves in two rounds. What the new set gains does not change what
    the old ones may lose, since pods that have just been asked for are not available; so the old ones
    lose first, and the new one may take their place at once.
    """
    return grow(shrink(family, limits), limits)


def growth(family: Family, limits: Limits) -> int:
    """How large the new ReplicaSet may be now."""
    has = size(family.new) if family.new is not None else 0
    if has >= limits.replicas:
        return limits.replicas
    room = limits.most - family.total
    return has + max(0, min(room, limits.replicas - has))


def grow(family: Family, limits: Limits) -> Family:
    """The new ReplicaSet as large as the surge allows; smaller if it has too many pods."""
    if family.new is None:
        return family
    new = resized(family.new, growth(family, limits), limits)
    return family.having({new.metadata.name: new})


def shrink(family: Family, limits: Limits) -> Family:
    """Old ReplicaSets made smaller as far as availability allows: first by their broken pods."""
    new = family.new
    olds = [rs for rs in family.olds if size(rs) > 0]
    if new is None or not olds:
        return family
    # Pods of the new set that are not available count as missing already: however many of them
    # crash, they never make the old ones go.
    spare = family.total - limits.fewest - (size(new) - available(new))
    if spare <= 0:
        return family
    sizes = remove_available(olds, remove_broken(olds, spare), limits.fewest - available(new))
    return family.having(
        {rs.metadata.name: resized(rs, wanted, limits) for rs, wanted in zip(olds, sizes, strict=True)}
    )


def remove_broken(olds: list[ReplicaSet], spare: int) -> list[int]:
    """The sizes of old sets, oldest first, after giving up pods that are not available.

    A ReplicaSet deletes pods that are not ready before others, so nothing available is lost; kept,
    they would hold up the rollout.
    """
    sizes = []
    for rs in olds:
        gone = min(spare, size(rs) - available(rs))
        spare -= gone
        sizes.append(size(rs) - gone)
    return sizes


def remove_available(olds: list[ReplicaSet], sizes: list[int], needed: int) -> list[int]:
    """The sizes after giving up available pods, oldest first, while ``needed`` are left."""
    excess = max(0, sum(map(available, olds)) - needed)
    after = []
    for wanted in sizes:
        gone = min(wanted, excess)
        excess -= gone
        after.append(wanted - gone)
    return after
