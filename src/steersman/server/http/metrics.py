"""A few numbers about what is served, in the text format of Prometheus and under upstream's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steersman.server.storage.store import Store

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


class Served(NamedTuple):
    """What requests are counted by."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    code: int


class Metrics:
    """Counts of one edge."""

    def __init__(self) -> None:
        self._requests: dict[Served, int] = {}

    def count(self, served: Served) -> None:
        """A request was answered."""
        self._requests[served] = self._requests.get(served, 0) + 1

    def text(self, store: Store, watches: Iterable[str]) -> str:
        """All numbers; ``watches`` has the resource of each watch there is."""
        return "".join(f"{line}\n" for line in self._lines(store, watches))

    def _lines(self, store: Store, watches: Iterable[str]) -> Iterator[str]:
        name = "apiserver_request_total"
        yield f"# HELP {name} Counter of apiserver requests broken out for each verb, resource and HTTP code."
        yield f"# TYPE {name} counter"
        for served, count in sorted(self._requests.items()):
            labels = {"component": "apiserver", **served._asdict(), "verb": served.verb.upper()}
            yield f"{name}{_labels(labels)} {count}"
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
