"""The story of custom resources is still told by a real server the way it was written down."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from tests.harness.envtest import RealPlane


def _story() -> ModuleType:
    path = Path(__file__).parents[1] / "server" / "crd" / "story.py"
    spec = importlib.util.spec_from_file_location("crd_story", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_definitions_and_custom_resources_are_answered_as_the_embedded_server_does(
    plane: RealPlane,
) -> None:
    # What it tells here is what the embedded server is held to in tests/server/crd/test_story.py.
    story = _story()
    async with plane.connect() as api:
        assert await story.told(api) == story.GOLDEN.read_text().splitlines()
