"""Shared informers: one store per resource for all controllers, and handlers that are called with every change.

Handlers are plain functions, called in order right after the store has changed, within the same step of the event
loop. They must not wait; they put keys into queues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.kinds import Object, ObjectMeta
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.client.capabilities import EmptyKind
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Change
from steersman.runtime.backoff import jittered
from steersman.runtime.metrics import Metrics
from steersman.runtime.reflector import Reflector
from steersman.runtime.reflector_state import Broken, State
from steersman.runtime.store import Store, revision_of

O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

REMIND = 10.0
"""Seconds between two log lines that name the caches that are not synced yet."""


class NotSynced(TimeoutError):
    """Some caches did not sync in time. The message names them and their errors."""


class Informer(Generic[O]):
    """The store of one kind, kept up to date, and its handlers."""

    def __init__(
        self,
        kind: Kind[O],
        api: Api,
        clock: Clock,
        *,
        resync: float = 0.0,
        metrics: Metrics | None = None,
        streams: bool = True,
    ) -> None:
        """``resync``: the shortest time, in seconds, after which handlers are called with all objects again; 0: never."""
        kind.type(
            metadata=ObjectMeta()
        )  # an undecodable object is represented by its metadata: fail now if that is impossible
        self.kind = kind
        self.store = Store[O]()
        self.handler_failures = 0
        """How often a handler raised."""
        self._clock = clock
        self._resync = resync
        self._api = api
        self._streams = streams
        self._handlers: tuple[Callable[[Change[O]], None], ...] = ()
        self._watchers: tuple[Callable[[int], None], ...] = ()
        self._repair_handlers: tuple[Callable[[], None], ...] = ()
        self._last_decoded: dict[Key, O] = {}
        """The last decoded state of objects that cannot be decoded now, so that handlers are called with it once they can be, or
        are gone."""
        self.synced = False
        """Whether the store has been filled, and its handlers told."""
        self._full: asyncio.Event | None = None
        """Made for those who wait, of which there are few."""
        self._metrics = None
        if metrics is not None:
            store = self.store
            self._metrics = metrics.informer(
                kind, revision=lambda: store.revision, unreadable=lambda: len(store.unreadable)
            )

    @cached_property
    def _reflector(self) -> Reflector[O]:
        """Made when it runs, which the reflector of a kind without objects never does on a server in this process."""
        return Reflector(self._api, self.kind, self, self._clock, streams=self._streams)

    # -- handlers

    def subscribe(self, handler: Callable[[Change[O]], None]) -> None:
        """Call a handler with every change, beginning with the existing objects as if they had just been added."""
        self._handlers = (*self._handlers, handler)
        for obj in tuple(self.store.list()):
            try:
                handler(Change(None, obj))
            except Exception:
                self._failed()

    def on_progress(self, handler: Callable[[int], None]) -> None:
        """Call this with the store's revision whenever that moves, after the handlers of what moved it."""
        self._watchers = (*self._watchers, handler)

    def on_decodable(self, handler: Callable[[], None]) -> None:
        """Call this when an object that could not be decoded can be, or is gone."""
        self._repair_handlers = (*self._repair_handlers, handler)

    async def wait_synced(self) -> None:
        if not self.synced:
            if self._full is None:
                self._full = asyncio.Event()
            await self._full.wait()

    @property
    def state(self) -> State:
        """The state of the informer's reflector."""
        return self._reflector.state

    # -- running

    async def run(self) -> None:
        """Keep the store up to date until cancelled."""
        timer: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()

        def again() -> None:
            nonlocal timer
            # Like upstream's, between one and two periods: informers must not all speak at once.
            timer = loop.call_later(jittered(self._clock.random, self._resync, 1.0), show)

        def show() -> None:
            self._tell(Change(obj, obj) for obj in tuple(self.store.list()))
            again()

        if self._resync > 0.0:
            again()
        try:
            await self._reflector.run()
        finally:
            if timer is not None:
                timer.cancel()

    def _tell(self, changes: Iterable[Change[O]]) -> None:
        # A handler that subscribes while this runs has been called with all objects already.
        handlers = self._handlers
        for change in changes:
            for handler in handlers:
                try:
                    handler(change)
                except Exception:
                    self._failed()

    def _progressed(self) -> None:
        for watcher in self._watchers:
            try:
                watcher(self.store.revision)
            except Exception:
                self._failed()

    def _repaired(self) -> None:
        for handler in self._repair_handlers:
            handler()

    def _failed(self) -> None:
        """Count and log the failure of a handler, which does not keep the others from being called."""
        self.handler_failures += 1
        if self._metrics is not None:
            self._metrics.handler_errors.inc()
        log.exception("%s: a handler failed", self.kind)

    # -- fed by the reflector

    def held(self, key: Key) -> O | None:
        """The object that has been read under a key; None where there is none, or it is unreadable."""
        return None if key in self.store.unreadable else self.store.get(key)

    def replaced(
        self, objects: Mapping[Key, O], unreadable: Mapping[Key, str], resource_version: str
    ) -> None:
        """Become what a list says."""
        store = self.store
        revision = revision_of(resource_version)
        if revision is not None and revision < store.revision:
            log.warning("%s: the server went back from %d to %d", self.kind, store.revision, revision)
        before = dict(store.unreadable)
        changes = store.replace(objects, unreadable)
        if before or unreadable:
            changes = [self._with_decoded(change, change.obj.key in before) for change in changes]
        store.reach(resource_version, forced=True)
        if unreadable:
            for change in changes:
                if change.new is not None and change.new.key in unreadable:
                    self._complain(change.new.key, unreadable[change.new.key])
        self._tell(changes)
        if any(key not in unreadable for key in before):
            self._repaired()
        self.synced = True
        if self._full is not None:
            self._full.set()
        self._progressed()

    def changed(self, obj: O, error: str, resource_version: str) -> None:
        """Take in an object."""
        start = self._clock.monotonic() if self._metrics is not None else 0.0
        store, key = self.store, obj.key
        old = store.get(key)
        moved = store.reach(resource_version)
        # What moves the store on is news, as no object in it can be newer than the store.
        known = old is not None and not (moved and obj.metadata.resourceVersion == resource_version)
        if known and not self._news(key, cast("O", old), obj, error):
            if moved:
                self._progressed()
            return
        was_undecodable = key in store.unreadable
        if error:
            store.unreadable[key] = error
            self._complain(key, error)
        elif was_undecodable:
            del store.unreadable[key]
        store.swap(key, old, obj)
        if old is None or old.metadata.uid == obj.metadata.uid:
            change = Change(old, obj)
            self._tell((self._with_decoded(change, was_undecodable) if error or was_undecodable else change,))
        else:
            # Another object of the same name: the deletion of the first one was missed.
            deleted = self._with_decoded(Change(old, None), was_undecodable)
            self._tell((deleted, Change(None, obj)))
        if was_undecodable and not error:
            self._repaired()
        if moved:
            self._progressed()
        if self._metrics is not None:
            self._metrics.latency.observe(self._clock.monotonic() - start)

    def removed(self, obj: O, error: str, resource_version: str) -> None:
        """Remove an object. Handlers are not called for an object they were never called with."""
        start = self._clock.monotonic() if self._metrics is not None else 0.0
        was_undecodable = obj.key in self.store.unreadable
        old = self.store.remove(obj.key)
        moved = self.store.reach(resource_version)
        if old is not None:
            change: Change[O] = Change(old if error else obj, None)
            if was_undecodable:
                last = self._with_decoded(Change(old, None), was_undecodable)
                change = last if error else change
            self._tell((change,))
        if was_undecodable:
            self._repaired()
        if moved:
            self._progressed()
        if self._metrics is not None:
            self._metrics.latency.observe(self._clock.monotonic() - start)

    def reached(self, resource_version: str) -> None:
        """Nothing else happened up to here."""
        if self.store.reach(resource_version):
            self._progressed()

    def _with_decoded(self, change: Change[O], was_undecodable: bool) -> Change[O]:
        """A change whose old state has all that could be decoded last. Handlers would find nothing in its metadata."""
        old, key = change.old, change.obj.key
        if old is None:
            return change
        if was_undecodable:
            last = self._last_decoded.get(key)
            if last is not None and last.metadata.uid == old.metadata.uid:
                old = replace(last, metadata=old.metadata)
        if change.new is not None and key in self.store.unreadable:
            if not was_undecodable:
                self._last_decoded[key] = old
        else:
            self._last_decoded.pop(key, None)
        return change if old is change.old else Change(old, change.new)

    def _news(self, key: Key, old: O, new: O, error: str) -> bool:
        """Whether this is another version than the one we have, and not an older one."""
        was, now = old.metadata.resourceVersion, new.metadata.resourceVersion
        if old.metadata.uid != new.metadata.uid or not was:
            return True
        if was == now:
            return not error and key in self.store.unreadable
        before, after = revision_of(was), revision_of(now)
        return before is None or after is None or after > before

    def _complain(self, key: Key, error: str) -> None:
        log.warning("%s %s: only its metadata can be read: %s", self.kind, key, error)


