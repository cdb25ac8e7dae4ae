"""Syncs nodes: which daemon pods to create and delete so that each node has one, and the writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.errors import ApiError
from steersman.api.intstr import scaled
from steersman.api.kinds import Pod, RollingUpdate
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.pods import is_available, is_ready, is_terminal
from steersman.controllers.daemonset.backoff import ZERO, Failures, remaining
from steersman.controllers.daemonset.nodes import NodePods
from steersman.controllers.daemonset.template import PodFactory, target_node
from steersman.controllers.shared.history import REVISION
from steersman.controllers.shared.pod_control import PodWrites, create_pods, delete_pods
from steersman.intent.actions import Emit
from steersman.intent.verdict import InvalidSpec

BURST = 250
"""The most pods created, and the most deleted, in one round; upstream's BurstReplicas."""


class PodChanges(msgspec.Struct, frozen=True):
    """The pods to create and to delete."""

    create: tuple[str, ...] = ()
    """The nodes that get a pod."""
    finished: tuple[Pod, ...] = ()
    """Pods to delete because they succeeded or failed."""
    delete: tuple[Pod, ...] = ()
    """Pods to delete for any other reason."""

    def __bool__(self) -> bool:
        return bool(self.create or self.finished or self.delete)

    def without(self, nodes: Collection[str]) -> PodChanges:
        """The changes of other nodes than these."""
        if not nodes:
            return self
        return PodChanges(
            tuple(node for node in self.create if node not in nodes),
            tuple(pod for pod in self.finished if target_node(pod) not in nodes),
            tuple(pod for pod in self.delete if target_node(pod) not in nodes),
        )

    def limited(self, count: int) -> PodChanges:
        """At most this many creations, and as many deletions."""
        finished = self.finished[:count]
        return PodChanges(self.create[:count], finished, self.delete[: count - len(finished)])


# -- limits -----------------------------------------------------------------------------------


class Limits(msgspec.Struct, frozen=True):
    """The limits of a rolling update, in nodes."""

    max_surge: int
    """The most nodes with a new pod beside an available old one."""
    max_unavailable: int
    """The most nodes without an available pod."""

    @staticmethod
    def of(daemonset: DaemonSet, desired: int) -> Limits:
        """The limits where ``desired`` nodes should run a pod. Raises `InvalidSpec` where they are invalid."""
        rolling = _rolling_update(daemonset)
        surge, unavailable = _max_surge(rolling, desired), 0
        if rolling is not None:
            try:
                unavailable = scaled(rolling.maxUnavailable, desired, round_up=True)
            except ValueError as error:
                raise InvalidSpec(f"invalid value for MaxUnavailable: {error}") from None
        if desired > 0 and surge == 0 and unavailable == 0:
            unavailable = 1  # with neither the update could not take a step
        return Limits(surge, unavailable)


def allows_surge(daemonset: DaemonSet) -> bool:
    """Whether a node may have an old and a new pod at the same time."""
    try:
        return _max_surge(_rolling_update(daemonset), 1) > 0
    except InvalidSpec:
        return False


def _rolling_update(daemonset: DaemonSet) -> RollingUpdate | None:
    strategy = daemonset.spec.updateStrategy
    return strategy.rollingUpdate if strategy.type == "RollingUpdate" else None


def _max_surge(rolling: RollingUpdate | None, desired: int) -> int:
    if rolling is None or rolling.maxSurge is None:
        return 0
    try:
        return scaled(rolling.maxSurge, desired, round_up=True)
    except ValueError as error:
        raise InvalidSpec(f"invalid value for MaxSurge: {error}") from None


# -- manage -----------------------------------------------------------------------------------


class Managed(msgspec.Struct, frozen=True):
    """The changes, and the time until a failed pod in backoff is due."""

    changes: PodChanges
    wait: timedelta | None = None


def manage(
    daemonset: DaemonSet,
    nodes: Iterable[NodePods],
    hash_: str,
    failures: Failures,
    now: datetime,
) -> Managed:
    """The pods to create and delete so that each node has what it should, whichever template a pod is of."""
    surge = allows_surge(daemonset)
    create: list[str] = []
    finished: list[Pod] = []
    delete: list[Pod] = []
    waits: list[timedelta] = []
    for node in nodes:
        if not node.exists:
            # No other controller deletes a pending pod for a node that is gone.
            delete += [pod for pod in node.not_deleted if not pod.spec.nodeName]
            continue
        if not node.fit.should_continue:
            delete += node.not_deleted
            continue
        if len(node.pods) == 1 == len(node.not_deleted) and not is_terminal(node.pods[0]):
            continue  # the usual case
        running: list[Pod] = []
        wait = ZERO
        for pod in node.not_deleted:
            match pod.status.phase:
                case "Failed" if left := remaining(pod, failures, node.node, now):
                    wait = left
                case "Failed" | "Succeeded":
                    finished.append(pod)
                case _:
                    running.append(pod)
        if wait:
            # differs: upstream creates the next pod all the same where it may surge, and failed pods pile up.
            waits.append(wait)
        elif node.fit.should_run and not (running if surge else node.pods):
            create.append(node.node)
        if len(running) > 1:
            delete += _surplus(daemonset, running, hash_, now) if surge else running[1:]
    changes = PodChanges(tuple(create), tuple(finished), tuple(delete))
    return Managed(changes, min(waits, default=None))


def _surplus(daemonset: DaemonSet, running: list[Pod], hash_: str, now: datetime) -> list[Pod]:
    """All but the oldest new pod and the oldest old pod of a node; the old one too, once it is not ready or the new
    one is available."""
    new = [pod for pod in running if pod.metadata.labels.get(REVISION) == hash_]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION) != hash_]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], daemonset.spec.minReadySeconds, now)):
        surplus.append(old[0])
    return surplus


# -- writes -----------------------------------------------------------------------------------


class SyncResult(msgspec.Struct, frozen=True):
    """The result of creating and deleting pods."""

    done: int = 0
    """The number of pods created or deleted."""
    failure: ApiError | None = None
    complete: bool = True
    """Nothing was left for another round."""


async def sync_nodes(daemonset: DaemonSet, changes: PodChanges, hash_: str) -> SyncResult:
    """Creates and deletes pods, at most `BURST` of each; all writes are tried."""
    now = changes.limited(BURST)
    created = deleted = PodWrites()
    if now.create:
        factory = PodFactory.of(daemonset, hash_)
        created = await create_pods(daemonset, map(factory.pod_for, now.create))
    for pod in now.finished:
        await _emit_finished(daemonset, pod)
    if victims := (*now.finished, *now.delete):
        deleted = await delete_pods(daemonset, victims)
    done = len(created.done) + len(deleted.done)
    return SyncResult(done, created.failure or deleted.failure, now == changes)


async def _emit_finished(daemonset: DaemonSet, pod: Pod) -> None:
    """Records why a pod that succeeded or failed is deleted."""
    where = f"daemon pod {pod.key} on node {target_node(pod)}"
    if pod.status.phase == "Failed":
        message = f"Found failed {where}, will try to kill it"
        await Emit(daemonset, "Warning", "FailedDaemonPod", message)
    else:
        message = f"Found succeeded {where}, will try to delete it"
        await Emit(daemonset, "Normal", "SucceededDaemonPod", message)
