"""The keys of device-taint-eviction-controller: which rounds a change of a pod, claim, slice or rule leads to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.devices import (
    DEVICETAINTRULES,
    RESOURCECLAIMS,
    RESOURCESLICES,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from steersman.api.resource_claims import is_pod_group_reference, is_pod_reference
from steersman.api.scheduling import NO_EXECUTE
from steersman.api.scheme import Key
from steersman.controllers.devicetainteviction.evictions import PoolId, pool_of, selects
from steersman.controllers.shared.indexes import BY_POD_GROUP
from steersman.intent.controller import Caches, Change, memory_of

POD, RULE = "pod/", "rule/"
"""The prefixes of keys."""
BY_POOL = "by_pool"
REMEMBERED = 500
"""Evicted pods that are not looked at again."""


def by_pool(slice: ResourceSlice) -> Iterable[PoolId]:
    """Indexes a slice by its pool."""
    return (pool_of(slice),)


def by_allocated_pool(claim: ResourceClaim) -> Iterable[PoolId]:
    """Indexes a claim by the pools of its devices."""
    if claim.status.allocation is None:
        return ()
    return dict.fromkeys((each.driver, each.pool) for each in claim.status.allocation.devices.results)


class Memory:
    """The pods whose eviction is scheduled, those that were evicted, and the evictions of each rule."""

    def __init__(self) -> None:
        self.scheduled: dict[Key, str] = {}
        """Keys of pods and their uids."""
        self.evicted: BoundedCache[str, bool] = BoundedCache(REMEMBERED)
        """Uids of pods."""
        self.evictions: Counter[str] = Counter()
        """The number of evicted pods by the uid of a rule."""


# -- pods -------------------------------------------------------------------------------------------


def _pod_key(pod: Key) -> Key:
    return Key(pod.namespace, POD + pod.name)


def pods_of_claim(caches: Caches, claim: ResourceClaim, *, pod_groups: bool) -> Iterator[Key]:
    """The pods that a claim is reserved for."""
    namespace = claim.metadata.namespace
    for reference in claim.status.reservedFor:
        if is_pod_reference(reference):
            yield Key(namespace, reference.name)
        elif pod_groups and is_pod_group_reference(reference):
            for pod in caches[PODS].by(BY_POD_GROUP, Key(namespace, reference.name)):
                yield pod.key


def pods_of_rule(caches: Caches, rule: DeviceTaintRule, *, pod_groups: bool) -> Iterator[Key]:
    """The pods whose claims have a device that a rule with the effect NoExecute selects."""
    if rule.spec.taint.effect != NO_EXECUTE:
        return
    for claim in caches[RESOURCECLAIMS].list():
        allocation = claim.status.allocation
        if allocation is not None and any(
            selects(rule, each.driver, each.pool, each.device) for each in allocation.devices.results
        ):
            yield from pods_of_claim(caches, claim, pod_groups=pod_groups)


def pod_changed(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod with claims that comes to its node, gets its claims or is deleted."""
    old, new = change.old, change.new
    if not change.obj.spec.resourceClaims or (old is not None and new is not None and _same_use(old, new)):
        return ()
    return (_pod_key(change.obj.key),)


def _same_use(old: Pod, new: Pod) -> bool:
    return (
        old.spec.nodeName == new.spec.nodeName
        and old.status.resourceClaimStatuses == new.status.resourceClaimStatuses
        and old.metadata.uid == new.metadata.uid
    )


def claim_changed(caches: Caches, change: Change[ResourceClaim], *, pod_groups: bool) -> Iterator[Key]:
    """The pods for which a claim is or was reserved, if its allocation or reservations change."""
    old, new = change.old, change.new
    if (
        old is not None
        and new is not None
        and old.status == new.status
        and old.metadata.uid == new.metadata.uid
    ):
        return
    keys: dict[Key, None] = {}
    for claim in (old, new):
        if claim is not None:
            keys.update(dict.fromkeys(pods_of_claim(caches, claim, pod_groups=pod_groups)))
    yield from map(_pod_key, keys)


def slice_changed(caches: Caches, change: Change[ResourceSlice], *, pod_groups: bool) -> Iterator[Key]:
    """The pods that use a device of the pool which is tainted, or was."""
    pool = pool_of(change.obj)
    if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
        return
    changed = [each for each in (change.old, change.new) if each is not None]
    # A slice hides those of earlier generations. The others of its own need no look, of which there may be hundreds.
    generation = max(each.spec.pool.generation for each in changed)
    hidden = [
        each for each in caches[RESOURCESLICES].by(BY_POOL, pool) if each.spec.pool.generation < generation
    ]
    tainted = {
        device.name
        for slice in (*changed, *hidden)
        for device in slice.spec.devices
        if any(taint.effect == NO_EXECUTE for taint in device.taints)
    }
    if not tainted:
        return
    keys: dict[Key, None] = {}
    for claim in caches[RESOURCECLAIMS].by(BY_POOL, pool):
        allocation = claim.status.allocation
        assert allocation is not None
        if any(
            (each.driver, each.pool) == pool and each.device in tainted for each in allocation.devices.results
        ):
            keys.update(dict.fromkeys(pods_of_claim(caches, claim, pod_groups=pod_groups)))
    yield from map(_pod_key, keys)


def rule_changed(caches: Caches, change: Change[DeviceTaintRule], *, pod_groups: bool) -> Iterator[Key]:
    """The rule, and the pods that it evicts or evicted."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.spec == new.spec and old.metadata.uid == new.metadata.uid:
        return
    # The rule comes first: its condition says how many pods it is about to evict.
    if new is not None:
        yield Key("", RULE + new.metadata.name)
    elif old is not None:
        memory_of(caches, Memory).evictions.pop(old.metadata.uid, None)
    keys: dict[Key, None] = {}
    for rule in (old, new):
        if rule is not None:
            keys.update(dict.fromkeys(pods_of_rule(caches, rule, pod_groups=pod_groups)))
    yield from map(_pod_key, keys)


# -- rules ------------------------------------------------------------------------------------------


def with_effect(rule: DeviceTaintRule, effect: str) -> DeviceTaintRule:
    """The rule with another effect, to simulate it."""
    return replace(rule, spec=replace(rule.spec, taint=replace(rule.spec.taint, effect=effect)))


def _evicting_rules(caches: Caches) -> Iterator[Key]:
    for rule in caches[DEVICETAINTRULES].list():
        if rule.spec.taint.effect == NO_EXECUTE:
            yield Key("", RULE + rule.metadata.name)


def rules_after_pod(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """All rules that evict, if a pod with claims comes to its node or is about to leave it.

    differs: upstream counts again only after it has scheduled or carried out an eviction, and goes on to name a pod that was
    deleted or whose claim was released before.
    """
    old, new = change.old, change.new
    if not change.obj.spec.resourceClaims:
        return ()
    if (
        old is not None
        and new is not None
        and _same_use(old, new)
        and (old.metadata.deletionTimestamp is None) == (new.metadata.deletionTimestamp is None)
    ):
        return ()
    return _evicting_rules(caches)


def rules_after_claim(caches: Caches, change: Change[ResourceClaim]) -> Iterable[Key]:
    """All rules that evict, if the allocation or the reservations of a claim change."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.status == new.status:
        return ()
    return _evicting_rules(caches)
