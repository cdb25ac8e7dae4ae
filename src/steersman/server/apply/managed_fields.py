"""``metadata.managedFields``: who owns which fields, since when, and by which sort of request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.generated.meta_v1 import ManagedFieldsEntry
from steersman.server.apply import field_set
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.schema import Shape

APPLY, UPDATE = "Apply", "Update"


class Manager(NamedTuple):
    """One owner of fields: somebody, by one sort of request."""

    name: str
    operation: str
    version: str
    """The API version, for updates; whoever applies is one manager at all versions."""
    subresource: str = ""

    def __str__(self) -> str:
        """What upstream sorts managers by."""
        known = {"manager": self.name, "operation": self.operation}
        known |= {"apiVersion": self.version} if self.version else {}
        known |= {"subresource": self.subresource} if self.subresource else {}
        return msgspec.json.encode(known).decode()

    @property
    def applies(self) -> bool:
        return self.operation == APPLY


class Owned(NamedTuple):
    """What a manager owns, in terms of one API version."""

    fields: FieldSet
    version: str
    time: datetime | None = None
    shape: Shape | None = None
    """What the fields are known to follow, so that nobody need look again."""


Managed: TypeAlias = dict[Manager, Owned]

EntryLike: TypeAlias = "ManagedFieldsEntry | Mapping[str, Any]"


def manager(name: str, operation: str, version: str, subresource: str = "") -> Manager:
    """Who somebody is when he makes this sort of request."""
    return Manager(name or "unknown", operation, "" if operation == APPLY else version, subresource)


def read(entries: Iterable[EntryLike]) -> Managed:
    """The owners of an object. Raises `ValueError` for entries that make no sense."""
    managed: Managed = {}
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
            raise ValueError(f"no fields in managed fields entry {index}")
        version = "" if entry.operation == APPLY else entry.apiVersion
        who = Manager(entry.manager, entry.operation, version, entry.subresource)
        managed[who] = Owned(field_set.read(fields or {}), entry.apiVersion, entry.time)
    return managed


def readable(entries: Iterable[EntryLike]) -> Managed | None:
    """The owners of an object; None where its entries make no sense."""
    try:
        return read(entries)
    except (ValueError, TypeError):
        return None


def is_reset(entries: tuple[ManagedFieldsEntry, ...]) -> bool:
    """Whether somebody wants to begin anew: one entry that says nothing."""
    return len(entries) == 1 and entries[0] == ManagedFieldsEntry()


def write(managed: Managed) -> tuple[ManagedFieldsEntry, ...]:
    """The entries of an object, in their order: appliers first, then by time and name."""
    return tuple(
        ManagedFieldsEntry(
            manager=who.name,
            operation=who.operation,
            apiVersion=owned.version,
            time=owned.time,
            fieldsType="FieldsV1",
            fieldsV1=field_set.write(owned.fields),
            subresource=who.subresource,
        )
        for who, owned in sorted(managed.items(), key=_order)
    )


def _order(item: tuple[Manager, Owned]) -> tuple[Any, ...]:
    who, owned = item
    return who.operation, _seconds(owned.time), who.name, owned.version, who.subresource


def _seconds(time: datetime | None) -> int:
    return 0 if time is None else int(time.timestamp())


# -- not too many -----------------------------------------------------------------------------

MOST_UPDATERS = 10
ANCIENT = "ancient-changes"


def capped(managed: Managed) -> Managed:
    """The owners with the oldest updaters put together, where there are too many."""
    updaters = [who for who in managed if not who.applies]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return managed
    managed = dict(managed)
    first: dict[str, Manager] = {}
    for who in sorted(updaters, key=lambda who: (_seconds(managed[who].time), str(who))):
        if excess <= 0:
            break
        owned = managed[who]
        bucket = Manager(ANCIENT, UPDATE, owned.version)
        if owned.version not in first:
            first[owned.version] = who
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(first[owned.version])
        together = field_set.union(owned.fields, managed[bucket].fields)
        if who != bucket:
            del managed[who]
        # The later of the two times, since the oldest come first.
        managed[bucket] = owned._replace(fields=together)
        excess -= 1
    return managed


# -- names ------------------------------------------------------------------------------------

LONGEST_NAME = 128


def manager_name(field_manager: str, user_agent: str) -> str:
    """Who makes a request: who he says he is, or what his user agent begins with."""
    if field_manager:
        return field_manager
    size, kept = 0, []
    for letter in user_agent.partition("/")[0]:
        if not letter.isprintable():
            continue
        size += len(letter.encode())
        if size > LONGEST_NAME:
            break
        kept.append(letter)
    return "".join(kept)