Place: TypeAlias = tuple[str, str, str]
"""Group, resource and which of its objects: what one informer follows."""


def _place(kind: Kind[Any]) -> Place:
    return (kind.group, kind.plural, kind.fields)


class Informers:
    """One informer for each resource; the `Caches` of all controllers."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        resync: float = 0.0,
        metrics: Metrics | None = None,
        streams: bool = True,
    ) -> None:
        """``resync`` and ``streams``: see `Informer` and `Reflector`."""
        self._api = api
        self._streams = streams
        self._clock = clock
        self._resync = resync
        self._metrics = metrics
        self._informers: dict[Place, Informer[Any]] = {}
        self._by_kind: dict[Kind[Any], Informer[Any]] = {}
        """The informers by the kinds they were created for, which most callers ask for."""
        self._tasks: dict[Place, asyncio.Task[None]] = {}
        self._empty: dict[Place, EmptyKind] = {}
        """The kinds without objects, which have no task until they have some."""
        self._wakers: dict[Place, list[Callable[[], None]]] = {}
        """Called once a kind in `_empty` gets an object."""
        self._group: asyncio.TaskGroup | None = None
        self._runner: asyncio.Task[None] | None = None

    def __getitem__(self, kind: Kind[O]) -> Store[O]:
        """The store of a kind. A kind that was not requested before the start raises `LookupError`: its store would be empty."""
        if self._group is not None and _place(kind) not in self._informers:
            raise LookupError(f"no informer watches {kind.resource}")
        return self.informer(kind).store

    @property
    def all_objects(self) -> AllObjects:
        raise LookupError("a controller sees all objects only if it declares `follows_all`")

    def monotonic(self) -> float:
        return self._clock.monotonic()

    @property
    def memory(self) -> None:
        """Shared by all controllers: a controller that declares a memory has caches of its own."""

    @property
    def steady(self) -> bool:
        """Whether no change can be missed or delayed."""
        return self._api.capabilities.steady

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(tuple(self._informers.values()))

    def informer(self, kind: Kind[O]) -> Informer[O]:
        """The informer of a kind, created on first use; it runs when the others do.

        Raises `TypeError` for a resource that is already read as another type: there is one copy of each object, so
        there is one type. A base class of that type is fine, such as `Object` for the metadata.
        """
        known = self._by_kind.get(kind)
        if known is not None:
            return known
        place = _place(kind)
        known = self._informers.get(place)
        if known is not None:
            if known.kind.version != kind.version or not issubclass(known.kind.type, kind.type):
                held = known.kind
                raise TypeError(
                    f"{kind.resource} is read as {held.version} {held.type.__qualname__} already, "
                    f"and cannot be read as {kind.version} {kind.type.__qualname__} too"
                )
            return known
        informer = Informer(
            kind,
            self._api,
            self._clock,
            resync=self._resync,
            metrics=self._metrics,
            streams=self._streams,
        )
        self._informers[place] = self._by_kind[kind] = informer
        if self._group is not None:
            self._launch(place, informer)
        return informer

    def when_not_empty(self, kind: Kind[Any], wake: Callable[[], None]) -> bool:
        """Call ``wake`` before an informer is called with the first object of its kind.

        Returns False, and calls nothing, if there may be objects already.
        """
        place = _place(kind)
        if place not in self._empty:
            return False
        self._wakers.setdefault(place, []).append(wake)
        return True

    def known(self, kind: Kind[Any]) -> Informer[Any] | None:
        """The informer of a resource, of any version and type; None if there is none."""
        return self._informers.get(_place(kind))

    def drop(self, kind: Kind[Any]) -> None:
        """Stop the informer of a kind, for resources that come and go."""
        place = _place(kind)
        dropped = self._informers.pop(place, None)
        self._by_kind = {known: each for known, each in self._by_kind.items() if each is not dropped}
        task = self._tasks.pop(place, None)
        if task is not None:
            task.cancel()
        empty = self._empty.pop(place, None)
        if empty is not None:
            empty.end()

    def _launch(self, place: Place, informer: Informer[Any]) -> None:
        empty = self._api.capabilities.when_not_empty(informer.kind, lambda: self._follow(place, informer))
        if empty is None:
            self._follow(place, informer)
        else:
            self._empty[place] = empty
            informer.replaced({}, {}, empty.version)

    def _follow(self, place: Place, informer: Informer[Any]) -> None:
        assert self._group is not None
        self._empty.pop(place, None)
        self._tasks[place] = self._group.create_task(
            informer.run(), name=f"informer {informer.kind.resource}"
        )
        for wake in self._wakers.pop(place, ()):
            wake()

    async def run(self) -> None:
        """Run all informers until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                try:
                    for place, informer in self._informers.items():
                        self._launch(place, informer)
                    await asyncio.get_running_loop().create_future()  # until cancelled
                finally:
                    # A group that ends takes no new tasks, so no informer may be woken any more.
                    for empty in self._empty.values():
                        empty.end()
        finally:
            self._group = None
            self._tasks.clear()
            self._empty.clear()
            self._wakers.clear()

    async def start(self) -> None:
        """Run in the background, until `stop`."""
        self._runner = asyncio.create_task(self.run(), name="informers")
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop what `start` started."""
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait((self._runner,))
            self._runner = None

    def unsynced(self) -> tuple[Informer[Any], ...]:
        """The informers that are not synced yet."""
        return tuple(informer for informer in self if not informer.synced)

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until all informers are synced. Raises `NotSynced` after ``timeout`` seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while waiting := self.unsynced():
            left = REMIND if deadline is None else min(REMIND, deadline - loop.time())
            if left <= 0.0:
                raise NotSynced(f"caches not synced after {timeout} s: {_describe(waiting)}")
            try:
                async with asyncio.timeout(left):
                    await waiting[0].wait_synced()
            except TimeoutError:
                log.info("waiting for caches: %s", _describe(self.unsynced()))


def _describe(informers: tuple[Informer[Any], ...]) -> str:
    """The resources of some informers, each with its error."""
    words = []
    for informer in informers:
        state = informer.state
        trouble = f" ({state.error})" if isinstance(state, Broken) else ""
        words.append(f"{informer.kind.resource}{trouble}")
    return ", ".join(words)
