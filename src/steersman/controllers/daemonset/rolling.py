"""RollingUpdate: which old daemon pods to delete next, or which nodes get a new pod beside the old one.

Missing and surplus pods of a node are left to `sync.manage`; here such nodes only count against the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.pods import is_available
from steersman.controllers.daemonset.nodes import NodePods
from steersman.controllers.daemonset.sync import Limits, PodChanges
from steersman.controllers.daemonset.template import generation_of, is_updated


class NodeRollout(msgspec.Struct, frozen=True):
    """A node's state in a rollout. Terminating pods do not count, so that the rollout goes on where nodes are down."""

    node: NodePods
    new: Pod | None
    old: Pod | None
    new_available: bool
    old_available: bool
    duplicated: bool
    """The node has two new pods or two old ones."""


def rollout_of(
    daemonset: DaemonSet, nodes: Sequence[NodePods], hash_: str, now: datetime
) -> list[NodeRollout]:
    """The state of the nodes that should have a pod or have one."""
    generation, min_ready_seconds = generation_of(daemonset), daemonset.spec.minReadySeconds
    rollout = []
    for node in nodes:
        if not node.pods and not node.fit.should_run:
            continue
        new_pods: list[Pod] = []
        old_pods: list[Pod] = []
        for pod in node.not_deleted:
            (new_pods if is_updated(pod, hash_, generation) else old_pods).append(pod)
        new, old = next(iter(new_pods), None), next(iter(old_pods), None)
        rollout.append(
            NodeRollout(
                node,
                new,
                old,
                new is not None and is_available(new, min_ready_seconds, now),
                old is not None and is_available(old, min_ready_seconds, now),
                len(new_pods) > 1 or len(old_pods) > 1,
            )
        )
    return rollout


def rolling_update(daemonset: DaemonSet, nodes: Sequence[NodePods], hash_: str, now: datetime) -> PodChanges:
    """The next step of a RollingUpdate. Raises `InvalidSpec` where its limits are invalid."""
    desired = sum(node.fit.should_run for node in nodes)
    limits = Limits.of(daemonset, desired)
    generation = generation_of(daemonset)
    if all(is_updated(pod, hash_, generation) for node in nodes for pod in node.not_deleted):
        return PodChanges()
    rollout = rollout_of(daemonset, nodes, hash_, now)
    if limits.max_surge:
        return _surge(rollout, limits.max_surge, desired)
    return _delete_old(rollout, limits.max_unavailable)


def _delete_old(rollout: Sequence[NodeRollout], max_unavailable: int) -> PodChanges:
    """Deletes unavailable old pods at once, and available ones within ``maxUnavailable``."""
    unavailable = [node.old for node in rollout if _only_old(node) and not node.old_available]
    available = [node.old for node in rollout if _only_old(node) and node.old_available]
    updated = sum(not node.duplicated and node.old is None and node.new_available for node in rollout)
    missing = len(rollout) - updated - len(available)
    return PodChanges(
        delete=tuple(
            pod for pod in (*unavailable, *available[: max(max_unavailable - missing, 0)]) if pod is not None
        )
    )


def _surge(rollout: Sequence[NodeRollout], max_surge: int, desired: int) -> PodChanges:
    """Creates new pods beside unavailable old ones at once, and beside available ones within ``maxSurge``. Deletes an
    old pod when the new one is available.

    differs: a node that is gone counts as one that should not run the pod. Upstream fails the round until the pod
    garbage collector has deleted its pods.
    """
    unavailable = [node for node in rollout if _only_old(node) and not node.old_available]
    available = [node for node in rollout if _only_old(node) and node.old_available]
    both = [node for node in rollout if not node.duplicated and node.old is not None and node.new is not None]
    surging = sum(node.duplicated for node in rollout) + sum(not node.new_available for node in both)
    beside = [node.node.node for node in available if node.node.fit.should_run]
    create = [node.node.node for node in unavailable if node.node.fit.should_run]
    create += beside[: max(max_surge - surging, 0)]

    delete = [node.old for node in unavailable if not node.node.fit.should_run]
    delete += [node.old for node in both if node.new_available]
    # Where pods move to other nodes, available pods stay until as many are available there.
    total = sum(
        not node.duplicated and (node.old_available if node.old is not None else node.new_available)
        for node in rollout
    )
    moving = [node.old for node in available if not node.node.fit.should_run]
    delete += moving[: max(total - desired, 0)]
    return PodChanges(tuple(create), delete=tuple(pod for pod in delete if pod is not None))


def _only_old(node: NodeRollout) -> bool:
    return not node.duplicated and node.old is not None and node.new is None
