"""A run: one scenario under some faults, from one seed, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from steersman.explore.elected_cluster import ElectedCluster
from steersman.explore.recording import Recording, RunRecord, unexpected_errors
from steersman.explore.scenario import Scenario
from steersman.explore.state import State, snapshot, state
from steersman.explore.steps import LIMIT, StepFailed, Timing
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen
from steersman.sim.faults.requests import RequestLatency
from steersman.sim.loop import Deadlock, Livelock
from steersman.sim.world import NotSettled
from steersman.testing.cluster import Cluster

SLOW = Timing(330.0, 330.0)
"""With faults: longer than any expectation or back-off lasts."""
FAST = Timing(20.0)
"""With short crashes and latencies only: a restarted manager has no expectations and no back-off."""
FINAL = 1000.0
"""Seconds without a write that end a run: longer than the default progress deadline, so that every timer of a rollout has
fired in every run."""
CRASHES = CrashAfterWrite, CrashBeforeWrite
ELECTION_FAULTS = LeaseStolen, LeaseDeleted
"""Faults that need leader election. It costs a renewal every few seconds, so other runs go without."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a run."""

    state: State = msgspec.field(default_factory=dict)
    creates: Mapping[str, int] = msgspec.field(default_factory=dict)
    deletes: Mapping[str, int] = msgspec.field(default_factory=dict)
    writes: int = 0
    """Writes that managers attempted."""
    applied: int = 0
    """Writes that were carried out."""
    calls: Mapping[str, int] = msgspec.field(default_factory=dict)
    changes: Mapping[str, int] = msgspec.field(default_factory=dict)
    crash_points: tuple[Fault, ...] = ()
    """A crash for each state of the server in which a manager can die around a write."""
    injected: tuple[str, ...] = ()
    """The faults that took effect, with their times."""
    violations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Violations that need no reference, by invariant."""
    seconds: float = 0.0
    """Duration in cluster time."""


def run(
    scenario: Scenario,
    faults: Sequence[Fault] = (),
    seed: int = 0,
    inspect: Callable[[Cluster], None] = lambda cluster: None,
) -> Outcome:
    """Run a scenario. With seed 0 tasks run in the order they become ready, otherwise in a random order of that seed.

    ``inspect`` gets the cluster before it is closed.
    """
    record = RunRecord(kubelets=scenario.guarded_nodes)
    fast = all(map(_is_short, faults))
    violations: dict[str, str] = {}
    provider = scenario.cloud_provider()
    with unexpected_errors() as errors:
        elected = any(isinstance(fault, ELECTION_FAULTS) for fault in faults)
        record.elected = elected
        cluster = (ElectedCluster if elected else Cluster)(
            seed,
            nodes=scenario.nodes,
            controllers=scenario.selected_controllers,
            flags=scenario.flags,
            gates=dict.fromkeys(scenario.gates, True),
            faults=(Recording(record), *scenario.latency, *faults),
            shuffle=seed != 0,
            settings=scenario.settings,
            cloud=provider,
            dra=scenario.dra,
        )
        before = snapshot(cluster.world.server)
        try:
            try:
                scenario.play(cluster, FAST if fast else SLOW)
                cluster.settle(FINAL, limit=LIMIT)
            except StepFailed as error:
                violations["expect"] = str(error)
                with suppress(NotSettled):
                    cluster.settle(FINAL, limit=LIMIT)
            except NotSettled as error:
                violations["convergence"] = str(error)
            except (Deadlock, Livelock) as error:
                violations["convergence"] = f"{type(error).__name__}: {error}"
            except Exception as error:
                violations["failure"] = f"{type(error).__name__}: {error}"
            found = state(cluster.world.server, before)
            if provider is not None and provider.routes is not None:
                found["routes"] = sorted(
                    [route.target_node, route.destination_cidr] for route in provider.routes.table.values()
                )
            seconds = cluster.world.monotonic()
            inspect(cluster)
        finally:
            cluster.close()
    if errors:
        violations["error"] = "; ".join(errors)
    if record.without_lease:
        violations["leadership"] = "; ".join(record.without_lease[:3])
    violations |= record.unsafe
    assert record.injector is not None
    if record.injector.overlapping:
        violations["overlap"] = "; ".join(record.injector.overlapping[:3])
    return Outcome(
        state=found,
        creates=record.creates,
        deletes=record.deletes,
        writes=record.injector.writes,
        applied=record.applied,
        calls=record.calls,
        changes=record.changes,
        crash_points=tuple(record.crash_points.values()),
        injected=tuple(record.injector.injected),
        violations=violations,
        seconds=seconds,
    )


def _is_short(fault: Fault) -> bool:
    """Whether a fault is over long before a cluster counts as settled."""
    if isinstance(fault, RequestLatency):
        return fault.maximum < 1
    return isinstance(fault, CRASHES) and fault.down < FAST.horizon / 2
