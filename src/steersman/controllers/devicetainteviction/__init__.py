"""device-taint-eviction-controller (a dialogue): evicts pods whose devices have NoExecute taints that their claims do not
tolerate.

A round is about a pod or a DeviceTaintRule. The time of an eviction follows from the taints and tolerations alone, so it
outlives the process; what is remembered is only which pods an event has to be written for.

::

    pod stays --taint--> eviction scheduled --due--> condition DisruptionTarget --> deleted
        ^                        |
        +--taint gone, tolerated-+  (event: Cancelling deletion)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.devices import (
    DEVICETAINTRULES,
    RESOURCECLAIMS,
    RESOURCESLICES,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from steersman.api.resource_claims import claim_names
from steersman.api.scheduling import NO_EXECUTE
from steersman.api.scheme import Key
from steersman.controllers.devicetainteviction import enqueue
from steersman.controllers.devicetainteviction.enqueue import Memory
from steersman.controllers.devicetainteviction.evictions import Eviction, PoolId, TaintedDevices
from steersman.controllers.devicetainteviction.rule_status import (
    NO_EFFECT,
    PERIOD,
    RuleCounts,
    count_devices,
    count_pods,
    needs_counts,
    update_status,
)
from steersman.controllers.shared.indexes import BY_POD_GROUP, by_pod_group
from steersman.controllers.shared.pod_control import disruption_condition
from steersman.intent.actions import Delete, Emit, Patch, PatchType, Read
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure, Metric
from steersman.intent.settings import DEFAULTS
from steersman.intent.undecodable import is_decodable
from steersman.intent.verdict import Rest, Verdict, Wake

NAME = "device-taint-eviction-controller"
WORKERS = Flag("concurrent-device-taint-eviction-syncs", 8)
EVENT = "DeviceTaintManagerEviction"
REASON = "DeletionByDeviceTaintManager"
MESSAGE = "Device Taint manager: deleting due to NoExecute taint"

DELETIONS = Metric(
    "device_taint_eviction_controller_pod_deletions_total", "Number of pods deleted because of device taints"
)
LATENCY = Metric(
    "device_taint_eviction_controller_pod_deletion_duration_seconds",
    "Seconds between the time at which a pod no longer tolerates the taints of its devices and its deletion",
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
)


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    rules: bool = False
    """DRADeviceTaintRules"""
    pod_groups: bool = False
    """DRAWorkloadResourceClaims"""


class PodObservation(msgspec.Struct, frozen=True):
    """A pod and the eviction that its devices demand."""

    key: Key
    pod: Pod | None
    eviction: Eviction | None
    memory: Memory


class RuleObservation(msgspec.Struct, frozen=True):
    """A rule and what it evicts."""

    rule: DeviceTaintRule
    counts: RuleCounts


Observation: TypeAlias = PodObservation | RuleObservation


# -- observe ----------------------------------------------------------------------------------------


def observe(caches: Caches, key: Key, config: Config = Config()) -> Observation | None:
    kind, _, name = key.name.partition("/")
    if kind == "rule":
        rule = caches[DEVICETAINTRULES].get(Key("", name))
        return observe_rule(caches, rule, config) if rule is not None else None
    memory, at = memory_of(caches, Memory), Key(key.namespace, name)
    pod = caches[PODS].get(at)
    if pod is None and at not in memory.scheduled:
        return None
    eviction = _pod_eviction(caches, pod, _evicting_rules(caches, config), config) if pod else None
    return PodObservation(at, pod, eviction, memory)


def _evicting_rules(caches: Caches, config: Config) -> tuple[DeviceTaintRule, ...]:
    if not config.rules:
        return ()
    # A rule that cannot be decoded evicts no pod, and is no reason to leave others on their devices.
    rules = filter(is_decodable, caches[DEVICETAINTRULES].list())
    return tuple(each for each in rules if each.spec.taint.effect == NO_EXECUTE)


def _pod_eviction(
    caches: Caches, pod: Pod, rules: tuple[DeviceTaintRule, ...], config: Config
) -> Eviction | None:
    namespace = pod.metadata.namespace
    claims: dict[str, ResourceClaim] = {}
    pools: dict[PoolId, tuple[ResourceSlice, ...]] = {}
    for name in claim_names(pod):
        claim = caches[RESOURCECLAIMS].get(Key(namespace, name))
        if claim is None or claim.status.allocation is None:
            continue
        claims[name] = claim
        for result in claim.status.allocation.devices.results:
            pool = result.driver, result.pool
            if pool not in pools:
                pools[pool] = tuple(caches[RESOURCESLICES].by(enqueue.BY_POOL, pool))
    return TaintedDevices(pools, rules).pod_eviction(pod, claims, pod_groups=config.pod_groups)


def observe_rule(caches: Caches, rule: DeviceTaintRule, config: Config) -> RuleObservation:
    evicted = memory_of(caches, Memory).evictions[rule.metadata.uid]
    if not needs_counts(rule):
        return RuleObservation(rule, RuleCounts(evicted=evicted))
    simulated = rule.spec.taint.effect == NO_EFFECT
    acting = (enqueue.with_effect(rule, NO_EXECUTE),) if simulated else (rule,)
    # The simulation is about this rule alone: other taints that evict a pod are no reason of the rule's.
    pending = [
        pod
        for pod in _pods_of(caches, acting[0], config)
        if pod.metadata.deletionTimestamp is None
        and (eviction := _pod_eviction(caches, pod, acting, config)) is not None
        and eviction.rules
    ]
    pods, namespaces = count_pods(pending)
    published, allocated = 0, 0
    if simulated:
        pools: dict[PoolId, list[ResourceSlice]] = {}
        for slice in caches[RESOURCESLICES].list():
            pools.setdefault((slice.spec.driver, slice.spec.pool.name), []).append(slice)
        published, allocated = count_devices(rule, pools.values(), caches[RESOURCECLAIMS].list())
    return RuleObservation(rule, RuleCounts(pods, namespaces, published, allocated, evicted))


def _pods_of(caches: Caches, rule: DeviceTaintRule, config: Config) -> Iterable[Pod]:
    """The pods that use a device which a rule selects."""
    keys = dict.fromkeys(enqueue.pods_of_rule(caches, rule, pod_groups=config.pod_groups))
    found = (caches[PODS].get(key) for key in keys)
    return [pod for pod in found if pod is not None]


# -- decide -----------------------------------------------------------------------------------------


async def decide(seen: Observation, now: datetime) -> Verdict:
    if isinstance(seen, RuleObservation):
        return await update_status(seen.rule, seen.counts, now, NAME)
    key, pod, eviction, memory = seen.key, seen.pod, seen.eviction, seen.memory
    if pod is None or memory.scheduled.get(key, pod.metadata.uid) != pod.metadata.uid:
        # As upstream, there is no event for a pod that is gone.
        memory.scheduled.pop(key, None)
    if pod is None:
        return Rest("pod is gone")
    if memory.evicted.get(pod.metadata.uid):
        # differs: upstream writes that it cancels the deletion of a pod which it has deleted, if the taint goes before
        # the pod does.
        memory.scheduled.pop(key, None)
        return Rest("pod has been evicted")
    if eviction is None:
        if memory.scheduled.pop(key, None) is None:
            return Rest("pod tolerates the taints of its devices")
        await Emit(pod, "Normal", EVENT, "Cancelling deletion")
        return Rest("eviction cancelled: pod tolerates the taints of its devices")
    memory.scheduled[key] = pod.metadata.uid
    if eviction.due > now:
        return Wake(eviction.due - now, "pod tolerates the taints of its devices for a limited time")
    verdict = await _evict(pod, eviction, now, memory)
    memory.scheduled.pop(key, None)
    memory.evicted.put(pod.metadata.uid, True)
    return verdict


async def _evict(pod: Pod, eviction: Eviction, now: datetime, memory: Memory) -> Verdict:
    """Sets the condition DisruptionTarget, then deletes the pod."""
    try:
        live = await Read(pod)
        if live.metadata.uid != pod.metadata.uid:
            return Rest("pod has been replaced")
        if live.metadata.deletionTimestamp is None:
            await Emit(pod, "Normal", EVENT, "Marking for deletion")
            condition = disruption_condition(live, now, REASON, MESSAGE, observed_generation=False)
            if condition is not None:
                body = {"metadata": {"uid": live.metadata.uid}, "status": {"conditions": [condition]}}
                await Patch(live, body, PatchType.STRATEGIC, subresource="status")
            await Delete(live)
    except NotFound:
        return Rest("pod is gone")
    # As upstream, a pod that was being deleted already counts as well.
    await Measure(DELETIONS)
    await Measure(LATENCY, (now - eviction.due).total_seconds() + await Elapsed())
    for rule in eviction.rules:
        memory.evictions[rule.metadata.uid] += 1
    return Rest("pod evicted: it does not tolerate the taints of its devices")


# -- declaration ------------------------------------------------------------------------------------


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(
        rules=settings.enabled("DRADeviceTaintRules"),
        pod_groups=settings.enabled("DRAWorkloadResourceClaims"),
    )
    groups = config.pod_groups
    indexes = {BY_POD_GROUP: by_pod_group} if groups else {}
    watches: tuple[Watch[Any], ...] = (
        Watch(PODS, to=enqueue.pod_changed, indexes=indexes),
        Watch(
            RESOURCECLAIMS,
            to=partial(enqueue.claim_changed, pod_groups=groups),
            indexes={enqueue.BY_POOL: enqueue.by_allocated_pool},
        ),
        Watch(
            RESOURCESLICES,
            to=partial(enqueue.slice_changed, pod_groups=groups),
            indexes={enqueue.BY_POOL: enqueue.by_pool},
        ),
    )
    if config.rules:
        later = PERIOD.total_seconds()
        watches += (
            Watch(DEVICETAINTRULES, to=partial(enqueue.rule_changed, pod_groups=groups)),
            # The conditions of rules follow with a delay, since more pods may change.
            Watch(PODS, to=enqueue.rules_after_pod, delay=later),
            Watch(RESOURCECLAIMS, to=enqueue.rules_after_claim, delay=later),
        )
    return Controller(
        name=NAME,
        feature_gates=("DynamicResourceAllocation", "DRADeviceTaints"),
        watches=watches,
        workers=WORKERS,
        configure=configure,
        observe=partial(observe, config=config),
        decide=decide,
        memory=Memory,
        works_on=(RESOURCECLAIMS, DEVICETAINTRULES) if config.rules else (RESOURCECLAIMS,),
        metrics=(DELETIONS, LATENCY),
        required_kinds=(DEVICETAINTRULES,) if config.rules else (),
    )


controller = configure(DEFAULTS)
