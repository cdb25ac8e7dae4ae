"""What the manager counts, under the names, labels and buckets of kube-controller-manager.

A `Metrics` holds its own registry, so two managers in one process do not meet. What is counted on
every event or round lives in plain cells (`steersman.runtime.cells`); prometheus-client reads them when
somebody scrapes, and is not even imported before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from steersman.api.scheme import Kind
from steersman.intent.actions import Measure
from steersman.intent.metrics import Metric as Declared
from steersman.intent.metrics import exponential
from steersman.runtime.cells import C, Counter, Family, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric


QUEUE_BUCKETS = exponential(10e-9, 10, 10)
LATENCY_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
EVENT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

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
"""What upstream calls a controller's queue in ``workqueue_*``, so that dashboards keep working."""


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """The cells of one work queue."""

    adds: Counter
    retries: Counter
    latency: Histogram
    work: Histogram


@dataclass(frozen=True, slots=True)
class InformerMetrics:
    """The cells of one informer."""

    latency: Histogram
    handler_errors: Counter


@dataclass(frozen=True, slots=True)
class RestMetrics:
    """What a client of the API server counts."""

    requests: Family[Counter]
    """code, method, host; the code is ``<error>`` where no answer came."""
    retries: Family[Counter]
    """code, verb, host"""
    latency: Family[Histogram]
    """verb, host; as the three below"""
    throttled: Family[Histogram]
    sent: Family[Histogram]
    received: Family[Histogram]


class Metrics:
    """All metrics of one manager. Switched off, it counts into the void and renders nothing."""

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self._families: dict[str, Family[Any]] = {}
        name, host = ("name",), ("verb", "host")
        self._depth = self.gauge("workqueue_depth", "Keys waiting in the queue", name)
        self._adds = self.counter("workqueue_adds_total", "Keys that were put into the queue", name)
        self._retries = self.counter("workqueue_retries_total", "Keys that were put off", name)
        self._queued = self.histogram(
            "workqueue_queue_duration_seconds", "How long keys waited in the queue", QUEUE_BUCKETS, name
        )
        self._work = self.histogram(
            "workqueue_work_duration_seconds", "How long rounds took", QUEUE_BUCKETS, name
        )
        self._unfinished = self.gauge(
            "workqueue_unfinished_work_seconds", "How long the rounds under way have taken together", name
        )
        self._longest = self.gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the oldest round under way has taken",
            name,
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
        self.rest = RestMetrics(
            self.counter("rest_client_requests_total", "Requests by outcome", ("code", "method", "host")),
            self.counter(
                "rest_client_request_retries_total", "Requests that were sent again", ("code", "verb", "host")
            ),
            self.histogram(
                "rest_client_request_duration_seconds", "How long requests took", LATENCY_BUCKETS, host
            ),
            self.histogram(
                "rest_client_rate_limiter_duration_seconds",
                "How long requests were held back on this side",
                LATENCY_BUCKETS,
                host,
            ),
            self.histogram(
                "rest_client_request_size_bytes", "How large request bodies were", SIZE_BUCKETS, host
            ),
            self.histogram("rest_client_response_size_bytes", "How large answers were", SIZE_BUCKETS, host),
        )
        self.leader = self.gauge(
            "leader_election_master_status", "1 while this process holds the lease", name
        )
        self.leader_slowpath = self.counter(
            "leader_election_slowpath_total", "Lease renewals that had to read the lease first", name
        )
        self.running = self.gauge(
            "running_managed_controllers", "1 while a controller runs here", ("name", "manager")
        )
        controller = ("controller",)
        self._rounds = self.counter("steersman_rounds_total", "Rounds of a controller", controller)
        self._failed = self.counter("steersman_failed_rounds_total", "Rounds that failed", controller)

    # -- declaring

    def counter(self, name: str, help: str, labels: tuple[str, ...] = ()) -> Family[Counter]:
        """Declare a counter. The name must end in ``_total``."""
        assert name.endswith("_total"), name
        return self._declare(Family(name, help, "counter", labels, Counter))

    def gauge(self, name: str, help: str, labels: tuple[str, ...] = ()) -> Family[Gauge]:
        """Declare a gauge."""
        return self._declare(Family(name, help, "gauge", labels, Gauge))

    def histogram(
        self, name: str, help: str, buckets: Sequence[float], labels: tuple[str, ...] = ()
    ) -> Family[Histogram]:
        """Declare a histogram."""
        return self._declare(Family(name, help, "histogram", labels, lambda: Histogram(buckets)))

    def declare(self, metrics: Iterable[Declared]) -> None:
        """Declare what a controller counts; what has been declared before stays as it is."""
        for metric in metrics:
            if metric.name in self._families:
                continue
            match metric.type:
                case "counter":
                    family: Family[Any] = self.counter(metric.name, metric.help, metric.labels)
                case "gauge":
                    family = self.gauge(metric.name, metric.help, metric.labels)
                case "histogram":
                    family = self.histogram(metric.name, metric.help, metric.buckets, metric.labels)
            if not metric.labels:
                family.of()  # so that it is there from the start

    def _declare(self, family: Family[C]) -> Family[C]:
        if family.name in self._families:
            raise ValueError(f"{family.name} is declared twice")
        self._families[family.name] = family
        return family

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

    def round(self, controller: str, seconds: float, failed: bool) -> None:
        """A round has ended."""
        self._rounds.of(controller).inc()
        if failed:
            self._failed.of(controller).inc()

    def stale_skip(self, controller: str, resource: str) -> None:
        """A round was put off since the cache of a resource does not show our own writes yet."""
        # Upstream's ReplicationController loop is its ReplicaSet loop, and counts as such.
        subject = "replicaset" if controller == "replicationcontroller-controller" else controller
        name = f"{subject.removesuffix('-controller').replace('-', '_')}_controller_stale_sync_skips_total"
        family = self._families.get(name)
        if family is None:
            help = "Rounds put off since a cache did not show our own writes yet"
            family = self.counter(name, help, ("group", "resource"))
        plural, _, group = resource.partition(".")
        family.of(group, plural).inc()

    def sync_error(self) -> None:
        """What there is to follow could not be learned, or not all of it."""
        name = "garbagecollector_controller_resources_sync_error_total"
        family = self._families.get(name)
        if family is None:
            family = self.counter(name, "Number of garbage collector resources sync errors")
        family.of().inc()

    def measure(self, said: Measure) -> None:
        """Count what a controller says. Raises `LookupError` where it has not declared that it would."""
        family = self._families.get(said.metric.name)
        if family is None:
            raise LookupError(f"no controller has declared that it counts {said.metric.name}")
        match family.of(*said.labels):
            case Counter() as counter:
                counter.inc(said.value)
            case Gauge() as gauge:
                gauge.set(said.value)
            case Histogram() as histogram:
                histogram.observe(said.value)

    # -- reading

    def collect(self) -> Iterator[Metric]:
        """What prometheus-client asks of a collector."""
        for family in self._families.values():
            if family.cells:
                yield family.metric()

    @cached_property
    def registry(self) -> CollectorRegistry:
        """For whoever has further collectors, such as those of the process."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        if self.enabled:
            registry.register(self)
        return registry

    def render(self) -> bytes:
        """Everything in the text format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)
