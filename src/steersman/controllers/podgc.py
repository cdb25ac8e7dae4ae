"""pod-garbage-collector-controller (a dialogue): force-deletes pods that no kubelet will delete.

There are three cases: orphaned pods, whose node is gone; terminating pods that were never scheduled or are on an
out-of-service node; and, beyond a threshold, the oldest terminated pods.

differs: upstream polls every 20 seconds; here each change is handled when it is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from steersman.api.conditions import is_condition_true
from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Key
from steersman.controllers.shared.indexes import by_node
from steersman.controllers.shared.pod_control import disruption_condition
from steersman.intent.actions import Action, Address, Batch, Delete, Done, Failed, Patch, PatchType, Read
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.metrics import Measure, Metric
from steersman.intent.settings import DEFAULTS
from steersman.intent.undecodable import is_decodable
from steersman.intent.verdict import Rest, Verdict

THRESHOLD = Flag(
    "terminated-pod-gc-threshold",
    12500,
    "The number of terminated pods that may exist before the oldest are deleted; 0 or less: any number.",
)
QUARANTINE = 40.0
"""Seconds that a node must be gone before its pods are deleted."""
PERIOD = 20.0
"""Seconds between two counts of terminated pods, at most one."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_LABELS = ("namespace", "reason")
DELETED = Metric(
    "pod_gc_collector_force_delete_pods_total", "Number of pods that were force-deleted", _LABELS
)
ERRORS = Metric(
    "pod_gc_collector_force_delete_pod_errors_total",
    "Number of errors while force-deleting pods",
    _LABELS,
)
TERMINATED = Key("", "terminated pods")
"""The key of the round that counts terminated pods."""
NODE_PREFIX = "node/"
"""The prefix of keys that name a missing node; no pod's name has a slash."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    threshold: int = THRESHOLD.default


class TerminatingPod(msgspec.Struct, frozen=True):
    """A pod that is being deleted, and its node, if the cache has it."""

    pod: Pod
    node: Node | None


class OrphanedPods(msgspec.Struct, frozen=True):
    """The pods of a node that the cache lacks."""

    node: str
    pods: tuple[Pod, ...]


class TerminatedPods(msgspec.Struct, frozen=True):
    """The terminated pods beyond the threshold, in the order of deletion."""

    pods: tuple[Pod, ...]


def is_terminated(pod: Pod) -> bool:
    # As upstream: a pod without a phase counts as terminated.
    return pod.status.phase not in ("Pending", "Running", "Unknown")


def observe(
    caches: Caches, key: Key, config: Config = Config()
) -> TerminatingPod | OrphanedPods | TerminatedPods | None:
    if key == TERMINATED:
        terminated = tuple(filter(is_decodable, caches[PODS].by("terminated", True)))
        excess = len(terminated) - config.threshold
        if not 0 < config.threshold < len(terminated):
            return None
        return TerminatedPods(tuple(sorted(terminated, key=_deletion_order)[:excess]))
    if key.name.startswith(NODE_PREFIX):
        name = key.name.removeprefix(NODE_PREFIX)
        if caches[NODES].get(Key("", name)) is not None:
            return None
        return OrphanedPods(name, tuple(filter(is_decodable, caches[PODS].by("node", name))))
    pod = caches[PODS].get(key)
    if pod is None:
        return None
    return TerminatingPod(pod, caches[NODES].get(Key("", pod.spec.nodeName)))


def _deletion_order(pod: Pod) -> tuple[bool, datetime, str]:
    """Evicted pods first, then the oldest."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    created = pod.metadata.creationTimestamp
    assert created is not None
    return (not evicted, created, pod.metadata.name)


