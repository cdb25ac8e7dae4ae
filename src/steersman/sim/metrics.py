"""metrics.k8s.io for simulated nodes, as metrics-server serves it for real ones.

`steersman.sim.kubelet.usage` says what pods use. Failed nodes and their pods have no metrics, since their kubelets could not
be scraped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import ClusterRole, PolicyRule
from steersman.server.bootstrap_objects import create_aggregated_role
from steersman.server.crd.custom import CustomResource, read
from steersman.server.discovery.documents import METRICS_RESOURCES
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Strategy
from steersman.server.server import Server
from steersman.server.storage import computed
from steersman.sim.kubelet.node import STATE, is_ready
from steersman.sim.kubelet.usage import Usage, containers, node_metrics, pod_metrics

Measure: TypeAlias = Callable[[v1.Pod], list[tuple[str, Usage]]]

READER = "system:aggregated-metrics-reader"
"""The ClusterRole that aggregates to view, edit and admin; metrics-server's own name for it."""


def install(server: Server, measure: Measure = containers) -> None:
    """Serve PodMetrics and NodeMetrics; an extension of the server. ``measure`` is the usage of a pod's containers."""
    sources: tuple[computed.Source, ...] = (_Nodes(server, measure), _Pods(server, measure))
    for row, source in zip(METRICS_RESOURCES, sources, strict=True):
        resource = Resource(
            row.group,
            row.version,
            row.kind,
            row.plural,
            row.namespaced,
            CustomResource,
            Strategy(),
            verbs=computed.VERBS,
        )
        computed.install(server, resource, source)
    load("rbac.authorization.k8s.io", "v1", "ClusterRole")
    create_aggregated_role(server, _reader())


def _reader() -> ClusterRole:
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")}
    rule = PolicyRule(
        apiGroups=("metrics.k8s.io",), resources=("pods", "nodes"), verbs=("get", "list", "watch")
    )
    return ClusterRole(metadata=ObjectMeta(name=READER, labels=labels), rules=(rule,))


class _Measured:
    """The pods and nodes of a server."""

    def __init__(self, server: Server, measure: Measure) -> None:
        self._server = server
        self._measure = measure
        self._pods = server.store.table("pods")
        self._nodes = server.store.table("nodes")

    def version(self) -> object:
        """Metrics change with pods and nodes, and with every second."""
        now = self._server.clock.now().replace(microsecond=0)
        return now, self._pods.latest_revision, self._nodes.latest_revision

    def _heard(self, name: str) -> bool:
        node: v1.Node | None = self._nodes.get(name)
        return node is not None and is_ready(node) and node.metadata.annotations.get(STATE) != "failed"


class _Pods(_Measured):
    def keys(self) -> list[str]:
        return [key for key in self._pods.keys() if self._running(key) is not None]  # noqa: SIM118

    def get(self, key: str) -> CustomResource | None:
        pod = self._running(key)
        if pod is None:
            return None
        found = pod_metrics(pod, self._server.clock.now(), self._measure(pod))
        return read(found) if found is not None else None

    def _running(self, key: str) -> v1.Pod | None:
        pod: v1.Pod | None = self._pods.get(key)
        if pod is None or not self._heard(pod.spec.nodeName) or not self._measure(pod):
            return None
        return pod


class _Nodes(_Measured):
    def __init__(self, server: Server, measure: Measure) -> None:
        super().__init__(server, measure)
        self._grouped: tuple[int, dict[str, list[v1.Pod]]] = (-1, {})

    def keys(self) -> list[str]:
        return [name for name in self._nodes.keys() if self._heard(name)]  # noqa: SIM118

    def get(self, key: str) -> CustomResource | None:
        if not self._heard(key):
            return None
        node: Any = self._nodes.get(key)
        used = [each for pod in self._by_node().get(key, ()) for _, each in self._measure(pod)]
        return read(node_metrics(node, used, self._server.clock.now()))

    def _by_node(self) -> dict[str, list[v1.Pod]]:
        """All pods by node, computed once for each revision of the store."""
        revision = self._server.store.revision
        if self._grouped[0] != revision:
            found: dict[str, list[v1.Pod]] = {}
            for key in self._pods.keys():  # noqa: SIM118  (a table is no dict)
                pod: Any = self._pods.get(key)
                found.setdefault(pod.spec.nodeName, []).append(pod)
            self._grouped = revision, found
        return self._grouped[1]
