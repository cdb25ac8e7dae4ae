"""A scheduler over any `Api`: filter, score, preempt and bind."""

from steersman.sim.scheduler.placement import Scheduled, Unschedulable, schedule
from steersman.sim.scheduler.scheduler import Scheduler

__all__ = ["Scheduled", "Scheduler", "Unschedulable", "schedule"]
