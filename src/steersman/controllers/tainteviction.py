"""taint-eviction-controller (a dialogue): deletes pods from nodes whose NoExecute taints they do not tolerate.

A pod that tolerates all NoExecute taints of its node is deleted when the shortest of its tolerationSeconds is over; the
deletion is cancelled when the taints go. As upstream, the time runs from when this process saw the taint, and a deletion
once scheduled keeps its time, whatever tolerations or taints are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod, Toleration
from steersman.api.kinds.nodes import NODES, Node, Taint
from steersman.api.scheduling import NO_EXECUTE, tolerates
from steersman.api.scheme import Key
from steersman.controllers.shared.indexes import by_node
from steersman.controllers.shared.pod_control import DISRUPTION_TARGET, disruption_condition
from steersman.intent.actions import Address, Delete, Emit, Patch, PatchType, Read
from steersman.intent.controller import Caches, Change, Controller, PartOf, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure, Metric
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"
WORKERS = 8
LONGEST_TOLERATION = 100 * 365 * 86_400
"""A longer tolerationSeconds counts as this, since a later time could not be written."""

DELETIONS = Metric(
    "taint_eviction_controller_pod_deletions_total", "Number of pods deleted because of NoExecute taints"
)
LATENCY = Metric(
    "taint_eviction_controller_pod_deletion_duration_seconds",
    "Seconds between the time at which a pod no longer tolerates the taints of its node and its deletion",
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
)


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    numeric_tolerations: bool = False
    """TaintTolerationComparisonOperators"""


class Eviction(msgspec.Struct, frozen=True):
    """A scheduled deletion of the pod that has this uid."""

    uid: str
    due: datetime
    announced: bool = False
    """The event about the deletion has been emitted."""


class Evictions:
    """The scheduled deletions by pod. They are lost with the process, and the time then runs anew."""

    def __init__(self) -> None:
        self._by_pod: dict[Key, Eviction] = {}

    def get(self, key: Key) -> Eviction | None:
        return self._by_pod.get(key)

    def schedule(self, key: Key, eviction: Eviction) -> None:
        self._by_pod[key] = eviction

    def forget(self, key: Key) -> None:
        self._by_pod.pop(key, None)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_pod

    def __bool__(self) -> bool:
        return bool(self._by_pod)


class Observation(msgspec.Struct, frozen=True):
    """A pod and its node, where the caches have them."""

    key: Key
    pod: Pod | None
    node: Node | None
    evictions: Evictions


def observe(caches: Caches, key: Key) -> Observation | None:
    evictions = memory_of(caches, Evictions)
    pod = caches[PODS].get(key)
    if pod is None and key not in evictions:
        return None
    node = caches[NODES].get(Key("", pod.spec.nodeName)) if pod is not None else None
    return Observation(key, pod, node, evictions)


# -- when a pod is deleted ------------------------------------------------------------------------


def no_execute_taints(node: Node) -> tuple[Taint, ...]:
    """The NoExecute taints of a node."""
    taints = node.spec.taints
    return tuple(taint for taint in taints if taint.effect == NO_EXECUTE) if taints else ()


def used_tolerations(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], *, numeric: bool = False
) -> tuple[Toleration, ...] | None:
    """The first toleration of each taint; None where a taint is not tolerated. ``numeric``: see `tolerates`."""
    used = []
    for taint in taints:
        for toleration in tolerations:
            if tolerates((toleration,), taint, numeric=numeric):
                used.append(toleration)
                break
        else:
            return None
    return tuple(used)


def toleration_time(used: Iterable[Toleration]) -> timedelta | None:
    """The shortest time of the tolerations, at least 0; None where all of them are unlimited."""
    limits = [each.tolerationSeconds for each in used if each.tolerationSeconds is not None]
    return timedelta(seconds=min(max(min(limits), 0), LONGEST_TOLERATION)) if limits else None


def eviction_time(
    pod: Pod, node: Node | None, scheduled: Eviction | None, now: datetime, config: Config = Config()
) -> datetime | None:
    """When the pod is to be deleted; None: it stays.

    As upstream, the deletion of a node cancels nothing.
    """
    if node is None:
        return scheduled.due if scheduled is not None else None
    taints = no_execute_taints(node)
    if not taints:
        return None
    used = used_tolerations(pod.spec.tolerations, taints, numeric=config.numeric_tolerations)
    if used is None:
        return min(now, scheduled.due) if scheduled is not None else now
    limit = toleration_time(used)
    if limit is None:
        return None
    return scheduled.due if scheduled is not None else now + limit


def is_evicted(pod: Pod) -> bool:
    """Whether the pod is being deleted because of a taint."""
    condition = find_condition(pod.status.conditions, DISRUPTION_TARGET)
    return (
        pod.metadata.deletionTimestamp is not None
        and condition is not None
        and (condition.status, condition.reason) == ("True", REASON)
    )


async def decide(seen: Observation, now: datetime, config: Config = Config()) -> Verdict:
    key, pod, evictions = seen.key, seen.pod, seen.evictions
    scheduled = evictions.get(key)
    if scheduled is not None and (pod is None or pod.metadata.uid != scheduled.uid):
        await _cancel(seen)
        scheduled = None
    if pod is None:
        return Rest("pod is gone")
    if is_evicted(pod):
        # differs: upstream deletes it again when taints change, and after a restart.
        evictions.forget(key)
        return Rest("pod is being deleted because of a taint already")
    due = eviction_time(pod, seen.node, scheduled, now, config)
    if due is None:
        if scheduled is None:
            return Rest("pod tolerates the taints of its node")
        await _cancel(seen)
        return Rest("deletion cancelled: pod tolerates the taints of its node")
    if due > now:
        evictions.schedule(key, Eviction(pod.metadata.uid, due))
        return Wake(due - now, "pod tolerates the taints of its node for a limited time")
    if scheduled is None or not scheduled.announced:
        if scheduled is not None and due < scheduled.due:
            await _cancel(seen)
        await Emit(_address(key), "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key}")
        evictions.schedule(key, Eviction(pod.metadata.uid, due, announced=True))
    verdict = await _evict(pod, due, now)
    evictions.forget(key)
    return verdict


async def _evict(pod: Pod, due: datetime, now: datetime) -> Verdict:
    """Sets the condition DisruptionTarget, then deletes the pod."""
    try:
        live = await Read(pod)
        if live.metadata.uid != pod.metadata.uid:
            # differs: upstream deletes the pod that has the name, though it may run on another node.
            return Rest("pod has been replaced")
        condition = disruption_condition(live, now, REASON, MESSAGE)
        if condition is not None:
            body = {"metadata": {"uid": live.metadata.uid}, "status": {"conditions": [condition]}}
            await Patch(live, body, PatchType.STRATEGIC, subresource="status")
        await Delete(live)
    except NotFound:
        return Rest("pod is gone")
    await Measure(DELETIONS)
    # differs: upstream multiplies the nanoseconds by a billion, so all its deletions are in the last bucket.
    await Measure(LATENCY, (now - due).total_seconds() + await Elapsed())
    return Rest("pod deleted: it does not tolerate the taints of its node")


async def _cancel(seen: Observation) -> None:
    await Emit(_address(seen.key), "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {seen.key}")
    seen.evictions.forget(seen.key)


def _address(key: Key) -> Address[Pod]:
    """Names the pod of an event, as upstream without its uid."""
    return Address(PODS, key.namespace, key.name)


# -- enqueue --------------------------------------------------------------------------------------


def _pod_changed(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod that comes to a tainted node or changes its tolerations there, or whose deletion is scheduled."""
    old, new = change.old, change.new
    if old is not None and new is not None and _same_placement(old, new):
        return ()
    key = change.obj.key
    if key in memory_of(caches, Evictions):
        return (key,)
    if new is None or not new.spec.nodeName:
        return ()
    node = caches[NODES].get(Key("", new.spec.nodeName))
    return (key,) if node is not None and no_execute_taints(node) else ()


