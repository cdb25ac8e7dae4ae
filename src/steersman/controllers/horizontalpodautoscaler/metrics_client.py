"""Reading metrics: of resources, of pods, of objects, and from outside. Amounts are in thousandths."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from steersman.api.discovery import Discovered
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.autoscaling import PODMETRICS, CrossVersionObjectReference
from steersman.api.quantity import Quantity
from steersman.controllers.horizontalpodautoscaler.replica_calculator import Reading, Unmeasured
from steersman.intent.actions import List, ReadDocument

CUSTOM = ("/apis/custom.metrics.k8s.io/v1beta2", "/apis/custom.metrics.k8s.io/v1beta1")
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
MINUTE = timedelta(minutes=1)


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _span(text: Any) -> timedelta:
    """A window as it is written: ``30s``, ``1m0s``."""
    seconds, number = 0.0, ""
    for letter in str(text or ""):
        if letter in "hms":
            seconds += float(number or 0) * {"h": 3600, "m": 60, "s": 1}[letter]
            number = ""
        else:
            number += letter
    return timedelta(seconds=seconds) or MINUTE


def _milli(amount: Any) -> int:
    return Quantity.parse(amount).milli()


async def of_resource(resource: str, namespace: str, selector: str, container: str) -> dict[str, Reading]:
    """What each pod uses of a resource. Raises `Unmeasured`."""
    try:
        items = await List(PODMETRICS, namespace, label_selector=selector)
    except ApiError as error:
        why = f"unable to fetch metrics from resource metrics API: {error.message}"
        raise Unmeasured(f"unable to get metrics for resource {resource}: {why}") from None
    if not items:
        why = "no metrics returned from resource metrics API"
        raise Unmeasured(f"unable to get metrics for resource {resource}: {why}")
    found: dict[str, Reading] = {}
    for item in items:
        used = _used(item, resource, container)
        if used is not None:
            at, window = _time(item.get("timestamp")), _span(item.get("window"))
            found[item["metadata"]["name"]] = Reading(used, at, window)
    return found


def _used(item: Mapping[str, Any], resource: str, container: str) -> int | None:
    """What a pod uses; None where one of its containers does not say."""
    containers = item.get("containers") or ()
    if container:
        containers = [one for one in containers if one.get("name") == container]
    amounts = [(one.get("usage") or {}).get(resource) for one in containers]
    return None if not amounts or None in amounts else sum(map(_milli, amounts))


async def _consulted(paths: tuple[str, ...], rest: str, api: str) -> list[dict[str, Any]]:
    failure: ApiError | None = None
    for path in paths:
        try:
            document = await ReadDocument(path + rest)
        except NotFound as error:
            failure = failure or error
            continue
        except ApiError as error:
            raise Unmeasured(f"unable to fetch metrics from {api} metrics API: {error.message}") from None
        items: list[dict[str, Any]] = document.get("items") or []
        if not items:
            raise Unmeasured(f"no metrics returned from {api} metrics API")
        return items
    assert failure is not None
    raise Unmeasured(f"unable to fetch metrics from {api} metrics API: {failure.message}")


def _query(**values: str) -> str:
    given = {key: value for key, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


async def of_pods(name: str, namespace: str, selector: str, metric: str) -> dict[str, Reading]:
    """What each pod says under a name. Raises `Unmeasured`."""
    rest = f"/namespaces/{namespace}/pods/*/{quote(name)}"
    try:
        items = await _consulted(
            CUSTOM, rest + _query(labelSelector=selector, metricLabelSelector=metric), "custom"
        )
    except Unmeasured as error:
        raise Unmeasured(f"unable to get metric {name}: {error}") from None
    found: dict[str, Reading] = {}
    for item in items:
        window = item.get("windowSeconds")
        span = MINUTE if window is None else timedelta(seconds=window)
        reading = Reading(_milli(item["value"]), _time(item.get("timestamp")), span)
        found[item["describedObject"]["name"]] = reading
    return found


async def of_object(
    name: str, namespace: str, reference: CrossVersionObjectReference, metric: str, served: Discovered
) -> int:
    """What is said of one object. Raises `Unmeasured`."""
    group = reference.apiVersion.rpartition("/")[0]
    resource = next(
        (one for one in served.preferred if (one.group, one.kind) == (group, reference.kind)), None
    )
    # The words are in upstream's order.
    head = f"unable to get metric {name}: {reference.kind} on {namespace} {reference.name}"
    if resource is None:
        raise Unmeasured(f'{head}/no matches for kind "{reference.kind}" in group "{group}"')
    rest = f"/namespaces/{namespace}/{resource.id}/{quote(reference.name)}/{quote(name)}"
    if resource.id == "namespaces":
        rest = f"/namespaces/{namespace}/metrics/{quote(name)}"
    try:
        items = await _consulted(CUSTOM, rest + _query(metricLabelSelector=metric), "custom")
    except Unmeasured as error:
        raise Unmeasured(f"{head}/{error}") from None
    return _milli(items[0]["value"])


async def from_outside(name: str, namespace: str, metric: str, shown: str) -> int:
    """What something outside says, in all. Raises `Unmeasured`."""
    rest = f"/namespaces/{namespace}/{quote(name)}{_query(labelSelector=metric)}"
    try:
        items = await _consulted((EXTERNAL,), rest, "external")
    except Unmeasured as error:
        raise Unmeasured(f"unable to get external metric {namespace}/{name}/{shown}: {error}") from None
    return min(2**63 - 1, sum(_milli(item["value"]) for item in items))
