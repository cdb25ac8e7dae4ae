"""The numbers a Deployment's spec sets: how many pods at most, how many available at least, how long."""

from __future__ import annotations

import msgspec

from steersman.api.intstr import scaled
from steersman.api.kinds import Deployment, RollingUpdate
from steersman.controllers.deployment.replicasets import desired

UNLIMITED = 2**31 - 1
"""How a spec says "for ever" where a missing value would be defaulted."""


def rolls(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


class Limits(msgspec.Struct, frozen=True):
    """How far a rollout may stray from the wanted number of pods."""

    replicas: int
    surge: int = 0
    """How many more there may be."""
    unavailable: int = 0
    """How many fewer may be available."""

    @staticmethod
    def of(deployment: Deployment) -> Limits:
        """Resolve numbers and per cents; a surge is rounded up, what may be missing down.

        When both come to nothing one pod may be missing: no rollout could ever take a step
        otherwise, and a surge might be refused by a quota.
        """
        replicas = desired(deployment)
        if not rolls(deployment):
            return Limits(replicas)
        strategy = deployment.spec.strategy.rollingUpdate or RollingUpdate()
        surge = scaled(strategy.maxSurge or 0, replicas, round_up=True)
        unavailable = scaled(strategy.maxUnavailable or 0, replicas, round_up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return Limits(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        """How many pods there may be in all."""
        return self.replicas + self.surge

    @property
    def fewest(self) -> int:
        """How many pods must stay available."""
        return self.replicas - self.unavailable


def deadline(deployment: Deployment) -> int | None:
    """After how many seconds without progress a rollout counts as failed; None: never."""
    seconds = deployment.spec.progressDeadlineSeconds
    return None if seconds == UNLIMITED else seconds


def history(deployment: Deployment) -> int | None:
    """How many old ReplicaSets to keep; None: all."""
    limit = deployment.spec.revisionHistoryLimit
    return None if limit == UNLIMITED else limit
