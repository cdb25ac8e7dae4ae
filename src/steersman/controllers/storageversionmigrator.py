"""storage-version-migrator (a service): every object of a resource is written anew, in the version that is stored now.

One migration of a resource runs at a time. It notes which revision the resource has reached, then writes
every object that is not newer: an apply of nothing, which the server stores as it stores things now. Of a
custom resource the definition is told, so that versions nobody stores any more can be dropped from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.conditions import find, is_true
from steersman.api.discovery import Resource
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
from steersman.api.meta import truncate
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
RUNNER = "migration-runner-controller"
PATIENCE = timedelta(minutes=1)
"""For how long a resource that is not served may still turn up."""
VERBS = ("update", "patch", "list")
MIGRATING = "StorageMigrating"


class Seen(msgspec.Struct, frozen=True):
    migration: StorageVersionMigration
    others: tuple[StorageVersionMigration, ...]
    """Of the same resource."""


def observe(caches: Caches, key: Key) -> Seen | None:
    migration = caches[STORAGEVERSIONMIGRATIONS].get(key)
    if migration is None:
        return None
    others = (one for one in caches[STORAGEVERSIONMIGRATIONS].list() if one.key != key)
    return Seen(migration, tuple(one for one in others if _resource(one) == _resource(migration)))


def _resource(migration: StorageVersionMigration) -> tuple[str, str]:
    return migration.spec.resource.group, migration.spec.resource.resource


def runs(migration: StorageVersionMigration) -> bool:
    return is_true(migration.status.conditions, "Running")


def ended(migration: StorageVersionMigration) -> bool:
    conditions = migration.status.conditions
    return is_true(conditions, "Succeeded") or is_true(conditions, "Failed")


def _order(migration: StorageVersionMigration) -> tuple[float, str]:
    created = migration.metadata.creationTimestamp
    return created.timestamp() if created is not None else 0.0, migration.metadata.name


async def decide(seen: Seen, now: datetime) -> Verdict:
    migration = seen.migration
    if ended(migration):
        return await _finish(migration, now) if runs(migration) else Rest("has ended")
    if not runs(migration):
        first = min((one for one in seen.others if not ended(one)), key=_order, default=migration)
        if any(map(runs, seen.others)) or _order(first) < _order(migration):
            return Rest("another migration of the resource comes first")
        await _tell(
            migration, now, "True", "MigrationRunning", f"Migration {migration.metadata.name} is running"
        )
        await _note(migration, now, "Running", "MigrationRunning", "The migration is running")
        return Rest("runs now")
    if not migration.status.resourceVersion:
        return await _mark(migration, now)
    return await _migrate(migration, now)


# -- steps ----------------------------------------------------------------------------------------


async def _mark(migration: StorageVersionMigration, now: datetime) -> Verdict:
    """Note up to which revision objects are to be written."""
    resource = await _served(migration, now, "resource does not exist in discovery")
    if resource is None:
        return Rest("failed: it is not served")
    if not resource.can(*VERBS):
        place = f"{resource.group}/{resource.version}, Resource={resource.name}"
        why = f'resource "{place}" does not support discovery operations: [{" ".join(VERBS)}]'
        await _note(migration, now, "Failed", "StorageVersionMigrationFailed", why)
        return Rest("failed: it cannot be written")
    version = await LatestResourceVersion(resource.partial)
    status = migration.status
    await UpdateStatus(
        migration, StorageVersionMigrationStatus(conditions=status.conditions, resourceVersion=version)
    )
    return Rest(f"migrates up to revision {version}")


async def _migrate(migration: StorageVersionMigration, now: datetime) -> Verdict:
    resource = await _served(
        migration, now, "migration encountered unhandled error: unable to obtain GVR from discovery"
    )
    if resource is None:
        return Rest("failed: it is not served")
    until = int(migration.status.resourceVersion)
    written = 0
    for obj in await List(resource.partial, ""):
        meta = obj.metadata
        if int(meta.resourceVersion) > until:
            continue
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            # With both, an object that was changed, deleted or made anew is a conflict, and never created.
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
            # Somebody has written or deleted it since: that is as good.
            continue
        except (ServerError, TooManyRequests, Unreachable):
            raise
        except ApiError as error:
            why = f"migration encountered unhandled error: {error.message}"
            await _note(migration, now, "Failed", "StorageVersionMigrationFailed", why)
            return Rest("failed: an object cannot be written")
        written += 1
    await _note(migration, now, "Succeeded", "StorageVersionMigrationSucceeded", "")
    return Rest(f"wrote {written} objects")


async def _finish(migration: StorageVersionMigration, now: datetime) -> Verdict:
    succeeded = is_true(migration.status.conditions, "Succeeded")
    definition = await _definition(migration)
    if definition is not None:
        known = find(definition.status.conditions, MIGRATING)
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
        await _say(definition, now, "False", reason, message, stored if same else [])
    await _note(migration, now, "Running", "MigrationCompleted", "Migration completed", "False")
    return Rest("has ended")


async def _served(migration: StorageVersionMigration, now: datetime, why: str) -> Resource | None:
    """The resource as it is served; None, and the migration has failed, where it will not be."""
    group, name = _resource(migration)
    found = await Discover()
    for resource in found.preferred:
        if (resource.group, resource.name) == (group, name):
            return resource
    created = migration.metadata.creationTimestamp
    if found.lacks(group) or created is None or now < created + PATIENCE:
        raise InvalidSpec(f"{name}.{group} is not served, as far as is known")
    await _note(migration, now, "Failed", "StorageVersionMigrationFailed", why)
    return None


# -- what is written ------------------------------------------------------------------------------


async def _note(
    migration: StorageVersionMigration,
    now: datetime,
    type_: str,
    reason: str,
    message: str,
    state: str = "True",
) -> None:
    """Set a condition of the migration."""
    condition = Condition(
        type=type_, status=state, lastTransitionTime=truncate(now), reason=reason, message=message
    )
    if state == "False":
        condition = msgspec.structs.replace(condition, observedGeneration=migration.metadata.generation)
    others = tuple(one for one in migration.status.conditions if one.type != type_)
    await UpdateStatus(
        migration,
        StorageVersionMigrationStatus(
            conditions=(*others, condition), resourceVersion=migration.status.resourceVersion
        ),
    )


async def _definition(migration: StorageVersionMigration) -> CustomResourceDefinition | None:
    group, name = _resource(migration)
    try:
        found: CustomResourceDefinition = await Read(
            Address(CUSTOMRESOURCEDEFINITIONS, "", f"{name}.{group}")
        )
    except NotFound:
        return None
    return found


async def _tell(
    migration: StorageVersionMigration, now: datetime, state: str, reason: str, message: str
) -> None:
    definition = await _definition(migration)
    if definition is not None:
        await _say(definition, now, state, reason, message, [])


async def _say(
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
                "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
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
    await Patch(definition, body, PatchType.APPLY, subresource="status", field_manager=RUNNER, force=True)


def _same_resource(caches: Caches, change: Change[StorageVersionMigration]) -> Iterable[Key]:
    """When one ends, the next may begin."""
    if change.new is not None:
        yield change.new.key
    for other in caches[STORAGEVERSIONMIGRATIONS].list():
        if _resource(other) == _resource(change.obj) and other.key != change.obj.key and not ended(other):
            yield other.key


controller = Controller(
    name=NAME,
    aliases=("svm",),
    watches=(Watch(STORAGEVERSIONMIGRATIONS, to=_same_resource),),
    workers=5,
    observe=observe,
    decide=decide,
    feature_gates=("StorageVersionMigrator",),
    required_kinds=(STORAGEVERSIONMIGRATIONS,),
    qps_factor=20.0,
    burst_factor=100.0,
)