def is_out_of_service(node: Node | None) -> bool:
    """Whether a node that is not ready has the out-of-service taint."""
    if node is None or is_condition_true(node.status.conditions, "Ready"):
        return False
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def fail_pod(pod: Pod, now: datetime, reason: str = "", message: str = "") -> Patch[Pod] | None:
    """The patch that sets the phase Failed; None for a pod that has ended."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return None
    generation = pod.metadata.generation
    status: dict[str, Any] = {"phase": "Failed"}
    if generation:
        status["observedGeneration"] = generation
    if reason and (condition := disruption_condition(pod, now, reason, message)) is not None:
        status["conditions"] = [condition]
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return Patch(pod, body, PatchType.STRATEGIC, subresource="status")


async def _force_delete(
    pods: Iterable[Pod], now: datetime, cause: str, reason: str = "", message: str = ""
) -> int:
    """Sets the phase of pods to Failed, then force-deletes them; returns how many. Raises the first error.

    ``cause`` is the label ``reason`` of the metrics: one of upstream's four.
    """
    pods = tuple(pods)
    patches = {
        pod.metadata.uid: patch for pod in pods if (patch := fail_pod(pod, now, reason, message)) is not None
    }
    not_patched: dict[str, Failed] = {}
    for uid, outcome in zip(patches, await _all(patches.values()), strict=True):
        if isinstance(outcome, Failed):
            not_patched[uid] = outcome
    patched = [pod for pod in pods if pod.metadata.uid not in not_patched]
    deleted = await _all(Delete(pod, grace=0) for pod in patched)
    outcomes = dict(zip((pod.metadata.uid for pod in patched), deleted, strict=True)) | not_patched
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, Failed)]
    for pod in pods:
        labels = (pod.metadata.namespace, cause)
        # As upstream: a pod that could not be deleted counts in both.
        await Measure(DELETED, labels=labels)
        if isinstance(outcomes[pod.metadata.uid], Failed):
            await Measure(ERRORS, labels=labels)
    for outcome in errors:
        # A pod that is gone needs nothing more. Any other error fails the round, which is then tried again:
        # there is no poll that would find the pod later.
        if not isinstance(outcome.error, NotFound):
            raise outcome.error
    return sum(isinstance(outcome, Done) for outcome in deleted)


async def _all(actions: Iterable[Action[Any]]) -> list[Any]:
    wanted = tuple(actions)
    return await Batch(wanted, slow_start=False) if wanted else []


async def decide(seen: TerminatingPod | OrphanedPods | TerminatedPods, now: datetime) -> Verdict:
    match seen:
        case TerminatedPods(pods):
            return Rest(f"deleted {await _force_delete(pods, now, 'terminated')} terminated pods")
        case OrphanedPods(node, pods):
            return await _delete_orphaned(node, pods, now)
        case TerminatingPod(pod, node):
            if pod.metadata.deletionTimestamp is None:
                return Rest("pod is not being deleted")
            if pod.spec.nodeName and not is_out_of_service(node):
                return Rest("pod is deleted by its kubelet")
            cause = "out-of-service" if pod.spec.nodeName else "unscheduled"
            await _force_delete((pod,), now, cause)
            return Rest(f"pod force-deleted: {cause}")


async def _delete_orphaned(node: str, pods: tuple[Pod, ...], now: datetime) -> Verdict:
    if not pods:
        return Rest("node has no pods")
    try:
        await Read(Address(NODES, "", node))
    except NotFound:
        count = await _force_delete(pods, now, "orphaned", "DeletionByPodGC", "PodGC: node no longer exists")
        return Rest(f"node is gone: deleted {count} orphaned pods")
    return Rest("node exists")


# -- enqueue --------------------------------------------------------------------------------------


def _terminating(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod that is being deleted, unscheduled or on an out-of-service node."""
    pod = change.new
    if pod is None or pod.metadata.deletionTimestamp is None:
        return ()
    node = pod.spec.nodeName
    return (pod.key,) if not node or is_out_of_service(caches[NODES].get(Key("", node))) else ()


def _orphaned(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """The node of a pod, where the cache lacks it."""
    pod = change.new
    if pod is None or not pod.spec.nodeName:
        return ()
    if change.old is not None and change.old.spec.nodeName == pod.spec.nodeName:
        return ()
    node = pod.spec.nodeName
    return () if caches[NODES].get(Key("", node)) is not None else (Key("", NODE_PREFIX + node),)


def _newly_terminated(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    pod = change.new
    if pod is None or not is_terminated(pod) or (change.old is not None and is_terminated(change.old)):
        return ()
    return (TERMINATED,)


def _node_deleted(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    return (Key("", NODE_PREFIX + change.obj.metadata.name),) if change.new is None else ()


def _node_out_of_service(caches: Caches, change: Change[Node]) -> Iterator[Key]:
    node = change.new
    if node is not None and is_out_of_service(node) and not is_out_of_service(change.old):
        for pod in caches[PODS].by("node", node.metadata.name):
            if pod.metadata.deletionTimestamp is not None:
                yield pod.key


def _by_terminated(pod: Pod) -> Iterable[bool]:
    return (True,) if is_terminated(pod) else ()


def configure(settings: Settings) -> Controller[TerminatingPod | OrphanedPods | TerminatedPods]:
    return Controller(
        name="pod-garbage-collector-controller",
        aliases=("podgc",),
        service_account="pod-garbage-collector",
        watches=(
            Watch(PODS, to=_terminating, indexes={"node": by_node, "terminated": _by_terminated}),
            Watch(PODS, to=_orphaned, delay=QUARANTINE),
            Watch(PODS, to=_newly_terminated, delay=PERIOD),
            Watch(NODES, to=_node_deleted, delay=QUARANTINE),
            Watch(NODES, to=_node_out_of_service),
        ),
        works_on=(PODS,),
        workers=1,
        flags=(THRESHOLD,),
        configure=configure,
        observe=partial(observe, config=Config(settings[THRESHOLD])),
        decide=decide,
        metrics=(DELETED, ERRORS),
    )


controller = configure(DEFAULTS)
