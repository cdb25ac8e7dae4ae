"""Table documents: column definitions, rows and included objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steersman.api.errors import BadRequest
from steersman.api.generated.meta_v1 import ListMeta
from steersman.api.generated.rbac_v1 import Role
from steersman.server.tables import (
    DEFAULT_PRINTER,
    SCALE_PRINTER,
    generate_table,
    parse_include_object,
    partial_object_metadata,
    printer_for,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ROLE = msgspec.convert(
    {"metadata": {"name": "r", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}, "rules": []}, Role
)


def plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_a_kind_without_columns_of_its_own_shows_its_name_and_creation() -> None:
    assert printer_for("roles.rbac.authorization.k8s.io") is DEFAULT_PRINTER
    assert plain(
        generate_table(DEFAULT_PRINTER, [ROLE], NOW, include="None", metadata=ListMeta(resourceVersion="7"))
    ) == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Created At", "type": "date", "format": "", "description": "", "priority": 0},
        ],
        "rows": [{"cells": ["r", "2026-01-01T00:00:00Z"], "object": None}],
    }


def test_the_default_columns_take_plain_documents_and_objects_never_created() -> None:
    made = {"metadata": {"name": "d", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert list(DEFAULT_PRINTER.cells(made, NOW)) == ["d", "2026-01-01T00:00:00Z"]
    assert list(DEFAULT_PRINTER.cells({}, NOW)) == ["", "0001-01-01T00:00:00Z"]
    assert list(DEFAULT_PRINTER.cells(Role(), NOW)) == ["", "0001-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("None", None),
        (
            "Metadata",
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "r", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            },
        ),
        (
            "Object",
            {
                "kind": "Role",
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "metadata": {"name": "r", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "rules": [],
            },
        ),
    ],
)
def test_a_row_carries_what_is_asked_for(include: Any, expected: Any) -> None:
    table = generate_table(
        DEFAULT_PRINTER, [ROLE], NOW, api_version="rbac.authorization.k8s.io/v1", kind="Role", include=include
    )
    assert plain(table)["rows"][0]["object"] == expected


def test_a_document_is_carried_as_it_is() -> None:
    document = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "x": 1}
    assert (
        plain(generate_table(DEFAULT_PRINTER, [document], NOW, include="Object"))["rows"][0]["object"]
        == document
    )
    assert plain(partial_object_metadata(document))["metadata"] == {"name": "t"}


def test_the_events_of_a_watch_have_headers_once() -> None:
    assert plain(generate_table(DEFAULT_PRINTER, [ROLE], NOW, headers=False))["columnDefinitions"] is None


def test_the_older_version_says_so_throughout() -> None:
    table = plain(generate_table(DEFAULT_PRINTER, [ROLE], NOW, version="v1beta1"))
    assert table["apiVersion"] == table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("text", "include"), [("", "Metadata"), ("None", "None"), ("Metadata", "Metadata"), ("Object", "Object")]
)
def test_the_parameter_says_how_much(text: str, include: str) -> None:
    assert parse_include_object(text) == include


def test_a_parameter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadRequest, match="includeObject"):
        parse_include_object("Some")


def test_a_scale_has_a_table_too() -> None:
    from steersman.api.generated.autoscaling_v1 import Scale

    scale = msgspec.convert(
        {"metadata": {"name": "s"}, "spec": {"replicas": 2}, "status": {"replicas": 1}}, Scale
    )
    assert list(SCALE_PRINTER.cells(scale, NOW)) == ["s", 2, 1, "<unknown>"]
