"""Writes ReplicaSets: creates the new one, scales and annotates the others, and records an event for each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api import generated_names, pod_templates
from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.kinds import (
    DEPLOYMENTS,
    REPLICASETS,
    Condition,
    Deployment,
    LabelSelector,
    ObjectMeta,
    ReplicaSet,
    ReplicaSetSpec,
)
from steersman.api.meta import is_controlled_by, owner_reference
from steersman.controllers.deployment import revision, rolling, status
from steersman.controllers.deployment.replicasets import (
    Limits,
    ReplicaSets,
    annotated,
    is_rolling_update,
    size,
)
from steersman.controllers.deployment.scale import replicas_annotations
from steersman.intent.actions import Batch, Create, Done, Emit, Failed, Patch, Read, UpdateStatus
from steersman.intent.verdict import Rest, Verdict, Wake

# -- existing ReplicaSets ---------------------------------------------------------------------


class SyncResult(msgspec.Struct, frozen=True):
    """The result of writing ReplicaSets."""

    sets: ReplicaSets
    """The ReplicaSets as the server has them now."""
    changes: tuple[str, ...] = ()
    """A phrase for each change, for the verdict."""
    failure: ApiError | None = None
    """The first error."""


async def sync_replicasets(before: ReplicaSets, target: ReplicaSets) -> SyncResult:
    """Writes the difference between two states of the ReplicaSets: scales down first, then up.

    In that order the sum never exceeds its limit, even after a crash in between. Nothing is scaled up when
    scaling down failed.
    """
    changes = [(old, new) for old, new in zip(before, target, strict=True) if old is not new]
    down = [(old, new) for old, new in changes if size(new) <= size(old)]
    up = [(old, new) for old, new in changes if size(new) > size(old)]
    result = await _write(before, down)
    if result.failure is not None or not up:
        return result
    second = await _write(result.sets, up)
    return SyncResult(second.sets, (*result.changes, *second.changes), second.failure)


async def _write(sets: ReplicaSets, changes: list[tuple[ReplicaSet, ReplicaSet]]) -> SyncResult:
    """Writes several ReplicaSets at once; a failed write does not stop the others."""
    if not changes:
        return SyncResult(sets)
    outcomes = await Batch(tuple(patch(old, new) for old, new in changes), slow_start=False)
    written: dict[str, ReplicaSet] = {}
    phrases: list[str] = []
    failure: ApiError | None = None
    for (old, new), outcome in zip(changes, outcomes, strict=True):
        match outcome:
            case Done(value) if value.metadata.resourceVersion == old.metadata.resourceVersion:
                pass  # reverted by the server (an admission webhook may), so no change will be observed
            case Done(value):
                name = old.metadata.name
                written[name] = value
                if size(old) != size(new):
                    phrases.append(f"scaled {name} from {size(old)} to {size(new)}")
                    await emit_scaled(sets.deployment, name, size(old), size(new))
                else:
                    phrases.append(f"updated {name}")
            case Failed(error):
                failure = failure or error
            case _:
                pass
    return SyncResult(sets.updated(written), tuple(phrases), failure)


def patch(before: ReplicaSet, after: ReplicaSet) -> Patch[ReplicaSet]:
    """The patch of the fields that differ. Its resourceVersion makes it fail where the ReplicaSet has changed."""
    metadata: dict[str, Any] = {"resourceVersion": before.metadata.resourceVersion}
    spec: dict[str, Any] = {}
    existing = before.metadata.annotations
    annotations = {
        name: value for name, value in after.metadata.annotations.items() if existing.get(name) != value
    }
    if annotations:
        metadata["annotations"] = annotations
    if size(before) != size(after):
        spec["replicas"] = size(after)
    if before.spec.minReadySeconds != after.spec.minReadySeconds:
        spec["minReadySeconds"] = after.spec.minReadySeconds
    body: dict[str, Any] = {"metadata": metadata}
    if spec:
        body["spec"] = spec
    return Patch(before, body)


async def emit_scaled(deployment: Deployment, name: str, before: int, after: int) -> None:
    """Records the event for a ReplicaSet that was scaled."""
    direction = "up" if before < after else "down"
    await Emit(
        deployment,
        "Normal",
        "ScalingReplicaSet",
        f"Scaled {direction} replica set {name} from {before} to {after}",
    )


# -- the new ReplicaSet -----------------------------------------------------------------------


class Created(msgspec.Struct, frozen=True):
    """The ReplicaSets with their new one, and the Deployment's conditions after its creation."""

    sets: ReplicaSets
    conditions: tuple[Condition, ...]


