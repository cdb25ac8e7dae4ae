"""Scaling without a rollout: when the wanted number changed, and when the Deployment is paused.

Growing only the new ReplicaSet, or shrinking only the old ones, would hasten a rollout that may be
a bad one; so each gets its share.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from steersman.api.kinds import Deployment, ReplicaSet
from steersman.controllers.deployment.limits import UNLIMITED, Limits, rolls
from steersman.controllers.deployment.replicasets import Family, age, annotated, desired, size

DESIRED = "deployment.kubernetes.io/desired-replicas"
"""How many pods the whole Deployment wanted when this ReplicaSet was sized: where it differs from
what is wanted now, the Deployment is being scaled."""
MAX = "deployment.kubernetes.io/max-replicas"
"""How many pods the whole Deployment might have had: what a ReplicaSet's share is a share of."""


def marked(rs: ReplicaSet, limits: Limits) -> ReplicaSet:
    """The set with a note of what the Deployment wants now."""
    return annotated(rs, marks(limits))


def marks(limits: Limits) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAX: str(limits.most)}


def resized(rs: ReplicaSet, replicas: int, limits: Limits) -> ReplicaSet:
    """The set with another size and a note of it; itself when it has that size."""
    if size(rs) == replicas:
        return rs
    return marked(replace(rs, spec=replace(rs.spec, replicas=replicas)), limits)


def noted(rs: ReplicaSet, mark: str) -> int | None:
    """A number noted on a ReplicaSet; None where there is none that makes sense."""
    text = rs.metadata.annotations.get(mark, "")
    if not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= UNLIMITED else None


def rescaled(family: Family) -> bool:
    """Whether the wanted number of pods changed since the ReplicaSets were sized."""
    wanted = desired(family.deployment)
    active = family.active
    if len(active) > 1 and not rolls(family.deployment):
        # differs: Recreate has no shares to keep, so its rollout sets all sizes. Upstream takes this
        # for a scaling event and then does nothing about it, for ever.
        return False
    return any(noted(rs, DESIRED) not in (None, wanted) for rs in active)


def scaled(family: Family, limits: Limits) -> Family:
    """The family with the wanted number of pods, the rollout as far as it was."""
    active = family.active
    if len(active) <= 1:
        only = next(iter(active), None) or latest(family)
        if only is None:
            return family
        sized = resized(only, limits.replicas, limits)
        if active and noted(only, DESIRED) not in (None, limits.replicas):
            # differs: upstream leaves an outdated note on a set that happens to have the right
            # size, and so takes the Deployment for one that is being scaled, for ever.
            sized = marked(sized, limits)
        return family.having({only.metadata.name: sized})
    if saturated(family.new, limits):
        # Other ReplicaSets have pods although the new one has all of them: they were adopted.
        return family.having({rs.metadata.name: resized(rs, 0, limits) for rs in family.olds})
    if rolls(family.deployment):
        return family.having(
            {
                rs.metadata.name: marked(resized(rs, wanted, limits), limits)
                for rs, wanted in shares(family.deployment, active, limits)
            }
        )
    return family


def latest(family: Family) -> ReplicaSet | None:
    """The new ReplicaSet, or the youngest of the old ones."""
    return family.new or (family.olds[-1] if family.olds else None)


def saturated(new: ReplicaSet | None, limits: Limits) -> bool:
    """Whether the new ReplicaSet has all pods, all available, and was sized for that."""
    return new is not None and (
        size(new) == noted(new, DESIRED) == new.status.availableReplicas == limits.replicas
    )


def shares(
    deployment: Deployment, active: Iterable[ReplicaSet], limits: Limits
) -> list[tuple[ReplicaSet, int]]:
    """What size each active ReplicaSet gets when the whole is to have its full size.

    What is left over by rounding goes to the largest. Among equals the youngest gains first, and
    the oldest loses first.
    """
    sets = list(active)
    whole = limits.most if limits.replicas > 0 else 0
    change = whole - sum(map(size, sets))
    # Sorted twice, for both orders at once: by age, and then, keeping that, by size.
    sets.sort(key=age, reverse=change > 0)
    sets.sort(key=size, reverse=True)
    sizes, left = [], change
    for rs in sets:
        share = part(deployment, rs, limits) if left else 0
        # differs: notes that make no sense never make a set grow while the whole shrinks.
        given = min(share, left) if change > 0 else min(0, max(share, left))
        sizes.append(size(rs) + given)
        left -= given
    # differs: upstream asks all that is left of the largest, and gives up what it does not have.
    for index, wanted in enumerate(sizes):
        sizes[index] = max(0, wanted + left)
        left -= sizes[index] - wanted
    return list(zip(sets, sizes, strict=True))


def part(deployment: Deployment, rs: ReplicaSet, limits: Limits) -> int:
    """By how much a ReplicaSet would have to change to keep its share of the whole."""
    if limits.replicas == 0:
        return -size(rs)
    # A missing or broken note is no reason to stop: the status says how many there are about.
    before = noted(rs, MAX) or deployment.status.replicas
    if before <= 0:
        return 0
    return (2 * size(rs) * limits.most + before) // (2 * before) - size(rs)
