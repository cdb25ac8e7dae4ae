"""Computed resources: read-only resources whose objects are computed on request and not stored.

They are served like any other resource, such as ``metrics.k8s.io``: with selectors, tables, discovery and RBAC,
over HTTP and in process::

    server.extend(lambda server: install(server, resource, Source(server)))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NoReturn, Protocol

from steersman.server import status_errors
from steersman.server.registry.resources import Resource
from steersman.server.server import Server
from steersman.server.storage.store import Store, Table, select_objects
from steersman.server.storage.watch import Selection, Subscription

VERBS = ("get", "list")


class Source(Protocol):
    """Computes the objects of a resource."""

    def keys(self) -> list[str]:
        """The keys of all current objects, in order."""
        ...

    def get(self, key: str) -> Any | None:
        """The current object at a key, or None."""
        ...

    def version(self) -> object:
        """A value that changes whenever the objects may have changed; objects are cached by it."""
        ...


def install(server: Server, resource: Resource, source: Source) -> None:
    """Serves a resource from a source."""
    server.store.replace_table(_ComputedTable(server.store, resource, source))
    server.registry.add(resource)


class _ComputedTable(Table):
    """A table of the store whose objects come from a source."""

    def __init__(self, store: Store, resource: Resource, source: Source) -> None:
        super().__init__(store, resource.table)
        self._resource = resource
        self._source = source
        self._version: object = None
        self._objects_now = _ComputedObjects(source)

    # `len` is not overridden: it counts stored objects, of which there are none.

    def get(self, key: str) -> Any | None:
        return self._now().get(key)

    def keys(self) -> list[str]:
        return self._now().keys_in_order

    def select(self, selection: Selection) -> Iterator[Any]:
        return select_objects(self.keys(), self._now(), selection)

    def at(self, revision: int) -> tuple[list[str], Mapping[str, Any]]:
        return self.keys(), self._now()

    def _now(self) -> _ComputedObjects:
        """The current objects, each computed on first read and cached until the source's version changes."""
        version = self._source.version()
        if version != self._version:
            self._version, self._objects_now = version, _ComputedObjects(self._source)
        return self._objects_now

    # -- unsupported verbs --------------------------------------------------------------------

    def put(self, key: str, obj: Any) -> None:
        self._refuse("write")

    def remove(self, key: str) -> Any:
        self._refuse("delete")

    def watch(
        self,
        selection: Selection,
        *,
        since: int | None = None,
        initial_end: bool = False,
        level_triggered: bool = False,
    ) -> Subscription:
        self._refuse("watch")

    def _refuse(self, verb: str) -> NoReturn:
        raise status_errors.unsupported(self._resource.group, self._resource.plural, verb)

    def _fork(self, store: Store) -> Table:
        # A source reads one server: the fork installs its own computed table.
        return Table(store, self.resource)


class _ComputedObjects(Mapping[str, Any]):
    """The objects of a source, each computed once, on first read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[str, Any] = {}

    @cached_property
    def keys_in_order(self) -> list[str]:
        return self._source.keys()

    def __getitem__(self, key: str) -> Any:
        if key not in self._known:
            self._known[key] = self._source.get(key)
        found = self._known[key]
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_in_order)

    def __len__(self) -> int:
        return len(self.keys_in_order)
