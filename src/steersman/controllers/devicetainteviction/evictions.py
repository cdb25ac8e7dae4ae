"""When a pod is to be evicted because of the taints of its devices: pure functions of claims, slices and rules.

A device is tainted by the ResourceSlice that publishes it, or by a DeviceTaintRule that selects it. A taint with the effect
NoExecute evicts the pods that use the device, ``tolerationSeconds`` after the taint was added if the allocation of
the device tolerates it for a time, and never if it tolerates it without limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from steersman.api.kinds import Pod
from steersman.api.kinds.devices import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from steersman.api.resource_claims import (
    ClaimNotCreated,
    UnsupportedClaim,
    claim_name,
    is_reserved_for,
    not_made_for,
)
from steersman.api.scheduling import NO_EXECUTE, tolerates

LONGEST_TOLERATION = 100 * 365 * 86_400
"""A longer tolerationSeconds counts as this, since a later time could not be written.

differs: upstream's durations overflow after 292 years, and the pod may be evicted at once.
"""

PoolId: TypeAlias = tuple[str, str]
"""Driver and name of a pool."""


class Eviction(msgspec.Struct, frozen=True):
    """The time at which a pod is to be evicted, and the rules that are a reason for it."""

    due: datetime
    rules: tuple[DeviceTaintRule, ...] = ()
    """By name. Taints of slices are reasons, too, but nothing is counted for them."""

    def joined(self, other: Eviction | None) -> Eviction:
        """The eviction for the reasons of both, at the earlier time."""
        if other is None:
            return self
        return Eviction(min(self.due, other.due), _by_name((*self.rules, *other.rules)))


def _by_name(rules: Iterable[DeviceTaintRule]) -> tuple[DeviceTaintRule, ...]:
    named = {rule.metadata.name: rule for rule in rules}
    return tuple(named[name] for name in sorted(named))


def pool_of(slice: ResourceSlice) -> PoolId:
    return slice.spec.driver, slice.spec.pool.name


def current_slices(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of a pool that are of its latest generation; the driver has replaced the others."""
    latest = max((each.spec.pool.generation for each in slices), default=0)
    return [each for each in slices if each.spec.pool.generation == latest]


def device_taints(slices: Sequence[ResourceSlice], device: str) -> tuple[DeviceTaint, ...]:
    """The NoExecute taints that a pool publishes for a device."""
    for slice in current_slices(slices):
        for each in slice.spec.devices:
            if each.name == device:
                return tuple(taint for taint in each.taints if taint.effect == NO_EXECUTE)
    return ()


def selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule selects a device. Without a selector it selects none."""
    selector = rule.spec.deviceSelector
    return (
        selector is not None
        and selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )


def eviction_time(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> datetime | None:
    """When a taint evicts the users of a device; None: they tolerate it."""
    if taint.timeAdded is None:
        return None
    limits: list[int] = []
    for toleration in tolerations:
        # Unlike that of a node, a toleration without effect does not tolerate NoExecute.
        if toleration.effect == NO_EXECUTE and tolerates((toleration,), taint):
            if toleration.tolerationSeconds is None:
                return None
            limits.append(min(max(toleration.tolerationSeconds, 0), LONGEST_TOLERATION))
    return taint.timeAdded + timedelta(seconds=min(limits, default=0))


class TaintedDevices(msgspec.Struct, frozen=True):
    """The taints of the devices that some claims use."""

    pools: Mapping[PoolId, Sequence[ResourceSlice]]
    rules: tuple[DeviceTaintRule, ...] = ()
    """The rules with the effect NoExecute."""

    def claim_eviction(self, claim: ResourceClaim) -> Eviction | None:
        """When the users of a claim are to be evicted; None: they stay."""
        if claim.status.allocation is None:
            return None
        found: Eviction | None = None
        for result in claim.status.allocation.devices.results:
            for taint, rules in self._taints(result):
                due = eviction_time(taint, result.tolerations)
                if due is not None:
                    found = Eviction(due, rules).joined(found)
        return found

    def _taints(
        self, result: DeviceRequestAllocationResult
    ) -> Iterator[tuple[DeviceTaint, tuple[DeviceTaintRule, ...]]]:
        """The taints of a device, each with its rule if it has one."""
        for taint in device_taints(self.pools.get((result.driver, result.pool), ()), result.device):
            yield taint, ()
        for rule in self.rules:
            if selects(rule, result.driver, result.pool, result.device):
                yield rule.spec.taint, (rule,)

    def pod_eviction(
        self, pod: Pod, claims: Mapping[str, ResourceClaim], *, pod_groups: bool = False
    ) -> Eviction | None:
        """When a pod is to be evicted; None: it stays. ``claims`` are those of its namespace, by name."""
        found: Eviction | None = None
        for claim in claims_in_use(pod, claims, pod_groups=pod_groups):
            eviction = self.claim_eviction(claim)
            if eviction is not None:
                found = eviction.joined(found)
        return found


def claims_in_use(
    pod: Pod, claims: Mapping[str, ResourceClaim], *, pod_groups: bool = False
) -> Iterator[ResourceClaim]:
    """The allocated claims that a pod with a node uses."""
    if not pod.spec.nodeName:
        return
    for each in pod.spec.resourceClaims:
        try:
            recorded = claim_name(pod, each)
        except (ClaimNotCreated, UnsupportedClaim):
            continue
        claim = claims.get(recorded.name) if recorded.name is not None else None
        if claim is None or claim.status.allocation is None:
            continue
        if recorded.generated and not_made_for(pod, claim, pod_groups=pod_groups):
            continue
        # A claim of the same name may be reserved for an earlier pod of this name.
        if is_reserved_for(pod, claim, pod_groups=pod_groups):
            yield claim
