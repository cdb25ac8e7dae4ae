"""resourcequota (a decision): a quota's status says how much of what it limits is used.

Admission charges what is created; this counts everything anew when something is deleted or no longer
counts, and every few minutes, so that what was charged and never came to be is given back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.quota import (
    PERSISTENTVOLUMECLAIMS,
    RESOURCECLAIMS,
    RESOURCEQUOTAS,
    SERVICES,
    ResourceQuota,
    ResourceQuotaStatus,
)
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
PERIOD = Flag("resource-quota-sync-period", 300.0, "How often all quotas are counted anew.")
MOMENT = timedelta(seconds=1)

TYPED: Mapping[str, Kind[Any]] = {kind.resource: kind for kind in (PODS, SERVICES, PERSISTENTVOLUMECLAIMS)}
"""What a quota counts by more than its number."""
CLAIMS = RESOURCECLAIMS.resource


def resource_of(name: str) -> str:
    """The resource a name in a quota is about; empty where nobody knows."""
    for resource in (*TYPED, CLAIMS):
        if evaluator(resource).matching(name):
            return resource
    if name.startswith(COUNT):
        return name.removeprefix(COUNT)
    return name if name in BARE else ""


class Seen(msgspec.Struct, frozen=True):
    quota: ResourceQuota
    objects: Mapping[str, tuple[Any, ...]]
    """What of `TYPED` the quota is about."""
    counts: Mapping[str, int | None]
    """How many there are of the rest; None of what is not served."""
    unfilled: tuple[str, ...]
    """The resources of which not everything has been read yet."""


def observe(caches: Caches, key: Key) -> Seen | None:
    quota = caches[RESOURCEQUOTAS].get(key)
    if quota is None:
        return None
    everything = caches.all_objects
    resources = dict.fromkeys(filter(None, map(resource_of, quota.spec.hard)))
    namespace = key.namespace
    objects = {one: tuple(caches[TYPED[one]].list(namespace)) for one in resources if one in TYPED}
    counts = {one: everything.count(one, namespace) for one in resources if one not in TYPED}
    unfilled = tuple(one for one in everything.unfilled if one in resources)
    return Seen(quota, objects, counts, unfilled)


# -- counting -------------------------------------------------------------------------------------


def overdue(pod: Pod) -> datetime | None:
    """When a pod that is being deleted should have been gone: from then on it is nobody's to pay for."""
    meta = pod.metadata
    if meta.deletionTimestamp is None or meta.deletionGracePeriodSeconds is None:
        return None
    return meta.deletionTimestamp + timedelta(seconds=meta.deletionGracePeriodSeconds)


def _ended(pod: Pod, now: datetime) -> bool:
    due = overdue(pod)
    return pod.status.phase in ("Succeeded", "Failed") or (due is not None and now > due)


def usage(seen: Seen, claims: Iterable[Any], now: datetime) -> dict[str, Quantity]:
    """How much of each name is used. Names that nobody can count are missing."""
    quota = seen.quota
    scopes = scopes_of(quota)
    used: Amounts = {}
    counted: dict[str, None] = {}
    for name in quota.spec.hard:
        resource = resource_of(name)
        if resource in TYPED or resource == CLAIMS:
            counted[name] = None
        elif resource and (number := seen.counts[resource]) is not None:
            # Of what is counted by number alone nothing is within any scope.
            used[name] = Quantity.of(0 if scopes else number)
    for resource, objects in (*seen.objects.items(), (CLAIMS, claims)):
        rules = evaluator(resource)
        for obj in objects:
            if all(rules.scoped(obj, scope) for scope in scopes):
                ended = resource == PODS.resource and _ended(obj, now)
                add(used, {"count/pods": ONE} if ended else rules.usage(obj))
    names = (name for name in quota.spec.hard if name in used or name in counted)
    return {name: used.get(name, ZERO) for name in names}


def _amounts(written: Mapping[str, Any]) -> Amounts:
    return {name: Quantity.parse(amount) for name, amount in written.items()}


