"""Views of ResourceQuotas, and of the PersistentVolumeClaims they count."""

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


class VolumeResources(Struct, frozen=True):
    requests: Mapping[str, Any] = EMPTY


class PersistentVolumeClaimSpec(Struct, frozen=True):
    resources: VolumeResources = VolumeResources()
    storageClassName: str | None = None
    volumeAttributesClassName: str | None = None


class ModifyVolumeStatus(Struct, frozen=True):
    targetVolumeAttributesClassName: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True):
    allocatedResources: Mapping[str, Any] = EMPTY
    currentVolumeAttributesClassName: str | None = None
    modifyVolumeStatus: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(Object, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


RESOURCEQUOTAS = register(Kind("", "v1", "ResourceQuota", "resourcequotas", True, ResourceQuota))
PERSISTENTVOLUMECLAIMS = register(
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, PersistentVolumeClaim)
)
