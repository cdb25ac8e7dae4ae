"""Custom resources are answered for as kube-apiserver does: the same story, word for word."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from steersman.sim.world import World


def _story() -> ModuleType:
    spec = importlib.util.spec_from_file_location("crd_story", Path(__file__).with_name("story.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


story = _story()
EXPECTED = story.GOLDEN.read_text().splitlines()


def test_the_embedded_server_tells_the_story_as_a_real_one_did() -> None:
    with World(seed=1) as world:
        assert world.run(story.told(world.api())) == EXPECTED


def test_the_order_of_tasks_does_not_change_the_story() -> None:
    with World(seed=2, shuffle=True) as world:
        assert world.run(story.told(world.api())) == EXPECTED
