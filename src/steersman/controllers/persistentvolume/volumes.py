"""The rounds of volumes: keeps the phase of each volume, and reclaims volumes whose claim is gone."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PersistentVolume, PersistentVolumeClaim
from steersman.api.volume_binding import PROVISIONED_BY, mode_of
from steersman.controllers.persistentvolume.binding import (
    AVAILABLE,
    BOUND,
    FAILED,
    RELEASED,
    set_phase,
    unbind,
)
from steersman.controllers.persistentvolume.plugins import migrated_volume_annotations, protecting_finalizers
from steersman.controllers.persistentvolume.reclaim import reclaim
from steersman.controllers.persistentvolume.recycle import is_to_be_recycled, stop
from steersman.controllers.persistentvolume.seen import VolumeSeen, emit, remind
from steersman.intent.actions import Address, Read, Update
from steersman.intent.verdict import Rest, Verdict, Wake

TAKING = timedelta(seconds=1)
"""The time after which a volume is looked at again that a claim was about to take."""
NEW = timedelta(seconds=10)
"""The age up to which a volume is not made available while a claim may take it, which saves a write."""


async def decide_volume(seen: VolumeSeen, now: datetime) -> Verdict:
    if seen.taken_by is not None:
        return Wake(TAKING, f"claim {seen.taken_by} is about to take it")
    if seen.claims_due and seen.volume.status.phase != AVAILABLE and _is_new(seen.volume, now):
        return Wake(TAKING, "claims of its class look for volumes")
    if seen.volume.metadata.name in seen.memory.recyclers and not is_to_be_recycled(seen):
        await stop(seen)
    volume = await _mark_migrated(seen.volume)
    ref = volume.spec.claimRef
    if ref is None or not ref.uid:
        await set_phase(volume, AVAILABLE)
        return Rest("available" if ref is None else f"reserved for claim {ref.namespace}/{ref.name}")
    claim = await _claim_of(seen, volume)
    if claim is None:
        return await _release(seen, volume, f"claim {ref.namespace}/{ref.name} is gone")
    if not claim.spec.volumeName:
        return _until_cached(seen, claim, await _await_claim(seen, volume, claim))
    if claim.spec.volumeName == volume.metadata.name:
        await set_phase(volume, BOUND)
        return _until_cached(seen, claim, Rest(f"bound to claim {claim.key}"))
    elsewhere = f"claim {claim.key} is bound to volume {claim.spec.volumeName}"
    if (
        PROVISIONED_BY in volume.metadata.annotations
        and volume.spec.persistentVolumeReclaimPolicy == "Delete"
    ):
        return await _release(seen, volume, elsewhere)
    await unbind(volume)
    return Rest(elsewhere)


def _is_new(volume: PersistentVolume, now: datetime) -> bool:
    created = volume.metadata.creationTimestamp
    return created is not None and now - created < NEW


async def _mark_migrated(volume: PersistentVolume) -> PersistentVolume:
    """Correct the name of the CSI driver that a volume was migrated to, and the finalizers that follow from it."""
    annotations = migrated_volume_annotations(volume.metadata.annotations)
    finalizers = protecting_finalizers(volume)
    if annotations is volume.metadata.annotations and finalizers is volume.metadata.finalizers:
        return volume
    corrected = replace(volume.metadata, annotations=annotations, finalizers=finalizers)
    written: PersistentVolume = await Update(replace(volume, metadata=corrected))
    return written


async def _claim_of(seen: VolumeSeen, volume: PersistentVolume) -> PersistentVolumeClaim | None:
    """The claim that a volume is bound to, by its uid; None if it is gone. The cache may not show a new claim yet."""
    ref, claim = volume.spec.claimRef, seen.claim
    assert ref is not None
    if claim is not None and claim.metadata.uid == ref.uid:
        return claim
    if claim is None and volume.status.phase in (RELEASED, FAILED):
        return None
    try:
        claim = await Read(Address(PERSISTENTVOLUMECLAIMS, ref.namespace, ref.name))
    except NotFound:
        return None
    return claim if claim.metadata.uid == ref.uid else None


def _until_cached(seen: VolumeSeen, claim: PersistentVolumeClaim, verdict: Verdict) -> Verdict:
    """The verdict on a volume; not the last one while the cache lacks its claim, which may go before it is ever cached."""
    if claim is seen.claim or isinstance(verdict, Wake):
        return verdict
    return Wake(timedelta(seconds=seen.config.sync_period), verdict.because)


async def _await_claim(seen: VolumeSeen, volume: PersistentVolume, claim: PersistentVolumeClaim) -> Verdict:
    """The round of the claim completes the binding, unless the volume cannot be the claim's."""
    if mode_of(volume.spec) == mode_of(claim.spec):
        return Rest(f"waiting for the round of claim {claim.key} to complete the binding")
    name, reason = volume.metadata.name, "due to incompatible volumeMode."
    to_volume = (
        f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.metadata.name}" {reason}'
    )
    await emit(seen, volume, "Warning", "VolumeMismatch", to_volume)
    to_claim = f'Cannot bind PersistentVolume "{name}" to requested PersistentVolumeClaim {reason}'
    await emit(seen, claim, "Warning", "VolumeMismatch", to_claim)
    return remind(f"incompatible volumeMode of claim {claim.key}")


async def _release(seen: VolumeSeen, volume: PersistentVolume, because: str) -> Verdict:
    """Release a volume and reclaim it. A volume that has failed stays Failed, for users to see, and is tried again."""
    if volume.status.phase not in (RELEASED, FAILED):
        volume = await set_phase(volume, RELEASED)
    return await reclaim(seen, volume, because)
