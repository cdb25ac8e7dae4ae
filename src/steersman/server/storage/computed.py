"""Resources that are worked out when somebody asks for them: read only, and kept nowhere.

Whoever knows something that is no object of the store serves it like any other resource: with selectors,
tables, discovery and RBAC, over HTTP and in process::

    server.extend(lambda server: install(server, resource, Source(server)))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NoReturn, Protocol

from steersman.server import status_errors
from steersman.server.registry.resources import Resource
from steersman.server.server import Server
from steersman.server.storage.store import Store, Table, choose
from steersman.server.storage.watch import Selection, Subscription

VERBS = ("get", "list")


class Source(Protocol):
    """Where the objects of such a resource come from."""

    def keys(self) -> list[str]:
        """The keys of all there are at the moment, in order."""
        ...

    def get(self, key: str) -> Any | None:
        """The object at a key as it is now, or None."""
        ...

    def moment(self) -> object:
        """What all it says depends on: while this is the same, so are the objects."""
        ...


def install(server: Server, resource: Resource, source: Source) -> None:
    """Serve a resource from a source."""
    server.store.place(_Table(server.store, resource, source))
    server.registry.add(resource)


class _Table(Table):
    """A source as the rest of the server reads it."""

    def __init__(self, store: Store, resource: Resource, source: Source) -> None:
        super().__init__(store, resource.table)
        self._of = resource
        self._source = source
        self._moment: object = None
        self._found = _Found(source)

    # Of what is stored, which is nothing, `len` counts the objects.

    def get(self, key: str) -> Any | None:
        return self._now().get(key)

    def keys(self) -> list[str]:
        return self._now().keys_in_order

    def select(self, selection: Selection) -> Iterator[Any]:
        return choose(self.keys(), self._now(), selection)

    def at(self, revision: int) -> tuple[list[str], Mapping[str, Any]]:
        return self.keys(), self._now()

    def _now(self) -> _Found:
        """What there is at the moment: worked out once for all who ask, as far as they look."""
        moment = self._source.moment()
        if moment != self._moment:
            self._moment, self._found = moment, _Found(self._source)
        return self._found

    # -- what cannot be done ------------------------------------------------------------------

    def put(self, key: str, obj: Any) -> None:
        self._refuse("write")

    def remove(self, key: str) -> Any:
        self._refuse("delete")

    def watch(
        self, selection: Selection, *, since: int | None = None, initial_end: bool = False
    ) -> Subscription:
        self._refuse("watch")

    def _refuse(self, verb: str) -> NoReturn:
        raise status_errors.unsupported(self._of.group, self._of.plural, verb)

    def _fork(self, store: Store) -> Table:
        # A source reads one server: the fork's own takes this one's place.
        return Table(store, self.resource)


class _Found(Mapping[str, Any]):
    """What a list looks at, worked out as far as it looks and once."""

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
