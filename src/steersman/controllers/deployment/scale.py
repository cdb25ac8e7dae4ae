"""Scaling outside of a rollout step: when ``spec.replicas`` changed, and when the Deployment is paused.

Scaling only the new ReplicaSet up, or only the old ones down, would advance a rollout that may be a bad one; so each
ReplicaSet is scaled in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from steersman.api.kinds import Deployment, ReplicaSet
from steersman.controllers.deployment.replicasets import (
    UNLIMITED,
    Limits,
    ReplicaSets,
    age,
    annotated,
    desired,
    is_rolling_update,
    size,
)

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
"""The annotation with the Deployment's ``spec.replicas`` when the ReplicaSet was sized. Where it differs from the
present value, the Deployment is being scaled."""
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""The annotation with the Deployment's ``replicas + maxSurge`` at that time: the base of a ReplicaSet's proportion."""


def with_replicas_annotations(rs: ReplicaSet, limits: Limits) -> ReplicaSet:
    """The ReplicaSet annotated with the Deployment's present size."""
    return annotated(rs, replicas_annotations(limits))


def replicas_annotations(limits: Limits) -> dict[str, str]:
    return {DESIRED_REPLICAS: str(limits.replicas), MAX_REPLICAS: str(limits.max_total)}


def resized(rs: ReplicaSet, replicas: int, limits: Limits) -> ReplicaSet:
    """The ReplicaSet with another size and its annotations; the same object where it has that size."""
    if size(rs) == replicas:
        return rs
    return with_replicas_annotations(replace(rs, spec=replace(rs.spec, replicas=replicas)), limits)


def replicas_annotation(rs: ReplicaSet, annotation: str) -> int | None:
    """The number in an annotation of a ReplicaSet; None where it is missing or invalid."""
    text = rs.metadata.annotations.get(annotation, "")
    if not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= UNLIMITED else None


def is_scaling_event(sets: ReplicaSets) -> bool:
    """Whether ``spec.replicas`` changed since the ReplicaSets were sized."""
    replicas = desired(sets.deployment)
    active = sets.active
    if len(active) > 1 and not is_rolling_update(sets.deployment):
        # differs: Recreate has no proportions to keep, so its rollout sets all sizes. Upstream takes this
        # for a scaling event and then does nothing about it, for ever.
        return False
    return any(replicas_annotation(rs, DESIRED_REPLICAS) not in (None, replicas) for rs in active)


def scale(sets: ReplicaSets, limits: Limits) -> ReplicaSets:
    """The ReplicaSets scaled to the desired number of pods, without advancing the rollout."""
    active = sets.active
    if len(active) <= 1:
        only = next(iter(active), None) or latest(sets)
        if only is None:
            return sets
        sized = resized(only, limits.replicas, limits)
        if active and replicas_annotation(only, DESIRED_REPLICAS) not in (None, limits.replicas):
            # differs: upstream leaves an outdated annotation on a ReplicaSet that happens to have the right
            # size, and so takes the Deployment for one that is being scaled, for ever.
            sized = with_replicas_annotations(sized, limits)
        return sets.updated({only.metadata.name: sized})
    if is_saturated(sets.new, limits):
        # Other ReplicaSets have pods although the new one has all of them: they were adopted.
        return sets.updated({rs.metadata.name: resized(rs, 0, limits) for rs in sets.old})
    if is_rolling_update(sets.deployment):
        return sets.updated(
            {
                rs.metadata.name: with_replicas_annotations(resized(rs, replicas, limits), limits)
                for rs, replicas in proportional_sizes(sets.deployment, active, limits)
            }
        )
    return sets


def latest(sets: ReplicaSets) -> ReplicaSet | None:
    """The new ReplicaSet, or the youngest of the old ones."""
    return sets.new or (sets.old[-1] if sets.old else None)


def is_saturated(new: ReplicaSet | None, limits: Limits) -> bool:
    """Whether the new ReplicaSet has all pods, all available, and was sized for that."""
    return new is not None and (
        size(new)
        == replicas_annotation(new, DESIRED_REPLICAS)
        == new.status.availableReplicas
        == limits.replicas
    )


def proportional_sizes(
    deployment: Deployment, active: Iterable[ReplicaSet], limits: Limits
) -> list[tuple[ReplicaSet, int]]:
    """The size of each active ReplicaSet when the Deployment is scaled to ``limits.max_total``.

    The remainder of rounding goes to the largest. Among equals the youngest is scaled up first, and the oldest down.
    """
    sets = list(active)
    total = limits.max_total if limits.replicas > 0 else 0
    change = total - sum(map(size, sets))
    # Sorted twice, for both orders at once: by age, and then, keeping that, by size.
    sets.sort(key=age, reverse=change > 0)
    sets.sort(key=size, reverse=True)
    sizes, left = [], change
    for rs in sets:
        share = proportion(deployment, rs, limits) if left else 0
        # differs: invalid annotations never scale a ReplicaSet up while the Deployment is scaled down.
        given = min(share, left) if change > 0 else min(0, max(share, left))
        sizes.append(size(rs) + given)
        left -= given
    # differs: upstream takes the whole remainder from the largest, and drops what it does not have.
    for index, replicas in enumerate(sizes):
        sizes[index] = max(0, replicas + left)
        left -= sizes[index] - replicas
    return list(zip(sets, sizes, strict=True))


def proportion(deployment: Deployment, rs: ReplicaSet, limits: Limits) -> int:
    """The change of a ReplicaSet's size that keeps its proportion of the Deployment."""
    if limits.replicas == 0:
        return -size(rs)
    # Where the annotation is missing or invalid the status has about the right number.
    before = replicas_annotation(rs, MAX_REPLICAS) or deployment.status.replicas
    if before <= 0:
        return 0
    return (2 * size(rs) * limits.max_total + before) // (2 * before) - size(rs)
