"""Expressions with their values and errors, as public conformance tests and Kubernetes' own tests have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from steersman.api.cel import CelError, Environment, parse
from steersman.api.cel.checker import checked
from steersman.api.cel.libraries import TYPE_NAMES
from steersman.api.cel.program import compile_program
from steersman.api.cel.runtime.operators import equal
from steersman.api.cel.runtime.values import Duration, EvaluationError, Timestamp, TypeValue, Uint, type_name
from steersman.api.cel.types import DYN


class Row(NamedTuple):
    section: str
    line: int
    source: str
    variables: dict[str, Any]
    result: str
    """``= VALUE`` or ``! TEXT``."""
    is_checked: bool


def rows() -> Iterator[Row]:
    section = ""
    text = Path(__file__).with_name("expressions.txt").read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("## "):
            section = line[3:]
        elif line and not line.startswith("#"):
            source, variables, result = line.split("\t")
            given = {name: value_of(each) for name, each in json.loads(variables or "{}").items()}
            plain = source.removeprefix("unchecked ")
            yield Row(section, number, plain, given, result, plain == source)


_MADE: dict[str, Callable[[Any], Any]] = {
    "uint": Uint,
    "double": float,
    "bytes": bytes.fromhex,
    "type": TypeValue,
    "duration": Duration,
    "timestamp": Timestamp,
    "map": lambda pairs: {value_of(key): value_of(each) for key, each in pairs},
}


def value_of(plain: Any) -> Any:
    """The value that a row means."""
    if isinstance(plain, list):
        return [value_of(each) for each in plain]
    if isinstance(plain, dict):
        if len(plain) == 1:
            ((name, inner),) = plain.items()
            make = _MADE.get(name)
            if make is not None:
                return make(inner)
        return {name: value_of(each) for name, each in plain.items()}
    return plain


def outcome(row: Row) -> str:
    """Empty if a row holds, else what is wrong with it."""
    environment = Environment().with_variables(**dict.fromkeys(row.variables, DYN))
    mark, _, expected = row.result.partition(" ")
    try:
        if row.is_checked:
            expr, types = checked(row.source, environment)
        else:
            expr, types = parse(row.source), {}
        program = compile_program(expr, tuple(row.variables), types, type_names=TYPE_NAMES)
        found = program.evaluate(*row.variables.values()).value
    except (CelError, EvaluationError) as error:
        return "" if mark == "!" and expected in str(error) else f"raised {error}"
    if mark == "!":
        return f"is {found!r}"
    wanted = value_of(json.loads(expected))
    if wanted != wanted:
        return "" if found != found else f"is {found!r}"
    return "" if equal(found, wanted) and type_name(found) == type_name(wanted) else f"is {found!r}"


SECTIONS = [(name, list(group)) for name, group in groupby(rows(), key=lambda row: row.section)]


@pytest.mark.parametrize("section", [pytest.param(group, id=name) for name, group in SECTIONS])
def test_expressions_have_the_values_and_errors_of_the_table(section: list[Row]) -> None:
    wrong = [f"line {row.line}: {row.source}: {why}" for row in section if (why := outcome(row))]
    assert not wrong, "\n".join(wrong)


def test_the_table_is_as_large_as_promised() -> None:
    assert sum(len(group) for _, group in SECTIONS) >= 500
