"""Rounds of an autoscaler: what it reads, writes and says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import Conflict, Forbidden, NotFound
from steersman.api.kinds import (
    Condition,
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from steersman.api.kinds.autoscaling import (
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ObjectMetricSource,
    PodsMetricSource,
    ResourceMetricSource,
)
from steersman.controllers.horizontalpodautoscaler import controller
from steersman.controllers.horizontalpodautoscaler.behavior import History
from steersman.controllers.horizontalpodautoscaler.monitor import AUTOSCALERS
from steersman.controllers.horizontalpodautoscaler.observe import Memory
from steersman.intent.actions import Action, Discover, Emit, List, Read, ReadDocument, Update, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS, Settings
from steersman.intent.verdict import Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEPLOYMENTS = ApiResource("apps", "v1", "Deployment", "deployments", True, ("get",), ("scale",))
QUEUES = ApiResource("example.com", "v1", "Queue", "queues", True, ("get",))
CUSTOM_METRICS = {"versions": [{"groupVersion": "custom.metrics.k8s.io/v1beta2"}]}
SERVED = DiscoveryResult((DEPLOYMENTS, QUEUES))
CPU = MetricSpec(
    type="Resource",
    resource=ResourceMetricSource(name="cpu", target=MetricTarget(type="Utilization", averageUtilization=50)),
)


def scaler(
    *metrics: MetricSpec, name: str = "h", least: int | None = 1, most: int = 10, **spec: Any
) -> HorizontalPodAutoscaler:
    return HorizontalPodAutoscaler(
        metadata=ObjectMeta(name=name, namespace="d", uid=name),
        spec=HorizontalPodAutoscalerSpec(
            scaleTargetRef=CrossVersionObjectReference(apiVersion="apps/v1", kind="Deployment", name="web"),
            minReplicas=least,
            maxReplicas=most,
            metrics=metrics or (CPU,),
            **spec,
        ),
    )


def pod(number: int) -> Pod:
    since = NOW - timedelta(hours=1)
    return Pod(
        metadata=ObjectMeta(name=f"p{number}", namespace="d", labels={"app": "web"}),
        spec=PodSpec(
            containers=(Container(name="c", resources=ResourceRequirements(requests={"cpu": "1"})),)
        ),
        status=PodStatus(
            phase="Running",
            startTime=since,
            conditions=(Condition(type="Ready", status="True", lastTransitionTime=since),),
        ),
    )


def scale(replicas: int, selector: str = "app=web") -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "resourceVersion": "5"},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "selector": selector},
    }


def used(*levels: str) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"name": f"p{number}"},
            "timestamp": "2026-01-01T12:00:00Z",
            "window": "30s",
            "containers": [{"name": "c", "usage": {"cpu": level}}],
        }
        for number, level in enumerate(levels)
    ]


class Cluster:
    """Answers an autoscaler; keeps what it said."""

    def __init__(self, settings: Settings = DEFAULTS, **answers: Any) -> None:
        configured = controller.configured(settings)
        assert configured is not None
        self.controller = configured
        self.answers = answers
        self.memory = Memory()

    def look(
        self, of: HorizontalPodAutoscaler, *objects: Any, now: datetime = NOW, **answers: Any
    ) -> tuple[list[Action[Any]], Verdict]:
        given = {**self.answers, **answers}
        caches = StaticCaches(self.controller, of, *objects)
        caches.memory = self.memory
        seen = self.controller.see(caches, of.key)
        assert seen is not None

        def answer(action: Action[Any]) -> Any:
            match action:
                case Discover():
                    return SERVED
                case Read():
                    return given["scale"]
                case List():
                    return given.get("used", [])
                case ReadDocument("/apis/custom.metrics.k8s.io"):
                    return given.get("group", CUSTOM_METRICS)
                case ReadDocument(path):
                    return given["said"](path)
                case Update():
                    return given.get("put", {"metadata": {"resourceVersion": "6"}})
            return USUAL

        return walk(self.controller.decide(seen, now), answer)


def status(actions: list[Action[Any]]) -> HorizontalPodAutoscalerStatus:
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(update.status, HorizontalPodAutoscalerStatus)
    return update.status


def reasons(made: HorizontalPodAutoscalerStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in made.conditions}


def events(actions: list[Action[Any]]) -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in actions if isinstance(one, Emit)]


def put(actions: list[Action[Any]]) -> list[int]:
    return [one.body["spec"]["replicas"] for one in actions if isinstance(one, Update)]


def test_a_target_that_is_used_too_much_grows_and_the_status_says_why() -> None:
    actions, verdict = Cluster(scale=scale(2), used=used("800m", "600m")).look(scaler(), pod(0), pod(1))
    assert put(actions) == [3]
    name = "cpu resource utilization (percentage of request)"
    assert events(actions) == [("SuccessfulRescale", f"New size: 3; reason: {name} above target")]
    made = status(actions)
    assert (made.currentReplicas, made.desiredReplicas, made.lastScaleTime) == (2, 3, NOW)
    assert made.currentMetrics == (
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "700m"}},
        },
    )
    assert reasons(made) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=15)


def test_near_enough_is_right() -> None:
    actions, _ = Cluster(scale=scale(2), used=used("500m", "520m")).look(scaler(), pod(0), pod(1))
    assert put(actions) == []
    assert status(actions).desiredReplicas == 2


def test_what_was_recommended_lately_keeps_it_from_shrinking_until_the_window_has_passed() -> None:
    cluster = Cluster(scale=scale(4), used=used("100m", "100m"))
    of = scaler()
    assert put(cluster.look(of, pod(0), pod(1))[0]) == []
    later = NOW + timedelta(minutes=5, seconds=1)
    actions, _ = cluster.look(of, pod(0), pod(1), now=later)
    assert put(actions) == [1]
    assert events(actions) == [("SuccessfulRescale", "New size: 1; reason: All metrics below target")]


@pytest.mark.parametrize(
    ("replicas", "wanted", "reason"),
    [
        (12, 10, "Current number of replicas above Spec.MaxReplicas"),
        (1, 3, "Current number of replicas below Spec.MinReplicas"),
    ],
)
def test_bounds_come_before_metrics(replicas: int, wanted: int, reason: str) -> None:
    actions, _ = Cluster(scale=scale(replicas)).look(scaler(least=3), pod(0))
    assert put(actions) == [wanted]
    assert events(actions) == [("SuccessfulRescale", f"New size: {wanted}; reason: {reason}")]


def test_a_target_without_replicas_is_left_alone() -> None:
    actions, _ = Cluster(scale=scale(0)).look(scaler())
    assert put(actions) == []
    assert reasons(status(actions))["ScalingActive"] == ("False", "ScalingDisabled")


def test_a_scale_that_cannot_be_read_is_told_of() -> None:
    actions, _ = Cluster(scale=NotFound("no such deployment")).look(scaler())
    assert events(actions) == [("FailedGetScale", "no such deployment")]
    assert reasons(status(actions)) == {"AbleToScale": ("False", "FailedGetScale")}


@pytest.mark.parametrize(
    ("selector", "reason"),
    [("", "SelectorRequired"), ("a in (", "InvalidSelector")],
)
def test_a_target_that_does_not_say_which_pods_is_told_of(selector: str, reason: str) -> None:
    actions, _ = Cluster(scale=scale(2, selector)).look(scaler(), pod(0))
    assert [event[0] for event in events(actions)] == [reason, "FailedComputeMetricsReplicas"]
    assert reasons(status(actions))["ScalingActive"] == ("False", "InvalidSelector")


def test_two_autoscalers_of_the_same_pods_do_nothing() -> None:
    cluster = Cluster(scale=scale(2), used=used("800m", "600m"))
    one, other = scaler(name="a"), scaler(name="b")
    cluster.look(one, other, pod(0), pod(1))
    actions, _ = cluster.look(other, one, pod(0), pod(1))
    assert put(actions) == []
    assert events(actions)[0] == (
        "AmbiguousSelector",
        "pods by selector app=web are controlled by multiple HPAs: [d/a d/b]",
    )


def test_a_deleted_autoscaler_is_forgotten() -> None:
    cluster = Cluster(scale=scale(2), used=used("800m", "600m"))
    gone = scaler()
    cluster.look(gone, pod(0), pod(1))
    assert gone.key in cluster.memory
    caches = StaticCaches(cluster.controller)
    caches.memory = cluster.memory
    assert cluster.controller.see(caches, gone.key) is None
    assert gone.key not in cluster.memory


def test_an_autoscaler_inherits_nothing_from_a_deleted_one_of_its_name() -> None:
    cluster = Cluster(scale=scale(2), used=used("800m", "600m"))
    former = scaler(name="a")
    cluster.look(former, pod(0), pod(1))
    meta = msgspec.structs.replace(former.metadata, uid="again")
    again, other = msgspec.structs.replace(former, metadata=meta), scaler(name="b")
    # The new one has not looked at its target yet, which may be another.
    actions, _ = cluster.look(other, again, pod(0), pod(1))
    assert put(actions) == [3]
    assert cluster.memory.history(again) == History()


@pytest.mark.parametrize(
    ("answers", "kept"),
    [
        ({"scale": scale(2), "used": used("500m", "500m")}, None),
        ({"scale": scale(2), "used": []}, None),
        ({"scale": scale(0)}, None),
        ({"scale": NotFound("no such deployment")}, 7),
    ],
)
def test_the_observed_generation_is_left_as_upstream_leaves_it(
    answers: dict[str, Any], kept: int | None
) -> None:
    of = msgspec.structs.replace(scaler(), status=HorizontalPodAutoscalerStatus(observedGeneration=7))
    actions, _ = Cluster(**answers).look(of, pod(0), pod(1))
    assert status(actions).observedGeneration == kept


def test_metrics_that_are_missing_are_told_of_and_nothing_changes() -> None:
    actions, _ = Cluster(scale=scale(2)).look(scaler(), pod(0), pod(1))
    why = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: "
        "no metrics returned from resource metrics API"
    )
    assert events(actions) == [
        ("FailedGetResourceMetric", why),
        (
            "FailedComputeMetricsReplicas",
            f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {why}",
        ),
    ]
    made = status(actions)
    condition = next(one for one in made.conditions if one.type == "ScalingActive")
    assert (condition.reason, condition.message) == (
        "FailedGetResourceMetric",
        f"the HPA was unable to compute the replica count: {why}",
    )
    assert made.currentMetrics == ({"type": ""},)


QUEUE = MetricSpec(
    type="Object",
    object=ObjectMetricSource(
        describedObject=CrossVersionObjectReference(apiVersion="example.com/v1", kind="Queue", name="q"),
        metric=MetricIdentifier(name="length"),
        target=MetricTarget(type="Value", value="10"),
    ),
)
ORDERS = MetricSpec(
    type="External",
    external=PodsMetricSource(
        metric=MetricIdentifier(name="orders"), target=MetricTarget(type="AverageValue", averageValue="10")
    ),
)
HITS = MetricSpec(
    type="Pods",
    pods=PodsMetricSource(
        metric=MetricIdentifier(name="hits"), target=MetricTarget(type="AverageValue", averageValue="10")
    ),
)


def said(value: str) -> Any:
    def answer(path: str) -> dict[str, Any]:
        names = ("p0", "p1") if "/pods/*/" in path else ("q",)
        return {"items": [{"value": value, "describedObject": {"name": name}} for name in names]}

    return answer


@pytest.mark.parametrize(
    ("metric", "value", "wanted", "reason"),
    [
        (QUEUE, "30", 6, "Queue metric length above target"),
        (ORDERS, "50", 5, "external metric orders(nil) above target"),
        (HITS, "20", 4, "pods metric hits above target"),
    ],
)
def test_other_metrics_scale_too(metric: MetricSpec, value: str, wanted: int, reason: str) -> None:
    cluster = Cluster(scale=scale(2), said=said(value))
    actions, _ = cluster.look(scaler(metric), pod(0), pod(1))
    assert put(actions) == [min(4, wanted)]
    assert events(actions)[0][1].endswith(f"reason: {reason}")


def test_the_largest_proposal_counts_and_one_broken_metric_only_keeps_it_from_shrinking() -> None:
    growing = Cluster(scale=scale(2), used=used("800m", "600m"), said=lambda path: NotFound("none"))
    actions, _ = growing.look(scaler(ORDERS, CPU), pod(0), pod(1))
    assert put(actions) == [3]
    shrinking = Cluster(scale=scale(4), used=used("100m", "100m"), said=lambda path: NotFound("none"))
    actions, _ = shrinking.look(scaler(ORDERS, CPU), pod(0), pod(1), now=NOW)
    assert put(actions) == []
    assert events(actions)[-1][0] == "FailedComputeMetricsReplicas"


def test_a_conflict_is_met_with_a_fresh_scale() -> None:
    answers = iter([Conflict("changed"), {"metadata": {"resourceVersion": "7"}}])
    configured = controller.configured(DEFAULTS)
    assert configured is not None
    of = scaler()
    seen = configured.see(StaticCaches(configured, of, pod(0), pod(1)), of.key)
    assert seen is not None

    def answer(action: Action[Any]) -> Any:
        match action:
            case Discover():
                return SERVED
            case Read():
                return scale(2)
            case List():
                return used("800m", "600m")
            case Update():
                return next(answers)
        return USUAL

    actions, _ = walk(configured.decide(seen, NOW), answer)
    assert put(actions) == [3, 3]


def test_a_refusal_is_told_of() -> None:
    actions, _ = Cluster(scale=scale(2), used=used("800m", "600m"), put=Forbidden("no")).look(
        scaler(), pod(0), pod(1)
    )
    assert events(actions)[0][0] == "FailedRescale"
    assert reasons(status(actions))["AbleToScale"] == ("False", "FailedUpdateScale")


def test_scaling_to_zero_and_back_is_behind_its_gate() -> None:
    on = Settings(gates={"HPAScaleToZero": True})
    cluster = Cluster(on, scale=scale(1), said=said("0"))
    of = scaler(QUEUE, least=0)
    cluster.look(of, pod(0))
    actions, _ = cluster.look(of, pod(0), now=NOW + timedelta(minutes=6))
    assert put(actions) == [0]
    assert reasons(status(actions))["ScaledToZero"] == ("True", "ScaledToZero")


def test_an_odd_metric_is_told_of_and_no_crash() -> None:
    actions, _ = Cluster(scale=scale(2)).look(scaler(MetricSpec(type="Mood")), pod(0))
    assert events(actions)[0] == ("InvalidMetricSourceType", 'unknown metric source type "Mood"')


def outside(**target: Any) -> MetricSpec:
    source = PodsMetricSource(metric=MetricIdentifier(name="q"), target=MetricTarget(**target))
    return MetricSpec(type="External", external=source)


def inside(**target: Any) -> MetricSpec:
    described = CrossVersionObjectReference(apiVersion="example.com/v1", kind="Queue", name="jobs")
    return MetricSpec(
        type="Object",
        object=ObjectMetricSource(
            describedObject=described, metric=MetricIdentifier(name="q"), target=MetricTarget(**target)
        ),
    )


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (
            outside(type="Value", value="1"),
            "failed to get q external metric value: failed to get external metric q: ",
        ),
        (
            outside(type="AverageValue", averageValue="1"),
            "failed to get q external metric value: failed to get q external metric: ",
        ),
        (inside(type="Value", value="1"), "failed to get object metric value: "),
        (
            inside(type="AverageValue", averageValue="1"),
            "failed to get object metric value: failed to get q object metric: ",
        ),
    ],
)
def test_what_cannot_be_read_is_told_in_the_words_of_its_target(metric: MetricSpec, words: str) -> None:
    cluster = Cluster(scale=scale(2), said=lambda path: NotFound("no such metric"))
    actions, _ = cluster.look(scaler(metric), pod(0), pod(1))
    reason, message = events(actions)[-1]
    assert reason == "FailedComputeMetricsReplicas"
    assert message.startswith(f"invalid metrics (1 invalid out of 1), first error is: {words}unable to get ")


@pytest.mark.parametrize(
    ("metric", "kind"),
    [(QUEUE, "Object"), (ORDERS, "External"), (HITS, "Pods")],
)
@pytest.mark.parametrize("items", [[{"value": "much"}], [{}], [None], {"0": 1}])
def test_a_malformed_answer_fails_the_metric_and_not_the_round(
    metric: MetricSpec, kind: str, items: Any
) -> None:
    cluster = Cluster(scale=scale(2), said=lambda path: {"items": items})
    actions, verdict = cluster.look(scaler(metric), pod(0), pod(1))
    assert [reason for reason, _ in events(actions)] == [
        f"FailedGet{kind}Metric",
        "FailedComputeMetricsReplicas",
    ]
    assert "unable to fetch metrics from" in events(actions)[0][1]
    assert reasons(status(actions))["ScalingActive"] == ("False", f"FailedGet{kind}Metric")
    assert isinstance(verdict, Wake)


def test_malformed_resource_metrics_fail_the_metric_and_not_the_round() -> None:
    for broken in ({}, {"metadata": {"name": "p0"}, "timestamp": "2026-01-01T12:00:00"}):
        actions, _ = Cluster(scale=scale(2), used=[*used("1"), broken]).look(scaler(), pod(0), pod(1))
        assert events(actions)[0][0] == "FailedGetResourceMetric"


@pytest.mark.parametrize("metric", [QUEUE, ORDERS, HITS])
def test_immense_values_scale_to_the_maximum(metric: MetricSpec) -> None:
    cluster = Cluster(scale=scale(5), said=said("9e900"))
    actions, _ = cluster.look(scaler(metric), pod(0), pod(1))
    assert put(actions) == [10]


def test_a_pod_that_started_at_the_end_of_time_does_no_harm() -> None:
    late = datetime.max.replace(tzinfo=UTC)
    new = msgspec.structs.replace(pod(0), status=msgspec.structs.replace(pod(0).status, startTime=late))
    actions, _ = Cluster(scale=scale(2), used=used("1")).look(scaler(), new)
    assert status(actions).desiredReplicas == 2


# -- what is counted ------------------------------------------------------------------------------


def counted(actions: list[Action[Any]]) -> dict[tuple[str, ...], float]:
    """Counters and gauges; how long things took is left out."""
    return {
        (one.metric.name.removeprefix("horizontal_pod_autoscaler_controller_"), *one.labels): one.value
        for one in actions
        if isinstance(one, Measure) and not one.metric.buckets
    }


UNKNOWN = MetricSpec(type="Guess")


@pytest.mark.parametrize(
    ("of", "answers", "looks", "metrics"),
    [
        (
            scaler(),
            {"used": used("800m", "600m")},
            ("scale_up", "none"),
            [("scale_up", "none", "Resource")],
        ),
        (scaler(), {"used": used("500m", "500m")}, ("none", "none"), [("scale_up", "none", "Resource")]),
        (scaler(), {"used": []}, ("none", "internal"), [("none", "internal", "Resource")]),
        (
            scaler(CPU, UNKNOWN),
            {"used": used("800m", "600m")},
            ("scale_up", "internal"),
            [("scale_up", "none", "Resource"), ("none", "spec", "Guess")],
        ),
        (
            scaler(most=1),
            {"put": Forbidden("no")},
            ("none", "internal"),
            [],
        ),
        (scaler(most=1), {}, ("scale_down", "none"), []),
    ],
)
def test_looks_are_counted_by_what_came_of_them(
    of: HorizontalPodAutoscaler,
    answers: dict[str, Any],
    looks: tuple[str, str],
    metrics: list[tuple[str, ...]],
) -> None:
    actions, _ = Cluster(scale=scale(2), **answers).look(of, pod(0), pod(1))
    found = counted(actions)
    assert found.pop(("reconciliations_total", *looks)) == 1
    found.pop(("desired_replicas", "d", "h"), None)
    # A metric is compared with what the status says there is, which is nothing yet.
    assert found == {("metric_computation_total", *labels): 1 for labels in metrics}
    durations = [one for one in actions if isinstance(one, Measure) and one.metric.buckets]
    assert len(durations) == len(metrics) + 1


def test_a_reference_that_is_none_is_the_mistake_of_whoever_wrote_it() -> None:
    odd = CrossVersionObjectReference(apiVersion="a/b/c", kind="Deployment", name="web")
    of = scaler()
    of = msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, scaleTargetRef=odd))
    actions, _ = Cluster().look(of)
    assert counted(actions) == {("reconciliations_total", "none", "spec"): 1}


def test_what_is_wanted_and_how_many_want_is_shown() -> None:
    actions, _ = Cluster(scale=scale(2), used=used("800m", "600m")).look(scaler(), pod(0), pod(1))
    assert counted(actions)["desired_replicas", "d", "h"] == 3
    (watch, *_) = controller.watches
    caches = StaticCaches(controller, scaler(), scaler(name="other"))
    assert watch.measures is not None
    assert list(watch.measures(caches, Change(None, scaler()))) == [Measure(AUTOSCALERS, 2)]
    assert list(watch.measures(caches, Change(scaler(), scaler()))) == []
