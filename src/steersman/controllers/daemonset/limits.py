"""How many nodes a rollout may do without at a time, or have two pods on."""

from __future__ import annotations

import msgspec

from steersman.api.intstr import scaled
from steersman.api.kinds import RollingUpdate
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.intent.verdict import InvalidSpec


class Limits(msgspec.Struct, frozen=True):
    surge: int
    """How many nodes may have a new pod beside an old one that serves."""
    unavailable: int
    """How many nodes may do without a pod that serves."""

    @staticmethod
    def of(daemonset: DaemonSet, desired: int) -> Limits:
        """The limits where so many nodes are to have a pod. Raises `InvalidSpec` where they cannot be told."""
        rolling = _rolling(daemonset)
        surge, unavailable = _surge(rolling, desired), 0
        if rolling is not None:
            try:
                unavailable = scaled(rolling.maxUnavailable, desired, round_up=True)
            except ValueError as error:
                raise InvalidSpec(f"invalid value for MaxUnavailable: {error}") from None
        if desired > 0 and surge == 0 and unavailable == 0:
            unavailable = 1  # with neither nothing would ever roll
        return Limits(surge, unavailable)


def allows_surge(daemonset: DaemonSet) -> bool:
    """Whether a node may have two pods for a while."""
    try:
        return _surge(_rolling(daemonset), 1) > 0
    except InvalidSpec:
        return False


def _rolling(daemonset: DaemonSet) -> RollingUpdate | None:
    strategy = daemonset.spec.updateStrategy
    return strategy.rollingUpdate if strategy.type == "RollingUpdate" else None


def _surge(rolling: RollingUpdate | None, desired: int) -> int:
    if rolling is None or rolling.maxSurge is None:
        return 0
    try:
        return scaled(rolling.maxSurge, desired, round_up=True)
    except ValueError as error:
        raise InvalidSpec(f"invalid value for MaxSurge: {error}") from None
