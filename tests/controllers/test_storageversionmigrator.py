"""storage-version-migrator, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion
from steersman.api.errors import ApiError, Conflict, Forbidden, NotFound, ServiceUnavailable
from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.storageversions import (
    CustomResourceDefinition,
    DefinitionSpec,
    DefinitionStatus,
    DefinitionVersion,
    GroupResource,
    StorageVersionMigration,
    StorageVersionMigrationSpec,
    StorageVersionMigrationStatus,
)
from steersman.api.partial_object import PartialObject, PartialObjectMeta
from steersman.controllers.storageversionmigrator import controller
from steersman.intent.actions import (
    Action,
    Discover,
    LatestResourceVersion,
    List,
    Patch,
    PatchType,
    Read,
    UpdateStatus,
)
from steersman.intent.verdict import InvalidSpec, Rest, Verdict
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
THINGS = ApiResource("example.com", "v2", "Thing", "things", True, ("list", "patch", "update"))
SERVED = DiscoveryResult((THINGS,))


def migration(name: str = "m", *conditions: str, version: str = "", age: int = 5) -> StorageVersionMigration:
    return StorageVersionMigration(
        metadata=ObjectMeta(name=name, uid=name, creationTimestamp=NOW - timedelta(minutes=age)),
        spec=StorageVersionMigrationSpec(resource=GroupResource(group="example.com", resource="things")),
        status=StorageVersionMigrationStatus(
            conditions=tuple(Condition(type=one, status="True") for one in conditions),
            resourceVersion=version,
        ),
    )


def definition(observed: int = 3) -> CustomResourceDefinition:
    return CustomResourceDefinition(
        metadata=ObjectMeta(name="things.example.com", generation=3, resourceVersion="8"),
        spec=DefinitionSpec(
            versions=(DefinitionVersion(name="v1"), DefinitionVersion(name="v2", storage=True))
        ),
        status=DefinitionStatus(
            conditions=(Condition(type="StorageMigrating", status="True", observedGeneration=observed),)
        ),
    )


def look(
    of: StorageVersionMigration, *others: StorageVersionMigration, **given: Any
) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, of, *others), of.key)
    assert seen is not None
    answers: dict[type[Action[Any]], Any] = {
        Discover: given.get("served", SERVED),
        Read: given.get("definition", NotFound("no definition")),
        LatestResourceVersion: "100",
        # A list in a mapping is used up one by one, so a function answers with it.
        List: lambda action: given.get("objects", []),
        Patch: given.get("alter", USUAL),
    }
    return walk(controller.decide(seen, NOW), answers)


def conditions(actions: list[Action[Any]]) -> list[tuple[str, str, str, str]]:
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(update.status, StorageVersionMigrationStatus)
    return [(one.type, one.status, one.reason, one.message) for one in update.status.conditions]


def thing(name: str, version: str) -> PartialObject:
    return PartialObject(
        metadata=PartialObjectMeta(name=name, namespace="d", uid=name, resourceVersion=version)
    )


def test_the_first_of_a_resource_begins_and_its_definition_is_told() -> None:
    actions, verdict = look(migration(), definition=definition())
    patch = next(one for one in actions if isinstance(one, Patch))
    assert (patch.type, patch.subresource, patch.field_manager) == (
        PatchType.APPLY,
        "status",
        "migration-runner-controller",
    )
    assert patch.body["status"]["conditions"][0]["message"] == "Migration m is running"
    assert conditions(actions) == [("Running", "True", "MigrationRunning", "The migration is running")]
    assert verdict == Rest("migration started")


@pytest.mark.parametrize(
    "other",
    [migration("x", "Running"), migration("x", age=9), migration("a")],
    ids=["one that runs", "an older one", "one of the same age with an earlier name"],
)
def test_others_of_the_same_resource_wait(other: StorageVersionMigration) -> None:
    assert look(migration(), other) == ([], Rest("another migration of the resource goes first"))


def test_the_revision_the_resource_has_reached_is_noted_first() -> None:
    actions, _ = look(migration("m", "Running"))
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(update.status, StorageVersionMigrationStatus)
    assert update.status.resourceVersion == "100"


def test_every_object_that_is_not_newer_is_written_by_applying_nothing() -> None:
    of = migration("m", "Running", version="100")
    actions, verdict = look(of, objects=[thing("a", "7"), thing("b", "100"), thing("c", "101")])
    writes = [one for one in actions if isinstance(one, Patch)]
    assert [one.target.name for one in writes] == ["a", "b"]
    assert writes[0].body == {
        "apiVersion": "example.com/v2",
        "kind": "Thing",
        "metadata": {"uid": "a", "resourceVersion": "7"},
    }
    assert (writes[0].type, writes[0].field_manager) == (
        PatchType.APPLY,
        "storage-version-migrator-controller",
    )
    assert conditions(actions)[-1] == ("Succeeded", "True", "StorageVersionMigrationSucceeded", "")
    assert verdict == Rest("migrated 2 objects")


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("gone")])
def test_an_object_that_somebody_else_wrote_is_as_good(error: ApiError) -> None:
    actions, _ = look(migration("m", "Running", version="100"), objects=[thing("a", "7")], alter=error)
    assert conditions(actions)[-1][0] == "Succeeded"


def test_a_server_that_is_busy_is_asked_again() -> None:
    with pytest.raises(ServiceUnavailable):
        look(
            migration("m", "Running", version="100"),
            objects=[thing("a", "7")],
            alter=ServiceUnavailable("busy"),
        )


def test_an_object_that_cannot_be_written_fails_the_migration() -> None:
    actions, _ = look(
        migration("m", "Running", version="100"), objects=[thing("a", "7")], alter=Forbidden("no")
    )
    assert conditions(actions)[-1] == (
        "Failed",
        "True",
        "StorageVersionMigrationFailed",
        "migration encountered unhandled error: no",
    )


@pytest.mark.parametrize(
    ("observed", "stored", "said"),
    [
        (3, ["v2"], "The migration has succeeded and the stored versions have been updated"),
        (
            2,
            None,
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
    ],
)
def test_when_it_has_succeeded_the_definition_drops_old_versions_unless_it_changed(
    observed: int, stored: list[str] | None, said: str
) -> None:
    actions, _ = look(migration("m", "Running", "Succeeded", version="100"), definition=definition(observed))
    patch = next(one for one in actions if isinstance(one, Patch))
    assert patch.body["status"].get("storedVersions") == stored
    assert patch.body["status"]["conditions"][0]["message"] == said
    assert conditions(actions)[-1] == ("Running", "False", "MigrationCompleted", "Migration completed")


def test_a_resource_that_may_still_turn_up_is_waited_for_and_then_not() -> None:
    nothing = DiscoveryResult(())
    with pytest.raises(InvalidSpec):
        look(migration("m", "Running", age=0), served=nothing)
    with pytest.raises(InvalidSpec):
        look(
            migration("m", "Running"),
            served=DiscoveryResult((), (FailedGroupVersion("example.com/v2", "away"),)),
        )
    actions, _ = look(migration("m", "Running"), served=nothing)
    assert conditions(actions)[-1][3] == "resource does not exist in discovery"


def test_a_resource_that_cannot_be_written_fails() -> None:
    fixed = DiscoveryResult((ApiResource("example.com", "v2", "Thing", "things", True, ("list",)),))
    actions, _ = look(migration("m", "Running"), served=fixed)
    assert conditions(actions)[-1][3] == (
        'resource "example.com/v2, Resource=things" does not support discovery operations: [update patch list]'
    )


def test_what_has_ended_is_left_alone() -> None:
    assert look(migration("m", "Failed")) == ([], Rest("migration has ended"))
