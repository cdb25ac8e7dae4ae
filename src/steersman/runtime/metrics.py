"""The metrics of the manager, with the names, labels and buckets of kube-controller-manager.

Each `Metrics` is a registry of its own, so that two managers in one process do not share metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from steersman.api.prometheus import (
    DEFAULT_OPTIONS,
    Counter,
    Gauge,
    Histogram,
    MetricFamily,
    Registry,
    exposition,
)
from steersman.api.scheme import Kind
from steersman.intent.metrics import DropSeries, Measure, exponential
from steersman.intent.metrics import Metric as Declared
from steersman.runtime.client_metrics import RestMetrics

QUEUE_BUCKETS = exponential(10e-9, 10, 10)
SYNC_BUCKETS = exponential(0.001, 2, 15)
EVENT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

STALE = ("replicaset", "statefulset", "daemonset", "job")
"""Controllers whose stale caches upstream counts. differs: here every controller waits for its own writes, and is counted."""
PUBLISHERS: Mapping[str, str] = MappingProxyType(
    {
        "root-ca-certificate-publisher-controller": "root_ca_cert_publisher",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller": "clustertrustbundle_publisher",
    }
)
"""Controllers whose rounds upstream counts by outcome, and what it calls them there."""
QUEUES: Mapping[str, str] = MappingProxyType(
    {
        "bootstrap-signer-controller": "bootstrap_signer_queue",
        "certificatesigningrequest-approving-controller": "certificate",
        "certificatesigningrequest-signing-controller": "certificate",
        "clusterrole-aggregation-controller": "ClusterRoleAggregator",
        "cronjob-controller": "cronjob",
        "daemonset-controller": "daemonset",
        "deployment-controller": "deployment",
        "disruption-controller": "disruption",
        "endpoints-controller": "endpoint",
        "endpointslice-controller": "endpoint_slice",
        "endpointslice-mirroring-controller": "endpoint_slice_mirroring",
        "ephemeral-volume-controller": "ephemeral_volume",
        "garbage-collector-controller": "garbage_collector_attempt_to_delete",
        "horizontal-pod-autoscaler-controller": "horizontalpodautoscaler",
        "job-controller": "job",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller": (
            "ca_cert_publisher_cluster_trust_bundles"
        ),
        "namespace-controller": "namespace",
        "node-ipam-controller": "cidrallocator_node",
        "node-lifecycle-controller": "node_lifecycle_controller",
        "persistentvolume-attach-detach-controller": "pvcs",
        "persistentvolume-binder-controller": "claims",
        "persistentvolume-expander-controller": "volume_expand",
        "persistentvolume-protection-controller": "pvprotection",
        "persistentvolumeclaim-protection-controller": "pvcprotection",
        "pod-garbage-collector-controller": "orphaned_pods_nodes",
        "podgroup-protection-controller": "podgroupprotection",
        "replicaset-controller": "replicaset",
        "replicationcontroller-controller": "replicationmanager",
        "resourceclaim-controller": "resource_claim",
        "resourcequota-controller": "resourcequota_primary",
        "root-ca-certificate-publisher-controller": "root_ca_cert_publisher",
        "selinux-warning-controller": "selinux_warning",
        "service-cidr-controller": "ipaddresses",
        "service-lb-controller": "service",
        "serviceaccount-controller": "serviceaccount",
        "serviceaccount-token-controller": "serviceaccount_tokens_service",
        "statefulset-controller": "statefulset",
        "storageversion-garbage-collector-controller": "storage_version_garbage_collector_storageversions",
        "taint-eviction-controller": "noexec_taint_pod",
        "token-cleaner-controller": "token_cleaner",
        "ttl-after-finished-controller": "ttl_jobs_to_delete",
        "ttl-controller": "ttlcontroller",
        "validatingadmissionpolicy-status-controller": "validatingadmissionpolicy-status",
        "volumeattributesclass-protection-controller": "vacprotection",
    }
)
"""Upstream's names of the controllers' queues in ``workqueue_*``; a queue it does not name is called as its controller."""


class QueueMetrics(msgspec.Struct, frozen=True):
    """The metrics of one work queue."""

    adds: Counter
    retries: Counter
    latency: Histogram
    work: Histogram


class InformerMetrics(msgspec.Struct, frozen=True):
    """The metrics of one informer."""

    latency: Histogram
    handler_errors: Counter


class Metrics(Registry):
    """All metrics of one manager. Switched off, it counts into the void and renders nothing."""

    def __init__(self, enabled: bool = True) -> None:
        super().__init__()
        self.enabled = enabled
        self.options = DEFAULT_OPTIONS
        """Which of them `render` shows."""
        name = ("name",)
        self._depth = self.gauge("workqueue_depth", "Keys waiting in the queue", name, "BETA")
        self._adds = self.counter("workqueue_adds_total", "Keys that were put into the queue", name, "BETA")
        self._retries = self.counter("workqueue_retries_total", "Keys that were put off", name, "BETA")
        self._queued = self.histogram(
            "workqueue_queue_duration_seconds",
            "How long keys waited in the queue",
            QUEUE_BUCKETS,
            name,
            "BETA",
        )
        self._work = self.histogram(
            "workqueue_work_duration_seconds", "How long rounds took", QUEUE_BUCKETS, name, "BETA"
        )
        self._unfinished = self.gauge(
            "workqueue_unfinished_work_seconds",
            "How long the rounds under way have taken together",
            name,
            "BETA",
        )
        self._longest = self.gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the oldest round under way has taken",
            name,
            "BETA",
        )
        resource = ("name", "group", "version", "resource")
        self._items = self.gauge("informer_queued_items", "Changes received and not yet handled", resource)
        self._revision = self.gauge(
            "informer_store_resource_version",
            "The last 15 digits of the resourceVersion the cache has reached",
            resource,
        )
        self._handled = self.histogram(
            "informer_processing_latency_seconds", "How long a change took to handle", EVENT_BUCKETS, resource
        )
        self._handler_errors = self.counter(
            "steersman_handler_errors_total", "Exceptions of those who listen to an informer", ("resource",)
        )
        self._unreadable = self.gauge(
            "steersman_unreadable_objects", "Objects known by their metadata only", ("resource",)
        )
        self.rest = RestMetrics(self)
        self.leader = self.gauge(
            "leader_election_master_status", "1 while this process holds the lease", name
        )
        self.leader_slowpath = self.counter(
            "leader_election_slowpath_total", "Lease renewals that had to read the lease first", name
        )
        self.running = self.gauge(
            "running_managed_controllers", "1 while a controller runs here", ("name", "manager"), "BETA"
        )
        self.features = self.gauge(
            "kubernetes_feature_enabled", "1 where a feature gate is on", ("name", "stage"), "BETA"
        )
        self._sync_errors = self.counter(
            "garbagecollector_controller_resources_sync_error_total",
            "How often what there is to follow could not be learned, or not all of it",
        ).of()
        self._stale: dict[str, MetricFamily[Counter]] = {}
        for subject in STALE:
            self._skips(subject)
        code = ("code",)
        self._syncs = {
            controller: (
                self.counter(f"{subject}_sync_total", "Rounds by outcome", code),
                self.histogram(
                    f"{subject}_sync_duration_seconds", "How long rounds took", SYNC_BUCKETS, code
                ),
            )
            for controller, subject in PUBLISHERS.items()
        }
        controller = ("controller",)
        self._rounds = self.counter("steersman_rounds_total", "Rounds of a controller", controller)
        self._failed = self.counter("steersman_failed_rounds_total", "Rounds that failed", controller)

    # -- declaring

    @property
    def families(self) -> tuple[MetricFamily[Any], ...]:
        return super().families if self.enabled else ()

    def declare(self, metrics: Iterable[Declared]) -> None:
        """Declare what a controller counts; what has been declared before stays as it is."""
        for metric in metrics:
            if metric.name in self._families:
                continue
            match metric.type:
                case "counter":
                    self.counter(metric.name, metric.help, metric.labels, metric.stability)
                case "gauge":
                    self.gauge(metric.name, metric.help, metric.labels, metric.stability)
                case "histogram":
                    self.histogram(metric.name, metric.help, metric.buckets, metric.labels, metric.stability)

    # -- counting

    def queue(
        self,
        name: str,
        *,
        depth: Callable[[], float],
        unfinished: Callable[[], float],
        longest: Callable[[], float],
    ) -> QueueMetrics | None:
        """The cells of a controller's queue, and where to read what is not counted; None when off."""
        if not self.enabled:
            return None
        name = QUEUES.get(name, name)
        self._depth.of(name).read(depth)
        # differs: upstream sets these two every half second; here they are right when looked at.
        self._unfinished.of(name).read(unfinished)
        self._longest.of(name).read(longest, max)
        return QueueMetrics(
            self._adds.of(name), self._retries.of(name), self._queued.of(name), self._work.of(name)
        )

    def informer(
        self,
        kind: Kind[Any],
        *,
        revision: Callable[[], int],
        unreadable: Callable[[], int],
        name: str = "kube-controller-manager",
    ) -> InformerMetrics | None:
        """The cells of an informer; None when off."""
        if not self.enabled:
            return None
        labels = (name, kind.group, kind.version, kind.plural)
        self._items.of(*labels)  # differs: stays 0. A change is handled when it is read, never queued.
        self._revision.of(*labels).read(lambda: revision() % 10**15)
        self._unreadable.of(kind.resource).read(unreadable)
        return InformerMetrics(self._handled.of(*labels), self._handler_errors.of(kind.resource))

    def round(self, controller: str, seconds: float, code: int = 200) -> None:
        """A round has ended, well or with the refusal of this code."""
        self._rounds.of(controller).inc()
        if code != 200:
            self._failed.of(controller).inc()
        if (sync := self._syncs.get(controller)) is not None:
            total, duration = sync
            total.of(str(code)).inc()
            duration.of(str(code)).observe(seconds)

    def stale_skip(self, controller: str, resource: str) -> None:
        """A round was put off since the cache of a resource does not show our own writes yet."""
        # Upstream's ReplicationController loop is its ReplicaSet loop, and counts as such.
        subject = "replicaset" if controller == "replicationcontroller-controller" else controller
        subject = subject.removesuffix("-controller").replace("-", "_")
        plural, _, group = resource.partition(".")
        (self._stale.get(subject) or self._skips(subject)).of(group, plural).inc()

    def _skips(self, subject: str) -> MetricFamily[Counter]:
        help = "Rounds put off since a cache did not show our own writes yet"
        family = self.counter(f"{subject}_controller_stale_sync_skips_total", help, ("group", "resource"))
        self._stale[subject] = family
        return family

    def sync_error(self) -> None:
        """Count a discovery that failed, or that did not tell all resources."""
        self._sync_errors.inc()

    def measure(self, measurement: Measure) -> None:
        """Count what a controller says. Raises `LookupError` where it has not declared that it would."""
        family = self._families.get(measurement.metric.name)
        if family is None:
            raise LookupError(f"no controller has declared that it counts {measurement.metric.name}")
        match family.of(*measurement.labels):
            case Counter() as counter:
                counter.inc(measurement.value)
            case Gauge() as gauge:
                gauge.set(measurement.value)
                if measurement.metric.drops_zero and not measurement.value:
                    del family.children[measurement.labels]
            case Histogram() as histogram:
                histogram.observe(measurement.value)

    def drop_series(self, series: DropSeries) -> None:
        """Remove a series of a controller's gauge. Raises `LookupError` where it has not declared the metric."""
        family = self._families.get(series.metric.name)
        if family is None:
            raise LookupError(f"no controller has declared that it counts {series.metric.name}")
        family.children.pop(series.labels, None)

    # -- reading

    def render(self) -> bytes:
        """The metrics as text, for Prometheus; empty where they are off."""
        return exposition(self, self.options) if self.enabled else b""
