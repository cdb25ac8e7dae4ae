"""Following every resource there is, whatever it is called: the declaration, and what is seen of it.

A controller that roams has no list of kinds. The resources that are served decide, as they come and go;
their objects are in one cache, each with the kind it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import field

from steersman.api.discovery import Discovered, Resource
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.controller import Caches, Change, Index


class Item(msgspec.Struct, frozen=True, gc=False):
    """An object and its kind. Nothing but its metadata is known, and of that what a `Partial` has."""

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
        """Names it among the objects of all kinds: ``default/replicasets.apps/web``."""
        return Key(self.namespace, f"{self.kind.resource}/{self.name}")

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.obj.key}"


class Everything(Protocol):
    """All objects of all resources that are followed, at one instant."""

    @property
    def discovered(self) -> Discovered:
        """What the server serves, as far as is known."""
        ...

    @property
    def unfilled(self) -> tuple[str, ...]:
        """The resources whose objects have not all been read yet: of them, no object means nothing."""
        ...

    def get(self, key: Key) -> Item | None:
        """By `Item.key`."""
        ...

    def at(self, resource: Resource, namespace: str, name: str) -> Item | None:
        """By resource, in whichever version that is followed."""
        ...

    def of(self, uid: str) -> Item | None: ...

    def count(self, resource: str, namespace: str) -> int | None:
        """How many objects of a resource there are in a namespace; None where it is not followed."""
        ...

    def by(self, index: str, value: Hashable) -> Iterable[Item]:
        """The objects filed under a value of one of the declared indexes, in a stable order."""
        ...


class Wide(Caches, Protocol):
    """The caches of a controller that roams."""

    @property
    def everything(self) -> Everything: ...

    @property
    def memory(self) -> Any:
        """What the declaration's ``memory`` made."""
        ...


To: TypeAlias = Callable[["Wide", Kind[Any], Change[Any]], Iterable[Key]]
"""Which keys a change of an object of some kind is a reason to look at. The cache shows it already."""


class Roam(msgspec.Struct, frozen=True):
    """Follow every resource that has these verbs, but for those that are left out."""

    to: To
    verbs: tuple[str, ...] = ("delete", "list", "watch")
    besides: tuple[str, ...] = ()
    """Resources to leave out, as RBAC writes them: ``events.events.k8s.io``."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    memory: Callable[[], Any] | None = None
    """Makes what the controller keeps between rounds, once each time it runs. It may hold only what
    stays true, for rounds may be repeated, or thought through and never carried out."""

    def wants(self, resource: Resource) -> bool:
        return resource.can(*self.verbs) and resource.id not in self.besides


def wide(caches: Caches) -> Wide:
    """The caches of a controller that roams, as such."""
    if not hasattr(caches, "everything"):
        raise LookupError("a controller sees everything only where its declaration says that it roams")
    return caches  # type: ignore[return-value]
