"""Time control: speed, pause and jumps of a simulated control plane while it runs.

A jump goes to the next thing that happens. Which timer that will be cannot be told from the timers: most of them belong to heartbeats,
Leases, time-outs of connections and rounds that find nothing to do, and many an object changes in answer to several of them. So a jump does
not choose a timer. It fast-forwards from timer to timer, each of which runs in its order, and stops with the first write that changes
what an object is: any write but those of Leases, of Events and of the times in the conditions of a Node. Where nothing happens within an hour of the
cluster's time, or within a few seconds of real time, it stops there.

What is told as next beforehand is the first wake-up that is known: of a key in the queue of a controller, or of a pod at its kubelet. A write may come
sooner, when a heartbeat fails to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from steersman.api.clock import Clock
from steersman.api.errors import Conflict
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit
from steersman.sim.scaled_clock import ScaledLoop

HORIZON = 3600.0
"""Seconds of the cluster's time that a jump may pass."""
PATIENCE = 5.0
"""Seconds of real time that a jump may take."""
SLOWEST, FASTEST = 0.01, 10_000.0
_HEARTBEATS = ("leases.coordination.k8s.io", "events", "events.events.k8s.io")
"""Resources whose writes change no other object."""


def is_change(commit: Commit) -> bool:
    """Whether a write changes what an object is, and does not only say that a process is alive."""
    if commit.resource in _HEARTBEATS:
        return False
    if commit.resource == "nodes" and commit.old is not None:
        return _without_heartbeat(commit.old) != _without_heartbeat(commit.obj)
    return True


def _without_heartbeat(node: Any) -> tuple[object, ...]:
    """The fields of a Node that a heartbeat leaves as they are."""
    meta = node.metadata
    conditions = tuple((each.type, each.status, each.reason) for each in node.status.conditions)
    return node.spec, meta.labels, meta.annotations, meta.deletionTimestamp, conditions, node.status.nodeInfo


class TimeControl:
    """Steers the clock of a control plane that runs on a `ScaledLoop`."""

    def __init__(
        self, loop: ScaledLoop, clock: Clock, store: Store, wake_ups: Callable[[], Iterable[float | None]]
    ) -> None:
        """``wake_ups`` are the next wake-ups of the components, in the loop's time."""
        self.listeners: list[Callable[[], None]] = []
        """Called when the clock was changed."""
        self._loop = loop
        self._clock = clock
        self._store = store
        self._wake_ups = wake_ups
        self._jumping = False

    def state(self) -> dict[str, Any]:
        """Speed, whether it is paused, and the next wake-up that is known."""
        now = self._loop.time()
        due = min((each for each in self._wake_ups() if each is not None), default=None)
        following = None
        if due is not None:
            seconds = max(due - now, 0.0)
            following = {"at": self._clock.now() + timedelta(seconds=seconds), "inSeconds": round(seconds, 3)}
        return {
            "speed": self._loop.speed,
            "paused": self._loop.paused,
            "jumping": self._jumping,
            "next": following,
        }

    def set_speed(self, speed: float) -> None:
        """Change the speed. Raises `ValueError`."""
        if not SLOWEST <= speed <= FASTEST:
            raise ValueError(f"speed must be from {SLOWEST:g} to {FASTEST:g}, but got {speed:g}")
        self._loop.set_speed(speed)
        self._tell()

    def set_paused(self, paused: bool) -> None:
        """Let time stand still, or go on."""
        self._loop.set_paused(paused)
        self._tell()

    async def jump(self) -> None:
        """Let time pass until the next thing happens. Raises `Conflict` where a jump is under way."""
        if self._jumping:
            raise Conflict("a jump is under way", reason="Conflict")

        def stop(commit: Commit) -> None:
            if is_change(commit):
                self._loop.stop_fast_forward()

        self._jumping = True
        self._store.commit_hooks.append(stop)
        try:
            await self._loop.fast_forward(HORIZON, PATIENCE).ended
        finally:
            self._jumping = False
            self._store.commit_hooks.remove(stop)
            self._loop.stop_fast_forward()
            self._tell()

    def release(self) -> None:
        """Let time pass as in the real world: a control plane that stops must not wait for a clock that stands still."""
        self._loop.stop_fast_forward()
        self._loop.set_speed(1.0)
        self._loop.set_paused(False)

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()
