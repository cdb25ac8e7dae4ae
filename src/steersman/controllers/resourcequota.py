"""resourcequota-controller (a decision): recalculates the usage in the status of ResourceQuotas.

Admission charges objects when they are created. The controller recalculates the usage when objects are deleted
or count differently, and every sync period, to give back what was charged for objects that were never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.devices import RESOURCECLAIMS
from steersman.api.kinds.quota import (
    RESOURCEQUOTAS,
    ResourceQuota,
    ResourceQuotaStatus,
)
from steersman.api.kinds.services import SERVICES
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS
from steersman.api.quantity import ZERO, Quantity
from steersman.api.quota.compute import Amounts, add
from steersman.api.quota.scopes import scopes_of
from steersman.api.quota.usage import BARE, COUNT, ONE, evaluator
from steersman.api.scheme import Key, Kind, kind_of
from steersman.intent.actions import List, UpdateStatus
from steersman.intent.all_resources import AllResources
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

WORKERS = Flag("concurrent-resource-quota-syncs", 5)
SYNC_PERIOD = Flag("resource-quota-sync-period", 300.0, "The period for a full recalculation of quota usage.")
SYNC_POLL = timedelta(seconds=1)

TYPED: Mapping[str, Kind[Any]] = {kind.resource: kind for kind in (PODS, SERVICES, PERSISTENTVOLUMECLAIMS)}
"""The resources whose usage depends on the objects, and not only on their number."""
CLAIMS = RESOURCECLAIMS.resource


def resource_of(name: str) -> str:
    """The resource that a name in ``spec.hard`` limits; empty where the name is unknown."""
    for resource in (*TYPED, CLAIMS):
        if evaluator(resource).matching(name):
            return resource
    if name.startswith(COUNT):
        return name.removeprefix(COUNT)
    return name if name in BARE else ""


class Observation(msgspec.Struct, frozen=True):
    """A quota and the objects of its namespace that it limits."""

    quota: ResourceQuota
    objects: Mapping[str, tuple[Any, ...]]
    """The objects of `TYPED` resources that the quota limits."""
    counts: Mapping[str, int | None]
    """The number of objects of other resources; None for a resource that is not served."""
    unfilled: tuple[str, ...]
    """Resources whose cache is not synced."""


def observe(caches: Caches, key: Key) -> Observation | None:
    quota = caches[RESOURCEQUOTAS].get(key)
    if quota is None:
        return None
    resources = dict.fromkeys(filter(None, map(resource_of, quota.spec.hard)))
    namespace = key.namespace
    objects = {one: tuple(caches[TYPED[one]].list(namespace)) for one in resources if one in TYPED}
    counts = {one: caches.all_objects.count(one, namespace) for one in resources if one not in TYPED}
    unfilled = tuple(one for one in caches.all_objects.unfilled if one in resources)
    return Observation(quota, objects, counts, unfilled)


# -- usage ----------------------------------------------------------------------------------------


def termination_deadline(pod: Pod) -> datetime | None:
    """The end of a terminating pod's grace period, from which on it no longer counts; None for other pods."""
    meta = pod.metadata
    if meta.deletionTimestamp is None or meta.deletionGracePeriodSeconds is None:
        return None
    return meta.deletionTimestamp + timedelta(seconds=meta.deletionGracePeriodSeconds)


def _is_terminated(pod: Pod, now: datetime) -> bool:
    deadline = termination_deadline(pod)
    return pod.status.phase in ("Succeeded", "Failed") or (deadline is not None and now > deadline)


def usage(seen: Observation, claims: Iterable[Object], now: datetime) -> dict[str, Quantity]:
    """The usage of each name in ``spec.hard``; names that cannot be counted are left out."""
    quota = seen.quota
    scopes = scopes_of(quota)
    used: Amounts = {}
    counted: dict[str, None] = {}
    for name in quota.spec.hard:
        resource = resource_of(name)
        if resource in TYPED or resource == CLAIMS:
            counted[name] = None
        elif resource and (number := seen.counts[resource]) is not None:
            # Objects that are only counted match no scope.
            used[name] = Quantity.of(0 if scopes else number)
    limited: Mapping[str, Iterable[Any]] = {**seen.objects, CLAIMS: claims}
    for resource, objects in limited.items():
        rules = evaluator(resource)
        for obj in objects:
            if all(rules.scoped(obj, scope) for scope in scopes):
                terminated = resource == PODS.resource and _is_terminated(obj, now)
                add(used, {"count/pods": ONE} if terminated else rules.usage(obj))
    names = (name for name in quota.spec.hard if name in used or name in counted)
    return {name: used.get(name, ZERO) for name in names}


