"""Answers of metrics servers that cannot be used fail one metric, with a message, and never the round."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion
from steersman.api.errors import ApiError, NotFound, ServiceUnavailable
from steersman.api.kinds.autoscaling import CrossVersionObjectReference
from steersman.controllers.horizontalpodautoscaler import metrics_client
from steersman.controllers.horizontalpodautoscaler.metrics_client import CustomMetrics, CustomMetricsVersions
from steersman.controllers.horizontalpodautoscaler.replica_calculator import MetricError, PodMetric
from steersman.intent.actions import Action, ReadDocument

T = TypeVar("T")
QUEUES = DiscoveryResult((ApiResource("example.com", "v1", "Queue", "queues", True, ("get",)),))
POD: dict[str, Any] = {
    "metadata": {"name": "p"},
    "timestamp": "2026-01-01T12:00:00Z",
    "window": "30s",
    "containers": [{"name": "c", "usage": {"cpu": "100m"}}],
}
VALUE: dict[str, Any] = {"describedObject": {"name": "p"}, "value": "100m"}
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GROUP = "/apis/custom.metrics.k8s.io"


def api(
    versions: CustomMetricsVersions | None = None,
    now: datetime = NOW,
    discovered: DiscoveryResult = QUEUES,
) -> CustomMetrics:
    """The custom metrics API, of which nothing is known yet."""
    return CustomMetrics(versions or CustomMetricsVersions(), discovered, now)


def group(*versions: str, preferred: str = "") -> dict[str, Any]:
    """The discovery document of custom metrics."""
    named = [{"groupVersion": f"custom.metrics.k8s.io/{one}", "version": one} for one in versions]
    document: dict[str, Any] = {"kind": "APIGroup", "name": "custom.metrics.k8s.io", "versions": named}
    if preferred:
        document["preferredVersion"] = {"groupVersion": f"custom.metrics.k8s.io/{preferred}"}
    return document


def run(
    reading: Coroutine[Any, Any, T],
    answer: Callable[[Action[Any]], Any],
    registered: Any = group("v1beta2", "v1beta1"),
) -> T:
    """Gives a reading the answers to its actions; an error is thrown into it."""
    try:
        action = reading.send(None)
        while True:
            given = registered if action == ReadDocument(GROUP) else answer(action)
            action = reading.throw(given) if isinstance(given, ApiError) else reading.send(given)
    except StopIteration as stop:
        result: T = stop.value
        return result


def pods(answer: Any) -> dict[str, PodMetric]:
    return run(metrics_client.resource_metric("cpu", "d", "app=web", ""), lambda action: answer)


def custom(answer: Any, name: str = "hits") -> dict[str, PodMetric]:
    return run(metrics_client.pods_metric(name, "d", "app=web", "", api()), lambda action: answer)


def described(answer: Any, name: str = "length", queue: str = "q", namespace: str = "d") -> int:
    reference = CrossVersionObjectReference(apiVersion="example.com/v1", kind="Queue", name=queue)
    return run(metrics_client.object_metric(name, namespace, reference, "", api()), lambda action: answer)


def external(answer: Any, name: str = "orders", namespace: str = "d") -> int:
    return run(metrics_client.external_metric(name, namespace, "", "nil"), lambda action: answer)


def test_well_formed_answers_are_read() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert pods([POD]) == {"p": PodMetric(100, at, timedelta(seconds=30))}
    assert custom({"items": [VALUE | {"windowSeconds": 5}]}) == {
        "p": PodMetric(100, None, timedelta(seconds=5))
    }
    assert described({"items": [VALUE]}) == 100
    assert external({"items": [{"value": "1"}, {"value": 2}]}) == 3000
    # Go's servers write empty slices and maps as null.
    assert pods([POD | {"containers": None}]) == {}
    assert pods([POD | {"containers": [{"name": "c", "usage": None}]}]) == {}


MALFORMED_PODS = {
    "quantity": POD | {"containers": [{"name": "c", "usage": {"cpu": "much"}}]},
    "type of a quantity": POD | {"containers": [{"name": "c", "usage": {"cpu": {}}}]},
    "no name": {"metadata": {}, "containers": POD["containers"]},
    "no metadata": {"containers": POD["containers"]},
    "type of the containers": POD | {"containers": 5},
    "type of the usage": POD | {"containers": [{"name": "c", "usage": ["cpu"]}]},
    "timestamp": POD | {"timestamp": "noon"},
    "timestamp without zone": POD | {"timestamp": "2026-01-01T12:00:00"},
    "window": POD | {"window": "xs"},
    "window beyond Go's": POD | {"window": "9" * 400 + "s"},
    "not an object": 5,
}


@pytest.mark.parametrize("item", MALFORMED_PODS.values(), ids=MALFORMED_PODS)
def test_malformed_pod_metrics_fail_the_metric(item: Any) -> None:
    head = "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: "
    with pytest.raises(MetricError, match=f"^{head}."):
        pods([item])


MALFORMED_VALUES = {
    "quantity": VALUE | {"value": "1.2.3"},
    "no value": {"describedObject": {"name": "p"}},
    "null": VALUE | {"value": None},
    "type of the value": VALUE | {"value": [1]},
    "not an object": "x",
}


@pytest.mark.parametrize("item", MALFORMED_VALUES.values(), ids=MALFORMED_VALUES)
def test_malformed_values_fail_the_metric(item: Any) -> None:
    why = "unable to fetch metrics from {} metrics API: ."
    with pytest.raises(MetricError, match="^unable to get metric hits: " + why.format("custom")):
        custom({"items": [item]})
    with pytest.raises(
        MetricError, match="^unable to get metric length: Queue on d q/" + why.format("custom")
    ):
        described({"items": [item]})
    with pytest.raises(
        MetricError, match="^unable to get external metric d/orders/nil: " + why.format("external")
    ):
        external({"items": [item]})


@pytest.mark.parametrize("answer", [{"items": {}}, {"items": 1}, {"items": "x"}, {"items": [None]}, []])
def test_malformed_lists_fail_the_metric(answer: Any) -> None:
    for read in (custom, described, external):
        with pytest.raises(MetricError, match="unable to fetch metrics from"):
            read(answer)


@pytest.mark.parametrize(
    "item", [{"value": "1"}, VALUE | {"timestamp": "2026-01-01T12:00:00"}, VALUE | {"describedObject": "p"}]
)
def test_a_malformed_description_of_the_object_fails_the_metric(item: Any) -> None:
    with pytest.raises(MetricError, match=r"^unable to get metric hits: unable to fetch metrics from custom"):
        custom({"items": [item]})


def test_immense_values_stay_within_64_bits() -> None:
    immense = VALUE | {"value": "9e900", "windowSeconds": 10**30}
    (metric,) = custom({"items": [immense]}).values()
    assert metric.value == 2**63 - 1
    assert metric.window > timedelta(days=365 * 290)
    assert described({"items": [immense]}) == external({"items": [immense, immense]}) == 2**63 - 1
    assert (
        pods([POD | {"containers": [{"name": "c", "usage": {"cpu": "9e900"}}] * 2}])["p"].value == 2**63 - 1
    )


# -- paths ----------------------------------------------------------------------------------------


def test_names_are_one_segment_of_the_path_each() -> None:
    paths: list[str] = []

    def answer(action: Action[Any]) -> Any:
        assert isinstance(action, ReadDocument)
        paths.append(action.path)
        return {"items": [VALUE]}

    reference = CrossVersionObjectReference(apiVersion="example.com/v1", kind="Queue", name="q?x")
    run(metrics_client.pods_metric("h#s", "d", "a=b", "", api()), answer)
    run(metrics_client.object_metric("l&h", "d;e", reference, "", api()), answer)
    run(metrics_client.external_metric("o s", "d", "", "nil"), answer)
    assert paths == [
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/d/pods/*/h%23s?labelSelector=a%3Db",
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/d%3Be/queues.example.com/q%3Fx/l%26h",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/d/o%20s",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a/b", "may not contain '/'"),
        ("../b", "may not contain '/'"),
        ("..", "may not be '..'"),
        ("a%2fb", "may not contain '%'"),
        ("%/", "may not contain '/' may not contain '%'"),
    ],
)
def test_names_that_lead_elsewhere_are_refused_with_the_message_of_client_go(name: str, why: str) -> None:
    answer = {"items": [VALUE]}
    failures: list[tuple[Callable[[], object], str]] = [
        (lambda: custom(answer, name), "subresource"),
        (lambda: described(answer, name), "subresource"),
        (lambda: described(answer, queue=name), "resource name"),
        (lambda: described(answer, namespace=name), "namespace"),
        (lambda: external(answer, name), "resource"),
        (lambda: external(answer, namespace=name), "namespace"),
    ]
    for read, word in failures:
        with pytest.raises(MetricError) as error:
            read()
        assert str(error.value).endswith(f'metrics API: invalid {word} "{name}": [{why}]')


# -- one object -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 2, 3])
def test_an_object_metric_has_exactly_one_value(count: int) -> None:
    with pytest.raises(MetricError) as error:
        described({"items": [VALUE] * count})
    assert str(error.value) == (
        "unable to get metric length: Queue on d q/unable to fetch metrics from custom metrics API: "
        f"the custom metrics API server returned {count} results when we asked for exactly one"
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        (
            "example.com/v1",
            "Stack",
            'unable to map kind Stack.example.com to resource: no matches for kind "Stack" in group "example.com"',
        ),
        ("v1", "Stack", 'unable to map kind Stack to resource: no matches for kind "Stack" in group ""'),
        ("a/b/c", "Queue", 'unable to map kind Queue to resource: no matches for kind "Queue" in group ""'),
    ],
)
def test_an_object_of_an_unknown_kind_is_told_in_the_words_of_the_client(
    api_version: str, kind: str, why: str
) -> None:
    reference = CrossVersionObjectReference(apiVersion=api_version, kind=kind, name="s")
    reading = metrics_client.object_metric("m", "d", reference, "", api())
    with pytest.raises(MetricError) as error:
        run(reading, lambda action: {"items": [VALUE]})
    assert str(error.value) == (
        f"unable to get metric m: {kind} on d s/unable to fetch metrics from custom metrics API: {why}"
    )


def test_a_metric_of_a_namespace_is_that_of_the_autoscalers_own() -> None:
    paths: list[str] = []

    def answer(action: Action[Any]) -> Any:
        assert isinstance(action, ReadDocument)
        paths.append(action.path)
        return {"items": [VALUE]}

    reference = CrossVersionObjectReference(apiVersion="v1", kind="Namespace", name="elsewhere")
    run(metrics_client.object_metric("m", "d", reference, "", api(discovered=DiscoveryResult())), answer)
    assert paths == ["/apis/custom.metrics.k8s.io/v1beta2/namespaces/d/metrics/m"]


# -- windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "seconds"), [("30s", 30), ("1m0s", 60), ("500ms", 0.5), ("0s", 0), ("0", 0), (None, 0)]
)
def test_the_window_of_a_pods_usage_is_a_duration(window: str | None, seconds: float) -> None:
    assert pods([POD | {"window": window}])["p"].window == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 60),
        ({"windowSeconds": 5}, 5),
        ({"windowSeconds": 0}, 0),
        ({"window": 7}, 7),
        ({"window": None}, 60),
    ],
)
def test_the_window_of_a_custom_metric_has_a_name_in_each_version(
    fields: dict[str, Any], seconds: float
) -> None:
    assert custom({"items": [VALUE | fields]})["p"].window == timedelta(seconds=seconds)


# -- which version --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("registered", "version"),
    [
        (group("v1beta1", "v1beta2", preferred="v1beta1"), "v1beta1"),
        (group("v1beta1", "v1beta2", preferred="v1beta2"), "v1beta2"),
        (group("v1beta1", "v1beta2"), "v1beta1"),
        (group("v9", "v1beta1", preferred="v9"), "v1beta1"),
    ],
)
def test_the_version_of_custom_metrics_is_the_preferred_one_of_those_known(
    registered: dict[str, Any], version: str
) -> None:
    paths: list[str] = []

    def answer(action: Action[Any]) -> Any:
        assert isinstance(action, ReadDocument)
        paths.append(action.path)
        return {"items": [VALUE]}

    reading = metrics_client.pods_metric("hits", "d", "", "", api())
    run(reading, answer, registered)
    assert paths == [f"/apis/custom.metrics.k8s.io/{version}/namespaces/d/pods/*/hits"]


def test_a_version_that_does_not_answer_is_passed_over() -> None:
    paths: list[str] = []

    def answer(action: Action[Any]) -> Any:
        assert isinstance(action, ReadDocument)
        paths.append(action.path)
        return {"items": [VALUE]}

    registered = group("v1beta2", "v1beta1", preferred="v1beta2")
    versions = CustomMetricsVersions()
    stale = tuple(
        FailedGroupVersion(f"custom.metrics.k8s.io/{one}", "stale") for one in ("v1beta2", "v1beta1")
    )
    one = api(versions, discovered=DiscoveryResult(failed=stale[:1]))
    run(metrics_client.pods_metric("hits", "d", "", "", one), answer, registered)
    assert paths == ["/apis/custom.metrics.k8s.io/v1beta1/namespaces/d/pods/*/hits"]
    none = api(versions, discovered=DiscoveryResult(failed=stale))
    with pytest.raises(MetricError, match="no known available metric versions found"):
        run(metrics_client.pods_metric("hits", "d", "", "", none), answer, registered)


@pytest.mark.parametrize(
    ("registered", "why"),
    [
        (
            NotFound("the server could not find the requested resource"),
            "no custom metrics API (custom.metrics.k8s.io) registered",
        ),
        (ServiceUnavailable("not now"), "not now"),
        (group("v9", preferred="v9"), "no known available metric versions found"),
        (group(), "no known available metric versions found"),
    ],
)
def test_without_a_version_of_custom_metrics_the_metric_says_why(registered: Any, why: str) -> None:
    reading = metrics_client.pods_metric("hits", "d", "", "", api())
    with pytest.raises(MetricError) as error:
        run(reading, lambda action: {"items": [VALUE]}, registered)
    assert str(error.value) == (
        f"unable to get metric hits: unable to fetch metrics from custom metrics API: {why}"
    )


def test_the_version_is_kept_for_a_while_and_a_failure_is_not() -> None:
    versions = CustomMetricsVersions()
    asked: list[str] = []

    def groups_read(now: datetime, registered: Any) -> int:
        """How often the group was asked for, in a round at this time."""
        asked.clear()
        reading = metrics_client.pods_metric("hits", "d", "", "", api(versions, now))
        try:
            action = reading.send(None)
            while True:
                assert isinstance(action, ReadDocument)
                asked.append(action.path)
                if action.path != GROUP:
                    action = reading.send({"items": [VALUE]})
                elif isinstance(registered, ApiError):
                    action = reading.throw(registered)
                else:
                    action = reading.send(registered)
        except (StopIteration, MetricError):
            return asked.count(GROUP)

    assert groups_read(NOW, NotFound("no")) == 1
    assert groups_read(NOW, group("v1beta2")) == 1
    assert groups_read(NOW + timedelta(seconds=29), NotFound("no")) == 0
    assert groups_read(NOW + timedelta(seconds=30), group("v1beta1")) == 1
