"""Deployments, ReplicaSets and pods for tests, each in one line, with plausible values for what a test leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from steersman.api.kinds import (
    EMPTY,
    Condition,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodStatus,
    PodTemplateSpec,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdate,
)

NAMESPACE = "default"
CREATED = datetime(2024, 1, 1, tzinfo=UTC)
"""The creationTimestamp of objects of age 0."""
LABELS = {"app": "web"}


def pod_template(image: str = "v1", labels: Mapping[str, str] = LABELS) -> PodTemplateSpec:
    """A pod template with one container of this image."""
    spec = msgspec.Raw(msgspec.json.encode({"containers": [{"name": "main", "image": image}]}))
    return PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=spec)


def deployment(
    replicas: int = 3,
    image: str = "v1",
    *,
    name: str = "web",
    strategy: Literal["RollingUpdate", "Recreate"] = "RollingUpdate",
    surge: int | str = "25%",
    unavailable: int | str = "25%",
    annotations: Mapping[str, str] = EMPTY,
    deadline: int | None = 600,
    history: int | None = 10,
    paused: bool = False,
    min_ready: int = 0,
    generation: int = 1,
    deleted: datetime | None = None,
    status: DeploymentStatus | None = None,
) -> Deployment:
    rolling = RollingUpdate(maxSurge=surge, maxUnavailable=unavailable)
    return Deployment(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"{name}-uid",
            resourceVersion="1",
            generation=generation,
            creationTimestamp=CREATED,
            deletionTimestamp=deleted,
            annotations=annotations,
        ),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(matchLabels=LABELS),
            template=pod_template(image),
            strategy=DeploymentStrategy(
                type=strategy, rollingUpdate=rolling if strategy == "RollingUpdate" else None
            ),
            minReadySeconds=min_ready,
            revisionHistoryLimit=history,
            paused=paused,
            progressDeadlineSeconds=deadline,
        ),
        status=status or DeploymentStatus(),
    )


def replicaset(
    owner: Deployment | None,
    image: str = "v1",
    replicas: int = 3,
    *,
    name: str = "",
    current: int | None = None,
    available: int | None = None,
    terminating: int | None = 0,
    age: int = 0,
    annotations: Mapping[str, str] = EMPTY,
    labels: Mapping[str, str] = LABELS,
    min_ready: int = 0,
    deleted: datetime | None = None,
    conditions: tuple[Condition, ...] = (),
) -> ReplicaSet:
    """A ReplicaSet with all its pods available by default.

    ``current`` is ``status.replicas``. ``age`` is in seconds: the larger, the earlier it was created.
    """
    current = replicas if current is None else current
    available = current if available is None else available
    name = name or f"web-{image}"
    owners = () if owner is None else (owned_by(owner),)
    hashed = {**labels, "pod-template-hash": image}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"{name}-uid",
            resourceVersion="1",
            generation=1,
            creationTimestamp=CREATED - timedelta(seconds=age),
            deletionTimestamp=deleted,
            labels=hashed,
            annotations=annotations,
            ownerReferences=owners,
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            minReadySeconds=min_ready,
            selector=LabelSelector(matchLabels=hashed),
            template=pod_template(image, hashed),
        ),
        status=ReplicaSetStatus(
            replicas=current,
            fullyLabeledReplicas=current,
            readyReplicas=available,
            availableReplicas=available,
            terminatingReplicas=terminating,
            observedGeneration=1,
            conditions=conditions,
        ),
    )


def pod(owner: ReplicaSet | None, name: str, phase: str = "Running") -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"{name}-uid",
            resourceVersion="1",
            creationTimestamp=CREATED,
            labels=LABELS,
            ownerReferences=() if owner is None else (owned_by(owner),),
        ),
        status=PodStatus(phase=phase),
    )


def owned_by(owner: Deployment | ReplicaSet) -> OwnerReference:
    """The controllerRef to ``owner``."""
    return OwnerReference(
        apiVersion="apps/v1",
        kind="Deployment" if isinstance(owner, Deployment) else "ReplicaSet",
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        blockOwnerDeletion=True,
    )
