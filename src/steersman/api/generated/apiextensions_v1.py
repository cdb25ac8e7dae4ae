"""The types of apiextensions/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import AnyCondition, Json, Time, none
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import EMPTY, Struct


class CustomResourceColumnDefinition(Struct, frozen=True):
    description: str = ""
    format: str = ""
    jsonPath: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    priority: int = 0
    type: str = msgspec.field(default_factory=str)


class CustomResourceConversion(Struct, frozen=True):
    strategy: str = msgspec.field(default_factory=str)
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionNames(Struct, frozen=True):
    categories: Annotated[tuple[str, ...], ATOMIC] = ()
    kind: str = msgspec.field(default_factory=str)
    listKind: str = ""
    plural: str = msgspec.field(default_factory=str)
    shortNames: Annotated[tuple[str, ...], ATOMIC] = ()
    singular: str = ""


class CustomResourceDefinitionSpec(Struct, frozen=True):
    conversion: CustomResourceConversion | None = None
    group: str = msgspec.field(default_factory=str)
    names: CustomResourceDefinitionNames = msgspec.field(default_factory=CustomResourceDefinitionNames)
    preserveUnknownFields: bool = False
    scope: str = msgspec.field(default_factory=str)
    versions: Annotated[tuple[CustomResourceDefinitionVersion, ...], ATOMIC] = msgspec.field(
        default_factory=none
    )


class CustomResourceDefinitionStatus(Struct, frozen=True):
    acceptedNames: CustomResourceDefinitionNames = msgspec.field(
        default_factory=CustomResourceDefinitionNames
    )
    conditions: Annotated[
        tuple[CustomResourceDefinitionCondition, ...] | None, Merge(list_type="map", keys=("type",))
    ] = msgspec.field(default_factory=NoneType)
    observedGeneration: int = 0
    storedVersions: Annotated[tuple[str, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class CustomResourceDefinition(meta_v1.Object, frozen=True):
    spec: CustomResourceDefinitionSpec = msgspec.field(default_factory=CustomResourceDefinitionSpec)
    status: CustomResourceDefinitionStatus = msgspec.field(default_factory=CustomResourceDefinitionStatus)


class CustomResourceDefinitionCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    observedGeneration: int = 0
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class CustomResourceDefinitionVersion(Struct, frozen=True):
    additionalPrinterColumns: Annotated[tuple[CustomResourceColumnDefinition, ...], ATOMIC] = ()
    deprecated: bool = False
    deprecationWarning: str | None = None
    name: str = msgspec.field(default_factory=str)
    schema: CustomResourceValidation | None = None
    selectableFields: Annotated[tuple[SelectableField, ...], ATOMIC] = ()
    served: bool = msgspec.field(default_factory=bool)
    storage: bool = msgspec.field(default_factory=bool)
    subresources: CustomResourceSubresources | None = None


class CustomResourceSubresourceScale(Struct, frozen=True):
    labelSelectorPath: str | None = None
    specReplicasPath: str = msgspec.field(default_factory=str)
    statusReplicasPath: str = msgspec.field(default_factory=str)


class CustomResourceSubresourceStatus(Struct, frozen=True):
    pass


class CustomResourceSubresources(Struct, frozen=True):
    scale: CustomResourceSubresourceScale | None = None
    status: CustomResourceSubresourceStatus | None = None


class CustomResourceValidation(Struct, frozen=True):
    openAPIV3Schema: JSONSchemaProps | None = None


class ExternalDocumentation(Struct, frozen=True):
    description: str = ""
    url: str = ""


class JSONSchemaProps(Struct, frozen=True):
    ref: str | None = msgspec.field(name="$ref", default=None)
    schema: str = msgspec.field(name="$schema", default="")
    additionalItems: JSONSchemaProps | bool | None = None
    additionalProperties: JSONSchemaProps | bool | None = None
    allOf: Annotated[tuple[JSONSchemaProps, ...], ATOMIC] = ()
    anyOf: Annotated[tuple[JSONSchemaProps, ...], ATOMIC] = ()
    default: Json = None
    definitions: Mapping[str, JSONSchemaProps] = EMPTY
    dependencies: Mapping[str, JSONSchemaProps | tuple[str, ...]] = EMPTY
    description: str = ""
    enum: Annotated[tuple[Json, ...], ATOMIC] = ()
    example: Json = None
    exclusiveMaximum: bool = False
    exclusiveMinimum: bool = False
    externalDocs: ExternalDocumentation | None = None
    format: str = ""
    id: str = ""
    items: JSONSchemaProps | tuple[JSONSchemaProps, ...] | None = None
    maxItems: int | None = None
    maxLength: int | None = None
    maxProperties: int | None = None
    maximum: int | float | None = None
    minItems: int | None = None
    minLength: int | None = None
    minProperties: int | None = None
    minimum: int | float | None = None
    multipleOf: int | float | None = None
    not_: JSONSchemaProps | None = msgspec.field(name="not", default=None)
    nullable: bool = False
    oneOf: Annotated[tuple[JSONSchemaProps, ...], ATOMIC] = ()
    pattern: str = ""
    patternProperties: Mapping[str, JSONSchemaProps] = EMPTY
    properties: Mapping[str, JSONSchemaProps] = EMPTY
    required: Annotated[tuple[str, ...], ATOMIC] = ()
    title: str = ""
    type: str = ""
    uniqueItems: bool = False
    xKubernetesEmbeddedResource: bool = msgspec.field(name="x-kubernetes-embedded-resource", default=False)
    xKubernetesIntOrString: bool = msgspec.field(name="x-kubernetes-int-or-string", default=False)
    xKubernetesListMapKeys: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(
        name="x-kubernetes-list-map-keys", default=()
    )
    xKubernetesListType: str | None = msgspec.field(name="x-kubernetes-list-type", default=None)
    xKubernetesMapType: str | None = msgspec.field(name="x-kubernetes-map-type", default=None)
    xKubernetesPreserveUnknownFields: bool | None = msgspec.field(
        name="x-kubernetes-preserve-unknown-fields", default=None
    )
    xKubernetesValidations: Annotated[
        tuple[ValidationRule, ...], Merge(strategy="merge", key="rule", list_type="map", keys=("rule",))
    ] = msgspec.field(name="x-kubernetes-validations", default=())


class SelectableField(Struct, frozen=True):
    jsonPath: str = msgspec.field(default_factory=str)


class ServiceReference(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    namespace: str = msgspec.field(default_factory=str)
    path: str | None = None
    port: int | None = None


class ValidationRule(Struct, frozen=True):
    fieldPath: str = ""
    message: str = ""
    messageExpression: str = ""
    optionalOldSelf: bool | None = None
    reason: str | None = None
    rule: str = msgspec.field(default_factory=str)


class WebhookClientConfig(Struct, frozen=True):
    caBundle: str = ""
    service: ServiceReference | None = None
    url: str | None = None


class WebhookConversion(Struct, frozen=True):
    clientConfig: WebhookClientConfig | None = None
    conversionReviewVersions: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
