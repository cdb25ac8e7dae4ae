"""Defaulting is idempotent: a second time it returns the same object."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steersman.api.generated import gated_resources, resources
from steersman.server.codec.convert import to_struct
from steersman.server.defaulting import LOADERS, default_for, no_defaults
from steersman.server.registry.resources import Registry


def _documents() -> ModuleType:
    path = Path(__file__).parents[1] / "validation" / "documents.py"
    spec = importlib.util.spec_from_file_location("documents", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = _documents()
ANSWERS = json.loads(documents.ANSWERS.read_text())
ROWS = [row for row in documents.rows() if ANSWERS[row.says].get("refusal", {}).get("code") != 400]


@pytest.mark.parametrize("row", ROWS, ids=[row.says for row in ROWS])
def test_what_is_whole_is_given_back_as_it_is(row: Any) -> None:
    group, version, kind = row.kind
    type_ = Registry().find(group, version, documents.resource(group, version, kind).plural).type
    default = default_for(group, kind, version)
    given = to_struct(type_, row.document)
    whole = default(given)
    assert default(whole) is whole
    assert default(given) == whole


@pytest.mark.parametrize("key", LOADERS, ids="/".join)
def test_each_kind_that_has_defaults_is_served_and_finds_them(key: tuple[str, str]) -> None:
    rows = [row for row in (*resources(), *gated_resources()) if (row.group, row.kind) == key]
    assert rows
    assert all(default_for(row.group, row.kind, row.version) is not no_defaults for row in rows)


def test_a_kind_without_defaults_is_left_alone() -> None:
    thing = object()
    assert default_for("example.com", "Thing")(thing) is thing
