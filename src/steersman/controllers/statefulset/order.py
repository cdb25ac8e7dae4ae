"""Order: which pods of a StatefulSet may be created, deleted or updated next, and what that waits for.

With OrderedReady a set does one thing at a time. It creates pods by ascending ordinal, each when all before it are
available; it scales down from the highest ordinal, one by one, when all that stay are available; only then it
updates. With Parallel it creates and scales down at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice

import msgspec

from steersman.api import pods
from steersman.api.intstr import scaled
from steersman.api.kinds import Pod
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.statefulset.identity import ordinal_of, ordinals, pod_name, revision_of
from steersman.intent.verdict import InvalidSpec

BURST = 500
"""The most pods a Parallel set creates in one round."""


# -- pods by ordinal --------------------------------------------------------------------------


class PodsByOrdinal(msgspec.Struct, frozen=True):
    """The pods of a StatefulSet at one instant."""

    set: StatefulSet
    replicas: dict[int, Pod]
    """The pods within the set's ordinals."""
    condemned: tuple[Pod, ...]
    """The pods beyond the set's ordinals, highest first, in the order in which they are deleted."""
    now: datetime

    @property
    def ordinals(self) -> range:
        return ordinals(self.set)

    @property
    def all(self) -> list[Pod]:
        return [*self.replicas.values(), *self.condemned]

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for ``minReadySeconds``."""
        return pods.is_available(pod, self.set.spec.minReadySeconds, self.now)

    def is_healthy(self, pod: Pod) -> bool:
        """Whether a pod is available and not terminating."""
        return pod.metadata.deletionTimestamp is None and self.is_available(pod)

    @property
    def unavailable(self) -> int:
        """The number of replicas that are missing or not healthy."""
        return len(self.ordinals) - sum(map(self.is_healthy, self.replicas.values()))

    def first_unhealthy(self) -> Pod | None:
        """The unhealthy pod with the lowest ordinal: the one to wait for, or that may be deleted first."""
        ascending = (*self.replicas.values(), *reversed(self.condemned))
        return next((pod for pod in ascending if not self.is_healthy(pod)), None)


def group_by_ordinal(set_: StatefulSet, owned: Iterable[Pod], now: datetime) -> PodsByOrdinal:
    """Sorts the pods a set controls by ordinal. Pods without an ordinal are left out."""
    wanted = ordinals(set_)
    replicas: dict[int, Pod] = {}
    condemned: list[Pod] = []
    numbered = sorted((ordinal_of(pod.metadata.name), pod.metadata.name, pod) for pod in owned)
    for ordinal, _, pod in numbered:
        if ordinal in wanted:
            replicas[ordinal] = pod
        elif ordinal >= 0:
            condemned.append(pod)
    return PodsByOrdinal(set_, replicas, tuple(reversed(condemned)), now)


def is_ordered(set_: StatefulSet) -> bool:
    return set_.spec.podManagementPolicy != "Parallel"


# -- replicas ---------------------------------------------------------------------------------


class ReplicaStep(msgspec.Struct, frozen=True):
    """The next step for the replicas: the pods that a round may write, or the reason to wait."""

    update: tuple[Pod, ...] = ()
    """Pods whose identity, storage or claim owners do not match."""
    ensure_claims: tuple[Pod, ...] = ()
    """Pending pods, which may wait for their claims."""
    replace: tuple[Pod, ...] = ()
    """Pods that succeeded or failed: they are deleted and created anew."""
    create: tuple[int, ...] = ()
    """Ordinals without a pod."""
    waiting_for: str | None = None
    """The reason why the set waits before it does anything else; None where it does not wait."""


def replica_step(
    by_ordinal: PodsByOrdinal, mismatched: Callable[[Pod], bool], blocked: Callable[[int], bool]
) -> ReplicaStep:
    """The next step for the replicas.

    ``mismatched`` says whether a pod has to be updated, ``blocked`` whether an ordinal's pod cannot be created yet.
    """
    if is_ordered(by_ordinal.set):
        return _ordered_step(by_ordinal, mismatched, blocked)
    return _parallel_step(by_ordinal, mismatched, blocked)


def _ordered_step(
    by_ordinal: PodsByOrdinal, mismatched: Callable[[Pod], bool], blocked: Callable[[int], bool]
) -> ReplicaStep:
    update: list[Pod] = []
    for ordinal in by_ordinal.ordinals:
        pod = by_ordinal.replicas.get(ordinal)
        name = pod_name(by_ordinal.set, ordinal)
        if pod is None:
            if blocked(ordinal):
                return ReplicaStep(
                    tuple(update),
                    waiting_for=f"waiting for deletion of a PersistentVolumeClaim of pod {name}",
                )
            return ReplicaStep(tuple(update), create=(ordinal,), waiting_for=f"creating pod {name}")
        if pods.is_terminal(pod):
            deleted = pod.metadata.deletionTimestamp is not None
            return ReplicaStep(
                tuple(update),
                replace=() if deleted else (pod,),
                waiting_for=f"replacing finished pod {name}",
            )
        waiting_for = _unhealthy(by_ordinal, pod)
        if waiting_for is not None:
            pending = (pod,) if pod.status.phase == "Pending" else ()
            return ReplicaStep(tuple(update), pending, waiting_for=waiting_for)
        if mismatched(pod):
            update.append(pod)
    return ReplicaStep(tuple(update))


def _parallel_step(
    by_ordinal: PodsByOrdinal, mismatched: Callable[[Pod], bool], blocked: Callable[[int], bool]
) -> ReplicaStep:
    finished = [pod for pod in by_ordinal.replicas.values() if pods.is_terminal(pod)]
    others = [pod for pod in by_ordinal.replicas.values() if not pods.is_terminal(pod)]
    missing = (o for o in by_ordinal.ordinals if o not in by_ordinal.replicas and not blocked(o))
    return ReplicaStep(
        update=tuple(pod for pod in others if mismatched(pod)),
        ensure_claims=tuple(pod for pod in others if pod.status.phase == "Pending"),
        replace=tuple(pod for pod in finished if pod.metadata.deletionTimestamp is None),
        create=tuple(islice(missing, BURST)),
    )


def _unhealthy(by_ordinal: PodsByOrdinal, pod: Pod) -> str | None:
    """The reason why an ordered set waits for an unhealthy pod; None for a healthy one."""
    name = pod.metadata.name
    if pod.metadata.deletionTimestamp is not None:
        return f"waiting for deletion of pod {name}"
    if pod.status.phase != "Running" or not pods.is_ready(pod):
        return f"waiting for pod {name} to be Running and Ready"
    return None if by_ordinal.is_available(pod) else f"waiting for pod {name} to be available"


# -- scale down -------------------------------------------------------------------------------


class DeleteStep(msgspec.Struct, frozen=True):
    """The pods that may be deleted, and what the set waits for."""

    delete: tuple[Pod, ...] = ()
    waiting_for: str | None = None


def scale_down(by_ordinal: PodsByOrdinal) -> DeleteStep:
    """The condemned pods to delete next."""
    if not is_ordered(by_ordinal.set):
        return DeleteStep(
            tuple(pod for pod in by_ordinal.condemned if pod.metadata.deletionTimestamp is None)
        )
    if not by_ordinal.condemned:
        return DeleteStep()
    pod, unhealthy = by_ordinal.condemned[0], by_ordinal.first_unhealthy()
    name = pod.metadata.name
    if pod.metadata.deletionTimestamp is not None:
        return DeleteStep(waiting_for=f"waiting for deletion of pod {name}")
    # An unhealthy pod may be deleted if it is the first unhealthy one: it would block the set for ever.
    if _unhealthy(by_ordinal, pod) is not None and pod is not unhealthy:
        blocking = (unhealthy or pod).metadata.name
        return DeleteStep(waiting_for=f"scale-down waiting for pod {blocking} to be available")
    return DeleteStep((pod,), waiting_for=f"deleting pod {name}")


# -- rolling update ---------------------------------------------------------------------------


def partition(set_: StatefulSet) -> int:
    """The number of lowest ordinals that stay at the current revision."""
    rolling = set_.spec.updateStrategy.rollingUpdate
    return (rolling.partition or 0) if rolling is not None else 0


def max_unavailable(set_: StatefulSet) -> int:
    """The most pods that may be unavailable during an update, at least 1. Raises `InvalidSpec`."""
    rolling = set_.spec.updateStrategy.rollingUpdate
    value = rolling.maxUnavailable if rolling is not None else None
    try:
        return max(scaled(1 if value is None else value, set_.spec.replicas or 0, round_up=False), 1)
    except ValueError as error:
        raise InvalidSpec(f"spec.updateStrategy.rollingUpdate.maxUnavailable: {error}") from None


def rolling_update(by_ordinal: PodsByOrdinal, revision: str, *, use_max_unavailable: bool) -> DeleteStep:
    """The pods to delete so that they are created anew with the given revision, from the highest ordinal down.

    With ``use_max_unavailable``, as many as may be unavailable; else one, when all above it are available.
    """
    set_ = by_ordinal.set
    if set_.spec.updateStrategy.type == "OnDelete":
        return DeleteStep()
    if use_max_unavailable:
        room = max_unavailable(set_) - by_ordinal.unavailable
        return DeleteStep(tuple(islice(_outdated(by_ordinal, revision), max(room, 0))))
    for ordinal in _descending(by_ordinal):
        pod = by_ordinal.replicas.get(ordinal)
        if pod is not None and _is_outdated(pod, revision):
            return DeleteStep((pod,))
        if pod is None or not by_ordinal.is_healthy(pod):
            return DeleteStep(waiting_for=f"update waiting for pod {pod_name(set_, ordinal)} to be available")
    return DeleteStep()


def _descending(by_ordinal: PodsByOrdinal) -> range:
    """The ordinals from the partition on, highest first."""
    return by_ordinal.ordinals[partition(by_ordinal.set) :][::-1]


def _outdated(by_ordinal: PodsByOrdinal, revision: str) -> Iterator[Pod]:
    for ordinal in _descending(by_ordinal):
        pod = by_ordinal.replicas.get(ordinal)
        if pod is not None and _is_outdated(pod, revision):
            yield pod


def _is_outdated(pod: Pod, revision: str) -> bool:
    # A finished pod is replaced anyway.
    return (
        revision_of(pod) != revision and pod.metadata.deletionTimestamp is None and not pods.is_terminal(pod)
    )
