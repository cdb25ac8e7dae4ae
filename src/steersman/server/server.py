"""The server: a store, what is served from it, and what it needs from outside: time and chance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from steersman.server import status_errors
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.registry.object_meta import uid
from steersman.server.registry.resources import Registry, Resource
from steersman.server.storage.store import Store, Table, object_key


class Clock(Protocol):
    """What the server needs of `steersman.runtime.clock.Clock`."""

    @property
    def random(self) -> Random: ...

    def now(self) -> datetime: ...


MANAGER = "kube-apiserver"
"""Who the server is where it writes of its own accord."""

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Attributes(NamedTuple):
    """A request as admission sees it."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Any
    """What shall be; None for a deletion."""
    old: Any
    """What is; None for a creation."""
    user: str


Settle: TypeAlias = Callable[[], None]
"""Takes note of a request that is about to be carried out."""


class Admission(Protocol):
    """Who may change a request or refuse it. `steersman.server.admission` is a real server's."""

    def mutate(self, request: Attributes) -> Any:
        """Answers with the object as it may be stored, or refuses."""
        ...

    def validate(self, request: Attributes) -> Settle | None:
        """Refuses, or answers with what is to happen right before the object is written."""
        ...

    def warnings(self, request: Attributes) -> tuple[str, ...]:
        """What to tell whoever made a request that was carried out."""
        ...


Reaction: TypeAlias = Callable[[Any], None]
"""Told of an object that was written or removed, once everybody who watches has been."""

Extension: TypeAlias = Callable[["Server"], object]


