"""The types of resource/v1alpha3. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class PoolStatus(Struct, frozen=True):
    allocatedDevices: int | None = None
    availableDevices: int | None = None
    driver: str = ""
    generation: int = msgspec.field(default_factory=int)
    nodeName: str | None = None
    poolName: str = ""
    resourceSliceCount: int | None = None
    totalDevices: int | None = None
    unavailableDevices: int | None = None
    validationError: str | None = None


class ResourcePoolStatusRequestSpec(Struct, frozen=True):
    driver: str = msgspec.field(default_factory=str)
    limit: int | None = None
    poolName: str | None = None


class ResourcePoolStatusRequest(meta_v1.Object, frozen=True):
    spec: ResourcePoolStatusRequestSpec = msgspec.field(default_factory=ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None


class ResourcePoolStatusRequestStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    poolCount: int | None = None
    pools: Annotated[tuple[PoolStatus, ...], ATOMIC] = ()
