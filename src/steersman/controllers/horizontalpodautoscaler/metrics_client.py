"""Metrics client: reads resource, custom and external metrics. Values are in thousandths.

Every read is an action. A failed read raises `MetricError` with upstream's message, and so does an answer that cannot be
decoded: metrics come from other servers, which may send anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias, TypeVar
from urllib.parse import quote as escape
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError, NotFound
from steersman.api.go_duration import parse_duration
from steersman.api.go_quote import quote
from steersman.api.kinds.autoscaling import PODMETRICS, CrossVersionObjectReference
from steersman.api.label_syntax import path_segment_errors
from steersman.api.quantity import Quantity
from steersman.controllers.horizontalpodautoscaler.replica_calculator import MetricError, PodMetric
from steersman.intent.actions import List, ReadDocument

CUSTOM_METRICS = "custom.metrics.k8s.io"
CUSTOM_METRICS_VERSIONS = (f"{CUSTOM_METRICS}/v1beta2", f"{CUSTOM_METRICS}/v1beta1")
"""The versions that can be decoded."""
EXTERNAL_METRICS = "external.metrics.k8s.io/v1beta1"
VERSION_TTL = timedelta(seconds=30)
DEFAULT_WINDOW = timedelta(minutes=1)
"""The window of a custom metric that names none."""
MAX_INT64 = 2**63 - 1
MAX_SECONDS = MAX_INT64 // 10**9
"""Seconds of Go's longest duration, about 292 years."""
_FAILURES = (ApiError, ValueError, msgspec.ValidationError)
"""A refused request, a malformed value, an answer of another shape."""

T = TypeVar("T")
RawQuantity: TypeAlias = str | int | float
Timestamp: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


# -- answers --------------------------------------------------------------------------------------

# A field without default is required. differs: upstream reads a missing value as 0, and scales down.


class Named(Struct, frozen=True):
    """The name in an object's metadata, or in a reference to it."""

    name: str


class ContainerUsage(Struct, frozen=True):
    """The usage of one container."""

    name: str
    usage: dict[str, RawQuantity | None] | None = None


class PodUsage(Struct, frozen=True):
    """A PodMetrics of ``metrics.k8s.io``."""

    metadata: Named
    containers: tuple[ContainerUsage, ...] | None = None
    timestamp: Timestamp | None = None
    window: str | None = None


class CustomMetricValue(Struct, frozen=True):
    """A MetricValue of ``custom.metrics.k8s.io``."""

    describedObject: Named
    value: RawQuantity
    timestamp: Timestamp | None = None
    windowSeconds: int | None = None
    window: int | None = None
    """``windowSeconds`` as v1beta1 names it."""


class ExternalMetricValue(Struct, frozen=True):
    """An ExternalMetricValue of ``external.metrics.k8s.io``."""

    value: RawQuantity


class CustomMetricValues(Struct, frozen=True):
    """A MetricValueList."""

    items: tuple[CustomMetricValue, ...] | None = None


class ExternalMetricValues(Struct, frozen=True):
    """An ExternalMetricValueList."""

    items: tuple[ExternalMetricValue, ...] | None = None


class GroupVersion(Struct, frozen=True):
    """A version of an API group, in its discovery document."""

    groupVersion: str = ""


class ApiGroup(Struct, frozen=True):
    """The discovery document of an API group."""

    versions: tuple[GroupVersion, ...] | None = None
    preferredVersion: GroupVersion = GroupVersion()


# -- versions -------------------------------------------------------------------------------------


class CustomMetricsVersions:
    """The group versions of custom metrics that the server has, its preferred one first.

    They are read at most every 30 seconds; a failure is not kept.
    """

    def __init__(self) -> None:
        self._read: tuple[datetime, tuple[str, ...]] | None = None

    async def read(self, now: datetime) -> tuple[str, ...]:
        """The group versions. Raises one of `_FAILURES`."""
        if self._read is None or now - self._read[0] >= VERSION_TTL:
            try:
                document = await ReadDocument(f"/apis/{CUSTOM_METRICS}")
            except NotFound:
                raise ValueError(f"no custom metrics API ({CUSTOM_METRICS}) registered") from None
            group = msgspec.convert(document, ApiGroup)
            served = (group.preferredVersion, *(group.versions or ()))
            self._read = (now, tuple(one.groupVersion for one in served))
        return self._read[1]


class CustomMetrics(Struct, frozen=True):
    """The custom metrics API at one instant."""

    versions: CustomMetricsVersions
    discovered: DiscoveryResult
    now: datetime

    async def version(self) -> str:
        """The group version for requests: the preferred one of those that answer and can be decoded.

        Raises one of `_FAILURES`.
        """
        failed = [one.group_version for one in self.discovered.failed]
        for version in await self.versions.read(self.now):
            if version in CUSTOM_METRICS_VERSIONS and version not in failed:
                return version
        raise ValueError("no known available metric versions found")


# -- metrics --------------------------------------------------------------------------------------


async def resource_metric(
    resource: str, namespace: str, selector: str, container: str
) -> dict[str, PodMetric]:
    """The usage of a resource by each pod, or by one container of each."""
    head = f"unable to get metrics for resource {resource}"
    try:
        answer = await List(PODMETRICS, namespace, label_selector=selector)
        items = msgspec.convert(answer, tuple[PodUsage, ...])
        if not items:
            raise MetricError(f"{head}: no metrics returned from resource metrics API")
        return {
            item.metadata.name: PodMetric(usage, item.timestamp, _window(item.window))
            for item in items
            if (usage := _usage(item, resource, container)) is not None
        }
    except _FAILURES as error:
        raise MetricError(f"{head}: {_unable('resource', error)}") from None


