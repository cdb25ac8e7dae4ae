"""A Deployment and its ReplicaSets: which is the new one, how large each is, in which order.

A step of a rollout is a family before and a family after; what has to be written is the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from steersman.api import pod_templates
from steersman.api.kinds import Deployment, Object, ReplicaSet
from steersman.intent.verdict import Nonsense

LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""When what has no date happened."""


def desired(deployment: Deployment) -> int:
    """How many pods are asked for."""
    return _written(deployment, deployment.spec.replicas)


def size(rs: ReplicaSet) -> int:
    """How many pods a ReplicaSet is to have."""
    return _written(rs, rs.spec.replicas)


def _written(obj: Object, replicas: int | None) -> int:
    # The server always writes the number down. Where it is missing the object could not be read,
    # and a guess might cost pods.
    if replicas is None:
        raise Nonsense(f"spec.replicas of {obj.key} is missing")
    return replicas


def available(rs: ReplicaSet) -> int:
    """How many of the pods a ReplicaSet is to have are available.

    differs: a set that is being scaled down still shows available pods that are about to go;
    they are not counted. Upstream counts them, and gives up the round when it notices.
    """
    return min(rs.status.availableReplicas, size(rs))


def age(rs: ReplicaSet) -> tuple[datetime, str]:
    """Sorts the oldest first, by name where the server made two in the same second."""
    return rs.metadata.creationTimestamp or LONG_AGO, rs.metadata.name


class Family(msgspec.Struct, frozen=True):
    """A Deployment with the ReplicaSets it controls."""

    deployment: Deployment
    new: ReplicaSet | None
    """The one whose template is the Deployment's."""
    olds: tuple[ReplicaSet, ...]
    """All others, the oldest first."""

    @staticmethod
    def of(deployment: Deployment, sets: Iterable[ReplicaSet]) -> Family:
        """Find the new one. Where two have the Deployment's template the older one is it."""
        ordered = sorted(sets, key=age)
        template = deployment.spec.template
        new = next((rs for rs in ordered if pod_templates.same(rs.spec.template, template)), None)
        return Family(deployment, new, tuple(rs for rs in ordered if rs is not new))

    def __iter__(self) -> Iterator[ReplicaSet]:
        """Every ReplicaSet, the new one last."""
        yield from self.olds
        if self.new is not None:
            yield self.new

    @property
    def active(self) -> list[ReplicaSet]:
        """Those that are to have pods."""
        return [rs for rs in self if size(rs) > 0]

    @property
    def total(self) -> int:
        """How many pods all of them are to have."""
        return sum(map(size, self))

    def having(self, sets: Mapping[str, ReplicaSet]) -> Family:
        """The same family with these members, by name, in place of the ones they were."""
        if not sets:
            return self
        new = self.new and sets.get(self.new.metadata.name, self.new)
        return Family(self.deployment, new, tuple(sets.get(rs.metadata.name, rs) for rs in self.olds))

    def welcome(self, new: ReplicaSet) -> Family:
        """The same family with a new member that was missing."""
        return Family(self.deployment, new, self.olds)


def annotated(rs: ReplicaSet, annotations: Mapping[str, str]) -> ReplicaSet:
    """The same set with these annotations; itself when it has them all."""
    has = rs.metadata.annotations
    if all(has.get(name) == value for name, value in annotations.items()):
        return rs
    return replace(rs, metadata=replace(rs.metadata, annotations={**has, **annotations}))
