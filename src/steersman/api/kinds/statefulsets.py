"""Views of StatefulSets."""

from __future__ import annotations

import msgspec

from steersman.api.kinds import Condition, LabelSelector, Object, ObjectMeta, Opaque, PodTemplateSpec, Struct
from steersman.api.scheme import Kind, register


class RollingUpdateStatefulSetStrategy(Struct, frozen=True):
    partition: int | None = None
    maxUnavailable: int | str | None = None


class StatefulSetUpdateStrategy(Struct, frozen=True):
    type: str = ""
    rollingUpdate: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetOrdinals(Struct, frozen=True):
    start: int = 0


class PersistentVolumeClaimRetentionPolicy(Struct, frozen=True):
    whenDeleted: str = ""
    whenScaled: str = ""


class VolumeClaimTemplate(Struct, frozen=True):
    """The template of the claims that each pod gets. Its spec is passed on unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class StatefulSetSpec(Struct, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volumeClaimTemplates: tuple[VolumeClaimTemplate, ...] = ()
    serviceName: str = ""
    podManagementPolicy: str = ""
    updateStrategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revisionHistoryLimit: int | None = None
    minReadySeconds: int = 0
    persistentVolumeClaimRetentionPolicy: PersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetStatus(Struct, frozen=True):
    """All fields, because the status is updated as a whole. Fields without default are always encoded."""

    replicas: int = msgspec.field(default_factory=int)
    availableReplicas: int = msgspec.field(default_factory=int)
    readyReplicas: int = 0
    currentReplicas: int = 0
    updatedReplicas: int = 0
    currentRevision: str = ""
    updateRevision: str = ""
    collisionCount: int | None = None
    observedGeneration: int = 0
    conditions: tuple[Condition, ...] = ()


class StatefulSet(Object, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


STATEFULSETS = register(Kind("apps", "v1", "StatefulSet", "statefulsets", True, StatefulSet))
