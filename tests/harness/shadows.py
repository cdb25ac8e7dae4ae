"""A shadow beside the manager of a cluster under virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from steersman.explore.run import FAST, FINAL
from steersman.explore.scenario import Scenario
from steersman.explore.steps import LIMIT, StepFailed
from steersman.intent.controller import Controller
from steersman.shadow.exclusions import select
from steersman.shadow.report import Report
from steersman.shadow.shadow import GRACE, Shadow
from steersman.sim.world import NotSettled
from steersman.testing import credentials
from steersman.testing.cluster import Cluster


def shadow_beside(
    cluster: Cluster, controllers: Sequence[Controller[Any]] | None = None, *, grace: float = GRACE
) -> Shadow:
    """Start a shadow beside the manager of a cluster; by default of the same controllers."""
    chosen = controllers if controllers is not None else cluster.plan.configured(cluster.world.server)
    compared, excluded = select(chosen)
    world = cluster.world
    shadow = Shadow(
        compared, world.api("shadow"), world, grace=grace, files=credentials.read, excluded=excluded
    )
    world.spawn(shadow.run(), name="shadow")
    return shadow


def play(
    scenario: Scenario,
    seed: int = 0,
    *,
    acting: Sequence[Controller[Any]] | None = None,
    grace: float = GRACE,
    inspect: Callable[[Cluster], None] = lambda cluster: None,
) -> Report:
    """Play a scenario with a shadow beside the manager; ``acting`` replaces the controllers of the manager alone."""
    with Cluster(
        seed,
        nodes=scenario.nodes,
        controllers=acting or scenario.selected_controllers,
        flags=scenario.flags,
        gates=dict.fromkeys(scenario.gates, True),
        faults=scenario.latency,
        shuffle=seed != 0,
        settings=scenario.settings,
        cloud=scenario.cloud_provider(),
        dra=scenario.dra,
    ) as cluster:
        ours = scenario.selected_controllers if acting else None
        shadow = shadow_beside(cluster, ours, grace=grace)
        with suppress(StepFailed, NotSettled):
            scenario.play(cluster, FAST)
            cluster.settle(FINAL, limit=LIMIT)
        # A scenario that fails ends early, and the grace time is not over yet.
        cluster.advance(seconds=2 * grace)
        inspect(cluster)
        return shadow.report()
