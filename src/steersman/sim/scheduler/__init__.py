"""A scheduler: pure placement on incremental sums, and the loop that binds. Over any `Api`."""

from steersman.sim.scheduler.placement import Placed, Unplaced, place
from steersman.sim.scheduler.scheduler import Scheduler

__all__ = ["Placed", "Scheduler", "Unplaced", "place"]