async def pods_metric(
    name: str,
    namespace: str,
    selector: str,
    metric_selector: str,
    custom: CustomMetrics,
) -> dict[str, PodMetric]:
    """The value of a custom metric for each pod."""
    try:
        api = await custom.version()
        path = _path(
            ("namespace", namespace), ("resource", "pods"), ("resource name", "*"), ("subresource", name)
        )
        query = _query(labelSelector=selector, metricLabelSelector=metric_selector)
        answer = await _read(api, path + query, CustomMetricValues)
        items = answer.items
        if not items:
            raise MetricError(f"unable to get metric {name}: no metrics returned from custom metrics API")
        return {
            item.describedObject.name: PodMetric(
                _milli(item.value),
                item.timestamp,
                _seconds(item.window if item.windowSeconds is None else item.windowSeconds),
            )
            for item in items
        }
    except _FAILURES as error:
        raise MetricError(f"unable to get metric {name}: {_unable('custom', error)}") from None


async def object_metric(
    name: str,
    namespace: str,
    reference: CrossVersionObjectReference,
    metric_selector: str,
    custom: CustomMetrics,
) -> int:
    """The value of a custom metric that describes one object."""
    try:
        api = await custom.version()
        path = _path(("namespace", namespace), *_object_segments(name, reference, custom.discovered))
        query = _query(metricLabelSelector=metric_selector)
        answer = await _read(api, path + query, CustomMetricValues)
        items = answer.items or ()
        if len(items) != 1:
            raise ValueError(
                f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
            )
        return _milli(items[0].value)
    except _FAILURES as error:
        # The order of the words is upstream's.
        head = f"unable to get metric {name}: {reference.kind} on {namespace} {reference.name}"
        raise MetricError(f"{head}/{_unable('custom', error)}") from None


def _object_segments(
    name: str, reference: CrossVersionObjectReference, discovered: DiscoveryResult
) -> tuple[tuple[str, str], ...]:
    """The path of a metric below the namespace. Raises `ValueError` where no resource has the kind of the reference."""
    group = reference.apiVersion.rpartition("/")[0] if reference.apiVersion.count("/") == 1 else ""
    if (group, reference.kind) == ("", "Namespace"):
        return (("resource", "metrics"), ("resource name", name))
    for one in discovered.preferred:
        if (one.group, one.kind) == (group, reference.kind):
            return (("resource", one.id), ("resource name", reference.name), ("subresource", name))
    kind = f"{reference.kind}.{group}" if group else reference.kind
    raise ValueError(
        f'unable to map kind {kind} to resource: no matches for kind "{reference.kind}" in group "{group}"'
    )


async def external_metric(name: str, namespace: str, metric_selector: str, shown_selector: str) -> int:
    """The sum of the values of an external metric; ``shown_selector`` is the selector as messages print it."""
    head = f"unable to get external metric {namespace}/{name}/{shown_selector}"
    try:
        path = _path(("namespace", namespace), ("resource", name)) + _query(labelSelector=metric_selector)
        answer = await _read(EXTERNAL_METRICS, path, ExternalMetricValues)
        items = answer.items
        if not items:
            raise MetricError(f"{head}: no metrics returned from external metrics API")
        return _int64(sum(_milli(item.value) for item in items))
    except _FAILURES as error:
        raise MetricError(f"{head}: {_unable('external', error)}") from None


# -- requests -------------------------------------------------------------------------------------


async def _read(api: str, path: str, answer: type[T]) -> T:
    """The list at a path of a group version. Raises one of `_FAILURES`."""
    return msgspec.convert(await ReadDocument(f"/apis/{api}{path}"), answer)


def _unable(api: str, error: Exception) -> str:
    why = error.message if isinstance(error, ApiError) else str(error)
    return f"unable to fetch metrics from {api} metrics API: {why}"


def _path(namespace: tuple[str, str], *segments: tuple[str, str]) -> str:
    """The path of names, each given with client-go's word for it. Raises `ValueError` where client-go refuses one.

    Refused are the names that a server could take for another path, however they are escaped.
    """
    path = "/namespaces"
    for word, name in (namespace, *segments):
        errors = path_segment_errors(name)
        if errors:
            raise ValueError(f"invalid {word} {quote(name)}: [{' '.join(errors)}]")
        # The name of all objects is upstream's "*", unescaped.
        path += f"/{escape(name, safe='*')}"
    return path


def _query(**values: str) -> str:
    given = {key: value for key, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


# -- values ---------------------------------------------------------------------------------------


def _usage(item: PodUsage, resource: str, container: str) -> int | None:
    """The usage of a pod; None where one of its containers reports none."""
    containers: Iterable[ContainerUsage] = item.containers or ()
    if container:
        containers = [one for one in containers if one.name == container]
    total, found = 0, False
    for one in containers:
        quantity = (one.usage or {}).get(resource)
        if quantity is None:
            return None
        total, found = total + _milli(quantity), True
    return _int64(total) if found else None


def _milli(quantity: RawQuantity) -> int:
    return _int64(Quantity.parse(quantity).milli())


def _int64(value: int) -> int:
    """A value within upstream's 64 bits: a larger one could not be divided as a float."""
    return max(-MAX_INT64, min(MAX_INT64, value))


def _window(text: str | None) -> timedelta:
    """A window in Go's notation: ``30s``, ``500ms``; none is a window of 0 seconds."""
    return timedelta() if text is None else timedelta(seconds=parse_duration(text))


def _seconds(seconds: int | None) -> timedelta:
    if seconds is None:
        return DEFAULT_WINDOW
    return timedelta(seconds=max(-MAX_SECONDS, min(MAX_SECONDS, seconds)))
