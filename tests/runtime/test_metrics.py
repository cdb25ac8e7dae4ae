"""The names, labels and buckets dashboards and alerts are written against."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from steersman.api.kinds import PODS
from steersman.api.prometheus import ExpositionOptions, Gauge, Histogram
from steersman.controllers import CONTROLLERS
from steersman.intent.metrics import DropSeries, Measure, Metric, exponential
from steersman.runtime.metrics import QUEUES, Metrics, QueueMetrics


@dataclass
class Load:
    """A queue's own numbers."""

    depth: float = 3
    unfinished: float = 1.5
    longest: float = 1.25


def queue(metrics: Metrics, name: str, load: Load | None = None) -> QueueMetrics:
    load = load or Load()
    cells = metrics.queue(
        name, depth=lambda: load.depth, unfinished=lambda: load.unfinished, longest=lambda: load.longest
    )
    assert cells is not None
    return cells


def samples(metrics: Metrics) -> dict[str, float]:
    """Every line of the rendered text, labels in the order of their names."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels = ",".join(f'{k}="{v}"' for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def bounds(metrics: Metrics, name: str) -> list[str]:
    """The buckets of a histogram as they are written."""
    return [
        line.split('le="')[1].split('"')[0]
        for line in metrics.render().decode().splitlines()
        if line.startswith(f"{name}_bucket")
    ]


def test_a_queue_is_counted_under_the_name_upstream_gives_it() -> None:
    metrics = Metrics()
    cells = queue(metrics, "replicaset-controller")
    cells.adds.inc()
    cells.adds.inc()
    cells.retries.inc()
    cells.latency.observe(0.5)
    cells.work.observe(2.0)
    found = samples(metrics)
    assert found['workqueue_adds_total{name="replicaset"}'] == 2
    assert found['workqueue_retries_total{name="replicaset"}'] == 1
    assert found['workqueue_depth{name="replicaset"}'] == 3
    assert found['workqueue_unfinished_work_seconds{name="replicaset"}'] == 1.5
    assert found['workqueue_longest_running_processor_seconds{name="replicaset"}'] == 1.25
    assert found['workqueue_queue_duration_seconds_count{name="replicaset"}'] == 1
    assert found['workqueue_queue_duration_seconds_sum{name="replicaset"}'] == 0.5
    assert found['workqueue_work_duration_seconds_bucket{le="1",name="replicaset"}'] == 0
    assert found['workqueue_work_duration_seconds_bucket{le="10",name="replicaset"}'] == 1


def test_queues_upstream_names_alike_are_counted_together() -> None:
    metrics = Metrics()
    approving, signing = (c for c in QUEUES if QUEUES[c] == "certificate")
    queue(metrics, approving, Load(1, 2.0, 2.0)).adds.inc()
    queue(metrics, signing, Load(10, 5.0, 3.0)).adds.inc()
    found = samples(metrics)
    assert found['workqueue_adds_total{name="certificate"}'] == 2
    assert found['workqueue_depth{name="certificate"}'] == 11
    assert found['workqueue_unfinished_work_seconds{name="certificate"}'] == 7
    assert found['workqueue_longest_running_processor_seconds{name="certificate"}'] == 3


def test_a_queue_upstream_does_not_have_keeps_its_name() -> None:
    metrics = Metrics()
    queue(metrics, "my-own")
    assert 'workqueue_adds_total{name="my-own"}' in samples(metrics)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (
            "workqueue_queue_duration_seconds",
            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 +Inf",
        ),
        (
            "workqueue_work_duration_seconds",
            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 +Inf",
        ),
        ("informer_processing_latency_seconds", "0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf"),
        ("rest_client_request_duration_seconds", "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf"),
        ("rest_client_rate_limiter_duration_seconds", "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf"),
        (
            "rest_client_request_size_bytes",
            "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 +Inf",
        ),
        (
            "rest_client_response_size_bytes",
            "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 +Inf",
        ),
        ("replicaset_controller_sorting_deletion_age_ratio", "0.25 0.5 1 2 4 8 +Inf"),
        (
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8 25.6 51.2 102.4 204.8 409.6 819.2 +Inf",
        ),
    ],
)
def test_buckets_are_upstreams_and_written_as_go_writes_them(name: str, written: str) -> None:
    metrics = Metrics()
    for controller in CONTROLLERS:
        metrics.declare(controller.metrics)
    queue(metrics, "job-controller")
    metrics.informer(PODS, revision=lambda: 0, unreadable=lambda: 0)
    for family in (metrics.rest.latency, metrics.rest.throttled, metrics.rest.sent, metrics.rest.received):
        family.of("POST", "localhost:6443")
    assert bounds(metrics, name) == written.split()


def test_a_series_of_a_gauge_can_be_dropped() -> None:
    metrics, gauge = Metrics(), Metric("conflicts", "Conflicts", ("pod",), gauge=True)
    metrics.declare([gauge])
    for pod in ("a", "b"):
        metrics.measure(Measure(gauge, 1.0, (pod,)))
    for _ in range(2):
        metrics.drop_series(DropSeries(gauge, ("a",)))
    assert [name for name in samples(metrics) if name.startswith("conflicts")] == ['conflicts{pod="b"}']
    with pytest.raises(LookupError):
        metrics.drop_series(DropSeries(Metric("unknown", ""), ()))


def test_an_informer_is_counted_by_resource() -> None:
    metrics = Metrics()
    cells = metrics.informer(PODS, revision=lambda: 1_234_567_890_123_456, unreadable=lambda: 2)
    assert cells is not None
    cells.latency.observe(0.002)
    cells.handler_errors.inc()
    found = samples(metrics)
    labels = 'group="",name="kube-controller-manager",resource="pods",version="v1"'
    assert found[f"informer_queued_items{{{labels}}}"] == 0
    assert found[f"informer_store_resource_version{{{labels}}}"] == 234_567_890_123_456
    assert found[f"informer_processing_latency_seconds_count{{{labels}}}"] == 1
    assert found['steersman_handler_errors_total{resource="pods"}'] == 1
    assert found['steersman_unreadable_objects{resource="pods"}'] == 2


def test_requests_are_counted_by_code_method_and_host() -> None:
    metrics = Metrics()
    metrics.rest.requests.of("201", "POST", "h:1").inc()
    metrics.rest.retries.of("429", "GET", "h:1").inc()
    metrics.rest.latency.of("POST", "h:1").observe(0.01)
    found = samples(metrics)
    assert found['rest_client_requests_total{code="201",host="h:1",method="POST"}'] == 1
    assert found['rest_client_request_retries_total{code="429",host="h:1",verb="GET"}'] == 1
    assert found['rest_client_request_duration_seconds_bucket{host="h:1",le="0.025",verb="POST"}'] == 1


@pytest.mark.parametrize(
    ("controller", "resource", "line"),
    [
        (
            "replicaset-controller",
            "pods",
            'replicaset_controller_stale_sync_skips_total{group="",resource="pods"}',
        ),
        (
            "replicationcontroller-controller",
            "pods",
            'replicaset_controller_stale_sync_skips_total{group="",resource="pods"}',
        ),
        (
            "daemonset-controller",
            "daemonsets.apps",
            'daemonset_controller_stale_sync_skips_total{group="apps",resource="daemonsets"}',
        ),
        (
            "job-controller",
            "jobs.batch",
            'job_controller_stale_sync_skips_total{group="batch",resource="jobs"}',
        ),
        (
            "persistentvolume-binder-controller",
            "storageclasses.storage.k8s.io",
            "persistentvolume_binder_controller_stale_sync_skips_total"
            '{group="storage.k8s.io",resource="storageclasses"}',
        ),
    ],
)
def test_a_round_put_off_for_a_stale_cache_is_counted(controller: str, resource: str, line: str) -> None:
    metrics = Metrics()
    metrics.stale_skip(controller, resource)
    metrics.stale_skip(controller, resource)
    assert samples(metrics)[line] == 2


def test_rounds_are_counted_and_failed_ones_twice_over() -> None:
    metrics = Metrics()
    metrics.round("job-controller", 0.1)
    metrics.round("job-controller", 0.1, 409)
    found = samples(metrics)
    assert found['steersman_rounds_total{controller="job-controller"}'] == 2
    assert found['steersman_failed_rounds_total{controller="job-controller"}'] == 1


def test_a_decision_may_measure_something() -> None:
    metrics = Metrics()
    ages = Metric("ages", "How old", buckets=(1.0, 2.0))
    metrics.declare((ages,))
    metrics.measure(Measure(ages, 1.5))
    found = samples(metrics)
    assert found["ages_sum"] == 1.5
    assert found['ages_bucket{le="1"}'] == 0
    assert found['ages_bucket{le="2"}'] == 1


def test_a_counter_of_a_controller_grows_and_a_gauge_is_set() -> None:
    metrics = Metrics()
    ends = Metric("ends_total", "How Jobs end", ("result",))
    wanted = Metric("wanted", "How many are wanted", gauge=True)
    metrics.declare((ends, wanted))
    for _ in range(2):
        metrics.measure(Measure(ends, labels=("failed",)))
        metrics.measure(Measure(wanted, 3.0))
    metrics.declare((ends, wanted))  # a second run of the same controller goes on counting
    metrics.measure(Measure(ends, 5.0, ("succeeded",)))
    found = samples(metrics)
    assert found['ends_total{result="failed"}'] == 2
    assert found['ends_total{result="succeeded"}'] == 5
    assert found["wanted"] == 3


def test_what_is_counted_without_labels_is_there_from_the_start() -> None:
    metrics = Metrics()
    metrics.declare((Metric("skips_total", "Skips"), Metric("ends_total", "Ends", ("result",))))
    assert samples(metrics)["skips_total"] == 0
    assert not [name for name in samples(metrics) if name.startswith("ends")]


def test_measuring_what_was_never_declared_is_a_mistake() -> None:
    with pytest.raises(LookupError, match="nothing_of_the_kind"):
        Metrics().measure(Measure(Metric("nothing_of_the_kind", "")))


def test_leadership_is_a_gauge() -> None:
    metrics = Metrics()
    metrics.leader.of("kube-controller-manager").set(1)
    assert samples(metrics)['leader_election_master_status{name="kube-controller-manager"}'] == 1
    metrics.leader.of("kube-controller-manager").set(0)
    assert samples(metrics)['leader_election_master_status{name="kube-controller-manager"}'] == 0


def test_two_managers_in_one_process_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    queue(one, "job-controller").adds.inc()
    queue(other, "job-controller")
    assert samples(one)['workqueue_adds_total{name="job"}'] == 1
    assert samples(other)['workqueue_adds_total{name="job"}'] == 0


def test_switched_off_it_counts_into_the_void() -> None:
    metrics = Metrics(enabled=False)
    assert metrics.queue("job-controller", depth=float, unfinished=float, longest=float) is None
    assert metrics.informer(PODS, revision=int, unreadable=int) is None
    metrics.round("job-controller", 0.1, 409)
    metrics.stale_skip("job-controller", "pods")
    ages = Metric("ages", "How old", buckets=(1.0, 2.0))
    metrics.declare((ages,))
    metrics.measure(Measure(ages, 1.5))
    metrics.rest.requests.of("200", "GET", "h").inc()
    assert metrics.render() == b""


def test_no_line_says_when_a_metric_was_made() -> None:
    metrics = Metrics()
    queue(metrics, "job-controller").adds.inc()
    metrics.round("job-controller", 0.1, 409)
    assert "_created" not in metrics.render().decode()


def test_a_metric_cannot_be_declared_twice() -> None:
    metrics = Metrics()
    metrics.gauge("mine", "Mine")
    with pytest.raises(ValueError, match="mine is declared twice"):
        metrics.histogram("mine", "Mine too", (1,))


def test_a_cell_wants_all_its_labels() -> None:
    with pytest.raises(ValueError, match="rest_client_requests_total has the labels"):
        Metrics().rest.requests.of("200")


@given(st.lists(st.floats(-10, 10), max_size=50))
def test_a_histogram_counts_every_value_below_each_bound(values: list[float]) -> None:
    histogram = Histogram(exponential(0.25, 2, 6))
    for value in values:
        histogram.observe(value)
    seen = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        seen += count
        assert seen == sum(value <= bound for value in values)
    assert sum(histogram.counts) == len(values)


def test_a_gauge_is_what_was_set_or_what_is_read() -> None:
    gauge = Gauge()
    gauge.set(4)
    assert gauge.value == 4
    gauge.read(lambda: 7)
    assert gauge.value == 7


@pytest.mark.parametrize("code", [200, 409, 500])
def test_rounds_of_publishers_are_counted_by_outcome(code: int) -> None:
    metrics = Metrics()
    metrics.round("root-ca-certificate-publisher-controller", 0.5, code)
    metrics.round("job-controller", 0.5, code)
    found = samples(metrics)
    assert found[f'root_ca_cert_publisher_sync_total{{code="{code}"}}'] == 1
    assert found[f'root_ca_cert_publisher_sync_duration_seconds_sum{{code="{code}"}}'] == 0.5
    assert sum(name.endswith("sync_total") or "sync_total{" in name for name in found) == 1


def test_what_is_not_to_be_shown_is_not() -> None:
    metrics = Metrics()
    metrics.options = ExpositionOptions(frozenset({"rest_client_transport_cache_entries"}))
    assert b"rest_client_transport_cache_entries" not in metrics.render()
