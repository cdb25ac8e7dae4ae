"""Controllers that follow every resource the server serves, as the garbage collector does.

Such a controller has no list of kinds: `AllResources` selects resources as they come and go, and `AllObjects` is one
cache of the metadata of all their objects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import field

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Caches, Change, Index


class Item(msgspec.Struct, frozen=True, gc=False):
    """An object of any kind, with its kind. Only the metadata fields of `Partial` are known."""

    kind: Kind[Any]
    obj: Object

    @property
    def uid(self) -> str:
        return self.obj.metadata.uid

    @property
    def namespace(self) -> str:
        return self.obj.metadata.namespace

    @property
    def name(self) -> str:
        return self.obj.metadata.name

    @property
    def key(self) -> Key:
        """A key unique among the objects of all kinds: ``default/replicasets.apps/web``."""
        return Key(self.namespace, f"{self.kind.resource}/{self.name}")

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.obj.key}"


class AllObjects(Protocol):
    """A cache of the objects of all followed resources, at one instant."""

    @property
    def discovered(self) -> DiscoveryResult:
        """The resources the server serves, as far as discovery could tell."""
        ...

    @property
    def unfilled(self) -> tuple[str, ...]:
        """The resources that are not synced yet: an object missing from the cache may exist."""
        ...

    def get(self, key: Key) -> Item | None:
        """The object with an `Item.key`."""
        ...

    def at(self, resource: ApiResource, namespace: str, name: str) -> Item | None:
        """The object of a resource, in whichever version it is followed."""
        ...

    def of(self, uid: str) -> Item | None:
        """The object with a uid."""
        ...

    def count(self, resource: str, namespace: str) -> int | None:
        """The number of objects of a resource in a namespace; None if the resource is not followed."""
        ...

    def by(self, index: str, value: Hashable) -> Iterable[Item]:
        """The objects filed under a value of one of the declared indexes, in a stable order."""
        ...


To: TypeAlias = Callable[[Caches, Kind[Any], Change[Any]], Iterable[Key]]
"""Maps a change of an object to the keys to enqueue. The caches show the change already."""


class AllResources(msgspec.Struct, frozen=True):
    """Selects every resource with certain verbs, except those excluded."""

    to: To
    verbs: tuple[str, ...] = ("delete", "list", "watch")
    excluded: tuple[str, ...] = ()
    """Group-resources to leave out, as RBAC writes them: ``events.events.k8s.io``."""
    indexes: Mapping[str, Index] = field(default_factory=dict)

    def wants(self, resource: ApiResource) -> bool:
        """Whether a resource is selected."""
        return resource.supports(*self.verbs) and resource.id not in self.excluded
