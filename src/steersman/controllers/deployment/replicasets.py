"""A Deployment's ReplicaSets, and the limits its spec sets for a rollout.

A step of a rollout maps one `ReplicaSets` value to another; the difference has to be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from steersman.api import pod_templates
from steersman.api.intstr import scaled
from steersman.api.kinds import Deployment, Object, ReplicaSet, RollingUpdate
from steersman.intent.verdict import InvalidSpec

LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""Stands for a missing timestamp."""

UNLIMITED = 2**31 - 1
"""The value that means "no limit" in a spec, where a missing value would be defaulted."""


# -- ReplicaSets ------------------------------------------------------------------------------


def desired(deployment: Deployment) -> int:
    """The number of pods a Deployment asks for."""
    return _replicas(deployment, deployment.spec.replicas)


def size(rs: ReplicaSet) -> int:
    """The number of pods a ReplicaSet asks for."""
    return _replicas(rs, rs.spec.replicas)


def _replicas(obj: Object, replicas: int | None) -> int:
    # The server always sets it. Where it is missing the object could not be decoded, and a guess could cost pods.
    if replicas is None:
        raise InvalidSpec(f"spec.replicas of {obj.key} is missing")
    return replicas


def available(rs: ReplicaSet) -> int:
    """The available pods of a ReplicaSet, at most its size.

    differs: the status of a ReplicaSet that is being scaled down still has available pods that are about to be
    deleted; they are not counted. Upstream counts them, and gives up the round when it notices.
    """
    return min(rs.status.availableReplicas, size(rs))


def age(rs: ReplicaSet) -> tuple[datetime, str]:
    """The sort key for oldest first, by name where two were created in the same second."""
    return rs.metadata.creationTimestamp or LONG_AGO, rs.metadata.name


def annotated(rs: ReplicaSet, annotations: Mapping[str, str]) -> ReplicaSet:
    """The ReplicaSet with these annotations; the same object where it has them all."""
    existing = rs.metadata.annotations
    if all(existing.get(name) == value for name, value in annotations.items()):
        return rs
    return replace(rs, metadata=replace(rs.metadata, annotations={**existing, **annotations}))


class ReplicaSets(msgspec.Struct, frozen=True):
    """A Deployment with the ReplicaSets it controls."""

    deployment: Deployment
    new: ReplicaSet | None
    """The ReplicaSet with the Deployment's pod template."""
    old: tuple[ReplicaSet, ...]
    """All others, oldest first."""

    @staticmethod
    def of(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSets:
        """Finds the new ReplicaSet. Where two have the Deployment's template the older one is it."""
        ordered = sorted(sets, key=age)
        template = deployment.spec.template
        new = next((rs for rs in ordered if pod_templates.same(rs.spec.template, template)), None)
        return ReplicaSets(deployment, new, tuple(rs for rs in ordered if rs is not new))

    def __iter__(self) -> Iterator[ReplicaSet]:
        """Every ReplicaSet, the new one last."""
        yield from self.old
        if self.new is not None:
            yield self.new

    @property
    def active(self) -> list[ReplicaSet]:
        """The ReplicaSets with a size above 0."""
        return [rs for rs in self if size(rs) > 0]

    @property
    def total_size(self) -> int:
        """The sum of all sizes."""
        return sum(map(size, self))

    def updated(self, sets: Mapping[str, ReplicaSet]) -> ReplicaSets:
        """The same with these ReplicaSets, by name, in place of the ones they were."""
        if not sets:
            return self
        new = self.new and sets.get(self.new.metadata.name, self.new)
        return ReplicaSets(self.deployment, new, tuple(sets.get(rs.metadata.name, rs) for rs in self.old))

    def with_new(self, new: ReplicaSet) -> ReplicaSets:
        """The same with a new ReplicaSet that was missing."""
        return ReplicaSets(self.deployment, new, self.old)


# -- limits -----------------------------------------------------------------------------------


def is_rolling_update(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


class Limits(msgspec.Struct, frozen=True):
    """How far a rollout may depart from the desired number of pods."""

    replicas: int
    max_surge: int = 0
    max_unavailable: int = 0

    @staticmethod
    def of(deployment: Deployment) -> Limits:
        """Resolves numbers and percentages; ``maxSurge`` is rounded up, ``maxUnavailable`` down.

        When both come to 0 one pod may be unavailable: no rollout could take a step otherwise, and a surge might
        exceed a quota.
        """
        replicas = desired(deployment)
        if not is_rolling_update(deployment):
            return Limits(replicas)
        strategy = deployment.spec.strategy.rollingUpdate or RollingUpdate()
        surge = scaled(strategy.maxSurge or 0, replicas, round_up=True)
        unavailable = scaled(strategy.maxUnavailable or 0, replicas, round_up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return Limits(replicas, surge, min(unavailable, replicas))

    @property
    def max_total(self) -> int:
        """The most pods there may be in all."""
        return self.replicas + self.max_surge

    @property
    def min_available(self) -> int:
        """The number of pods that must stay available."""
        return self.replicas - self.max_unavailable


def progress_deadline(deployment: Deployment) -> int | None:
    """The seconds without progress after which a rollout has failed; None for no deadline."""
    seconds = deployment.spec.progressDeadlineSeconds
    return None if seconds == UNLIMITED else seconds


def history_limit(deployment: Deployment) -> int | None:
    """The number of old ReplicaSets to keep; None for all."""
    limit = deployment.spec.revisionHistoryLimit
    return None if limit == UNLIMITED else limit
