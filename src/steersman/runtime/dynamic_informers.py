"""Dynamic informers: kept in step with discovery, for controllers that follow every resource.

Discovery is read soon after a CustomResourceDefinition or APIService changes, and every 30 seconds while another server
provides some of the resources, which changes them without a word. A new resource is followed at once. A resource that disappears is dropped a little later, so that its last events are still seen; a
resource whose group could not be discovered stays as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeVar

import msgspec

from steersman.api.clock import Clock
from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.partial_object import LabelledPartialObject
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
"""Seconds between two reads of discovery, as upstream's."""
RARE = 600.0
"""Seconds between two reads where the API server itself provides every resource.

differs: upstream reads every 30 seconds there, too.
"""
APISERVICES = "apiservices.apiregistration.k8s.io"
HINTS = ("customresourcedefinitions.apiextensions.k8s.io", APISERVICES)
"""The resources whose changes add or remove resources."""
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
"""The label of APIServices that an API server makes for its own group versions, those of custom resources included."""
SOON = (0.2, 2.0, 15.0)
"""Seconds after such a change at which discovery is read: a server needs a moment to show it."""
GRACE = 10.0
"""Seconds for which a resource is still followed after it has disappeared."""


class _Followed(msgspec.Struct):
    """A followed resource."""

    resource: ApiResource
    kind: Kind[Any]
    informer: Informer[Any]
    shared: bool
    """Another controller watches it by its type, so its informer is not stopped here."""
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

    def monotonic(self) -> float:
        return self._informers.monotonic()


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
        """The followed resources that were not synced at the last check."""
        self._seen: DiscoveryResult | None = None
        """The last discovery that is fully followed."""
        self._broken = False
        """Whether discovery, or a part of it, failed at the last read."""
        self._hint = asyncio.Event()
        self._discovered_once = asyncio.Event()

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
        """Follow the served resources until cancelled."""
        pauses: list[float] = []
        while True:
            await self.refresh()
            if await self._hinted(pauses.pop(0) if pauses else self._period()):
                # A definition changed: read discovery until the server shows it.
                pauses = list(SOON)
                await asyncio.sleep(pauses.pop(0))

    def _period(self) -> float | None:
        """Seconds until discovery is read without a hint; None: never."""
        if self._api.capabilities.steady:
            return None  # on a server in this process every change of a definition is seen
        services = self._followed.get(APISERVICES)
        if self._broken or self._seen is None or services is None or not services.informer.synced:
            return PERIOD
        own = all(AUTOMANAGED in each.metadata.labels for each in services.informer.store.list())
        return RARE if own else PERIOD

    async def _hinted(self, seconds: float | None) -> bool:
        """Wait for some seconds, or for a hint that resources changed; returns whether there was one."""
        try:
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        except TimeoutError:
            return False
        self._hint.clear()
        return True

    async def refresh(self) -> None:
        """Read discovery once, and follow its resources."""
        self._broken = False
        try:
            found = await self._api.discover()
        except Exception as error:
            # Nothing is known, so nothing changes: the followed resources stay.
            known = isinstance(error, ApiError)
            log.log(
                logging.WARNING if known else logging.ERROR,
                "discovery failed, keeping the known resources: %s",
                error,
                exc_info=None if known else error,
            )
            self._failed()
            return
        if found.failed:
            log.warning("%s", found.error_message)
            self._failed()
        if not found.resources:
            log.warning("discovery returned no resources: ignored")
            self._failed()
            return
        if found != self._seen:
            self._follow(found)
        self._discovered_once.set()

    def _failed(self) -> None:
        self._broken = True
        if self._metrics is not None:
            self._metrics.sync_error()

    def _follow(self, found: DiscoveryResult) -> None:
        known = self.all_objects.discovered
        if found.failed:
            # The resources of a group that did not answer stay as they were.
            lost = {missing.group_version for missing in found.failed}
            kept = tuple(each for each in known.resources if each.api_version in lost)
            found = DiscoveryResult((*found.resources, *kept), found.failed, found.malformed)
        if found.resources != known.resources or found.failed != known.failed:
            self.all_objects.discovered = found
        wanted = {
            each.id: (each, controllers)
            for each in found.preferred
            if (controllers := [one for one in self._controllers if one.declared.wants(each)])
        }
        for id_, (resource, controllers) in wanted.items():
            followed = self._followed.get(id_)
            if followed is not None and not _served(followed, found):
                self._end(followed)
                followed = None
            if followed is None:
                self._begin(resource, controllers)
            else:
                followed.missing_since = None
        waiting = self._let_go(wanted)
        self._seen = None if waiting or found.failed else found

    def _begin(self, resource: ApiResource, controllers: Sequence[AllResourcesCaches]) -> None:
        kind = resource.partial
        if resource.id == APISERVICES:
            kind = kind.as_(LabelledPartialObject)
        informer = self._informers.known(kind)
        shared = informer is not None
        if informer is None:
            informer = self._informers.informer(kind)
        followed = _Followed(resource, informer.kind, informer, shared)
        self._followed[resource.id] = self._unread[resource.id] = followed
        self.all_objects.attach(informer.kind, informer.store)
        self._listen(followed, controllers)

    def _let_go(self, wanted: Container[str]) -> bool:
        """Drop resources that have been missing for long enough; returns whether others still wait."""
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
        log.info("%s is no longer served", followed.resource.id)
        del self._followed[followed.resource.id]
        self._unread.pop(followed.resource.id, None)
        self.all_objects.detach(followed.kind)
        if not followed.shared:
            self._informers.drop(followed.kind)
            # Its metrics are still read; its objects need not be kept for that.
            followed.informer.store.replace({}, {})

    def release(self, kind: Kind[Any]) -> None:
        """Stop following a resource by its metadata, because a controller needs it by its type: it is followed again
        through that informer."""
        followed = self._followed.get(kind.resource)
        if followed is not None and not issubclass(followed.kind.type, kind.type):
            self._end(followed)
            self._seen = None
            self._hint.set()

    def _listen(self, followed: _Followed, controllers: Sequence[AllResourcesCaches]) -> None:
        kind, resource, all_objects = followed.kind, followed.resource, self.all_objects
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
            # A synced informer stays synced. This is called for every deleted object.
            self._unread = {id_: each for id_, each in self._unread.items() if not each.informer.synced}
        return tuple(self._unread)

    async def wait_filled(self, timeout: float) -> None:
        """Wait until all followed resources are synced, but no longer than ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._discovered_once.wait()
                for followed in tuple(self._followed.values()):
                    await followed.informer.wait_synced()
        except TimeoutError:
            log.warning("resources not synced yet, going on without them: %s", ", ".join(self._unfilled()))


def _served(followed: _Followed, found: DiscoveryResult) -> bool:
    """Whether a resource is still served in the version in which it is followed."""
    kind = followed.kind
    return followed.shared or any(
        (each.id, each.version, each.namespaced) == (kind.resource, kind.version, kind.namespaced)
        for each in found.resources
    )
