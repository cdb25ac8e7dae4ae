"""garbage-collector (a dialogue): delete what has no owner left, and see to what must go before or after it.

Every object there is, of whichever kind, is looked at by what its metadata says. One that is being deleted
waits until its dependents were let go of (``orphan``) or have gone (``foregroundDeletion``). Any other is
deleted once none of its owners exists: an owner is a uid at a place, and what the cache does not show of
it is asked of the server before anything is deleted. Objects of kinds nobody can look up are left alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from steersman.controllers.garbagecollector.absent_owners import Absent, coordinates
from steersman.controllers.garbagecollector.apply import drop_owners, remove, strip, unblock
from steersman.controllers.garbagecollector.observe import Seen, Standing, concerned, observe
from steersman.controllers.garbagecollector.owner_classification import Impossible, Judged, judge
from steersman.controllers.garbagecollector.owner_refs import (
    FOREGROUND,
    ORPHAN,
    OWNER,
    leaves,
    owner_uids,
    waits,
)
from steersman.intent.actions import Propagation
from steersman.intent.all_resources import AllResources, Item
from steersman.intent.controller import Controller, Flag
from steersman.intent.verdict import Rest, Verdict, Wake

IGNORED = ("events", "events.events.k8s.io")
"""Events are never owned, and there are very many."""
SHOWN = timedelta(seconds=30)
"""When to look again at what is owned by something the cache does not show."""
UNREAD = timedelta(seconds=1000)
"""The same, where the cache will not show it soon: upstream's longest pause."""
FILLING = timedelta(seconds=30)
"""For how long an object that waits for its dependents waits for caches to be filled, too."""
MOMENT = timedelta(seconds=1)


async def decide(seen: Seen, now: datetime) -> Verdict:
    item = seen.item
    if leaves(item.obj, ORPHAN):
        return _unread(seen, now) or await _let_go(seen)
    if waits(item.obj):
        return _unread(seen, now) or await _finish(seen)
    if item.obj.metadata.deletionTimestamp is not None:
        return Rest("is going already: what it owns is looked at once it is gone")
    if not seen.owners:
        return Rest("has no owner")
    if all(owner.standing is Standing.SOLID for owner in seen.owners):
        return Rest("its owner lives" if len(seen.owners) == 1 else "its owners live")
    try:
        judged = await judge(seen)
    except Impossible as error:
        return Rest(f"left alone: {error}")
    return await _collect(seen, judged)


# -- what is being deleted ------------------------------------------------------------------------


def _unread(seen: Seen, now: datetime) -> Verdict | None:
    """Dependents may be among what has not been read yet."""
    began = seen.item.obj.metadata.deletionTimestamp
    # differs: upstream goes by what it has read. What is orphaned half-way is lost.
    if not seen.unfilled or began is None or now - began >= FILLING:
        return None
    return Wake(MOMENT, f"not everything has been read yet: {', '.join(seen.unfilled[:3])}")


async def _let_go(seen: Seen) -> Verdict:
    uid = seen.item.uid
    await drop_owners(seen.dependents, lambda reference: reference.uid == uid)
    await strip(seen.item, ORPHAN)
    return Rest(f"let go of {len(seen.dependents)} dependents, as it was asked to")


async def _finish(seen: Seen) -> Verdict:
    if seen.dependents:
        return Rest(f"waits for its dependents to go: {seen.dependents[0]} is still there")
    await strip(seen.item, FOREGROUND)
    return Rest("its dependents are gone, so it goes")


# -- what may be garbage --------------------------------------------------------------------------


async def _collect(seen: Seen, judged: Judged) -> Verdict:
    item = seen.item
    if judged.solid:
        # differs: upstream forgets every reference with the uid of one that is gone.
        gone = [coordinates(reference, "") for reference in (*judged.absent, *judged.waiting)]
        if gone:
            # One that waits would wait for ever for what another owner keeps alive.
            await drop_owners((item,), lambda reference: coordinates(reference, "") in gone)
            return Rest(f"owned by {judged.solid[0].kind} {judged.solid[0].name}; its other owners are gone")
        owner = f"{judged.solid[0].kind} {judged.solid[0].name}"
        if judged.unseen:
            later = UNREAD if judged.unread else SHOWN
            return Wake(later, f"its owner lives, but the cache does not show it: {owner}")
        return Rest(f"owned by {owner}")
    if judged.waiting and seen.dependents:
        if seen.circle:
            # Each would wait for the other. The owner need not wait for this one.
            freed = await unblock(item)
            if freed is None:
                return Rest(GONE)
            item = Item(item.kind, freed)
        done = await remove(item, "Foreground")
        return Rest(f"deleted in the foreground, as its owner is: {judged.waiting[0].name}" if done else GONE)
    if not await remove(item, policy(item)):
        return Rest(GONE)
    return Rest(f"deleted: none of its owners lives{_whom(judged)}")


GONE = "has gone already, or is going"


def _whom(judged: Judged) -> str:
    every = (*judged.absent, *judged.waiting)
    return f" ({every[0].kind} {every[0].name})" if len(every) == 1 else ""


def policy(item: Item) -> Propagation:
    """How an object wants to be deleted: by the finalizer it has, if it has one."""
    finalizers = item.obj.metadata.finalizers
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


ENABLED = Flag(
    "enable-garbage-collector",
    True,
    "Delete objects whose owners are gone. Must be the same as the API server's flag of that name.",
)


controller = Controller(
    name="garbage-collector-controller",
    aliases=("garbagecollector",),
    service_account="generic-garbage-collector",
    watches=(),
    follows_all=AllResources(to=concerned, excluded=IGNORED, indexes={OWNER: owner_uids}),
    memory=Absent,
    workers=Flag("concurrent-gc-syncs", 20),
    flags=(ENABLED,),
    enabled=lambda settings: settings[ENABLED],
    observe=observe,
    decide=decide,
    qps_factor=2.0,
    event_component="garbage-collector-controller",
)