class Server:
    """An API server without its edge: `steersman.server.rest.verbs` work on it."""

    def __init__(self, clock: Clock, *, store: Store | None = None, names: Random | None = None) -> None:
        """``names`` is where generated names and uids come from; the clock's randomness by default."""
        self.clock = clock
        self.store = store or Store()
        self.registry = Registry()
        self.admission: Admission | None = None
        """Asked after the namespace's life cycle was seen to. An extension brings it."""
        self.reactions: dict[str, Reaction] = {}
        """By resource: what the server does of its own accord when something happened."""
        self._extensions: tuple[Extension, ...] = ()
        self._names = names
        self._mortal: dict[str, deque[tuple[datetime, str, str]]] = {}

    @property
    def names(self) -> Random:
        """Where generated names and uids come from."""
        return self._names or self.clock.random

    def now(self) -> datetime:
        """The time as it is written into objects: in whole seconds."""
        now = self.clock.now()
        return now.replace(microsecond=0) if now.microsecond else now

    def uid(self) -> str:
        """An identity no other object has."""
        return uid(self.names)

    def table(self, resource: Resource) -> Table:
        """Where a resource's objects are."""
        return self.store.table(resource.table)

    def fork(self, clock: Clock | None = None, names: Random | None = None) -> Server:
        """A server with the same state, to go on separately."""
        fork = Server(clock or self.clock, store=self.store.fork(), names=names or self._names)
        fork.registry = self.registry.fork()
        fork._mortal = {name: deque(due) for name, due in self._mortal.items()}
        for extension in self._extensions:
            fork.extend(extension)
        return fork

    def extend(self, extension: Extension) -> None:
        """Add what a server need not have. Its forks have it, too."""
        self._extensions += (extension,)
        extension(self)

    # -- the only places that read and write one object ---------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Any:
        """One object. Raises `NotFound`."""
        if resource.strategy.ttl is not None:
            self.reap(resource)
        obj = self.store.table(resource.table).get(object_key(namespace, name))
        if obj is None:
            raise status_errors.not_found(resource.group, resource.plural, name)
        return obj if resource.serve is None else resource.serve(obj)

    def write(self, resource: Resource, key: str, obj: Any, owners: Any = None) -> Any:
        """Store an object; answers with what it is now, at its new version.

        ``owners`` are its ``managedFields`` from now on; by default those it has.
        """
        meta = obj.metadata
        if owners is None:
            owners = meta.managedFields
        meta = replace(meta, resourceVersion=self.store.next_version, managedFields=owners)
        obj = replace(obj, metadata=meta)
        if resource.store is not None:
            obj = resource.store(obj)
        self.store.table(resource.table).put(key, obj)
        ttl = resource.strategy.ttl
        if ttl is not None:
            until = self.clock.now() + timedelta(seconds=ttl)
            due = self._mortal.setdefault(resource.table, deque())
            due.append((until, key, obj.metadata.resourceVersion))
        if self.reactions:
            self._react(resource, obj)
        return obj if resource.serve is None else resource.serve(obj)

    def remove(self, resource: Resource, key: str) -> Any:
        """Take an object away; answers with its last state."""
        last = self.store.table(resource.table).remove(key)
        if self.reactions:
            self._react(resource, last)
        return last if resource.serve is None else resource.serve(last)

    def _react(self, resource: Resource, obj: Any) -> None:
        reaction = self.reactions.get(resource.id)
        if reaction is not None:
            reaction(obj)

    def rewrite(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        make: Callable[[Any], Any],
        *,
        uid: str = "",
        subresource: str = "",
    ) -> Any:
        """Change an object on the server's own account: past strategies and validation.

        What it changes of a subresource is its own from then on; nobody owns what is not said to be of one.
        """
        old = self.get(resource, namespace, name)
        if uid and uid != old.metadata.uid:
            raise status_errors.other_uid(
                resource.group, resource.plural, namespace, name, uid, old.metadata.uid
            )
        new = make(old)
        if new == old:
            return old
        owners = self.owners(resource, subresource, old, new) if subresource else None
        return self.write(resource, object_key(namespace, name), new, owners)

    def owners(self, resource: Resource, subresource: str, old: Any, new: Any) -> Any:
        """Who owns what of an object once the server has changed it."""
        return field_manager_for(resource, subresource).updated(old, new, MANAGER, self.now())

    def admit(
        self,
        operation: Operation,
        resource: Resource,
        subresource: str,
        namespace: str,
        name: str,
        obj: Any,
        old: Any,
        user: str,
    ) -> Any:
        """Ask who may change or refuse a request."""
        if self.admission is None:
            return obj
        return self.admission.mutate(
            Attributes(operation, resource, subresource, namespace, name, obj, old, user)
        )

    def validate(
        self,
        operation: Operation,
        resource: Resource,
        subresource: str,
        namespace: str,
        name: str,
        obj: Any,
        old: Any,
        user: str,
    ) -> Settle | None:
        """Ask who may refuse what has become of a request."""
        if self.admission is None:
            return None
        return self.admission.validate(
            Attributes(operation, resource, subresource, namespace, name, obj, old, user)
        )

    # -- objects that go by themselves --------------------------------------------------------

    def renew(self, resource: Resource) -> None:
        """Let the objects of a resource live their whole time from now, as etcd does when it starts again."""
        ttl, table = resource.strategy.ttl, self.table(resource)
        if ttl is not None:
            until = self.clock.now() + timedelta(seconds=ttl)
            found = ((key, table.get(key)) for key in table.keys())  # noqa: SIM118  (a table is no dict)
            self._mortal[resource.table] = deque(
                (until, key, obj.metadata.resourceVersion) for key, obj in found if obj is not None
            )

    def reap(self, resource: Resource) -> None:
        """Remove the objects of a resource whose time has come.

        Asked before each use of such a resource, so nobody sees one that outlived its time.
        """
        due = self._mortal.get(resource.table)
        if not due:
            return
        now, table = self.clock.now(), self.table(resource)
        while due and due[0][0] <= now:
            _, key, version = due.popleft()
            obj = table.get(key)
            if obj is not None and obj.metadata.resourceVersion == version:
                self.remove(resource, key)
