"""Storage versions (what each API server stores a resource as), as the controllers read them."""

from __future__ import annotations

from steersman.api.kinds import Condition, Object, Struct
from steersman.api.scheme import Kind, register


class ServerStorageVersion(Struct, frozen=True):
    apiServerID: str = ""
    encodingVersion: str = ""
    decodableVersions: tuple[str, ...] = ()
    servedVersions: tuple[str, ...] = ()


class StorageVersionStatus(Struct, frozen=True):
    storageVersions: tuple[ServerStorageVersion, ...] = ()
    commonEncodingVersion: str | None = None
    conditions: tuple[Condition, ...] = ()


class StorageVersion(Object, frozen=True):
    status: StorageVersionStatus = StorageVersionStatus()


STORAGEVERSIONS = register(
    Kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "storageversions", False, StorageVersion)
)
