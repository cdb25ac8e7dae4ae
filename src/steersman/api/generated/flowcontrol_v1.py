"""The types of flowcontrol/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import AnyCondition, Time, none
from steersman.api.generated.merge import ATOMIC, SET, Merge
from steersman.api.kinds import Struct


class ExemptPriorityLevelConfiguration(Struct, frozen=True):
    lendablePercent: int | None = None
    nominalConcurrencyShares: int | None = None


class FlowDistinguisherMethod(Struct, frozen=True):
    type: str = msgspec.field(default_factory=str)


class PriorityLevelConfigurationReference(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)


class FlowSchemaSpec(Struct, frozen=True):
    distinguisherMethod: FlowDistinguisherMethod | None = None
    matchingPrecedence: int = msgspec.field(default_factory=int)
    priorityLevelConfiguration: PriorityLevelConfigurationReference = msgspec.field(
        default_factory=PriorityLevelConfigurationReference
    )
    rules: Annotated[tuple[PolicyRulesWithSubjects, ...], ATOMIC] = ()


class FlowSchemaStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[FlowSchemaCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()


class FlowSchema(meta_v1.Object, frozen=True):
    spec: FlowSchemaSpec = msgspec.field(default_factory=FlowSchemaSpec)
    status: FlowSchemaStatus = msgspec.field(default_factory=FlowSchemaStatus)


class FlowSchemaCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class GroupSubject(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)


class LimitResponse(Struct, frozen=True):
    queuing: QueuingConfiguration | None = None
    type: str = msgspec.field(default_factory=str)


class LimitedPriorityLevelConfiguration(Struct, frozen=True):
    borrowingLimitPercent: int | None = None
    lendablePercent: int | None = None
    limitResponse: LimitResponse = msgspec.field(default_factory=LimitResponse)
    nominalConcurrencyShares: int | None = msgspec.field(default_factory=NoneType)


class NonResourcePolicyRule(Struct, frozen=True):
    nonResourceURLs: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)
    verbs: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)


class PolicyRulesWithSubjects(Struct, frozen=True):
    nonResourceRules: Annotated[tuple[NonResourcePolicyRule, ...], ATOMIC] = ()
    resourceRules: Annotated[tuple[ResourcePolicyRule, ...], ATOMIC] = ()
    subjects: Annotated[tuple[Subject, ...], ATOMIC] = msgspec.field(default_factory=none)


class PriorityLevelConfigurationSpec(Struct, frozen=True):
    exempt: ExemptPriorityLevelConfiguration | None = None
    limited: LimitedPriorityLevelConfiguration | None = None
    type: str = msgspec.field(default_factory=str)


class PriorityLevelConfigurationStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[PriorityLevelConfigurationCondition, ...],
        Merge(strategy="merge", key="type", list_type="map", keys=("type",)),
    ] = ()


class PriorityLevelConfiguration(meta_v1.Object, frozen=True):
    spec: PriorityLevelConfigurationSpec = msgspec.field(default_factory=PriorityLevelConfigurationSpec)
    status: PriorityLevelConfigurationStatus = msgspec.field(default_factory=PriorityLevelConfigurationStatus)


class PriorityLevelConfigurationCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class QueuingConfiguration(Struct, frozen=True):
    handSize: int = msgspec.field(default_factory=int)
    queueLengthLimit: int = msgspec.field(default_factory=int)
    queues: int = msgspec.field(default_factory=int)


class ResourcePolicyRule(Struct, frozen=True):
    apiGroups: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)
    clusterScope: bool = False
    namespaces: Annotated[tuple[str, ...] | None, SET] = msgspec.field(default_factory=NoneType)
    resources: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)
    verbs: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)


class ServiceAccountSubject(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    namespace: str = msgspec.field(default_factory=str)


class Subject(Struct, frozen=True):
    group: GroupSubject | None = None
    kind: str = msgspec.field(default_factory=str)
    serviceAccount: ServiceAccountSubject | None = None
    user: UserSubject | None = None


class UserSubject(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
