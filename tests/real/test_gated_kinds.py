"""What is written down of kube-apiserver's answers about gated kinds is what it answers: see tests/server/registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.envtest import RealPlane
from tests.server.registry import gated


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, Any]]:
    async def ask(plane: RealPlane) -> dict[str, Any]:
        async with plane.connect() as api:
            return {row.name: await gated.answer(api, "default", row) for row in gated.ROWS}

    with RealPlane.start(apiserver=gated.flags()) as plane:
        yield asyncio.run(ask(plane))


@pytest.mark.parametrize("row", gated.ROWS, ids=lambda row: row.name)
def test_a_real_server_answers_as_is_written_down(answers: dict[str, Any], row: gated.Row) -> None:
    assert answers[row.name] == json.loads(gated.ANSWERS.read_text())[row.name]
