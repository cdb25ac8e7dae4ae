"""The types of rbac/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import Atomic, none
from steersman.api.generated.merge import ATOMIC
from steersman.api.kinds import Struct


class AggregationRule(Struct, frozen=True):
    clusterRoleSelectors: Annotated[tuple[meta_v1.LabelSelector, ...], ATOMIC] = ()


class ClusterRole(meta_v1.Object, frozen=True):
    aggregationRule: AggregationRule | None = None
    rules: Annotated[tuple[PolicyRule, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class RoleRef(Atomic, frozen=True):
    apiGroup: str = msgspec.field(default_factory=str)
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class ClusterRoleBinding(meta_v1.Object, frozen=True):
    roleRef: RoleRef = msgspec.field(default_factory=RoleRef)
    subjects: Annotated[tuple[Subject, ...], ATOMIC] = ()


class PolicyRule(Struct, frozen=True):
    apiGroups: Annotated[tuple[str, ...], ATOMIC] = ()
    nonResourceURLs: Annotated[tuple[str, ...], ATOMIC] = ()
    resourceNames: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    verbs: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)


class Role(meta_v1.Object, frozen=True):
    rules: Annotated[tuple[PolicyRule, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class RoleBinding(meta_v1.Object, frozen=True):
    roleRef: RoleRef = msgspec.field(default_factory=RoleRef)
    subjects: Annotated[tuple[Subject, ...], ATOMIC] = ()


class Subject(Atomic, frozen=True):
    apiGroup: str = ""
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    namespace: str = ""
