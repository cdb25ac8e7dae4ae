"""Metrics client: reads resource, custom and external metrics. Values are in thousandths.

Every read is an action. A failed read raises `MetricError` with upstream's message.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.autoscaling import PODMETRICS, CrossVersionObjectReference
from steersman.api.quantity import Quantity
from steersman.controllers.horizontalpodautoscaler.replica_calculator import MetricError, PodMetric
from steersman.intent.actions import List, ReadDocument

CUSTOM_METRICS = ("/apis/custom.metrics.k8s.io/v1beta2", "/apis/custom.metrics.k8s.io/v1beta1")
EXTERNAL_METRICS = ("/apis/external.metrics.k8s.io/v1beta1",)
DEFAULT_WINDOW = timedelta(minutes=1)
MAX_INT64 = 2**63 - 1


async def resource_metric(
    resource: str, namespace: str, selector: str, container: str
) -> dict[str, PodMetric]:
    """The usage of a resource by each pod, or by one container of each."""
    head = f"unable to get metrics for resource {resource}"
    try:
        items = await List(PODMETRICS, namespace, label_selector=selector)
    except ApiError as error:
        why = f"unable to fetch metrics from resource metrics API: {error.message}"
        raise MetricError(f"{head}: {why}") from None
    if not items:
        raise MetricError(f"{head}: no metrics returned from resource metrics API")
    found: dict[str, PodMetric] = {}
    for item in items:
        usage = _usage(item, resource, container)
        if usage is not None:
            found[item["metadata"]["name"]] = PodMetric(
                usage, _timestamp(item.get("timestamp")), _duration(item.get("window"))
            )
    return found


async def pods_metric(name: str, namespace: str, selector: str, metric_selector: str) -> dict[str, PodMetric]:
    """The value of a custom metric for each pod."""
    path = f"/namespaces/{namespace}/pods/*/{quote(name)}"
    query = _query(labelSelector=selector, metricLabelSelector=metric_selector)
    try:
        items = await _read(CUSTOM_METRICS, path + query, "custom")
    except MetricError as error:
        raise MetricError(f"unable to get metric {name}: {error}") from None
    found: dict[str, PodMetric] = {}
    for item in items:
        seconds = item.get("windowSeconds")
        window = DEFAULT_WINDOW if seconds is None else timedelta(seconds=seconds)
        found[item["describedObject"]["name"]] = PodMetric(
            _milli(item["value"]), _timestamp(item.get("timestamp")), window
        )
    return found


async def object_metric(
    name: str,
    namespace: str,
    reference: CrossVersionObjectReference,
    metric_selector: str,
    discovered: DiscoveryResult,
) -> int:
    """The value of a custom metric that describes one object."""
    group = reference.apiVersion.rpartition("/")[0]
    resource = next(
        (one for one in discovered.preferred if (one.group, one.kind) == (group, reference.kind)), None
    )
    # The order of the words is upstream's.
    head = f"unable to get metric {name}: {reference.kind} on {namespace} {reference.name}"
    if resource is None:
        raise MetricError(f'{head}/no matches for kind "{reference.kind}" in group "{group}"')
    path = f"/namespaces/{namespace}/{resource.id}/{quote(reference.name)}/{quote(name)}"
    if resource.id == "namespaces":
        path = f"/namespaces/{namespace}/metrics/{quote(name)}"
    try:
        items = await _read(CUSTOM_METRICS, path + _query(metricLabelSelector=metric_selector), "custom")
    except MetricError as error:
        raise MetricError(f"{head}/{error}") from None
    return _milli(items[0]["value"])


async def external_metric(name: str, namespace: str, metric_selector: str, shown_selector: str) -> int:
    """The sum of the values of an external metric; ``shown_selector`` is the selector as messages print it."""
    path = f"/namespaces/{namespace}/{quote(name)}{_query(labelSelector=metric_selector)}"
    try:
        items = await _read(EXTERNAL_METRICS, path, "external")
    except MetricError as error:
        raise MetricError(
            f"unable to get external metric {namespace}/{name}/{shown_selector}: {error}"
        ) from None
    return min(MAX_INT64, sum(_milli(item["value"]) for item in items))


async def _read(apis: tuple[str, ...], path: str, api: str) -> list[dict[str, Any]]:
    """The items at a path of the first API version that is served."""
    failure: ApiError | None = None
    for prefix in apis:
        try:
            document = await ReadDocument(prefix + path)
        except NotFound as error:
            failure = failure or error
            continue
        except ApiError as error:
            raise MetricError(f"unable to fetch metrics from {api} metrics API: {error.message}") from None
        items: list[dict[str, Any]] = document.get("items") or []
        if not items:
            raise MetricError(f"no metrics returned from {api} metrics API")
        return items
    assert failure is not None
    raise MetricError(f"unable to fetch metrics from {api} metrics API: {failure.message}")


def _query(**values: str) -> str:
    given = {key: value for key, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _usage(item: Mapping[str, Any], resource: str, container: str) -> int | None:
    """The usage of a pod; None where one of its containers reports none."""
    containers = item.get("containers") or ()
    if container:
        containers = [one for one in containers if one.get("name") == container]
    quantities = [(one.get("usage") or {}).get(resource) for one in containers]
    return None if not quantities or None in quantities else sum(map(_milli, quantities))


def _milli(quantity: Any) -> int:
    return Quantity.parse(quantity).milli()


def _timestamp(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _duration(text: Any) -> timedelta:
    """A window in Go's notation: ``30s``, ``1m0s``."""
    seconds, number = 0.0, ""
    for letter in str(text or ""):
        if letter in "hms":
            seconds += float(number or 0) * {"h": 3600, "m": 60, "s": 1}[letter]
            number = ""
        else:
            number += letter
    return timedelta(seconds=seconds) or DEFAULT_WINDOW