def _quantities(written: Mapping[str, Any]) -> Amounts:
    return {name: Quantity.parse(amount) for name, amount in written.items()}


def new_status(quota: ResourceQuota, counted: Mapping[str, Quantity]) -> ResourceQuotaStatus:
    """The status with the counted usage; names that were not counted keep their usage."""
    hard = quota.spec.hard
    used = {name: str(amount) for name, amount in quota.status.used.items() if name in hard}
    used |= {name: str(amount) for name, amount in counted.items()}
    return ResourceQuotaStatus(hard=dict(hard), used=used)


async def decide(seen: Observation, now: datetime) -> Verdict:
    quota = seen.quota
    if seen.unfilled:
        return Wake(SYNC_POLL, f"caches not synced: {', '.join(seen.unfilled)}")
    claims: Iterable[Object] = ()
    if any(resource_of(name) == CLAIMS for name in quota.spec.hard):
        claims = await List(RESOURCECLAIMS, quota.metadata.namespace, as_manager=True)
    try:
        status = new_status(quota, usage(seen, claims, now))
        same = _quantities(status.hard) == _quantities(quota.status.hard) and _quantities(
            status.used
        ) == _quantities(quota.status.used)
    except ValueError as error:
        raise InvalidSpec(str(error)) from None
    if not same:
        await UpdateStatus(quota, status)
    because = "usage up to date" if same else "usage recalculated"
    pods = seen.objects.get(PODS.resource, ())
    deadlines = [one for pod in pods if (one := termination_deadline(pod)) and one >= now]
    if deadlines:
        return Wake(min(deadlines) - now + SYNC_POLL, f"{because}; pods are terminating")
    return Rest(because)


# -- enqueue --------------------------------------------------------------------------------------

IGNORED = ("bindings", "events", "events.events.k8s.io")


def _quota_changed(caches: Caches, change: Change[ResourceQuota]) -> Iterable[Key]:
    """A quota whose spec changes. Admission updates the status all the time, which is ignored."""
    old, new = change.old, change.new
    if old is not None and new is not None and old is not new and old.spec == new.spec:
        return ()
    return (change.obj.key,)


def _quotas_of(caches: Caches, namespace: str, resource: str) -> Iterator[Key]:
    for quota in caches[RESOURCEQUOTAS].list(namespace):
        if any(resource_of(name) == resource for name in quota.spec.hard):
            yield quota.key


def _usage_changed(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """The quotas of an object that is deleted or whose usage changes. New objects are charged by admission."""
    old, new = change.old, change.new
    if old is None or old is new:
        return ()
    resource = kind_of(change.obj).resource
    if new is not None and not _usage_differs(resource, old, new):
        return ()
    return _quotas_of(caches, change.obj.metadata.namespace, resource)


def _usage_differs(resource: str, old: Any, new: Any) -> bool:
    rules = evaluator(resource)
    if resource == SERVICES.resource:
        # Their status changes often, and counts for nothing.
        return bool(rules.usage(old) != rules.usage(new))
    if resource == PODS.resource:
        if (old.metadata.deletionTimestamp is None) != (new.metadata.deletionTimestamp is None):
            return True
        if old.status.phase == new.status.phase and old.spec is new.spec:
            return False
    return bool(rules.usage(old) != rules.usage(new)) or rules.updates(new, old, "")


def _deleted(caches: Caches, kind: Kind[Any], change: Change[Any]) -> Iterable[Key]:
    if change.new is not None or kind.resource in TYPED or not kind.namespaced:
        return ()
    return _quotas_of(caches, change.obj.metadata.namespace, kind.resource)


def configure(settings: Settings) -> Controller[Observation]:
    return Controller(
        name="resourcequota-controller",
        aliases=("resourcequota",),
        service_account="resourcequota-controller",
        watches=(
            Watch(RESOURCEQUOTAS, to=_quota_changed),
            Watch(PODS, to=_usage_changed),
            Watch(SERVICES, to=_usage_changed),
            Watch(PERSISTENTVOLUMECLAIMS, to=_usage_changed),
        ),
        follows_all=AllResources(to=_deleted, verbs=("create", "delete", "list", "watch"), excluded=IGNORED),
        workers=WORKERS,
        resync=settings[SYNC_PERIOD],
        flags=(SYNC_PERIOD,),
        configure=configure,
        observe=observe,
        decide=decide,
    )


controller = configure(DEFAULTS)
