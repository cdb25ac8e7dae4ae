"""The rounds of claims: finds or requests a volume for each claim, and completes its binding."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from steersman.api.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    asks_for_class,
    class_of_claim,
    is_claimed_for,
    mismatch,
)
from steersman.controllers.persistentvolume.binding import LOST, bind, lose, stay_pending
from steersman.controllers.persistentvolume.metrics import RETROACTIVE_CLASS_ERRORS, RETROACTIVE_CLASSES
from steersman.controllers.persistentvolume.plugins import migrated_claim_annotations
from steersman.controllers.persistentvolume.provision import provision
from steersman.controllers.persistentvolume.seen import ClaimSeen, emit
from steersman.intent.actions import Address, Read, Update
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def is_delayed(class_: StorageClass | None) -> bool:
    """Whether claims of a class wait for a pod. Raises `InvalidSpec` for a class without a binding mode."""
    if class_ is None:
        return False
    if class_.volumeBindingMode is None:
        raise InvalidSpec(f'VolumeBindingMode not set for StorageClass "{class_.metadata.name}"')
    return class_.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER


async def decide_claim(seen: ClaimSeen) -> Verdict:
    claim, volume, memory = seen.claim, seen.volume, seen.memory
    complete = BIND_COMPLETED in claim.metadata.annotations
    # Before the first await: no other round may choose in between.
    if not complete and not claim.spec.volumeName:
        _refuse_attributes_class(seen)
        if volume is not None:
            memory.choose(volume, claim.key)
        elif not is_delayed(seen.storage_class):
            memory.wait(claim)
    annotations = migrated_claim_annotations(claim.metadata.annotations)
    if annotations is not claim.metadata.annotations:
        claim = await Update(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
    if complete:
        return await _keep_bound(seen, claim)
    if claim.spec.volumeName:
        return await _bind_requested(seen, claim)
    if volume is not None:
        return await _bind_found(seen, claim, volume)
    return await _wait_for_volume(seen, claim)


def _refuse_attributes_class(seen: ClaimSeen) -> None:
    claim = seen.claim
    if claim.spec.volumeAttributesClassName and not seen.config.attributes_classes:
        raise InvalidSpec(
            f'error finding PV for claim "{claim.key}": unsupported volumeAttributesClassName is set on claim '
            f"{claim.key} when the feature-gate VolumeAttributesClass is disabled"
        )


# -- claims that are not bound yet ------------------------------------------------------------


async def _bind_found(seen: ClaimSeen, claim: PersistentVolumeClaim, volume: PersistentVolume) -> Verdict:
    if volume.spec.claimRef is None and await _is_class_delayed(seen):
        seen.memory.drop_choice(volume)
        return Rest("its class waits for the first consumer, which the cache does not show yet")
    try:
        await bind(volume, claim, attributes_classes=seen.config.attributes_classes)
    except ApiError:
        for measure in seen.memory.failed(claim.key):
            await measure
        raise
    for measure in seen.memory.succeeded(claim.key, seen.monotonic + await Elapsed()):
        await measure
    return Rest(f"bound to volume {volume.metadata.name}")


async def _is_class_delayed(seen: ClaimSeen) -> bool:
    """Whether a class that the cache does not show makes the claim wait for a pod.

    differs: upstream trusts its cache, and so may bind a claim that is created with its class before a node is chosen.
    """
    name, memory = class_of_claim(seen.claim), seen.memory
    if not name or seen.storage_class is not None or memory.is_absent(name, seen.monotonic):
        return False
    try:
        return is_delayed(await Read(Address(STORAGECLASSES, "", name)))
    except NotFound:
        memory.found_absent(name, seen.monotonic)
        return False


async def _wait_for_volume(seen: ClaimSeen, claim: PersistentVolumeClaim) -> Verdict:
    if seen.default_class is not None and not asks_for_class(claim):
        return await _assign_default_class(claim, seen.default_class)
    if is_delayed(seen.storage_class) and SELECTED_NODE not in claim.metadata.annotations:
        reason, message = _waiting_for_consumer(seen.unscheduled_pods)
        await emit(seen, claim, "Normal", reason, message)
    elif class_of_claim(claim):
        return await provision(seen, claim)
    else:
        message = "no persistent volumes available for this claim and no storage class is set"
        await emit(seen, claim, "Normal", "FailedBinding", message)
    await stay_pending(claim)
    return Rest(message)


def _waiting_for_consumer(pods: tuple[str, ...]) -> tuple[str, str]:
    """The reason and the message of the event about a claim whose binding is delayed."""
    if not pods:
        return WAIT_FOR_FIRST_CONSUMER, "waiting for first consumer to be created before binding"
    plural = "s" if len(pods) > 1 else ""
    return "WaitForPodScheduled", f"waiting for pod{plural} {','.join(pods)} to be scheduled"


async def _assign_default_class(claim: PersistentVolumeClaim, default: StorageClass) -> Verdict:
    name = default.metadata.name
    await Measure(RETROACTIVE_CLASSES)
    try:
        await Update(replace(claim, spec=replace(claim.spec, storageClassName=name)))
    except ApiError:
        await Measure(RETROACTIVE_CLASS_ERRORS)
        raise
    return Rest(f"default class {name} assigned")


async def _bind_requested(seen: ClaimSeen, claim: PersistentVolumeClaim) -> Verdict:
    """The user, or the scheduler, chose the volume."""
    volume, name = seen.volume, claim.spec.volumeName
    if volume is None:
        await stay_pending(claim)
        return Rest(f"waiting for volume {name} to be created")
    if volume.spec.claimRef is None:
        why = mismatch(volume, claim, attributes_classes=seen.config.attributes_classes)
        if why:
            await emit(
                seen, claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}'
            )
            await stay_pending(claim)
            return Rest(f"volume {name} does not satisfy the claim: {why}")
    elif not is_claimed_for(volume, claim):
        await emit(
            seen, claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.'
        )
        if BOUND_BY_CONTROLLER in claim.metadata.annotations:
            ref = volume.spec.claimRef
            raise InvalidSpec(
                f'invalid binding of claim "{claim.key}" to volume "{name}": volume already claimed by '
                f'"{ref.namespace}/{ref.name}"'
            )
        await stay_pending(claim)
        return Rest(f"volume {name} is bound to another claim")
    await bind(volume, claim, attributes_classes=seen.config.attributes_classes)
    return Rest(f"bound to volume {name}")


# -- claims whose binding was complete --------------------------------------------------------


async def _keep_bound(seen: ClaimSeen, claim: PersistentVolumeClaim) -> Verdict:
    name, volume = claim.spec.volumeName, seen.volume
    if not name:
        message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        await lose(claim, "ClaimLost", message)
        return Rest("lost: it names no volume any more")
    if volume is None and claim.status.phase == LOST:
        return Rest(f"lost: volume {name} is gone")
    if volume is None:
        # differs: upstream trusts its cache, which may not show a new volume yet.
        try:
            volume = await Read(Address(PERSISTENTVOLUMES, "", name))
        except NotFound:
            message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            await lose(claim, "ClaimLost", message)
            return Rest(f"lost: volume {name} is gone")
    ref = volume.spec.claimRef
    if ref is not None and ref.uid != claim.metadata.uid:
        message = "Two claims are bound to the same volume, this one is bound incorrectly"
        await lose(claim, "ClaimMisbound", message)
        return Rest(f"lost: volume {name} is bound to {ref.namespace}/{ref.name}")
    await bind(volume, claim, attributes_classes=seen.config.attributes_classes)
    return Rest(f"bound to volume {name}")
