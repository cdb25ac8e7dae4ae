"""The table as a document: ``meta.k8s.io/v1 Table``."""

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
from steersman.server.defaulting.workloads import TEMPLATE_GENERATION
from steersman.server.http.encoding import encode_object
from steersman.server.tables.printer import NAME, Cell, Column, Condition, Printer

Include: TypeAlias = Literal["None", "Metadata", "Object"]
"""How much of each object a row carries."""

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
    """A table, ready to be encoded with msgspec. Without headers its columns are null."""

    kind: str
    apiVersion: str
    metadata: ListMeta
    columnDefinitions: tuple[ColumnDefinition, ...] | None
    rows: tuple[Row, ...]


class PartialObjectMetadata(Struct, frozen=True):
    """An object of which only the metadata is told."""

    kind: str
    apiVersion: str
    metadata: Any


def include_of(text: str) -> Include:
    """What the ``includeObject`` parameter asks for. Raises `BadRequest` for what is none."""
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


def partial(obj: Any, version: str = "v1") -> PartialObjectMetadata:
    """An object's metadata as an answer of its own. Takes structs and plain documents."""
    metadata = obj.get("metadata", {}) if isinstance(obj, Mapping) else _told(obj)
    return PartialObjectMetadata(
        kind="PartialObjectMetadata", apiVersion=f"{_GROUP}/{version}", metadata=metadata
    )


def _told(obj: Any) -> Any:
    """An object's metadata without what says nothing, or stands for a field of a former version."""
    metadata = obj.metadata
    owners = metadata.managedFields
    if type(owners) is not tuple and not len(owners):
        metadata = replace(metadata, managedFields=())
    if type(obj) is DaemonSet:
        notes = {name: text for name, text in metadata.annotations.items() if name != TEMPLATE_GENERATION}
        metadata = replace(metadata, annotations=notes or EMPTY)
    return metadata


def lay_out(
    printer: Printer,
    objects: Iterable[Any],
    now: datetime,
    *,
    api_version: str = "",
    kind: str = "",
    include: Include = "Metadata",
    headers: bool = True,
    metadata: ListMeta = ListMeta(),
    version: str = "v1",
) -> Table:
    """The table of some objects. What they are is needed only where the rows include them whole."""

    def shown(obj: Any) -> Any:
        if include == "Metadata":
            return partial(obj, version)
        if include == "None":
            return None
        return obj if isinstance(obj, Mapping) else msgspec.Raw(encode_object(api_version, kind, obj))

    ordered = objects if printer.order is None else sorted(objects, key=printer.order)
    return Table(
        kind="Table",
        apiVersion=f"{_GROUP}/{version}",
        metadata=metadata,
        columnDefinitions=_headers(printer) if headers else None,
        rows=tuple(
            Row(cells=printer.cells(obj, now), object=shown(obj), conditions=_conditions(printer, obj))
            for obj in ordered
        ),
    )


def _headers(printer: Printer) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(**column._asdict()) for column in printer.columns)


def _conditions(printer: Printer, obj: Any) -> tuple[RowCondition, ...]:
    found: tuple[Condition, ...] = () if printer.conditions is None else printer.conditions(obj)
    return tuple(RowCondition(**condition._asdict()) for condition in found)


# -- what has no columns of its own -----------------------------------------------------------


def _created(obj: Any, now: datetime) -> tuple[Cell, ...]:
    if isinstance(obj, Mapping):
        metadata = obj.get("metadata", {})
        return metadata.get("name", ""), metadata.get("creationTimestamp") or _NEVER
    created = obj.metadata.creationTimestamp
    if created is None:
        return obj.metadata.name, _NEVER
    return obj.metadata.name, created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_NEVER = "0001-01-01T00:00:00Z"

DEFAULT = Printer((NAME, Column("Created At", type="date")), _created)
"""Name and creation, for the kinds upstream has no columns for: roles, limit ranges, CRDs …"""
