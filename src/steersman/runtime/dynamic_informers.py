"""Keeps informers in step with discovery, for controllers that follow every resource there is.

Discovery is asked every half minute, and soon after something that adds resources has changed. What appears
is followed at once. What disappears is let go a little later, so that its last events are still heard; what
could not be discovered stays as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from steersman.api.clock import Clock
from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.all_resources import AllResources
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer, Informers
from steersman.runtime.metadata_cache import MetadataCache
from steersman.runtime.metrics import Metrics
from steersman.runtime.store import Store

O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

PERIOD = 30.0
"""Seconds between two looks at discovery, as upstream's."""
HINTS = ("customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io")
"""Whose changes change what is served."""
SOON = (0.2, 2.0, 15.0)
"""Seconds after such a change at which discovery is asked: a server needs a moment to show it."""
GRACE = 10.0
"""Seconds for which a resource is followed on after it has disappeared."""


class _Followed(msgspec.Struct):
    """A resource that is followed."""

    resource: ApiResource
    kind: Kind[Any]
    informer: Informer[Any]
    shared: bool
    """Somebody watches it by its type anyway: it is not ours to stop."""
    missing_since: float | None = None


class AllResourcesCaches:
    """The caches of one controller that follows all resources."""

    def __init__(
        self,
        declared: AllResources,
        informers: Informers,
        all_objects: MetadataCache,
        memory: object,
        enqueue: Callable[[Key, str], None],
    ) -> None:
        self.declared = declared
        self.all_objects = all_objects
        self.memory = memory
        self.enqueue = enqueue
        self._informers = informers

    def __getitem__(self, kind: Kind[O]) -> Store[O]:
        return self._informers[kind]


