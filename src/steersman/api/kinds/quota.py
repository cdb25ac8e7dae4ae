"""Views of ResourceQuotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.kinds import EMPTY, Object, Struct
from steersman.api.scheme import Kind, register


class ScopedResourceSelectorRequirement(Struct, frozen=True):
    scopeName: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Struct, frozen=True):
    matchExpressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Struct, frozen=True):
    hard: Mapping[str, Any] = EMPTY
    scopes: tuple[str, ...] = ()
    scopeSelector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True):
    hard: Mapping[str, Any] = EMPTY
    used: Mapping[str, Any] = EMPTY


class ResourceQuota(Object, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


RESOURCEQUOTAS = register(Kind("", "v1", "ResourceQuota", "resourcequotas", True, ResourceQuota))
