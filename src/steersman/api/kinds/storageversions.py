"""Views of StorageVersions, StorageVersionMigrations and CustomResourceDefinitions."""

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


class GroupResource(Struct, frozen=True):
    group: str = ""
    resource: str = ""


class StorageVersionMigrationSpec(Struct, frozen=True):
    resource: GroupResource = GroupResource()


class StorageVersionMigrationStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    resourceVersion: str = ""


class StorageVersionMigration(Object, frozen=True):
    spec: StorageVersionMigrationSpec = StorageVersionMigrationSpec()
    status: StorageVersionMigrationStatus = StorageVersionMigrationStatus()


class DefinitionVersion(Struct, frozen=True):
    name: str = ""
    storage: bool = False


class DefinitionSpec(Struct, frozen=True):
    versions: tuple[DefinitionVersion, ...] = ()


class DefinitionStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class CustomResourceDefinition(Object, frozen=True):
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


STORAGEVERSIONMIGRATIONS = register(
    Kind(
        "storagemigration.k8s.io",
        "v1beta1",
        "StorageVersionMigration",
        "storageversionmigrations",
        False,
        StorageVersionMigration,
    )
)
CUSTOMRESOURCEDEFINITIONS = register(
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        CustomResourceDefinition,
    )
)
STORAGEVERSIONS = register(
    Kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "storageversions", False, StorageVersion)
)
