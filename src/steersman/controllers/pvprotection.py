"""persistentvolume-protection-controller (a decision): keeps a PersistentVolume that is being deleted while it is bound."""

from __future__ import annotations

from datetime import datetime

from steersman.api.kinds.storage import PERSISTENTVOLUMES, PersistentVolume
from steersman.controllers.shared.protection import (
    add_finalizer,
    is_deletion_candidate,
    needs_finalizer,
    needs_sync,
    remove_finalizer,
)
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict

FINALIZER = "kubernetes.io/pv-protection"


async def decide(volume: PersistentVolume, now: datetime) -> Verdict:
    if is_deletion_candidate(volume, FINALIZER):
        # The phase is enough: persistentvolume-binder-controller sets it before a claim counts as bound.
        if volume.status.phase == "Bound":
            return Rest("volume is bound to a claim")
        await remove_finalizer(volume, FINALIZER)
        return Rest("finalizer removed")
    if needs_finalizer(volume, FINALIZER):
        await add_finalizer(volume, FINALIZER)
        return Rest("finalizer added")
    return Rest("volume is protected")


def _needs_sync(volume: PersistentVolume) -> bool:
    return needs_sync(volume, FINALIZER)


controller = Controller(
    name="persistentvolume-protection-controller",
    aliases=("pv-protection",),
    service_account="pv-protection-controller",
    watches=(Watch(PERSISTENTVOLUMES, when=_needs_sync),),
    workers=1,
    decide=decide,
)
