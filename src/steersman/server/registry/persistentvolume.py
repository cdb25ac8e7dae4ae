"""Volumes and claims: they begin Pending."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.core_v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)
from steersman.server.registry.strategy import WriteContext


def created(volume: PersistentVolume, context: WriteContext) -> PersistentVolume:
    status = PersistentVolumeStatus(phase="Pending", lastPhaseTransitionTime=context.now)
    return replace(volume, status=status)


def status_updated(new: PersistentVolume, old: PersistentVolume, context: WriteContext) -> PersistentVolume:
    """The server keeps the time of the last change of phase for writers that do not."""
    status, before = new.status, old.status
    since = status.lastPhaseTransitionTime
    if status.phase == before.phase:
        since = since or before.lastPhaseTransitionTime
    elif since is None or since == before.lastPhaseTransitionTime:
        since = context.now
    return replace(old, metadata=new.metadata, status=replace(status, lastPhaseTransitionTime=since))


def claim_created(claim: PersistentVolumeClaim, context: WriteContext) -> PersistentVolumeClaim:
    return replace(claim, status=PersistentVolumeClaimStatus(phase="Pending"))
