"""Node operations of a `Cluster`: fail, recover, reboot, cordon, drain, and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.sim.dynamicresources import COUNT, UNHEALTHY
from steersman.sim.kubelet.node import STATE
from steersman.sim.nodes import drain

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import Pod
    from steersman.testing.cluster import Cluster

EVICTION_RETRY = 5.0
"""Seconds until a refused eviction is retried, as kubectl does."""


class Node:
    """A node of a cluster, by its name."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster

    def fail(self) -> None:
        """Stop its kubelet: no heartbeats, no pod status updates."""
        self._set_state("failed")

    def recover(self) -> None:
        """Start its kubelet again after `fail`."""
        self._set_state(None)

    def reboot(self) -> None:
        """Restart it with all its pods; it is back half a minute later."""
        self._set_state("rebooting")

    def set_devices(self, count: int) -> None:
        """Change the number of its simulated devices, in a cluster that has some (``dra``)."""
        if count < 0:
            raise ValueError(f"count must be 0 or more, not {count!r}")
        self._annotate(COUNT, str(count))

    def fail_devices(self, *names: str) -> None:
        """Make these of its simulated devices unhealthy, and no others: they get a taint with the effect NoExecute."""
        self._annotate(UNHEALTHY, ",".join(names) or None)

    def cordon(self) -> None:
        """Make it unschedulable."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        """Make it schedulable again."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": None}})

    def drain(self) -> None:
        """Cordon it now, and evict its pods as time passes. Evictions that a PodDisruptionBudget refuses are retried."""
        self.cordon()
        draining = drain(
            self._cluster.client, self.name, force=True, pause=EVICTION_RETRY, output=lambda line: None
        )
        self._cluster.spawn(draining, name=f"drain {self.name}")

    @property
    def pods(self) -> list[Pod]:
        """The pods bound to it."""
        return [pod for pod in self._cluster.list("pods") if pod.spec.nodeName == self.name]

    def _set_state(self, state: str | None) -> None:
        self._annotate(STATE, state)

    def _annotate(self, annotation: str, value: str | None) -> None:
        self._cluster.patch("Node", self.name, {"metadata": {"annotations": {annotation: value}}})
