"""``managedFields``: who is who, in which order, and how many at most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.generated.meta_v1 import ManagedFieldsEntry
from steersman.server.apply import field_set, managed_fields, options
from steersman.server.apply.managed_fields import APPLY, UPDATE, Manager, VersionedSet

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(**fields: Any) -> dict[str, Any]:
    usual = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**usual, "fieldsV1": {"f:a": {}}, **fields}


def test_what_is_read_is_written_the_same_in_upstreams_order() -> None:
    given = [
        entry(manager="b", time="2026-01-01T00:00:01Z"),
        entry(manager="z", time="2026-01-01T00:00:00Z"),
        entry(manager="a", time="2026-01-01T00:00:01Z", subresource="status"),
        entry(manager="y", operation="Apply", time="2026-01-01T00:00:09Z"),
    ]
    written = managed_fields.write(managed_fields.read(given))
    assert [each.manager for each in written] == ["y", "z", "a", "b"]
    assert written[2] == ManagedFieldsEntry(
        manager="a",
        operation="Update",
        apiVersion="v1",
        time=NOW + timedelta(seconds=1),
        fieldsType="FieldsV1",
        fieldsV1={"f:a": {}},
        subresource="status",
    )


def test_an_applier_is_one_manager_at_all_versions() -> None:
    both = [entry(operation="Apply"), entry(operation="Apply", apiVersion="v2")]
    assert list(managed_fields.read(both)) == [Manager("m", APPLY, "")]
    assert len(managed_fields.read([entry(), entry(apiVersion="v2"), entry(subresource="status")])) == 3


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"operation": "Replace"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 0"),
        ({"fieldsType": "V2"}, 'invalid fieldsType "V2" in managed fields entry 0'),
        ({"fieldsV1": [1]}, "fieldsV1 is not an object in managed fields entry 0"),
        ({"fieldsV1": {"a": {}}}, "missing colon: a"),
    ],
)
def test_entries_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        managed_fields.read([entry(**fields)])
    assert managed_fields.read_or_none([entry(**fields)]) is None


def test_one_entry_that_says_nothing_begins_anew() -> None:
    assert managed_fields.is_reset((ManagedFieldsEntry(),))
    assert not managed_fields.is_reset(())
    assert not managed_fields.is_reset((ManagedFieldsEntry(), ManagedFieldsEntry()))


def owned(field: str, second: int, version: str = "v1") -> VersionedSet:
    return VersionedSet(field_set.of(field), version, NOW + timedelta(seconds=second))


def test_the_oldest_of_too_many_updaters_are_put_together() -> None:
    managed = {Manager(f"m{n:02}", UPDATE, "v1"): owned(f"f{n}", n) for n in range(13)}
    managed[Manager("a", APPLY, "")] = owned("x", 0)
    cap_update_managers = managed_fields.cap_update_managers(managed)
    ancient = Manager(managed_fields.ANCIENT_CHANGES, UPDATE, "v1")
    assert len([who for who in cap_update_managers if not who.applies]) == managed_fields.MAX_UPDATE_MANAGERS
    assert list(field_set.paths(cap_update_managers[ancient].fields)) == [".f0", ".f1", ".f2", ".f3"]
    assert cap_update_managers[ancient].time == NOW + timedelta(seconds=3)
    assert Manager("a", APPLY, "") in cap_update_managers
    assert len(managed) == 14


def test_what_was_put_together_takes_in_the_next() -> None:
    managed = {Manager(f"m{n:02}", UPDATE, "v1"): owned(f"f{n}", n) for n in range(11)}
    cap_update_managers = managed_fields.cap_update_managers(managed)
    cap_update_managers[Manager("m11", UPDATE, "v1")] = owned("f11", 11)
    again = managed_fields.cap_update_managers(cap_update_managers)
    ancient = Manager(managed_fields.ANCIENT_CHANGES, UPDATE, "v1")
    assert list(field_set.paths(again[ancient].fields)) == [".f0", ".f1", ".f2"]


def test_versions_are_put_together_each_for_itself() -> None:
    managed = {Manager(f"m{n:02}", UPDATE, f"v{n % 2}"): owned(f"f{n}", n, f"v{n % 2}") for n in range(12)}
    cap_update_managers = managed_fields.cap_update_managers(managed)
    assert list(
        field_set.paths(cap_update_managers[Manager(managed_fields.ANCIENT_CHANGES, UPDATE, "v0")].fields)
    ) == [
        ".f0",
        ".f2",
    ]
    assert list(
        field_set.paths(cap_update_managers[Manager(managed_fields.ANCIENT_CHANGES, UPDATE, "v1")].fields)
    ) == [
        ".f1",
        ".f3",
    ]


@pytest.mark.parametrize(
    ("said", "agent", "name"),
    [
        ("me", "kubectl/v1.36", "me"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "kube-controller-manager", "kube-controller-manager"),
        ("", "a\tb\x00c/1", "abc"),
        ("", "x" * 200 + "/1", "x" * 128),
        ("", "é" * 100, "é" * 64),
        ("", "", ""),
    ],
)
def test_a_manager_is_called_what_it_says_or_what_its_user_agent_begins_with(
    said: str, agent: str, name: str
) -> None:
    assert options.manager_name(said, agent) == name


def test_a_manager_without_a_name_is_unknown() -> None:
    assert managed_fields.manager_identifier("", UPDATE, "v1").name == "unknown"
