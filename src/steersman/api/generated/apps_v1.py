"""The types of apps/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import AnyCondition, IntOrString, Json, Time
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class ControllerRevision(meta_v1.Object, frozen=True):
    data: Json = msgspec.field(default_factory=NoneType)
    revision: int = msgspec.field(default_factory=int)


class DaemonSetUpdateStrategy(Struct, frozen=True):
    rollingUpdate: RollingUpdateDaemonSet | None = None
    type: str = ""


class DaemonSetSpec(Struct, frozen=True):
    minReadySeconds: int = 0
    revisionHistoryLimit: int | None = None
    selector: meta_v1.LabelSelector | None = msgspec.field(default_factory=NoneType)
    template: core_v1.PodTemplateSpec = msgspec.field(default_factory=core_v1.PodTemplateSpec)
    updateStrategy: DaemonSetUpdateStrategy = msgspec.field(default_factory=DaemonSetUpdateStrategy)


class DaemonSetStatus(Struct, frozen=True):
    collisionCount: int | None = None
    conditions: Annotated[
        tuple[DaemonSetCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    currentNumberScheduled: int = msgspec.field(default_factory=int)
    desiredNumberScheduled: int = msgspec.field(default_factory=int)
    numberAvailable: int = 0
    numberMisscheduled: int = msgspec.field(default_factory=int)
    numberReady: int = msgspec.field(default_factory=int)
    numberUnavailable: int = 0
    observedGeneration: int = 0
    updatedNumberScheduled: int = 0


class DaemonSet(meta_v1.Object, frozen=True):
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


class DaemonSetCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class DeploymentStrategy(Struct, frozen=True):
    rollingUpdate: RollingUpdateDeployment | None = None
    type: str = ""


class DeploymentSpec(Struct, frozen=True):
    minReadySeconds: int = 0
    paused: bool = False
    progressDeadlineSeconds: int | None = None
    replicas: int | None = None
    revisionHistoryLimit: int | None = None
    selector: meta_v1.LabelSelector | None = msgspec.field(default_factory=NoneType)
    strategy: Annotated[DeploymentStrategy, Merge(strategy="retainKeys")] = msgspec.field(
        default_factory=DeploymentStrategy
    )
    template: core_v1.PodTemplateSpec = msgspec.field(default_factory=core_v1.PodTemplateSpec)


class DeploymentStatus(Struct, frozen=True):
    availableReplicas: int = 0
    collisionCount: int | None = None
    conditions: Annotated[
        tuple[DeploymentCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    observedGeneration: int = 0
    readyReplicas: int = 0
    replicas: int = 0
    terminatingReplicas: int | None = None
    unavailableReplicas: int = 0
    updatedReplicas: int = 0


class Deployment(meta_v1.Object, frozen=True):
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class DeploymentCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    lastUpdateTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class ReplicaSetSpec(Struct, frozen=True):
    minReadySeconds: int = 0
    replicas: int | None = None
    selector: meta_v1.LabelSelector | None = msgspec.field(default_factory=NoneType)
    template: core_v1.PodTemplateSpec = msgspec.field(default_factory=core_v1.PodTemplateSpec)


class ReplicaSetStatus(Struct, frozen=True):
    availableReplicas: int = 0
    conditions: Annotated[
        tuple[ReplicaSetCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    fullyLabeledReplicas: int = 0
    observedGeneration: int = 0
    readyReplicas: int = 0
    replicas: int = msgspec.field(default_factory=int)
    terminatingReplicas: int | None = None


class ReplicaSet(meta_v1.Object, frozen=True):
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)


class ReplicaSetCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class RollingUpdateDaemonSet(Struct, frozen=True):
    maxSurge: IntOrString | None = None
    maxUnavailable: IntOrString | None = None


class RollingUpdateDeployment(Struct, frozen=True):
    maxSurge: IntOrString | None = None
    maxUnavailable: IntOrString | None = None


class RollingUpdateStatefulSetStrategy(Struct, frozen=True):
    maxUnavailable: IntOrString | None = None
    partition: int | None = None


class StatefulSetUpdateStrategy(Struct, frozen=True):
    rollingUpdate: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""


class StatefulSetSpec(Struct, frozen=True):
    minReadySeconds: int = 0
    ordinals: StatefulSetOrdinals | None = None
    persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    podManagementPolicy: str = ""
    replicas: int | None = None
    revisionHistoryLimit: int | None = None
    selector: meta_v1.LabelSelector | None = msgspec.field(default_factory=NoneType)
    serviceName: str = msgspec.field(default_factory=str)
    template: core_v1.PodTemplateSpec = msgspec.field(default_factory=core_v1.PodTemplateSpec)
    updateStrategy: StatefulSetUpdateStrategy = msgspec.field(default_factory=StatefulSetUpdateStrategy)
    volumeClaimTemplates: Annotated[tuple[core_v1.NestedPersistentVolumeClaim, ...], ATOMIC] = ()


class StatefulSetStatus(Struct, frozen=True):
    availableReplicas: int = msgspec.field(default_factory=int)
    collisionCount: int | None = None
    conditions: Annotated[
        tuple[StatefulSetCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    currentReplicas: int = 0
    currentRevision: str = ""
    observedGeneration: int = 0
    readyReplicas: int = 0
    replicas: int = msgspec.field(default_factory=int)
    updateRevision: str = ""
    updatedReplicas: int = 0


class StatefulSet(meta_v1.Object, frozen=True):
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)


class StatefulSetCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class StatefulSetOrdinals(Struct, frozen=True):
    start: int = msgspec.field(default_factory=int)


class StatefulSetPersistentVolumeClaimRetentionPolicy(Struct, frozen=True):
    whenDeleted: str = ""
    whenScaled: str = ""
