"""A cluster with a bit of everything passes from kube-controller-manager to this manager and back, and no object changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.harness.envtest import ASSETS, SCHEDULER
from tests.harness.hand_over import Shift, cluster

SECONDS = 12.0
"""How long each manager runs the cluster; ``benchmarks/hand_over.py`` has longer shifts."""

pytestmark = pytest.mark.skipif(
    not os.access(Path(os.environ.get(ASSETS, ""), SCHEDULER), os.X_OK), reason=f"needs {SCHEDULER}"
)


async def _shifts() -> list[Shift]:
    async with cluster() as handed:
        first = await handed.shift("steersman", SECONDS)
        return [first, await handed.shift("kube-controller-manager", SECONDS)]


def test_nothing_changes_when_one_manager_takes_over_from_the_other() -> None:
    shifts = asyncio.run(_shifts())
    assert [shift.binary for shift in shifts] == ["steersman", "kube-controller-manager"]
    for shift in shifts:
        assert shift.objects > 200, "the cluster is not empty"
        assert (shift.writes, shift.changed) == ((), ()), f"{shift.binary} changes what the other left"
