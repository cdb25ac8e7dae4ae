"""storage-version-migrator, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion
from steersman.api.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
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
from steersman.controllers.storageversionmigrator import comparable_version, controller
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
        LatestResourceVersion: given.get("latest", "100"),
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
    assert conditions(actions)[0] == ("Running", "False", "MigrationCompleted", "Migration completed")


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


# -- upstream's tables ----------------------------------------------------------------------------

RUNNING = ("Running", "True", "MigrationRunning", "The migration is running")
MIGRATING = Condition(type="StorageMigrating", status="True", observedGeneration=1, reason="MigrationRunning")


def widgets(generation: int = 1, *conditions: Condition) -> CustomResourceDefinition:
    return CustomResourceDefinition(
        metadata=ObjectMeta(name="things.example.com", generation=generation, resourceVersion="8"),
        spec=DefinitionSpec(
            versions=(DefinitionVersion(name="v1"), DefinitionVersion(name="v2", storage=True))
        ),
        status=DefinitionStatus(conditions=conditions),
    )


def told(actions: list[Action[Any]]) -> list[tuple[str, str, str, list[str] | None]]:
    """What the CustomResourceDefinition was told: status, reason and message of its condition, and stored versions."""
    statuses = [one.body["status"] for one in actions if isinstance(one, Patch)]
    return [
        (one["status"], one["reason"], one["message"], status.get("storedVersions"))
        for status in statuses
        for one in status["conditions"]
    ]


@pytest.mark.parametrize(
    ("of", "definition", "crd", "own"),
    [
        (migration(), NotFound("none"), [], [RUNNING]),
        (
            migration(),
            widgets(),
            [("True", "MigrationRunning", "Migration m is running", None)],
            [RUNNING],
        ),
        (
            migration("m", "Succeeded", "Running"),
            widgets(1, MIGRATING),
            [
                (
                    "False",
                    "MigrationSucceeded",
                    "The migration has succeeded and the stored versions have been updated",
                    ["v2"],
                )
            ],
            [("Succeeded", "True"), ("Running", "False", "MigrationCompleted", "Migration completed")],
        ),
        (
            migration("m", "Succeeded", "Running"),
            widgets(2),
            [
                (
                    "False",
                    "MigrationSucceeded",
                    "The migration has succeeded but the stored versions have not been updated due to a "
                    "generation mismatch",
                    None,
                )
            ],
            [("Succeeded", "True"), ("Running", "False", "MigrationCompleted", "Migration completed")],
        ),
        (
            migration("m", "Failed", "Running"),
            widgets(1, MIGRATING),
            [("False", "MigrationFailed", "The migration has failed", ["v2"])],
            [("Failed", "True"), ("Running", "False", "MigrationCompleted", "Migration completed")],
        ),
        (
            migration("m", "Succeeded", "Running"),
            NotFound("none"),
            [],
            [("Succeeded", "True"), ("Running", "False", "MigrationCompleted", "Migration completed")],
        ),
        # As a migration really ends: a condition that changes keeps its place.
        (
            migration("m", "Running", "Succeeded"),
            NotFound("none"),
            [],
            [("Running", "False", "MigrationCompleted", "Migration completed"), ("Succeeded", "True")],
        ),
    ],
    ids=[
        "starts without a definition",
        "starts with a definition",
        "succeeded",
        "succeeded, definition changed",
        "failed",
        "ends without a definition",
        "order of conditions",
    ],
)
def test_a_migration_starts_and_ends_with_these_writes(
    of: StorageVersionMigration, definition: Any, crd: list[Any], own: list[tuple[str, ...]]
) -> None:
    actions, _ = look(of, definition=definition)
    assert told(actions) == crd
    assert [one[: len(want)] for one, want in zip(conditions(actions), own, strict=True)] == own
    # The definition is told first.
    writes = [type(action) for action in actions if isinstance(action, Patch | UpdateStatus)]
    assert writes == [Patch] * len(crd) + [UpdateStatus]


def test_the_older_of_two_starts_first() -> None:
    newer, older = migration("newer", age=-60), migration("older", age=60)
    assert look(newer, older)[0] == []
    assert conditions(look(older, newer)[0]) == [RUNNING]


def test_a_migration_that_has_ended_and_one_of_another_resource_keep_none_from_starting() -> None:
    other = migration("a", "Running")
    resource = GroupResource(group="example.com", resource="others")
    other = replace(other, spec=StorageVersionMigrationSpec(resource=resource))
    assert conditions(look(migration(), other, migration("b", "Failed", age=9))[0]) == [RUNNING]


def served(*verbs: str, group: str = "example.com", version: str = "v2") -> DiscoveryResult:
    return DiscoveryResult((ApiResource(group, version, "Thing", "things", True, verbs),))


def unsupported(of: DiscoveryResult) -> str:
    place = f"{of.preferred[0].group}/{of.preferred[0].version}, Resource=things"
    return f'resource "{place}" does not support discovery operations: [update patch list]'


EVERY = ("get", "list", "watch", "create", "update", "patch", "delete")


@pytest.mark.parametrize(
    ("verbs", "migratable"),
    [
        (EVERY, True),
        (("list", "update", "patch"), True),
        (("get", "list", "watch", "create", "delete"), False),
        (("get", "list", "watch", "create", "update", "delete"), False),
        (("get", "watch", "create", "update", "patch", "delete"), False),
        ((), False),
    ],
    ids=["every verb", "those needed", "no update", "no patch", "no list", "none"],
)
def test_a_resource_is_migrated_if_it_can_be_listed_patched_and_updated(
    verbs: tuple[str, ...], migratable: bool
) -> None:
    found = served(*verbs)
    actions, _ = look(migration("m", "Running"), served=found)
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(update.status, StorageVersionMigrationStatus)
    assert update.status.resourceVersion == ("100" if migratable else "")
    if not migratable:
        failed = ("Failed", "True", "StorageVersionMigrationFailed", unsupported(found))
        assert conditions(actions)[-1] == failed


def test_a_resource_of_another_group_is_not_the_one_to_migrate() -> None:
    actions, _ = look(migration("m", "Running"), served=served(*EVERY, group="bar"))
    assert conditions(actions)[-1][3] == "resource does not exist in discovery"


@pytest.mark.parametrize(
    ("of", "writes"),
    [
        (migration("m", "Succeeded", version="100"), 0),
        (migration("m", "Failed", version="100"), 0),
        (migration("m", "Running", version="123"), 1),
    ],
)
def test_a_resource_version_is_recorded_once(of: StorageVersionMigration, writes: int) -> None:
    actions, _ = look(of)
    assert not [one for one in actions if isinstance(one, LatestResourceVersion)]
    assert len([one for one in actions if isinstance(one, UpdateStatus)]) == writes


def test_a_list_that_fails_is_tried_again() -> None:
    with pytest.raises(ServiceUnavailable):
        look(migration("m", "Running"), latest=ServiceUnavailable("busy"))


@pytest.mark.parametrize("latest", ["abcde", "", "0", "007", "-1", "1.5"])
def test_a_resource_version_that_is_not_well_formed_fails_the_migration(latest: str) -> None:
    actions, _ = look(migration("m", "Running"), latest=latest)
    assert conditions(actions)[-1] == (
        "Failed",
        "True",
        "StorageVersionMigrationFailed",
        "latest resourceVersion for example.com/v2, Resource=things is not valid: resource version is not well "
        f"formed: {latest}",
    )


NOT_COMPARED = "migration encountered unhandled error: resource version is not well formed: abc"


@pytest.mark.parametrize(
    ("version", "objects", "alter", "patched", "last"),
    [
        ("100", [("a", "90"), ("b", "100"), ("c", "101")], USUAL, "ab", ("Succeeded", "")),
        ("100", [("a", "90"), ("b", "95")], [Conflict("changed")], "ab", ("Succeeded", "")),
        # differs: upstream fails the migration.
        ("100", [("a", "90"), ("b", "95")], [NotFound("no namespace")], "ab", ("Succeeded", "")),
        (
            "100",
            [("a", "90"), ("b", "95")],
            [Forbidden("fatal error")],
            "a",
            ("Failed", "migration encountered unhandled error: fatal error"),
        ),
        ("100", [("a", "abc")], USUAL, "", ("Failed", NOT_COMPARED)),
        (
            "abc",
            [("a", "90")],
            USUAL,
            "",
            (
                "Failed",
                "migration encountered unhandled error: error comparing resource versions between GC and SVM "
                "resource: resource version is not well formed: abc",
            ),
        ),
        ("9", [("a", "10"), ("b", "9")], USUAL, "b", ("Succeeded", "")),
        ("1" + "0" * 5000, [("a", "9" * 5000)], USUAL, "a", ("Succeeded", "")),
        ("100", [], USUAL, "", ("Succeeded", "")),
    ],
    ids=[
        "up to the resource version",
        "conflict",
        "not found",
        "fatal error",
        "object of an odd version",
        "odd version",
        "compared as numbers",
        "of any length",
        "no objects",
    ],
)
def test_a_migration_ends_so(
    version: str, objects: list[tuple[str, str]], alter: Any, patched: str, last: tuple[str, str]
) -> None:
    actions, _ = look(
        migration("m", "Running", version=version), objects=[thing(*one) for one in objects], alter=alter
    )
    assert [one.target.name for one in actions if isinstance(one, Patch)] == list(patched)
    found = conditions(actions)[-1]
    assert (found[0], found[3]) == last


@pytest.mark.parametrize(
    "error", [TooManyRequests("simulating throttling"), ServerError("internal"), Unreachable("reset")]
)
def test_an_error_that_may_pass_is_raised_and_the_migration_goes_on_later(error: ApiError) -> None:
    with pytest.raises(type(error)):
        look(migration("m", "Running", version="100"), objects=[thing("a", "90")], alter=error)


LARGE, LARGER = "9" * 50, "1" + "0" * 50


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("100", "200", -1),
        ("200", "100", 1),
        ("1", "1", 0),
        ("100", "100", 0),
        ("99", "100", -1),
        ("100", "99", 1),
        (LARGE, LARGER, -1),
        (LARGER, LARGE, 1),
        (LARGE, LARGE, 0),
        ("0", "1", None),
        ("0", "0", None),
        ("1", "0", None),
        ("0100", "100", None),
        ("100", "0100", None),
        ("", "100", None),
        ("100", "", None),
        ("100a", "100", None),
        ("100", "100a", None),
    ],
)
def test_resource_versions_are_compared_as_upstream_compares_them(
    a: str, b: str, expected: int | None
) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="resource version is not well formed: "):
            max(comparable_version(a), comparable_version(b))
        return
    left, right = comparable_version(a), comparable_version(b)
    assert (left > right) - (left < right) == expected