def _same_placement(old: Pod, new: Pod) -> bool:
    return (
        old.spec.nodeName == new.spec.nodeName
        and old.spec.tolerations == new.spec.tolerations
        and old.metadata.uid == new.metadata.uid
    )


def _node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """The pods of a node whose NoExecute taints change."""
    old, new = change.old, change.new
    if new is None:
        return
    taints, evictions = no_execute_taints(new), memory_of(caches, Evictions)
    if old is not None and no_execute_taints(old) == taints:
        return
    if not taints and not evictions:
        return
    for pod in caches[PODS].by("node", new.metadata.name):
        if taints or pod.key in evictions:
            yield pod.key


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(settings.enabled("TaintTolerationComparisonOperators"))
    return Controller(
        name="taint-eviction-controller",
        service_account="node-controller",
        event_component="taint-eviction-controller",
        part_of=PartOf("node-lifecycle-controller", unless="SeparateTaintEvictionController"),
        watches=(
            Watch(PODS, to=_pod_changed, indexes={"node": by_node}),
            Watch(NODES, to=_node_changed),
        ),
        works_on=(PODS,),
        workers=WORKERS,
        configure=configure,
        observe=observe,
        decide=partial(decide, config=config),
        memory=Evictions,
        metrics=(DELETIONS, LATENCY),
    )


controller = configure(DEFAULTS)
