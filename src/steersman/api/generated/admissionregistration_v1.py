"""The types of admissionregistration/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import Atomic, none
from steersman.api.generated.merge import ATOMIC, SET, Merge
from steersman.api.kinds import Struct


class ApplyConfiguration(Struct, frozen=True):
    expression: str = ""


class AuditAnnotation(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    valueExpression: str = msgspec.field(default_factory=str)


class ExpressionWarning(Struct, frozen=True):
    fieldRef: str = msgspec.field(default_factory=str)
    warning: str = msgspec.field(default_factory=str)


class JSONPatch(Struct, frozen=True):
    expression: str = ""


class MatchCondition(Struct, frozen=True):
    expression: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class MatchResources(Atomic, frozen=True):
    excludeResourceRules: Annotated[tuple[NamedRuleWithOperations, ...], ATOMIC] = ()
    matchPolicy: str | None = None
    namespaceSelector: meta_v1.LabelSelector | None = None
    objectSelector: meta_v1.LabelSelector | None = None
    resourceRules: Annotated[tuple[NamedRuleWithOperations, ...], ATOMIC] = ()


class MutatingAdmissionPolicySpec(Struct, frozen=True):
    failurePolicy: str | None = None
    matchConditions: Annotated[
        tuple[MatchCondition, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    matchConstraints: MatchResources | None = None
    mutations: Annotated[tuple[Mutation, ...], ATOMIC] = ()
    paramKind: ParamKind | None = None
    reinvocationPolicy: str = ""
    variables: Annotated[tuple[Variable, ...], ATOMIC] = ()


class MutatingAdmissionPolicy(meta_v1.Object, frozen=True):
    spec: MutatingAdmissionPolicySpec = msgspec.field(default_factory=MutatingAdmissionPolicySpec)


class MutatingAdmissionPolicyBindingSpec(Struct, frozen=True):
    matchResources: MatchResources | None = None
    paramRef: ParamRef | None = None
    policyName: str = ""


class MutatingAdmissionPolicyBinding(meta_v1.Object, frozen=True):
    spec: MutatingAdmissionPolicyBindingSpec = msgspec.field(
        default_factory=MutatingAdmissionPolicyBindingSpec
    )


class WebhookClientConfig(Struct, frozen=True):
    caBundle: str = ""
    service: ServiceReference | None = None
    url: str | None = None


class MutatingWebhook(Struct, frozen=True):
    admissionReviewVersions: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    clientConfig: WebhookClientConfig = msgspec.field(default_factory=WebhookClientConfig)
    failurePolicy: str | None = None
    matchConditions: Annotated[
        tuple[MatchCondition, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    matchPolicy: str | None = None
    name: str = msgspec.field(default_factory=str)
    namespaceSelector: meta_v1.LabelSelector | None = None
    objectSelector: meta_v1.LabelSelector | None = None
    reinvocationPolicy: str | None = None
    rules: Annotated[tuple[RuleWithOperations, ...], ATOMIC] = ()
    sideEffects: str | None = msgspec.field(default_factory=NoneType)
    timeoutSeconds: int | None = None


class MutatingWebhookConfiguration(meta_v1.Object, frozen=True):
    webhooks: Annotated[
        tuple[MutatingWebhook, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()


class Mutation(Struct, frozen=True):
    applyConfiguration: ApplyConfiguration | None = None
    jsonPatch: JSONPatch | None = None
    patchType: str = msgspec.field(default_factory=str)


class NamedRuleWithOperations(Atomic, frozen=True):
    apiGroups: Annotated[tuple[str, ...], ATOMIC] = ()
    apiVersions: Annotated[tuple[str, ...], ATOMIC] = ()
    operations: Annotated[tuple[str, ...], ATOMIC] = ()
    resourceNames: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    scope: str | None = None


class ParamKind(Atomic, frozen=True):
    apiVersion: str = ""
    kind: str = ""


class ParamRef(Atomic, frozen=True):
    name: str = ""
    namespace: str = ""
    parameterNotFoundAction: str | None = None
    selector: meta_v1.LabelSelector | None = None


class RuleWithOperations(Struct, frozen=True):
    apiGroups: Annotated[tuple[str, ...], ATOMIC] = ()
    apiVersions: Annotated[tuple[str, ...], ATOMIC] = ()
    operations: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    scope: str | None = None


class ServiceReference(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    namespace: str = msgspec.field(default_factory=str)
    path: str | None = None
    port: int | None = None


class TypeChecking(Struct, frozen=True):
    expressionWarnings: Annotated[tuple[ExpressionWarning, ...], ATOMIC] = ()


class ValidatingAdmissionPolicySpec(Struct, frozen=True):
    auditAnnotations: Annotated[tuple[AuditAnnotation, ...], ATOMIC] = ()
    failurePolicy: str | None = None
    matchConditions: Annotated[
        tuple[MatchCondition, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    matchConstraints: MatchResources | None = None
    paramKind: ParamKind | None = None
    validations: Annotated[tuple[Validation, ...], ATOMIC] = ()
    variables: Annotated[
        tuple[Variable, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()


class ValidatingAdmissionPolicyStatus(Struct, frozen=True):
    conditions: Annotated[tuple[meta_v1.Condition, ...], Merge(list_type="map", keys=("type",))] = ()
    observedGeneration: int = 0
    typeChecking: TypeChecking | None = None


class ValidatingAdmissionPolicy(meta_v1.Object, frozen=True):
    spec: ValidatingAdmissionPolicySpec = msgspec.field(default_factory=ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = msgspec.field(default_factory=ValidatingAdmissionPolicyStatus)


class ValidatingAdmissionPolicyBindingSpec(Struct, frozen=True):
    matchResources: MatchResources | None = None
    paramRef: ParamRef | None = None
    policyName: str = ""
    validationActions: Annotated[tuple[str, ...], SET] = ()


class ValidatingAdmissionPolicyBinding(meta_v1.Object, frozen=True):
    spec: ValidatingAdmissionPolicyBindingSpec = msgspec.field(
        default_factory=ValidatingAdmissionPolicyBindingSpec
    )


class ValidatingWebhook(Struct, frozen=True):
    admissionReviewVersions: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    clientConfig: WebhookClientConfig = msgspec.field(default_factory=WebhookClientConfig)
    failurePolicy: str | None = None
    matchConditions: Annotated[
        tuple[MatchCondition, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    matchPolicy: str | None = None
    name: str = msgspec.field(default_factory=str)
    namespaceSelector: meta_v1.LabelSelector | None = None
    objectSelector: meta_v1.LabelSelector | None = None
    rules: Annotated[tuple[RuleWithOperations, ...], ATOMIC] = ()
    sideEffects: str | None = msgspec.field(default_factory=NoneType)
    timeoutSeconds: int | None = None


class ValidatingWebhookConfiguration(meta_v1.Object, frozen=True):
    webhooks: Annotated[
        tuple[ValidatingWebhook, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()


class Validation(Struct, frozen=True):
    expression: str = msgspec.field(default_factory=str)
    message: str = ""
    messageExpression: str = ""
    reason: str | None = None


class Variable(Atomic, frozen=True):
    expression: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
