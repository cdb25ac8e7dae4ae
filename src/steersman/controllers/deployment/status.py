"""What a Deployment's status says about its ReplicaSets: the counts, and whether enough are available."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from steersman.api.conditions import put
from steersman.api.kinds import Condition, DeploymentStatus, ReplicaSet
from steersman.api.meta import truncate
from steersman.controllers.deployment.limits import Limits
from steersman.controllers.deployment.replicasets import Family

AVAILABLE = "Available"


def counted(
    family: Family, limits: Limits, shown: tuple[Condition, ...], now: datetime, *, going: bool = True
) -> DeploymentStatus:
    """The status, with the given conditions and the one about availability; ``going``: those that terminate, too."""
    available = sum(rs.status.availableReplicas for rs in family)
    return replace(
        family.deployment.status,
        observedGeneration=family.deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in family),
        updatedReplicas=family.new.status.replicas if family.new is not None else 0,
        readyReplicas=sum(rs.status.readyReplicas for rs in family),
        availableReplicas=available,
        # While a set shrinks more are available than are wanted: then none is missing.
        unavailableReplicas=max(0, family.total - available),
        terminatingReplicas=terminating(family) if going else None,
        conditions=put(shown, availability(available >= limits.fewest, now)),
    )


def same_counts(one: DeploymentStatus, other: DeploymentStatus) -> bool:
    """Whether two statuses count the same pods, whatever else they say."""
    return (
        one.replicas == other.replicas
        and one.updatedReplicas == other.updatedReplicas
        and one.readyReplicas == other.readyReplicas
        and one.availableReplicas == other.availableReplicas
    )


def stated(type_: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    """A condition that came about now."""
    at = truncate(now)
    return Condition(
        type=type_, status=status, reason=reason, message=message, lastUpdateTime=at, lastTransitionTime=at
    )


def availability(enough: bool, now: datetime) -> Condition:
    if enough:
        return stated(
            AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now
        )
    return stated(
        AVAILABLE,
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
        now,
    )


def terminating(sets: Iterable[ReplicaSet]) -> int | None:
    """How many pods of all sets are going away; None while a set has not said.

    A set nobody has looked at yet has no pods, so it need not say.
    """
    total = 0
    for rs in sets:
        if rs.status.terminatingReplicas is not None:
            total += rs.status.terminatingReplicas
        elif rs.status.observedGeneration != 0:
            return None
    return total
