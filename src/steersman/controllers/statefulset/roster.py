"""The roster: the pods a StatefulSet has, by ordinal, and those it has no more use for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api import pods
from steersman.api.kinds import Pod
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.statefulset.identity import ordinal_of, ordinals


class Roster(msgspec.Struct, frozen=True):
    """The pods of one instant. An ordinal that nobody has is to be filled."""

    set: StatefulSet
    members: dict[int, Pod]
    """The pods that are to be there, by ordinal."""
    condemned: tuple[Pod, ...]
    """The pods past the ordinals of the set, highest first: so they go."""
    now: datetime

    @property
    def ordinals(self) -> range:
        return ordinals(self.set)

    @property
    def everybody(self) -> list[Pod]:
        return [*self.members.values(), *self.condemned]

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for long enough."""
        return pods.is_available(pod, self.set.spec.minReadySeconds, self.now)

    def serves(self, pod: Pod) -> bool:
        """Whether a pod is available and is to stay so."""
        return pod.metadata.deletionTimestamp is None and self.is_available(pod)

    @property
    def unavailable(self) -> int:
        """How many of the pods that are to be there are missing or do not serve."""
        return len(self.ordinals) - sum(map(self.serves, self.members.values()))

    def first_unavailable(self) -> Pod | None:
        """The pod that has to be waited for, or may be given up first: the lowest ordinal's."""
        order = (*self.members.values(), *reversed(self.condemned))
        return next((pod for pod in order if not self.serves(pod)), None)


def roster(set_: StatefulSet, owned: Iterable[Pod], now: datetime) -> Roster:
    """The roster of what a set owns. Pods without an ordinal are nobody's business."""
    wanted = ordinals(set_)
    members: dict[int, Pod] = {}
    condemned: list[Pod] = []
    numbered = sorted((ordinal_of(pod.metadata.name), pod.metadata.name, pod) for pod in owned)
    for ordinal, _, pod in numbered:
        if ordinal in wanted:
            members[ordinal] = pod
        elif ordinal >= 0:
            condemned.append(pod)
    return Roster(set_, members, tuple(reversed(condemned)), now)
