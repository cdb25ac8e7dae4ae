"""The types of scheduling/v1alpha2. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class BasicSchedulingPolicy(Struct, frozen=True):
    pass


class GangSchedulingPolicy(Struct, frozen=True):
    minCount: int = msgspec.field(default_factory=int)


class PodGroupSchedulingPolicy(Struct, frozen=True):
    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class PodGroupSpec(Struct, frozen=True):
    disruptionMode: str | None = None
    podGroupTemplateRef: PodGroupTemplateReference | None = msgspec.field(default_factory=NoneType)
    priority: int | None = None
    priorityClassName: str = ""
    resourceClaims: Annotated[
        tuple[PodGroupResourceClaim, ...],
        Merge(strategy="merge,retainKeys", key="name", list_type="map", keys=("name",)),
    ] = ()
    schedulingConstraints: PodGroupSchedulingConstraints | None = None
    schedulingPolicy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)


class PodGroupStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    resourceClaimStatuses: Annotated[
        tuple[PodGroupResourceClaimStatus, ...],
        Merge(strategy="merge,retainKeys", key="name", list_type="map", keys=("name",)),
    ] = ()


class PodGroup(meta_v1.Object, frozen=True):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


class PodGroupResourceClaim(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodGroupResourceClaimStatus(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    resourceClaimName: str | None = None


class PodGroupSchedulingConstraints(Struct, frozen=True):
    topology: Annotated[tuple[TopologyConstraint, ...], ATOMIC] = ()


class PodGroupTemplateReference(Struct, frozen=True):
    workload: WorkloadPodGroupTemplateReference | None = msgspec.field(default_factory=NoneType)


class TopologyConstraint(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)


class WorkloadPodGroupTemplateReference(Struct, frozen=True):
    podGroupTemplateName: str = msgspec.field(default_factory=str)
    workloadName: str = msgspec.field(default_factory=str)
