"""The types of authorization/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import none
from steersman.api.generated.merge import ATOMIC
from steersman.api.kinds import EMPTY, Struct


class FieldSelectorAttributes(Struct, frozen=True):
    rawSelector: str = ""
    requirements: Annotated[tuple[meta_v1.FieldSelectorRequirement, ...], ATOMIC] = ()


class LabelSelectorAttributes(Struct, frozen=True):
    rawSelector: str = ""
    requirements: Annotated[tuple[meta_v1.LabelSelectorRequirement, ...], ATOMIC] = ()


class SubjectAccessReviewSpec(Struct, frozen=True):
    extra: Mapping[str, tuple[str, ...] | None] = EMPTY
    groups: Annotated[tuple[str, ...], ATOMIC] = ()
    nonResourceAttributes: NonResourceAttributes | None = None
    resourceAttributes: ResourceAttributes | None = None
    uid: str = ""
    user: str = ""


class SubjectAccessReviewStatus(Struct, frozen=True):
    allowed: bool = msgspec.field(default_factory=bool)
    denied: bool = False
    evaluationError: str = ""
    reason: str = ""


class LocalSubjectAccessReview(meta_v1.Object, frozen=True):
    spec: SubjectAccessReviewSpec = msgspec.field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = msgspec.field(default_factory=SubjectAccessReviewStatus)


class NonResourceAttributes(Struct, frozen=True):
    path: str = ""
    verb: str = ""


class NonResourceRule(Struct, frozen=True):
    nonResourceURLs: Annotated[tuple[str, ...], ATOMIC] = ()
    verbs: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)


class ResourceAttributes(Struct, frozen=True):
    fieldSelector: FieldSelectorAttributes | None = None
    group: str = ""
    labelSelector: LabelSelectorAttributes | None = None
    name: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


class ResourceRule(Struct, frozen=True):
    apiGroups: Annotated[tuple[str, ...], ATOMIC] = ()
    resourceNames: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    verbs: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)


class SelfSubjectAccessReviewSpec(Struct, frozen=True):
    nonResourceAttributes: NonResourceAttributes | None = None
    resourceAttributes: ResourceAttributes | None = None


class SelfSubjectAccessReview(meta_v1.Object, frozen=True):
    spec: SelfSubjectAccessReviewSpec = msgspec.field(default_factory=SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = msgspec.field(default_factory=SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Struct, frozen=True):
    namespace: str = ""


class SubjectRulesReviewStatus(Struct, frozen=True):
    evaluationError: str = ""
    incomplete: bool = msgspec.field(default_factory=bool)
    nonResourceRules: Annotated[tuple[NonResourceRule, ...] | None, ATOMIC] = msgspec.field(
        default_factory=NoneType
    )
    resourceRules: Annotated[tuple[ResourceRule, ...] | None, ATOMIC] = msgspec.field(
        default_factory=NoneType
    )


class SelfSubjectRulesReview(meta_v1.Object, frozen=True):
    spec: SelfSubjectRulesReviewSpec = msgspec.field(default_factory=SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = msgspec.field(default_factory=SubjectRulesReviewStatus)


class SubjectAccessReview(meta_v1.Object, frozen=True):
    spec: SubjectAccessReviewSpec = msgspec.field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = msgspec.field(default_factory=SubjectAccessReviewStatus)