def new_replicaset(sets: ReplicaSets, limits: Limits) -> ReplicaSet:
    """The ReplicaSet for the Deployment's template, at the size a rollout begins with."""
    deployment = sets.deployment
    template, selector = deployment.spec.template, deployment.spec.selector or LabelSelector()
    digest = pod_templates.digest(template, deployment.status.collisionCount)
    labels = {**template.metadata.labels, pod_templates.POD_TEMPLATE_HASH: digest}
    new = ReplicaSet(
        metadata=ObjectMeta(
            name=generated_names.child(deployment.metadata.name, digest),
            namespace=deployment.metadata.namespace,
            labels=labels,
            ownerReferences=(owner_reference(deployment, DEPLOYMENTS),),
        ),
        spec=ReplicaSetSpec(
            replicas=rolling.new_size(sets, limits) if is_rolling_update(deployment) else limits.replicas,
            minReadySeconds=deployment.spec.minReadySeconds,
            selector=replace(
                selector, matchLabels={**selector.matchLabels, pod_templates.POD_TEMPLATE_HASH: digest}
            ),
            template=pod_templates.with_labels(template, labels),
        ),
    )
    annotations = revision.copied_annotations(deployment.metadata.annotations)
    numbered = revision.with_revision(new, revision.max_revision(sets.old) + 1, annotations)
    return annotated(numbered, replicas_annotations(limits))


async def create_replicaset(
    sets: ReplicaSets, conditions: tuple[Condition, ...], limits: Limits, now: datetime
) -> Created | Verdict:
    """Creates the new ReplicaSet; a verdict where the round has to end without it."""
    deployment = sets.deployment
    body = new_replicaset(sets, limits)
    name = body.metadata.name
    try:
        new = await Create(REPLICASETS, deployment.metadata.namespace, body)
    except AlreadyExists:
        return await _resolve_collision(sets, conditions, name)
    except ApiError as error:
        if error.caused_by("NamespaceTerminating"):
            return Rest("namespace is terminating: cannot create a ReplicaSet")
        await _report_create_error(
            deployment, conditions, f'Failed to create new replica set "{name}": {error}', now
        )
        raise
    if size(body) > 0:
        await emit_scaled(deployment, name, 0, size(body))
    return Created(sets.with_new(new), status.with_created(deployment, conditions, name, now))


async def _resolve_collision(
    sets: ReplicaSets, conditions: tuple[Condition, ...], name: str
) -> Created | Verdict:
    """Uses the existing ReplicaSet of that name where it is the wanted one and the cache lags behind; otherwise
    raises ``collisionCount``, which changes the name."""
    deployment = sets.deployment
    existing = await Read(ReplicaSet(metadata=ObjectMeta(name=name, namespace=deployment.metadata.namespace)))
    owned = is_controlled_by(existing, deployment)
    if owned and pod_templates.same(existing.spec.template, deployment.spec.template):
        return Created(sets.with_new(existing), conditions)
    collisions = (deployment.status.collisionCount or 0) + 1
    await UpdateStatus(
        deployment, replace(deployment.status, conditions=conditions, collisionCount=collisions)
    )
    holder = "another pod template" if owned else "another owner"
    return Wake(
        timedelta(), f"ReplicaSet {name} exists with {holder}; retrying with collisionCount {collisions}"
    )


async def _report_create_error(
    deployment: Deployment, conditions: tuple[Condition, ...], message: str, now: datetime
) -> None:
    conditions = status.with_create_error(deployment, conditions, message, now)
    if conditions != deployment.status.conditions:
        try:
            await UpdateStatus(deployment, replace(deployment.status, conditions=conditions))
        except ApiError:
            pass  # the error of the creation is the one to report
    await Emit(deployment, "Warning", status.CREATE_ERROR, message)
