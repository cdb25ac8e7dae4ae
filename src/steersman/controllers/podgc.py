"""pod-garbage-collector (a dialogue): pods that nobody will ever finish are finished and removed.

Three sorts: pods on nodes that are gone, pods that are being deleted and no kubelet will see to that (never
scheduled, or on a node declared out of service), and, when there are too many, those that ended long ago.

differs: upstream looks around every 20 seconds; here each change is looked at when its time has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from steersman.api.conditions import find, is_true
from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Key
from steersman.controllers.shared.indexes import by_node
from steersman.intent.actions import Action, Address, Batch, Delete, Done, Failed, Patch, PatchType, Read
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.metrics import Measure, Metric
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

THRESHOLD = Flag(
    "terminated-pod-gc-threshold",
    12500,
    "How many ended pods may be there before the oldest are deleted; 0 or less: any number.",
)
QUARANTINE = 40.0
"""Seconds that a node must have been gone before its pods are."""
PERIOD = 20.0
"""Seconds in which ended pods are counted at most once."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_COUNTED = ("namespace", "reason")
REMOVED = Metric("pod_gc_collector_force_delete_pods_total", "Pods that were removed, by cause", _COUNTED)
ERRORS = Metric(
    "pod_gc_collector_force_delete_pod_errors_total", "Pods that could not be removed, by cause", _COUNTED
)
ENDED = Key("", "ended pods")
MISSING = "node/"
"""Begins the keys of nodes that may be missing; no pod's name has a slash."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    threshold: int = THRESHOLD.default


class Stuck(msgspec.Struct, frozen=True):
    """A pod that is being deleted, and its node, if it has one."""

    pod: Pod
    node: Node | None


class Orphans(msgspec.Struct, frozen=True):
    """The pods of a node that the cache does not show."""

    node: str
    pods: tuple[Pod, ...]


class Surplus(msgspec.Struct, frozen=True):
    """Ended pods beyond what is kept, those first that go first."""

    pods: tuple[Pod, ...]


def has_ended(pod: Pod) -> bool:
    return pod.status.phase not in ("", "Pending", "Running", "Unknown")


def observe(caches: Caches, key: Key, config: Config = Config()) -> Stuck | Orphans | Surplus | None:
    if key == ENDED:
        ended = tuple(caches[PODS].by("ended", True))
        surplus = len(ended) - config.threshold
        if not 0 < config.threshold < len(ended):
            return None
        return Surplus(tuple(sorted(ended, key=_order)[:surplus]))
    if key.name.startswith(MISSING):
        name = key.name.removeprefix(MISSING)
        if caches[NODES].get(Key("", name)) is not None:
            return None
        return Orphans(name, tuple(caches[PODS].by("node", name)))
    pod = caches[PODS].get(key)
    if pod is None:
        return None
    return Stuck(pod, caches[NODES].get(Key("", pod.spec.nodeName)))


def _order(pod: Pod) -> tuple[bool, datetime, str]:
    """Evicted ones first, then the oldest."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    created = pod.metadata.creationTimestamp
    assert created is not None
    return (not evicted, created, pod.metadata.name)


