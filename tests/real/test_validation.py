"""What is written down of a real server's answers is what it answers: see tests/server/validation."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _documents() -> ModuleType:
    path = Path(__file__).parents[1] / "server" / "validation" / "documents.py"
    spec = importlib.util.spec_from_file_location("documents", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = _documents()
ANSWERS = json.loads(documents.ANSWERS.read_text())
ROWS = documents.rows()


@pytest.fixture(scope="module")
def send() -> Iterator[Any]:
    """A server of its own: the shared one has admission plugins on that fill in more than defaults."""
    with documents.start() as plane:
        yield documents.sender(plane)


@pytest.mark.parametrize("row", ROWS, ids=[row.says for row in ROWS])
def test_a_real_server_answers_as_is_written_down(send: Any, row: Any) -> None:
    assert documents.answer(row, send) == ANSWERS[row.says]
