"""``metadata.managedFields``: managers and the field sets they own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.generated.meta_v1 import ManagedFieldsEntry
from steersman.server.apply import field_set
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.schema import TypedSchema

APPLY, UPDATE = "Apply", "Update"


class Manager(msgspec.Struct, frozen=True):
    """The identifier of a manager: its name, and by which operation it writes."""

    name: str
    operation: str
    version: str
    """The API version, for updates; empty for applies, which are one manager at all versions."""
    subresource: str = ""

    def __str__(self) -> str:
        """The JSON by which upstream sorts managers."""
        known = {"manager": self.name, "operation": self.operation}
        known |= {"apiVersion": self.version} if self.version else {}
        known |= {"subresource": self.subresource} if self.subresource else {}
        return msgspec.json.encode(known).decode()

    @property
    def applies(self) -> bool:
        return self.operation == APPLY


class VersionedSet(NamedTuple):
    """The field set a manager owns, at one API version."""

    fields: FieldSet
    version: str
    time: datetime | None = None
    schema: TypedSchema | None = None
    """The schema the fields have been reconciled with; None if that is not known."""


ManagedFields: TypeAlias = dict[Manager, VersionedSet]

EntryLike: TypeAlias = "ManagedFieldsEntry | Mapping[str, Any]"


def manager_identifier(name: str, operation: str, version: str, subresource: str = "") -> Manager:
    """The identifier of a manager that writes by an operation."""
    return Manager(name or "unknown", operation, "" if operation == APPLY else version, subresource)


def read(entries: Iterable[EntryLike]) -> ManagedFields:
    """The managed fields of an object's entries. Raises `ValueError` for malformed entries."""
    managed: ManagedFields = {}
    for index, given in enumerate(entries):
        entry = given if isinstance(given, ManagedFieldsEntry) else msgspec.convert(given, ManagedFieldsEntry)
        if entry.operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.apiVersion:
            raise ValueError("apiVersion must not be empty")
        if entry.fieldsType != "FieldsV1":
            raise ValueError(
                f'invalid fieldsType "{entry.fieldsType}" in managed fields entry {index}'
                if entry.fieldsType
                else f"missing fieldsType in managed fields entry {index}"
            )
        fields = entry.fieldsV1
        if fields is not None and not isinstance(fields, Mapping):
            raise ValueError(f"fieldsV1 is not an object in managed fields entry {index}")
        version = "" if entry.operation == APPLY else entry.apiVersion
        manager = Manager(entry.manager, entry.operation, version, entry.subresource)
        managed[manager] = VersionedSet(field_set.from_fields_v1(fields or {}), entry.apiVersion, entry.time)
    return managed


def read_or_none(entries: Iterable[EntryLike]) -> ManagedFields | None:
    """The managed fields of an object's entries; None if an entry is malformed."""
    try:
        return read(entries)
    except (ValueError, TypeError):
        return None


def is_reset(entries: tuple[ManagedFieldsEntry, ...]) -> bool:
    """Whether a request resets managed fields: it sends one empty entry."""
    return len(entries) == 1 and entries[0] == ManagedFieldsEntry()


def write(managed: ManagedFields) -> tuple[ManagedFieldsEntry, ...]:
    """The entries of managed fields in upstream's order: applies first, then by time and name."""
    return tuple(
        ManagedFieldsEntry(
            manager=manager.name,
            operation=manager.operation,
            apiVersion=owned.version,
            time=owned.time,
            fieldsType="FieldsV1",
            fieldsV1=field_set.to_fields_v1(owned.fields),
            subresource=manager.subresource,
        )
        for manager, owned in sorted(managed.items(), key=_order)
    )


def _order(item: tuple[Manager, VersionedSet]) -> tuple[Any, ...]:
    manager, owned = item
    return manager.operation, _seconds(owned.time), manager.name, owned.version, manager.subresource


def _seconds(time: datetime | None) -> int:
    return 0 if time is None else int(time.timestamp())


# -- cap on update managers -------------------------------------------------------------------

MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"


def cap_update_managers(managed: ManagedFields) -> ManagedFields:
    """Managed fields with the oldest update entries merged into `ANCIENT_CHANGES` if there are too many."""
    updaters = [manager for manager in managed if not manager.applies]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managed
    managed = dict(managed)
    first: dict[str, Manager] = {}
    for manager in sorted(updaters, key=lambda manager: (_seconds(managed[manager].time), str(manager))):
        if excess <= 0:
            break
        owned = managed[manager]
        bucket = Manager(ANCIENT_CHANGES, UPDATE, owned.version)
        if owned.version not in first:
            first[owned.version] = manager
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(first[owned.version])
        together = field_set.union(owned.fields, managed[bucket].fields)
        if manager != bucket:
            del managed[manager]
        # Sorted by time, so this entry's time is the later one.
        managed[bucket] = owned._replace(fields=together)
        excess -= 1
    return managed