def out_of_service(node: Node | None) -> bool:
    """Whether somebody has declared that a node will not come back on its own."""
    if node is None or is_true(node.status.conditions, "Ready"):
        return False
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def failing(pod: Pod, now: datetime, reason: str = "", message: str = "") -> Patch[Pod] | None:
    """What marks a pod as failed, so that whoever waits for it learns how it ended."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return None
    generation = pod.metadata.generation
    status: dict[str, Any] = {"phase": "Failed"}
    if generation:
        status["observedGeneration"] = generation
    if reason:
        status["conditions"] = [_target(pod, now, reason, message)]
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return Patch(pod, body, PatchType.STRATEGIC, subresource="status")


def _target(pod: Pod, now: datetime, reason: str, message: str) -> dict[str, Any]:
    known = find(pod.status.conditions, "DisruptionTarget")
    since = known.lastTransitionTime if known is not None and known.status == "True" else None
    condition: dict[str, Any] = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": (since or now).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": reason,
        "message": message,
    }
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    return condition


async def _remove(
    pods: Iterable[Pod], now: datetime, because: str, reason: str = "", message: str = ""
) -> int:
    """Mark pods as failed, then delete them at once; answers how many went. Raises the first refusal.

    They are counted as removed for one of upstream's four causes.
    """
    pods = tuple(pods)
    marks = {
        pod.metadata.uid: mark for pod in pods if (mark := failing(pod, now, reason, message)) is not None
    }
    unmarked: dict[str, Failed] = {}
    for uid, outcome in zip(marks, await _all(marks.values()), strict=True):
        if isinstance(outcome, Failed):
            unmarked[uid] = outcome
    marked = [pod for pod in pods if pod.metadata.uid not in unmarked]
    deleted = await _all(Delete(pod, grace=0) for pod in marked)
    refused = list(unmarked.values())
    for pod in pods:
        if pod.metadata.uid in unmarked:
            await Measure(ERRORS, labels=(pod.metadata.namespace, because))
    for pod, outcome in zip(marked, deleted, strict=True):
        if isinstance(outcome, Failed):
            refused.append(outcome)
        await Measure(
            ERRORS if isinstance(outcome, Failed) else REMOVED, labels=(pod.metadata.namespace, because)
        )
    for outcome in refused:
        # A pod that somebody else removed is not ours to see to any more. One that was changed, or came anew,
        # is looked at again: there is no next time by itself.
        if not isinstance(outcome.error, NotFound):
            raise outcome.error
    return sum(isinstance(outcome, Done) for outcome in deleted)


async def _all(actions: Iterable[Action[Any]]) -> list[Any]:
    wanted = tuple(actions)
    return await Batch(wanted, slow_start=False) if wanted else []


async def decide(seen: Stuck | Orphans | Surplus, now: datetime) -> Verdict:
    match seen:
        case Surplus(pods):
            return Rest(f"removed {await _remove(pods, now, 'terminated')} pods that had ended")
        case Orphans(node, pods):
            return await _orphaned(node, pods, now)
        case Stuck(pod, node):
            if pod.metadata.deletionTimestamp is None:
                return Rest("is not being deleted")
            if pod.spec.nodeName and not out_of_service(node):
                return Rest("its node sees to it")
            await _remove((pod,), now, "out-of-service" if pod.spec.nodeName else "unscheduled")
            return Rest("no kubelet would have seen to it")


async def _orphaned(node: str, pods: tuple[Pod, ...], now: datetime) -> Verdict:
    if not pods:
        return Rest("no pods were left behind")
    try:
        await Read(Address(NODES, "", node))
    except NotFound:
        gone = await _remove(pods, now, "orphaned", "DeletionByPodGC", "PodGC: node no longer exists")
        return Rest(f"the node is gone, and so are {gone} pods of it")
    return Rest("the node is there, the cache will show it")


# -- when to look ---------------------------------------------------------------------------------


def _deleting(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod that is being deleted, where no kubelet may see to it."""
    pod = change.new
    if pod is None or pod.metadata.deletionTimestamp is None:
        return ()
    node = pod.spec.nodeName
    return (pod.key,) if not node or out_of_service(caches[NODES].get(Key("", node))) else ()


def _stranded(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod on a node that nobody knows."""
    pod = change.new
    if pod is None or not pod.spec.nodeName:
        return ()
    if change.old is not None and change.old.spec.nodeName == pod.spec.nodeName:
        return ()
    node = pod.spec.nodeName
    return () if caches[NODES].get(Key("", node)) is not None else (Key("", MISSING + node),)


def _ended(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    pod = change.new
    if pod is None or not has_ended(pod) or (change.old is not None and has_ended(change.old)):
        return ()
    return (ENDED,)


def _node_gone(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    return (Key("", MISSING + change.obj.metadata.name),) if change.new is None else ()


def _node_lost(caches: Caches, change: Change[Node]) -> Iterator[Key]:
    node = change.new
    if node is not None and out_of_service(node) and not out_of_service(change.old):
        for pod in caches[PODS].by("node", node.metadata.name):
            if pod.metadata.deletionTimestamp is not None:
                yield pod.key


def _by_end(pod: Pod) -> Iterable[bool]:
    return (True,) if has_ended(pod) else ()


def configure(settings: Settings) -> Controller[Stuck | Orphans | Surplus]:
    return Controller(
        name="pod-garbage-collector-controller",
        aliases=("podgc",),
        service_account="pod-garbage-collector",
        watches=(
            Watch(PODS, to=_deleting, indexes={"node": by_node, "ended": _by_end}),
            Watch(PODS, to=_stranded, delay=QUARANTINE),
            Watch(PODS, to=_ended, delay=PERIOD),
            Watch(NODES, to=_node_gone, delay=QUARANTINE),
            Watch(NODES, to=_node_lost),
        ),
        workers=1,
        flags=(THRESHOLD,),
        configure=configure,
        observe=partial(observe, config=Config(settings[THRESHOLD])),
        decide=decide,
        metrics=(REMOVED, ERRORS),
    )


controller = configure(DEFAULTS)