class DynamicInformers:
    """The informers of all followed resources, shared by all controllers that follow all resources."""

    def __init__(
        self, informers: Informers, api: Api, clock: Clock, *, metrics: Metrics | None = None
    ) -> None:
        self.all_objects = MetadataCache(self._unfilled)
        self._informers = informers
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._controllers: list[AllResourcesCaches] = []
        self._followed: dict[str, _Followed] = {}
        self._unread: dict[str, _Followed] = {}
        """Those that had not been read when somebody last asked."""
        self._seen: DiscoveryResult | None = None
        """The last answer that was followed to the letter."""
        # Where the server is in this process all that adds to it is seen.
        self._period = None if api.capabilities.steady else PERIOD
        self._hint = asyncio.Event()
        self._looked = asyncio.Event()

    def join(
        self, declared: AllResources, enqueue: Callable[[Key, str], None], memory: object = None
    ) -> AllResourcesCaches:
        """Add a controller: ``enqueue`` is called with the keys to look at, and the cause."""
        caches = AllResourcesCaches(declared, self._informers, self.all_objects, memory, enqueue)
        for name, index in declared.indexes.items():
            self.all_objects.add_index(name, index)
        self._controllers.append(caches)
        return caches

    # -- in step with discovery -----------------------------------------------------------------

    async def run(self) -> None:
        """Follow what there is until cancelled."""
        pauses: list[float] = []
        while True:
            await self.look()
            if await self._hinted(pauses.pop(0) if pauses else self._period):
                # Something was added or taken away: look until the server shows it.
                pauses = list(SOON)
                await asyncio.sleep(pauses.pop(0))

    async def _hinted(self, seconds: float | None) -> bool:
        """Rest for so long, or until there is reason to look; whether there is."""
        try:
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        except TimeoutError:
            return False
        self._hint.clear()
        return True

    async def look(self) -> None:
        """Ask what is served, once, and follow it."""
        try:
            found = await self._api.discover()
        except Exception as error:
            # Nothing is known, so nothing changes: what is followed stays. An odd document is no more than that.
            known = isinstance(error, ApiError)
            log.log(
                logging.WARNING if known else logging.ERROR,
                "cannot discover what is served, going on with what is known: %s",
                error,
                exc_info=None if known else error,
            )
            self._failed()
            return
        if found.failed:
            log.warning("%s", found.error_message)
            self._failed()
        if not found.resources:
            log.warning("the server says that it serves nothing: taken for a mistake")
            self._failed()
            return
        if found != self._seen:
            self._follow(found)
        self._looked.set()

    def _failed(self) -> None:
        if self._metrics is not None:
            self._metrics.sync_error()

    def _follow(self, found: DiscoveryResult) -> None:
        known = self.all_objects.discovered
        if found.failed:
            # What is in a group that did not answer is as it was.
            lost = {missing.group_version for missing in found.failed}
            kept = tuple(each for each in known.resources if each.api_version in lost)
            found = DiscoveryResult((*found.resources, *kept), found.failed, found.malformed)
        if found.resources != known.resources or found.failed != known.failed:
            self.all_objects.discovered = found
        wanted = {
            each.id: each
            for each in found.preferred
            if any(one.declared.wants(each) for one in self._controllers)
        }
        for id_, resource in wanted.items():
            followed = self._followed.get(id_)
            if followed is not None and not _served(followed, found):
                self._end(followed)
                followed = None
            if followed is None:
                self._begin(resource)
            else:
                followed.missing_since = None
        waiting = self._let_go(wanted)
        self._seen = None if waiting or found.failed else found

    def _begin(self, resource: ApiResource) -> None:
        informer = self._informers.known(resource.partial)
        shared = informer is not None
        if informer is None:
            informer = self._informers.informer(resource.partial)
        followed = _Followed(resource, informer.kind, informer, shared)
        self._followed[resource.id] = self._unread[resource.id] = followed
        self.all_objects.attach(informer.kind, informer.store)
        self._listen(followed)

    def _let_go(self, wanted: dict[str, ApiResource]) -> bool:
        """End what has been missing for long enough; whether some is missing for less."""
        now = self._clock.monotonic()
        waiting = False
        for id_, followed in tuple(self._followed.items()):
            if id_ in wanted:
                continue
            if followed.missing_since is None:
                followed.missing_since = now
            if now - followed.missing_since >= GRACE:
                self._end(followed)
            else:
                waiting = True
        return waiting

    def _end(self, followed: _Followed) -> None:
        log.info("%s is served no more", followed.resource.id)
        del self._followed[followed.resource.id]
        self._unread.pop(followed.resource.id, None)
        self.all_objects.detach(followed.kind)
        if not followed.shared:
            self._informers.drop(followed.kind)
            # Its metrics are still asked for; its objects need not be kept for that.
            followed.informer.store.replace({}, {})

    def release(self, kind: Kind[Any]) -> None:
        """Somebody wants to read a resource by its type: what was read of it for its metadata alone goes, and it is
        followed again with them."""
        followed = self._followed.get(kind.resource)
        if followed is not None and not issubclass(followed.kind.type, kind.type):
            self._end(followed)
            self._seen = None
            self._hint.set()

    def _listen(self, followed: _Followed) -> None:
        kind, resource, all_objects = followed.kind, followed.resource, self.all_objects
        controllers = [each for each in self._controllers if each.declared.wants(resource)]
        hints = resource.id in HINTS
        word = kind.name

        def changed(change: Change[Any]) -> None:
            if change.old is change.new or self._followed.get(resource.id) is not followed:
                return
            all_objects.take(kind, change)
            if hints:
                self._hint.set()
            for caches in controllers:
                keys = tuple(caches.declared.to(caches, kind, change))
                if keys:
                    what = "deleted" if change.new is None else "added" if change.old is None else "changed"
                    cause = f"{word} {change.obj.key} {what}"
                    for key in keys:
                        caches.enqueue(key, cause)

        followed.informer.subscribe(changed)

    # -- being filled ---------------------------------------------------------------------------

    def _unfilled(self) -> tuple[str, ...]:
        if self._unread:
            # What has been read once stays so: this is asked for every object that goes.
            self._unread = {id_: each for id_, each in self._unread.items() if not each.informer.synced}
        return tuple(self._unread)

    async def wait_filled(self, timeout: float) -> None:
        """Wait until everything there is has been read, but no longer than this."""
        try:
            async with asyncio.timeout(timeout):
                await self._looked.wait()
                for followed in tuple(self._followed.values()):
                    await followed.informer.wait_synced()
        except TimeoutError:
            log.warning("not everything could be read yet, going on: %s", ", ".join(self._unfilled()))


def _served(followed: _Followed, found: DiscoveryResult) -> bool:
    """Whether a resource is still served as it is followed. One version shows the same objects as another."""
    kind = followed.kind
    return followed.shared or any(
        (each.id, each.version, each.namespaced) == (kind.resource, kind.version, kind.namespaced)
        for each in found.resources
    )
