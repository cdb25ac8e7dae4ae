"""storage-version-migrator-controller (a service): rewrites all objects of a resource in the current storage version.

One migration of a resource runs at a time. It records the resourceVersion that the resource has reached, then
sends an empty apply patch for every object that is not newer, which the server stores in the current storage
version. For a custom resource it keeps the condition StorageMigrating and ``storedVersions`` of the
CustomResourceDefinition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.conditions import find_condition, is_condition_true, replace_condition
from steersman.api.discovery import ApiResource
from steersman.api.errors import (
    ApiError,
    Conflict,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import Condition
from steersman.api.kinds.storageversions import (
    CUSTOMRESOURCEDEFINITIONS,
    STORAGEVERSIONMIGRATIONS,
    CustomResourceDefinition,
    StorageVersionMigration,
    StorageVersionMigrationStatus,
)
from steersman.api.meta import format_time, truncate_to_seconds
from steersman.api.scheme import Key
from steersman.intent.actions import (
    Address,
    Discover,
    LatestResourceVersion,
    List,
    Patch,
    PatchType,
    Read,
    UpdateStatus,
)
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

NAME = "storage-version-migrator-controller"
CRD_FIELD_MANAGER = "migration-runner-controller"
DISCOVERY_TIMEOUT = timedelta(minutes=1)
"""How long after its creation a migration waits for its resource to be served."""
VERBS = ("update", "patch", "list")
MIGRATING = "StorageMigrating"
_WELL_FORMED = re.compile(r"[1-9][0-9]*")


class Observation(msgspec.Struct, frozen=True):
    """A migration and the others of the same resource."""

    migration: StorageVersionMigration
    others: tuple[StorageVersionMigration, ...]


def observe(caches: Caches, key: Key) -> Observation | None:
    migration = caches[STORAGEVERSIONMIGRATIONS].get(key)
    if migration is None:
        return None
    others = (one for one in caches[STORAGEVERSIONMIGRATIONS].list() if one.key != key)
    return Observation(migration, tuple(one for one in others if _resource(one) == _resource(migration)))


def _resource(migration: StorageVersionMigration) -> tuple[str, str]:
    return migration.spec.resource.group, migration.spec.resource.resource


def is_running(migration: StorageVersionMigration) -> bool:
    return is_condition_true(migration.status.conditions, "Running")


def has_ended(migration: StorageVersionMigration) -> bool:
    conditions = migration.status.conditions
    return is_condition_true(conditions, "Succeeded") or is_condition_true(conditions, "Failed")


def _order(migration: StorageVersionMigration) -> tuple[float, str]:
    created = migration.metadata.creationTimestamp
    return created.timestamp() if created is not None else 0.0, migration.metadata.name


def comparable_version(resource_version: str) -> tuple[int, str]:
    """A resourceVersion as a value to compare, whatever its length. Raises `ValueError` unless it is a positive number
    without leading zeros."""
    if not _WELL_FORMED.fullmatch(resource_version):
        raise ValueError(f"resource version is not well formed: {resource_version}")
    return len(resource_version), resource_version


async def decide(seen: Observation, now: datetime) -> Verdict:
    migration = seen.migration
    if has_ended(migration):
        return await _finish(migration, now) if is_running(migration) else Rest("migration has ended")
    if not is_running(migration):
        first = min((one for one in seen.others if not has_ended(one)), key=_order, default=migration)
        if any(map(is_running, seen.others)) or _order(first) < _order(migration):
            return Rest("another migration of the resource goes first")
        await _set_crd_condition(
            migration, now, "True", "MigrationRunning", f"Migration {migration.metadata.name} is running"
        )
        await _set_condition(migration, now, "Running", "MigrationRunning", "The migration is running")
        return Rest("migration started")
    if not migration.status.resourceVersion:
        return await _record_resource_version(migration, now)
    return await _migrate(migration, now)


# -- steps ----------------------------------------------------------------------------------------


async def _record_resource_version(migration: StorageVersionMigration, now: datetime) -> Verdict:
    """Records the resourceVersion up to which objects are rewritten."""
    resource = await _discover_resource(migration, now, "resource does not exist in discovery")
    if resource is None:
        return Rest("failed: resource is not served")
    place = f"{resource.group}/{resource.version}, Resource={resource.name}"
    if not resource.supports(*VERBS):
        why = f'resource "{place}" does not support discovery operations: [{" ".join(VERBS)}]'
        await _set_condition(migration, now, "Failed", "StorageVersionMigrationFailed", why)
        return Rest("failed: resource cannot be updated")
    version = await LatestResourceVersion(resource.partial)
    try:
        comparable_version(version)
    except ValueError as error:
        why = f"latest resourceVersion for {place} is not valid: {error}"
        await _set_condition(migration, now, "Failed", "StorageVersionMigrationFailed", why)
        return Rest("failed: resourceVersion is not well formed")
    status = migration.status
    await UpdateStatus(
        migration, StorageVersionMigrationStatus(conditions=status.conditions, resourceVersion=version)
    )
    return Rest(f"migrating up to resourceVersion {version}")


async def _migrate(migration: StorageVersionMigration, now: datetime) -> Verdict:
    resource = await _discover_resource(
        migration, now, "migration encountered unhandled error: unable to obtain GVR from discovery"
    )
    if resource is None:
        return Rest("failed: resource is not served")
    try:
        until = comparable_version(migration.status.resourceVersion)
    except ValueError as error:
        return await _fail(
            migration, now, f"error comparing resource versions between GC and SVM resource: {error}"
        )
    written = 0
    for obj in await List(resource.partial, ""):
        meta = obj.metadata
        try:
            if comparable_version(meta.resourceVersion) > until:
                continue
        except ValueError as error:
            return await _fail(migration, now, str(error))
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            # Preconditions: a changed or recreated object is a conflict, and a deleted one is not created.
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resourceVersion},
        }
        try:
            await Patch(
                Address(resource.partial, meta.namespace, meta.name),
                body,
                PatchType.APPLY,
                field_manager=NAME,
            )
        except (Conflict, NotFound):
            # Any other write has migrated the object; a deleted one needs nothing.
            # differs: upstream fails the migration where the server says 404, as it does when the namespace is gone.
            continue
        except (ServerError, TooManyRequests, Unreachable):
            raise
        except ApiError as error:
            return await _fail(migration, now, error.message)
        written += 1
    await _set_condition(migration, now, "Succeeded", "StorageVersionMigrationSucceeded", "")
    return Rest(f"migrated {written} objects")


async def _fail(migration: StorageVersionMigration, now: datetime, error: str) -> Verdict:
    why = f"migration encountered unhandled error: {error}"
    await _set_condition(migration, now, "Failed", "StorageVersionMigrationFailed", why)
    return Rest(f"failed: {error}")


async def _finish(migration: StorageVersionMigration, now: datetime) -> Verdict:
    succeeded = is_condition_true(migration.status.conditions, "Succeeded")
    definition = await _read_crd(migration)
    if definition is not None:
        known = find_condition(definition.status.conditions or (), MIGRATING)
        same = known is not None and known.observedGeneration == definition.metadata.generation
        reason, message = "MigrationFailed", "The migration has failed"
        if succeeded:
            reason = "MigrationSucceeded"
            outcome = (
                " and the stored versions have been updated"
                if same
                else " but the stored versions have not been updated due to a generation mismatch"
            )
            message = f"The migration has succeeded{outcome}"
        stored = [version.name for version in definition.spec.versions if version.storage][:1]
        await _patch_crd(definition, now, "False", reason, message, stored if same else [])
    await _set_condition(migration, now, "Running", "MigrationCompleted", "Migration completed", "False")
    return Rest("migration has ended")


async def _discover_resource(
    migration: StorageVersionMigration, now: datetime, why: str
) -> ApiResource | None:
    """The resource from discovery. None if it is not served: then the migration has failed."""
    group, name = _resource(migration)
    found = await Discover()
    for resource in found.preferred:
        if (resource.group, resource.name) == (group, name):
            return resource
    created = migration.metadata.creationTimestamp
    if found.is_incomplete(group) or created is None or now < created + DISCOVERY_TIMEOUT:
        raise InvalidSpec(f"{name}.{group} is not served yet")
    await _set_condition(migration, now, "Failed", "StorageVersionMigrationFailed", why)
    return None


# -- writes ---------------------------------------------------------------------------------------


async def _set_condition(
    migration: StorageVersionMigration,
    now: datetime,
    type_: str,
    reason: str,
    message: str,
    state: str = "True",
) -> None:
    """Sets a condition of the migration."""
    condition = Condition(
        type=type_, status=state, lastTransitionTime=truncate_to_seconds(now), reason=reason, message=message
    )
    if state == "False":
        condition = msgspec.structs.replace(condition, observedGeneration=migration.metadata.generation)
    await UpdateStatus(
        migration,
        StorageVersionMigrationStatus(
            conditions=replace_condition(migration.status.conditions, condition),
            resourceVersion=migration.status.resourceVersion,
        ),
    )


async def _read_crd(migration: StorageVersionMigration) -> CustomResourceDefinition | None:
    group, name = _resource(migration)
    try:
        found: CustomResourceDefinition = await Read(
            Address(CUSTOMRESOURCEDEFINITIONS, "", f"{name}.{group}")
        )
    except NotFound:
        return None
    return found


async def _set_crd_condition(
    migration: StorageVersionMigration, now: datetime, state: str, reason: str, message: str
) -> None:
    definition = await _read_crd(migration)
    if definition is not None:
        await _patch_crd(definition, now, state, reason, message, [])


async def _patch_crd(
    definition: CustomResourceDefinition,
    now: datetime,
    state: str,
    reason: str,
    message: str,
    stored: list[str],
) -> None:
    meta = definition.metadata
    status: dict[str, Any] = {
        "conditions": [
            {
                "type": MIGRATING,
                "status": state,
                "lastTransitionTime": format_time(now),
                "reason": reason,
                "message": message,
                "observedGeneration": meta.generation,
            }
        ]
    }
    if stored:
        status["storedVersions"] = stored
    body = {
        "apiVersion": CUSTOMRESOURCEDEFINITIONS.api_version,
        "kind": CUSTOMRESOURCEDEFINITIONS.name,
        "metadata": {"name": meta.name, "resourceVersion": meta.resourceVersion},
        "status": status,
    }
    await Patch(
        definition, body, PatchType.APPLY, subresource="status", field_manager=CRD_FIELD_MANAGER, force=True
    )


def _enqueue_same_resource(caches: Caches, change: Change[StorageVersionMigration]) -> Iterable[Key]:
    """A migration, and the others of its resource: one may start when another ends."""
    if change.new is not None:
        yield change.new.key
    for other in caches[STORAGEVERSIONMIGRATIONS].list():
        if _resource(other) == _resource(change.obj) and other.key != change.obj.key and not has_ended(other):
            yield other.key


controller = Controller(
    name=NAME,
    aliases=("svm",),
    watches=(Watch(STORAGEVERSIONMIGRATIONS, to=_enqueue_same_resource),),
    workers=5,
    observe=observe,
    decide=decide,
    feature_gates=("StorageVersionMigrator",),
    required_kinds=(STORAGEVERSIONMIGRATIONS,),
    qps_factor=20.0,
    burst_factor=100.0,
)
