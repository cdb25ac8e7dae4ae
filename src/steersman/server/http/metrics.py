"""Metrics of the HTTP server, in the text format of Prometheus and under upstream's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steersman.server.storage.store import Store

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


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

    def text(self, store: Store, watches: Iterable[str]) -> str:
        """All metrics. ``watches`` has the resource of each active watch."""
        return "".join(f"{line}\n" for line in self._lines(store, watches))

    def _lines(self, store: Store, watches: Iterable[str]) -> Iterator[str]:
        name = "apiserver_request_total"
        yield f"# HELP {name} Counter of apiserver requests broken out for each verb, resource and HTTP code."
        yield f"# TYPE {name} counter"
        for labels, count in sorted(self._requests.items()):
            named = {"component": "apiserver", **labels._asdict(), "verb": labels.verb.upper()}
            yield f"{name}{_labels(named)} {count}"
        name = "apiserver_longrunning_requests"
        yield f"# HELP {name} Gauge of all active long-running apiserver requests."
        yield f"# TYPE {name} gauge"
        counts: dict[str, int] = {}
        for resource in watches:
            counts[resource] = counts.get(resource, 0) + 1
        for resource in sorted(counts):
            plural, _, group = resource.partition(".")
            yield f"{name}{_labels({'group': group, 'resource': plural, 'verb': 'WATCH'})} {counts[resource]}"
        name = "apiserver_resource_objects"
        yield f"# HELP {name} Number of stored objects by resource."
        yield f"# TYPE {name} gauge"
        for table in sorted(store.tables(), key=lambda table: table.resource):
            plural, _, group = table.resource.partition(".")
            yield f"{name}{_labels({'group': group, 'resource': plural})} {len(table)}"


def _labels(labels: dict[str, object]) -> str:
    told = (f'{name}="{_escaped(str(labels[name]))}"' for name in sorted(labels))
    return f"{{{','.join(told)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
