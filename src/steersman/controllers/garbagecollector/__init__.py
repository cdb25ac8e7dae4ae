"""garbage-collector-controller (a dialogue): deletes objects whose owners are gone.

It watches the metadata of every resource. An object that is being deleted waits until its dependents are
orphaned (``orphan``) or deleted (``foregroundDeletion``). Any other object is deleted once none of its owners
exists. An owner is a uid at an address; where the cache lacks it, it is read live before anything is deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from steersman.controllers.garbagecollector.graph import Observation, OwnerState, enqueue, observe
from steersman.controllers.garbagecollector.operations import (
    delete_object,
    remove_finalizer,
    remove_owner_references,
    unblock_owners,
)
from steersman.controllers.garbagecollector.owner_classification import (
    Classified,
    NamespacedOwner,
    classify_owners,
)
from steersman.controllers.garbagecollector.owner_refs import (
    FOREGROUND,
    ORPHAN,
    OWNER,
    AbsentOwners,
    coordinates,
    is_deleting_dependents,
    is_orphaning,
    owner_uids,
)
from steersman.intent.actions import Propagation
from steersman.intent.all_resources import AllResources, Item
from steersman.intent.controller import Controller, Flag
from steersman.intent.verdict import Rest, Verdict, Wake

IGNORED = ("events", "events.events.k8s.io")
"""Events have no owners, and there are very many."""
RECHECK_UNCACHED = timedelta(seconds=30)
"""The pause before an owner that the cache lacks is read again."""
RECHECK_UNWATCHED = timedelta(seconds=1000)
"""The same for an owner whose resource is not watched: upstream's longest back-off."""
SYNC_TIMEOUT = timedelta(seconds=30)
"""How long a deletion waits for caches that are not synced."""
SYNC_POLL = timedelta(seconds=1)

GONE = "already gone or being deleted"

ENABLED = Flag(
    "enable-garbage-collector",
    True,
    "Delete objects whose owners are gone. Must be the same as the API server's flag of that name.",
)


async def decide(seen: Observation, now: datetime) -> Verdict:
    obj = seen.item.obj
    if is_orphaning(obj):
        return _wait_for_sync(seen, now) or await _orphan_dependents(seen)
    if is_deleting_dependents(obj):
        return _wait_for_sync(seen, now) or await _finish_foreground_deletion(seen)
    if obj.metadata.deletionTimestamp is not None:
        return Rest("already being deleted")
    if not seen.owners:
        return Rest("no ownerReferences")
    if all(owner.state is OwnerState.SOLID for owner in seen.owners):
        return Rest("owner exists" if len(seen.owners) == 1 else "owners exist")
    try:
        owners = await classify_owners(seen)
    except NamespacedOwner as error:
        return Rest(f"not collected: {error}")
    return await _attempt_to_delete(seen, owners)


# -- objects that are being deleted ---------------------------------------------------------------


def _wait_for_sync(seen: Observation, now: datetime) -> Verdict | None:
    """Waits a while for caches that are not synced: dependents may be among the objects they lack."""
    began = seen.item.obj.metadata.deletionTimestamp
    # differs: upstream goes by what it has read. Dependents it has not read would lose their owner.
    if not seen.unfilled or began is None or now - began >= SYNC_TIMEOUT:
        return None
    return Wake(SYNC_POLL, f"caches not synced: {', '.join(seen.unfilled[:3])}")


async def _orphan_dependents(seen: Observation) -> Verdict:
    uid = seen.item.uid
    await remove_owner_references(seen.dependents, lambda reference: reference.uid == uid)
    await remove_finalizer(seen.item, ORPHAN)
    return Rest(f"orphaned {len(seen.dependents)} dependents")


async def _finish_foreground_deletion(seen: Observation) -> Verdict:
    if seen.dependents:
        return Rest(f"waiting for dependents: {seen.dependents[0]} still exists")
    await remove_finalizer(seen.item, FOREGROUND)
    return Rest("dependents deleted: removed the foregroundDeletion finalizer")


# -- objects that may be garbage ------------------------------------------------------------------


async def _attempt_to_delete(seen: Observation, owners: Classified) -> Verdict:
    item = seen.item
    if owners.solid:
        owner = f"{owners.solid[0].kind} {owners.solid[0].name}"
        # differs: upstream removes every reference with the uid of one that is gone.
        gone = [coordinates(reference, "") for reference in (*owners.dangling, *owners.waiting)]
        if gone:
            # An owner that waits for its dependents would wait for ever for one that another owner keeps.
            await remove_owner_references((item,), lambda reference: coordinates(reference, "") in gone)
            return Rest(f"owner {owner} exists: removed references to other owners")
        if owners.uncached:
            pause = RECHECK_UNWATCHED if owners.unwatched else RECHECK_UNCACHED
            return Wake(pause, f"owner {owner} exists but is not cached")
        return Rest(f"owner {owner} exists")
    if owners.waiting and seen.dependents:
        if seen.in_cycle:
            # The owners and dependents of a cycle would wait for each other.
            unblocked = await unblock_owners(item)
            if unblocked is None:
                return Rest(GONE)
            item = Item(item.kind, unblocked)
        deleted = await delete_object(item, "Foreground")
        owner = owners.waiting[0].name
        return Rest(f"deleted in the foreground, as its owner {owner}" if deleted else GONE)
    if not await delete_object(item, _propagation_policy(item)):
        return Rest(GONE)
    gone_owners = (*owners.dangling, *owners.waiting)
    shown = f": {gone_owners[0].kind} {gone_owners[0].name}" if len(gone_owners) == 1 else ""
    return Rest(f"deleted: owner gone{shown}" if shown else "deleted: owners gone")


def _propagation_policy(item: Item) -> Propagation:
    """The propagation policy that the finalizers of an object ask for."""
    finalizers = item.obj.metadata.finalizers
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


controller = Controller(
    name="garbage-collector-controller",
    aliases=("garbagecollector",),
    service_account="generic-garbage-collector",
    watches=(),
    follows_all=AllResources(to=enqueue, excluded=IGNORED, indexes={OWNER: owner_uids}),
    memory=AbsentOwners,
    workers=Flag("concurrent-gc-syncs", 20),
    flags=(ENABLED,),
    enabled=lambda settings: settings[ENABLED],
    observe=observe,
    decide=decide,
    qps_factor=2.0,
    event_component="garbage-collector-controller",
)
