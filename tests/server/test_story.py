"""In process the same story is told whoever comes first."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from steersman.sim.world import World


def _story() -> ModuleType:
    spec = importlib.util.spec_from_file_location("story", Path(__file__).with_name("story.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


story = _story()


def test_the_order_of_tasks_does_not_change_the_story() -> None:
    with World(seed=1) as one, World(seed=2, shuffle=True) as other:
        assert one.run(story.told(one.api())) == other.run(story.told(other.api()))
