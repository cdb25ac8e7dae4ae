"""Tables of custom resources, with the columns of their definitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.generated.apiextensions_v1 import CustomResourceColumnDefinition as Definition
from steersman.server.tables import custom_printer
from steersman.server.tables.custom import format_value
from steersman.server.tables.printer import NAME

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def cell(type_: str, value: Any) -> Any:
    printer = custom_printer([Definition(name="C", type=type_, jsonPath=".v")])
    return printer.cells({"metadata": {"name": "n"}, "v": value}, NOW)[1]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("integer", 3, 3),
        ("integer", 3.9, 3),
        ("integer", True, None),
        ("integer", "3", None),
        ("integer", float("inf"), None),
        ("number", 2.5, 2.5),
        ("number", 2, 2),
        ("number", "2", None),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("string", "s", "s"),
        ("string", 3, "3"),
        ("string", False, "false"),
        ("string", {"b": [1.0, None], "a": "<&>"}, r'{"a":"\u003c\u0026\u003e","b":[1,null]}'),
        ("date", (NOW - timedelta(hours=3)).isoformat(), "3h"),
        ("date", "2026-01-01T12:00:00+12:00", "24h"),
        ("date", "yesterday", "<invalid>"),
        ("date", "2026-01-01T00:00:00", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
        ("odd", "x", None),
    ],
)
def test_a_value_is_shown_if_it_is_of_the_columns_type(type_: str, value: Any, expected: Any) -> None:
    found = cell(type_, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1"),
        (1.5, "1.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (999999.5, "999999.5"),
        (1000000.0, "1e+06"),
        (-1234567.5, "-1.2345675e+06"),
        (1e100, "1e+100"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9.223372036854776e+18"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Inf"),
        (None, "<no value>"),
    ],
)
def test_numbers_are_printed_as_go_prints_them(value: Any, expected: str) -> None:
    assert format_value(value) == expected


def test_without_columns_the_age_is_shown() -> None:
    printer = custom_printer(())
    assert [column.name for column in printer.columns] == ["Name", "Age"]
    created = (NOW - timedelta(minutes=5)).isoformat()
    assert printer.cells({"metadata": {"name": "n", "creationTimestamp": created}}, NOW) == ["n", "5m"]


def test_a_column_keeps_what_its_definition_says_of_it() -> None:
    said = Definition(name="C", type="integer", jsonPath=".c", format="int32", priority=1, description="d")
    _, column = custom_printer([said]).columns
    assert column == ("C", "integer", "int32", "d", 1)
    _, plain = custom_printer([Definition(name="C", type="string", jsonPath=".c")]).columns
    assert plain.description == "Custom resource definition column (in JSONPath format): .c"


def test_a_path_that_makes_no_sense_ends_the_table() -> None:
    paths = (".a", ".b[", ".c")
    printer = custom_printer([Definition(name=path, type="string", jsonPath=path) for path in paths])
    assert [column.name for column in printer.columns] == ["Name", ".a"]
    assert printer.cells({"a": "x"}, NOW) == ["", "x"]


@pytest.mark.parametrize("document", [{}, {"metadata": {}}, {"v": None}])
def test_what_is_not_there_is_an_empty_cell(document: dict[str, Any]) -> None:
    printer = custom_printer([Definition(name="C", type="integer", jsonPath=".v")])
    assert printer.columns[0] == NAME
    assert printer.cells(document, NOW) == ["", None]
