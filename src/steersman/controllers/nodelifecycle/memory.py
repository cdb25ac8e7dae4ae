"""Memory of the node lifecycle controller: the nodes, heartbeats and zones that this process has observed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from msgspec.structs import replace

from steersman.api.kinds import Lease
from steersman.api.kinds.nodes import Node
from steersman.controllers.nodelifecycle.health import Health, is_renewed, observe_heartbeats, ready_status
from steersman.controllers.nodelifecycle.zones import Zones


class Memory:
    """Facts about nodes that no object holds. As upstream's they are lost with the process: then each node has its whole
    grace period again, and each zone the normal rate."""

    def __init__(self) -> None:
        self.started: float | None = None
        """The monotonic time of the first round."""
        self.uids: dict[str, str] = {}
        """The uids of the known nodes, by name."""
        self.healths: dict[str, Health] = {}
        self.unmarked: dict[str, None] = {}
        """The nodes that fell silent, and whose pods have not all been made not ready yet."""
        self.away_at: float | None = None
        """The monotonic time at which the server could last not be reached; None once it could."""
        self.writing: dict[str, None] = {}
        """The nodes that a round is writing to. The round of a node and that of all zones take turns."""
        self.zones = Zones()

    def start(self, monotonic: float) -> float:
        """The monotonic time of the first round, which is now if there was none."""
        if self.started is None:
            self.started = monotonic
        return self.started

    def register(self, node: Node) -> bool:
        """Take in a node; returns whether it was not known."""
        name, uid = node.metadata.name, node.metadata.uid
        if self.uids.get(name) == uid:
            return False
        self.forget(name)
        self.uids[name] = uid
        if ready_status(node) == "Unknown":
            # differs: upstream forgets with its process which pods it was about to make not ready.
            self.unmarked[name] = None
        return True

    def observe(self, node: Node, lease: Lease | None, monotonic: float, now: datetime) -> Health:
        """Take in the heartbeats of a node."""
        name = node.metadata.name
        known = self.healths.get(name)
        health = self.healths[name] = observe_heartbeats(known, node, lease, monotonic, now)
        return health

    def renew(self, name: str, renewed: datetime | None, monotonic: float) -> bool:
        """Take in a Lease that was renewed; returns whether it was, and the node was known to be alive."""
        health = self.healths.get(name)
        if health is None or health.unconfirmed or not is_renewed(health.renewed, renewed):
            return False
        self.healths[name] = replace(health, probed=monotonic, renewed=renewed)
        return True

    def probe(self, name: str, monotonic: float, *, unconfirmed: bool = False) -> Health:
        """Begin the grace period of a node anew: it is alive, or its heartbeats could not be observed."""
        health = replace(self.healths[name], probed=monotonic, unconfirmed=unconfirmed)
        self.healths[name] = health
        return health

    def probe_all(self, monotonic: float) -> None:
        """Begin the grace period of all nodes anew."""
        for name in self.healths:
            self.probe(name, monotonic)

    @contextmanager
    def write(self, names: Iterable[str]) -> Iterator[None]:
        """Keeps other rounds from writing to these nodes meanwhile."""
        taken = tuple(names)
        self.writing.update(dict.fromkeys(taken))
        try:
            yield
        finally:
            for name in taken:
                self.writing.pop(name, None)

    def forget(self, name: str) -> str:
        """Drop a node that is gone; returns its uid, empty if it was not known."""
        self.healths.pop(name, None)
        self.unmarked.pop(name, None)
        return self.uids.pop(name, "")
