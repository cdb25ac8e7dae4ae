"""ephemeral-volume-controller (a decision): creates the claims of pods' ephemeral volumes.

A claim has the name of its pod and of the volume, and the labels, annotations and spec of the volume's template. The pod
controls it, so that the garbage collector deletes the one with the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.kinds import PODS, ObjectMeta, PersistentVolumeClaimTemplate, Pod, Volume
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, NewClaim, PersistentVolumeClaim
from steersman.api.meta import owner_reference
from steersman.api.scheme import Key
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_keys, ephemeral_claim_name, is_made_for
from steersman.intent.actions import Address, Create, Emit, Read
from steersman.intent.controller import Caches, Change, Controller, Flag, Watch
from steersman.intent.metrics import Measure, Metric
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

CREATED = Metric(
    "ephemeral_volume_controller_create_total", "Number of PersistentVolumeClaim creation requests"
)
FAILED = Metric(
    "ephemeral_volume_controller_create_failures_total",
    "Number of PersistentVolumeClaim creation requests that failed",
)


class Observation(msgspec.Struct, frozen=True):
    """A pod, and the claims that have the names of its ephemeral volumes' claims, by name."""

    pod: Pod
    claims: Mapping[str, PersistentVolumeClaim]


def observe(caches: Caches, key: Key) -> Observation | None:
    pod = caches[PODS].get(key)
    if pod is None:
        return None
    claims = (
        caches[PERSISTENTVOLUMECLAIMS].get(Key(key.namespace, ephemeral_claim_name(pod, volume)))
        for volume in pod.spec.volumes
        if volume.ephemeral is not None
    )
    return Observation(pod, {claim.metadata.name: claim for claim in claims if claim is not None})


def new_claim(pod: Pod, volume: Volume) -> NewClaim:
    """The claim of an ephemeral volume."""
    source = volume.ephemeral
    template = source.volumeClaimTemplate if source is not None else None
    template = template or PersistentVolumeClaimTemplate()
    return NewClaim(
        metadata=ObjectMeta(
            name=ephemeral_claim_name(pod, volume),
            namespace=pod.metadata.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            ownerReferences=(owner_reference(pod, PODS),),
        ),
        spec=template.spec,
    )


async def decide(seen: Observation, now: datetime) -> Verdict:
    pod = seen.pod
    if pod.metadata.deletionTimestamp is not None:
        return Rest("pod is being deleted")
    created = 0
    for volume in pod.spec.volumes:
        if volume.ephemeral is None:
            continue
        claim = seen.claims.get(ephemeral_claim_name(pod, volume))
        try:
            if claim is not None:
                _require_owner(claim, pod)
            else:
                await _create(pod, volume)
                created += 1
        except (ApiError, InvalidSpec) as error:
            await Emit(pod, "Warning", "FailedBinding", f"ephemeral volume {volume.name}: {error}")
            raise
    return Rest(f"created {created} claims" if created else "all claims exist")


async def _create(pod: Pod, volume: Volume) -> None:
    claim = new_claim(pod, volume)
    namespace, name = claim.metadata.namespace, claim.metadata.name
    await Measure(CREATED)
    try:
        await Create(PERSISTENTVOLUMECLAIMS, namespace, claim)
    except ApiError as error:
        await Measure(FAILED)
        if isinstance(error, AlreadyExists):
            # differs: upstream reports this as a failure, though the claim may be its own that the cache lacks.
            _require_owner(await Read(Address(PERSISTENTVOLUMECLAIMS, namespace, name)), pod)
            return
        raise type(error)(f"create PVC {name}: {error}", code=error.code) from error


def _require_owner(claim: PersistentVolumeClaim, pod: Pod) -> None:
    """Raises `InvalidSpec` where a claim has the name of a pod's claim and is not of that pod."""
    if not is_made_for(claim, pod):
        raise InvalidSpec(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")


# -- enqueue --------------------------------------------------------------------------------------


def _needs_claims(pod: Pod) -> bool:
    return pod.metadata.deletionTimestamp is None and any(
        volume.ephemeral is not None for volume in pod.spec.volumes
    )


def _pod_added(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A new pod. Its volumes never change.

    differs: upstream takes a pod that replaced another of its name while the watch was interrupted for an update, and ignores it.
    """
    old, new = change.old, change.new
    if new is None or (old is not None and old.metadata.uid == new.metadata.uid):
        return ()
    return (new.key,) if _needs_claims(new) else ()


def _claim_deleted(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterable[Key]:
    """The pods whose claim was deleted, or that were waiting for its name.

    differs: upstream ignores a deletion that happened while the watch was interrupted.
    """
    if change.new is not None:
        return ()
    return (pod.key for pod in caches[PODS].by(BY_CLAIM, change.obj.key) if _needs_claims(pod))


controller = Controller(
    name="ephemeral-volume-controller",
    aliases=("ephemeral-volume",),
    event_component="ephemeral_volume",
    watches=(
        Watch(PODS, to=_pod_added, indexes={BY_CLAIM: claim_keys}),
        Watch(PERSISTENTVOLUMECLAIMS, to=_claim_deleted),
    ),
    works_on=(PODS,),
    workers=Flag("concurrent-ephemeralvolume-syncs", 5),
    observe=observe,
    decide=decide,
    metrics=(CREATED, FAILED),
)
