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

from steersman.api.discovery import Discovered, Resource
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.client.capabilities import is_steady
from steersman.intent.all_resources import Roam
from steersman.intent.controller import Change
from steersman.runtime.clock import Clock
from steersman.runtime.informer import Informer, Informers
from steersman.runtime.metadata_cache import Everything
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

    resource: Resource
    kind: Kind[Any]
    informer: Informer[Any]
    shared: bool
    """Somebody watches it by its type anyway: it is not ours to stop."""
    missing_since: float | None = None


class Ranger:
    """The caches of one controller that roams: a `Wide`."""

    def __init__(
        self, roam: Roam, informers: Informers, everything: Everything, add: Callable[[Key, str], None]
    ) -> None:
        self.roam = roam
        self.everything = everything
        self.memory: Any = roam.memory() if roam.memory is not None else None
        self.add = add
        self._informers = informers

    def __getitem__(self, kind: Kind[O]) -> Store[O]:
        return self._informers[kind]


class Roaming:
    """What is followed of all that is served; one for all controllers that roam."""

    def __init__(
        self, informers: Informers, api: Api, clock: Clock, *, metrics: Metrics | None = None
    ) -> None:
        self.everything = Everything(self._unfilled)
        self._informers = informers
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._rangers: list[Ranger] = []
        self._followed: dict[str, _Followed] = {}
        self._unread: dict[str, _Followed] = {}
        """Those that had not been read when somebody last asked."""
        self._seen: Discovered | None = None
        """The last answer that was followed to the letter."""
        # Where the server is in this process all that adds to it is seen.
        self._period = None if is_steady(api) else PERIOD
        self._hint = asyncio.Event()
        self._looked = asyncio.Event()

    def join(self, roam: Roam, add: Callable[[Key, str], None]) -> Ranger:
        """Have a controller roam: ``add`` is called with the keys it should look at, and why."""
        ranger = Ranger(roam, self._informers, self.everything, add)
        for name, index in roam.indexes.items():
            self.everything.add_index(name, index)
        self._rangers.append(ranger)
        return ranger

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
            log.warning("%s", found.complaint)
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

    def _follow(self, found: Discovered) -> None:
        known = self.everything.discovered
        if found.failed:
            # What is in a group that did not answer is as it was.
            lost = {missing.group_version for missing in found.failed}
            kept = tuple(each for each in known.resources if each.api_version in lost)
            found = Discovered((*found.resources, *kept), found.failed, found.malformed)
        if found.resources != known.resources or found.failed != known.failed:
            self.everything.discovered = found
        wanted = {
            each.id: each
            for each in found.preferred
            if any(ranger.roam.wants(each) for ranger in self._rangers)
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

    def _begin(self, resource: Resource) -> None:
        informer = self._informers.known(resource.partial)
        shared = informer is not None
        if informer is None:
            informer = self._informers.informer(resource.partial)
        followed = _Followed(resource, informer.kind, informer, shared)
        self._followed[resource.id] = self._unread[resource.id] = followed
        self.everything.attach(informer.kind, informer.store)
        self._listen(followed)

    def _let_go(self, wanted: dict[str, Resource]) -> bool:
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
        self.everything.detach(followed.kind)
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
        kind, resource, everything = followed.kind, followed.resource, self.everything
        rangers = [ranger for ranger in self._rangers if ranger.roam.wants(resource)]
        hints = resource.id in HINTS
        word = kind.name

        def changed(change: Change[Any]) -> None:
            if change.old is change.new or self._followed.get(resource.id) is not followed:
                return
            everything.take(kind, change)
            if hints:
                self._hint.set()
            for ranger in rangers:
                keys = tuple(ranger.roam.to(ranger, kind, change))
                if keys:
                    what = "deleted" if change.new is None else "added" if change.old is None else "changed"
                    cause = f"{word} {change.obj.key} {what}"
                    for key in keys:
                        ranger.add(key, cause)

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


def _served(followed: _Followed, found: Discovered) -> bool:
    """Whether a resource is still served as it is followed. One version shows the same objects as another."""
    kind = followed.kind
    return followed.shared or any(
        (each.id, each.version, each.namespaced) == (kind.resource, kind.version, kind.namespaced)
        for each in found.resources
    )