def status(quota: ResourceQuota, counted: Mapping[str, Quantity]) -> ResourceQuotaStatus:
    """What the quota should say: what was counted, and of the rest what it said before."""
    hard = quota.spec.hard
    used = {name: str(amount) for name, amount in quota.status.used.items() if name in hard}
    used |= {name: str(amount) for name, amount in counted.items()}
    return ResourceQuotaStatus(hard=dict(hard), used=used)


async def decide(seen: Seen, now: datetime) -> Verdict:
    quota = seen.quota
    if seen.unfilled:
        return Wake(MOMENT, f"not everything has been read yet: {', '.join(seen.unfilled)}")
    claims: Iterable[Any] = ()
    if any(resource_of(name) == CLAIMS for name in quota.spec.hard):
        claims = await List(RESOURCECLAIMS, quota.metadata.namespace, as_manager=True)
    try:
        wanted = status(quota, usage(seen, claims, now))
        same = _amounts(wanted.hard) == _amounts(quota.status.hard) and _amounts(wanted.used) == _amounts(
            quota.status.used
        )
    except ValueError as error:
        raise InvalidSpec(str(error)) from None
    if not same:
        await UpdateStatus(quota, wanted)
    because = "is up to date" if same else "was counted anew"
    due = [one for pod in seen.objects.get(PODS.resource, ()) if (one := overdue(pod)) and one >= now]
    if due:
        return Wake(min(due) - now + MOMENT, f"{because}; a pod that is going should be gone then")
    return Rest(because)


# -- when to count --------------------------------------------------------------------------------

EXCEPT = ("bindings", "events", "events.events.k8s.io")


def _limits_changed(caches: Caches, change: Change[ResourceQuota]) -> Iterable[Key]:
    """Admission writes the status all the time: that is no reason to count."""
    old, new = change.old, change.new
    if old is not None and new is not None and old is not new and old.spec == new.spec:
        return ()
    return (change.obj.key,)


def _about(caches: Caches, namespace: str, resource: str) -> Iterator[Key]:
    for quota in caches[RESOURCEQUOTAS].list(namespace):
        if any(resource_of(name) == resource for name in quota.spec.hard):
            yield quota.key


def _concerned(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """What went, or counts otherwise than before. What came was charged by admission."""
    old, new = change.old, change.new
    if old is None or old is new:
        return ()
    resource = kind_of(change.obj).resource
    if new is not None and not _differs(resource, old, new):
        return ()
    return _about(caches, change.obj.metadata.namespace, resource)


def _differs(resource: str, old: Any, new: Any) -> bool:
    rules = evaluator(resource)
    if resource == PODS.resource:
        if (old.metadata.deletionTimestamp is None) != (new.metadata.deletionTimestamp is None):
            return True
        if old.status.phase == new.status.phase and old.spec is new.spec:
            return False
    return bool(rules.usage(old) != rules.usage(new)) or rules.updates(new, old, "")


def _deleted(caches: Caches, kind: Kind[Any], change: Change[Any]) -> Iterable[Key]:
    if change.new is not None or kind.resource in TYPED or not kind.namespaced:
        return ()
    return _about(caches, change.obj.metadata.namespace, kind.resource)


def configure(settings: Settings) -> Controller[Seen]:
    return Controller(
        name="resourcequota-controller",
        aliases=("resourcequota",),
        service_account="resourcequota-controller",
        watches=(
            Watch(RESOURCEQUOTAS, to=_limits_changed),
            Watch(PODS, to=_concerned),
            Watch(SERVICES, to=_concerned),
            Watch(PERSISTENTVOLUMECLAIMS, to=_concerned),
        ),
        follows_all=AllResources(to=_deleted, verbs=("create", "delete", "list", "watch"), excluded=EXCEPT),
        workers=WORKERS,
        resync=settings[PERIOD],
        flags=(PERIOD,),
        configure=configure,
        observe=observe,
        decide=decide,
    )


controller = configure(DEFAULTS)
