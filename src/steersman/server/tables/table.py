"""Generation of ``meta.k8s.io`` Table and PartialObjectMetadata documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.errors import BadRequest
from steersman.api.generated.apps_v1 import DaemonSet
from steersman.api.generated.meta_v1 import ListMeta
from steersman.api.kinds import EMPTY, Struct
from steersman.api.meta import format_time
from steersman.server.codec.encoding import encode_object
from steersman.server.defaulting.workloads import TEMPLATE_GENERATION
from steersman.server.tables.printer import NAME, Cell, Column, Condition, Printer

IncludeObject: TypeAlias = Literal["None", "Metadata", "Object"]
"""The part of each object that its row includes."""

_GROUP = "meta.k8s.io"


class ColumnDefinition(Struct, frozen=True):
    name: str
    type: str
    format: str
    description: str
    priority: int


class RowCondition(Struct, frozen=True):
    type: str
    status: str
    reason: str
    message: str


class Row(Struct, frozen=True):
    cells: Sequence[Cell]
    object: Any
    conditions: tuple[RowCondition, ...] = ()


class Table(Struct, frozen=True):
    """A Table. Its columnDefinitions are null where a client wants no headers."""

    kind: str
    apiVersion: str
    metadata: ListMeta
    columnDefinitions: tuple[ColumnDefinition, ...] | None
    rows: tuple[Row, ...]


class PartialObjectMetadata(Struct, frozen=True):
    """The metadata of an object."""

    kind: str
    apiVersion: str
    metadata: Any


def parse_include_object(text: str) -> IncludeObject:
    """The value of the query parameter ``includeObject``. Raises `BadRequest` where it is invalid."""
    match text:
        case "None" | "Metadata" | "Object":
            return text
        case "":
            return "Metadata"
    raise BadRequest(
        "Unable to convert to Table as requested: includeObject: Invalid value: "
        f"\"{text}\": must be 'Metadata', 'Object', 'None', or empty",
        reason="BadRequest",
    )


def partial_object_metadata(obj: Any, version: str = "v1") -> PartialObjectMetadata:
    """The PartialObjectMetadata of an object, which is a struct or a plain document."""
    metadata = obj.get("metadata", {}) if isinstance(obj, Mapping) else _partial_metadata(obj)
    return PartialObjectMetadata(
        kind="PartialObjectMetadata", apiVersion=f"{_GROUP}/{version}", metadata=metadata
    )


def _partial_metadata(obj: Any) -> Any:
    """An object's metadata without empty managedFields and without the annotation of a removed field."""
    metadata = obj.metadata
    managed_fields = metadata.managedFields
    if type(managed_fields) is not tuple and not len(managed_fields):
        metadata = replace(metadata, managedFields=())
    if type(obj) is DaemonSet:
        annotations_left = {
            name: text for name, text in metadata.annotations.items() if name != TEMPLATE_GENERATION
        }
        metadata = replace(metadata, annotations=annotations_left or EMPTY)
    return metadata


def generate_table(
    printer: Printer,
    objects: Iterable[Any],
    now: datetime,
    *,
    api_version: str = "",
    kind: str = "",
    include: IncludeObject = "Metadata",
    headers: bool = True,
    metadata: ListMeta = ListMeta(),
    version: str = "v1",
) -> Table:
    """The table of the objects. ``api_version`` and ``kind`` are needed only where rows include whole objects."""

    def row_object(obj: Any) -> Any:
        if include == "Metadata":
            return partial_object_metadata(obj, version)
        if include == "None":
            return None
        return obj if isinstance(obj, Mapping) else msgspec.Raw(encode_object(api_version, kind, obj))

    ordered = objects if printer.order is None else sorted(objects, key=printer.order)
    return Table(
        kind="Table",
        apiVersion=f"{_GROUP}/{version}",
        metadata=metadata,
        columnDefinitions=_column_definitions(printer) if headers else None,
        rows=tuple(
            Row(
                cells=printer.cells(obj, now),
                object=row_object(obj),
                conditions=_row_conditions(printer, obj),
            )
            for obj in ordered
        ),
    )


def _column_definitions(printer: Printer) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(**column._asdict()) for column in printer.columns)


def _row_conditions(printer: Printer, obj: Any) -> tuple[RowCondition, ...]:
    conditions: tuple[Condition, ...] = () if printer.conditions is None else printer.conditions(obj)
    return tuple(RowCondition(**condition._asdict()) for condition in conditions)


# -- the default printer ----------------------------------------------------------------------


def _default_cells(obj: Any, now: datetime) -> tuple[Cell, ...]:
    if isinstance(obj, Mapping):
        metadata = obj.get("metadata", {})
        return metadata.get("name", ""), metadata.get("creationTimestamp") or _ZERO_TIME
    created = obj.metadata.creationTimestamp
    if created is None:
        return obj.metadata.name, _ZERO_TIME
    return obj.metadata.name, format_time(created.astimezone(UTC))


_ZERO_TIME = "0001-01-01T00:00:00Z"

DEFAULT_PRINTER = Printer((NAME, Column("Created At", type="date")), _default_cells)
"""Shows name and creation time, for kinds upstream has no columns for: Roles, LimitRanges, CRDs …"""
