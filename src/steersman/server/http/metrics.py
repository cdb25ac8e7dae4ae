"""Metrics of the HTTP server, under upstream's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman.api.prometheus import Registry, exposition
from steersman.server.storage.store import Store


class RequestLabels(NamedTuple):
    """The labels by which requests are counted."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    code: int


class Metrics:
    """Request counts of one HTTP server."""

    def __init__(self) -> None:
        self._requests: dict[RequestLabels, int] = {}

    def count(self, labels: RequestLabels) -> None:
        """Counts a request."""
        self._requests[labels] = self._requests.get(labels, 0) + 1

    def text(self, store: Store, watches: Iterable[str]) -> bytes:
        """All metrics in the text format of Prometheus. ``watches`` has the resource of each active watch."""
        registry = Registry()
        requests = registry.counter(
            "apiserver_request_total",
            "Counter of apiserver requests broken out for each verb, resource and HTTP code.",
            ("component", *RequestLabels._fields),
            stability="",
        )
        for labels, count in self._requests.items():
            values = labels._replace(verb=labels.verb.upper())
            requests.of("apiserver", *map(str, values)).inc(count)
        long_running = registry.gauge(
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests.",
            ("group", "resource", "verb"),
            stability="",
        )
        for resource in watches:
            plural, _, group = resource.partition(".")
            gauge = long_running.of(group, plural, "WATCH")
            gauge.set(gauge.value + 1)
        objects = registry.gauge(
            "apiserver_resource_objects",
            "Number of stored objects by resource.",
            ("group", "resource"),
            stability="",
        )
        for table in store.tables():
            plural, _, group = table.resource.partition(".")
            objects.of(group, plural).set(len(table))
        return exposition(registry, about_metrics=False)
