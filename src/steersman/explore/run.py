"""One run: a scenario lived through under some faults, from one seed, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from steersman.explore.elected_cluster import ElectedCluster
from steersman.explore.recording import Record, Recording, listening
from steersman.explore.scenario import Missed, Pace, Scenario
from steersman.explore.state import State, snapshot, state
from steersman.explore.steps import LIMIT
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen
from steersman.sim.loop import Jam, Spin
from steersman.sim.world import Restless
from steersman.testing.cluster import Cluster

PATIENT = Pace(330.0, 330.0)
"""Where things go wrong: longer than any debt or back-off lasts."""
BRISK = Pace(20.0)
"""Where nothing goes wrong but that managers die, who are back in a moment: the next one owes nothing."""
FINAL = 1000.0
"""How long nothing may happen at the end of a run, in seconds: longer than a roll may go without progress by default, so that what time alone
brings about has come about in every run."""
CRASHES = CrashAfterWrite, CrashBeforeWrite
LED = LeaseStolen, LeaseDeleted
"""Faults that there is an election for. It costs a renewal every few seconds, so others go without."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    state: State = field(default_factory=dict)
    creates: Mapping[str, int] = field(default_factory=dict)
    deletes: Mapping[str, int] = field(default_factory=dict)
    writes: int = 0
    """Writes that managers asked for."""
    done: int = 0
    """Those that were carried out."""
    calls: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)
    moments: tuple[Fault, ...] = ()
    """A crash for each state of the server in which a manager could die around a write."""
    struck: tuple[str, ...] = ()
    """What went wrong on purpose."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """By rule: what cannot be right, whatever the reference did."""
    seconds: float = 0.0
    """How long it took, in the cluster's time."""


def run(
    scenario: Scenario,
    faults: Sequence[Fault] = (),
    seed: int = 0,
    look: Callable[[Cluster], None] = lambda cluster: None,
) -> Outcome:
    """Live through a scenario. Seed 0 runs tasks in the order they are ready; others in an order of their own.

    ``look`` is shown the cluster before it ends.
    """
    record = Record()
    brisk = all(isinstance(fault, CRASHES) and fault.down < BRISK.horizon / 2 for fault in faults)
    broken: dict[str, str] = {}
    with listening() as heard:
        led = any(isinstance(fault, LED) for fault in faults)
        record.led = led
        cluster = (ElectedCluster if led else Cluster)(
            seed,
            nodes=scenario.nodes,
            controllers=scenario.crew,
            faults=(Recording(record), *faults),
            shuffle=seed != 0,
            settings=scenario.settings,
        )
        began = snapshot(cluster.world.server)
        try:
            try:
                scenario.play(cluster, BRISK if brisk else PATIENT)
                cluster.settle(FINAL, limit=LIMIT)
            except Missed as error:
                broken["expect"] = str(error)
                with suppress(Restless):
                    cluster.settle(FINAL, limit=LIMIT)
            except Restless as error:
                broken["quiet"] = str(error)
            except (Jam, Spin) as error:
                broken["quiet"] = f"{type(error).__name__}: {error}"
            except Exception as error:
                broken["failure"] = f"{type(error).__name__}: {error}"
            found = state(cluster.world.server, began)
            seconds = cluster.world.monotonic()
            look(cluster)
        finally:
            cluster.close()
    if heard:
        broken["mistake"] = "; ".join(heard)
    if record.unfounded:
        broken["leadership"] = "; ".join(record.unfounded[:3])
    assert record.stage is not None
    return Outcome(
        state=found,
        creates=record.creates,
        deletes=record.deletes,
        writes=record.stage.writes,
        done=record.done,
        calls=record.calls,
        changes=record.changes,
        moments=tuple(record.moments.values()),
        struck=tuple(record.stage.struck),
        broken=broken,
        seconds=seconds,
    )
