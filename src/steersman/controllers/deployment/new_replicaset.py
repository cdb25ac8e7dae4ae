"""The birth of a ReplicaSet: what it is, and the dialogue when its name is taken."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from steersman.api import generated_names, pod_templates
from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.kinds import (
    DEPLOYMENTS,
    REPLICASETS,
    Condition,
    LabelSelector,
    ObjectMeta,
    ReplicaSet,
    ReplicaSetSpec,
)
from steersman.api.meta import is_controlled_by, owner_reference
from steersman.controllers.deployment import apply, progress, revision, rolling
from steersman.controllers.deployment.limits import Limits, rolls
from steersman.controllers.deployment.replicasets import Family, annotated, size
from steersman.controllers.deployment.scale import marks
from steersman.intent.actions import Create, Emit, Read, UpdateStatus
from steersman.intent.verdict import Rest, Verdict, Wake


class Born(msgspec.Struct, frozen=True):
    """A family that has its new ReplicaSet now, and what is to be said about it."""

    family: Family
    shown: tuple[Condition, ...]


def newborn(family: Family, limits: Limits) -> ReplicaSet:
    """The ReplicaSet for the Deployment's template, as large as it may be at first."""
    deployment = family.deployment
    template, selector = deployment.spec.template, deployment.spec.selector or LabelSelector()
    digest = pod_templates.digest(template, deployment.status.collisionCount)
    labels = {**template.metadata.labels, pod_templates.POD_TEMPLATE_HASH: digest}
    born = ReplicaSet(
        metadata=ObjectMeta(
            name=generated_names.child(deployment.metadata.name, digest),
            namespace=deployment.metadata.namespace,
            labels=labels,
            ownerReferences=(owner_reference(deployment, DEPLOYMENTS),),
        ),
        spec=ReplicaSetSpec(
            replicas=rolling.growth(family, limits) if rolls(deployment) else limits.replicas,
            minReadySeconds=deployment.spec.minReadySeconds,
            selector=replace(
                selector, matchLabels={**selector.matchLabels, pod_templates.POD_TEMPLATE_HASH: digest}
            ),
            template=pod_templates.with_labels(template, labels),
        ),
    )
    annotations = revision.shared(deployment.metadata.annotations)
    return annotated(revision.numbered(born, revision.highest(family.olds) + 1, annotations), marks(limits))


async def create(
    family: Family, shown: tuple[Condition, ...], limits: Limits, now: datetime
) -> Born | Verdict:
    """Create the new ReplicaSet; a verdict where the round has to end without it."""
    deployment = family.deployment
    body = newborn(family, limits)
    name = body.metadata.name
    try:
        new = await Create(REPLICASETS, deployment.metadata.namespace, body)
    except AlreadyExists:
        return await _taken(family, shown, name)
    except ApiError as error:
        if error.caused_by("NamespaceTerminating"):
            return Rest("the namespace is going away: no new ReplicaSet can be created in it")
        await _complain(family, shown, f'Failed to create new replica set "{name}": {error}', now)
        raise
    if size(body) > 0:
        await apply.scaled(deployment, name, 0, size(body))
    return Born(family.welcome(new), progress.created(deployment, shown, name, now))


async def _taken(family: Family, shown: tuple[Condition, ...], name: str) -> Born | Verdict:
    """The name is taken: by the very set we want, which the cache does not show yet, or by another."""
    deployment = family.deployment
    there = await Read(ReplicaSet(metadata=ObjectMeta(name=name, namespace=deployment.metadata.namespace)))
    ours = is_controlled_by(there, deployment)
    if ours and pod_templates.same(there.spec.template, deployment.spec.template):
        return Born(family.welcome(there), shown)
    collisions = (deployment.status.collisionCount or 0) + 1
    await UpdateStatus(deployment, replace(deployment.status, conditions=shown, collisionCount=collisions))
    owner = "has another template" if ours else "does not belong to this Deployment"
    return Wake(
        timedelta(),
        f"the name {name} is taken: that ReplicaSet {owner}; trying another (number {collisions})",
    )


async def _complain(family: Family, shown: tuple[Condition, ...], message: str, now: datetime) -> None:
    deployment = family.deployment
    said = progress.refused(deployment, shown, message, now)
    if said != deployment.status.conditions:
        try:
            await UpdateStatus(deployment, replace(deployment.status, conditions=said))
        except ApiError:
            pass  # the refusal itself is what has to be reported
    await Emit(deployment, "Warning", progress.CREATE_ERROR, message)
