"""Feeds a sink with one kind: everything that is there, then every change, through any trouble.

`steersman.runtime.reflector_state` says what is to be done next; this does it. An error never means that there is
nothing: the sink keeps what it has until a complete list says otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Unreachable
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api, EventType, UndecodableObject, WatchEvent
from steersman.client.pager import list_page
from steersman.runtime.backoff import Backoff, jittered
from steersman.runtime.reflector_state import (
    Broken,
    Empty,
    Ended,
    Failed,
    Happening,
    Paged,
    Paging,
    ShortWatch,
    State,
    Streaming,
    Synced,
    Watching,
    Went,
    nowhere,
    step,
)
from steersman.runtime.store import revision_of

O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

WATCH = 300.0
"""The shortest a watch is asked to last, in seconds; the longest is twice that, as upstream's."""
SHORT = 1.0
"""A watch that ends sooner than this without a word is a failure: asking again at once would spin."""
SILENT = 0.9 * WATCH
"""A watch that lasted this long and brought nothing, not even a bookmark, may be watching nothing."""
LATE = 30.0
"""How long after its time-out a watch may go on before the connection counts as dead."""
PATIENCE = 60.0
"""How long a streamed list may make no progress before a plain list is tried."""
BREATH = 256
"""Events handled before others get a turn: a stream that is always ready must not hog the loop."""
REMIND = 300.0
"""Seconds after which trouble that goes on is told again: a server that is away would be told of by every kind."""


class Sink(Protocol[O]):
    """Who is fed. Must not raise."""

    def held(self, key: Key) -> O | None:
        """What the sink has read under a key: a list need not hold a second copy of it."""
        ...

    def replaced(
        self, objects: Mapping[Key, O], unreadable: Mapping[Key, str], resource_version: str
    ) -> None:
        """This is everything there is; of the unreadable ones only the metadata is known."""
        ...

    def changed(self, obj: O, error: str, resource_version: str) -> None:
        """An object appeared or changed; ``error`` says why only its metadata could be read."""
        ...

    def removed(self, obj: O, error: str, resource_version: str) -> None:
        """An object went; this was its last state."""
        ...

    def reached(self, resource_version: str) -> None:
        """Nothing else happened up to here."""
        ...


class Reflector(Generic[O]):
    """Keeps a sink at what the server has, until cancelled."""

    def __init__(
        self,
        api: Api,
        kind: Kind[O],
        sink: Sink[O],
        clock: Clock,
        *,
        backoff: Backoff | None = None,
        streams: bool = True,
    ) -> None:
        """``streams``: whether what there is may be asked for as a stream, too, and not only as a list."""
        self.state: State = Empty()
        self.kind = kind
        self._api = api
        self._sink = sink
        self._clock = clock
        self._backoff = backoff or Backoff(clock)
        self._streams = streams
        self._at = ""
        """While watching: the resourceVersion reached, from which a broken watch goes on."""
        self._revision = 0
        """The same as a number, where it is one."""
        self._found: dict[Key, O] = {}
        """What a list under way has brought so far."""
        self._unreadable: dict[Key, str] = {}
        self._listed_at = ""
        self._told = ("", -math.inf)
        """The trouble that was told last, and when."""

    async def run(self) -> None:
        """Feed the sink. Never ends, and never fails, by itself."""
        while True:
            happening = await self._do(self.state)
            # Not the state it began with: a stream moves on by itself when its initial events end.
            before = self.state
            self.state = step(before, happening)
            self._tell(before, happening)
            if isinstance(self.state, Streaming) and not self._streams:
                self.state = Paging()

    async def _do(self, state: State) -> Happening:
        self._begin_at(state.since if isinstance(state, Watching) else "")
        try:
            match state:
                case Empty():
                    return Went()
                case Broken():
                    await asyncio.sleep(max(self._backoff.next(), state.at_least))
                    return Went()
                case Paging():
                    return await self._page(state)
                case Streaming():
                    self._forget()
                    return await self._follow("", initial=True)
                case Watching():
                    return await self._follow(state.since, initial=False)
        except Exception as error:
            return Failed(error, self._at)

    def _begin_at(self, resource_version: str) -> None:
        self._at = resource_version
        self._revision = revision_of(resource_version) or 0

    def _tell(self, before: State, happening: Happening) -> None:
        """Log what went wrong and what follows. Errors carry the server's words, never a body."""
        if isinstance(happening, Synced | Ended) and not isinstance(self.state, Broken):
            self._told = ("", -math.inf)
        if isinstance(before, Streaming) and isinstance(self.state, Paging):
            why = happening.error if isinstance(happening, Failed) else "the stream ended"
            log.info("%s: cannot be streamed, listing instead: %s", self.kind, why)
        elif isinstance(before, Watching) and isinstance(self.state, Streaming):
            log.info("%s: the watch was silent, listing anew to be sure", self.kind)
        elif isinstance(self.state, Broken):
            error, then = self.state.error, self.state.then
            known = isinstance(error, ApiError | ShortWatch)
            level = logging.WARNING if known else logging.ERROR
            told, at = self._told
            if told == str(error) and self._clock.monotonic() - at < REMIND:
                level = logging.DEBUG
            else:
                self._told = str(error), self._clock.monotonic()
            log.log(
                level,
                "%s: %s failed, %s: %s",
                self.kind,
                type(before).__name__.lower(),
                "listing anew" if isinstance(then, Streaming) else "going on where it was",
                error,
                exc_info=None if known else error,
            )

    def _read(self, item: O | UndecodableObject) -> tuple[O, str]:
        """An object, or as much of it as can be read and what is wrong with the rest."""
        if isinstance(item, UndecodableObject):
            return self.kind.type(metadata=item.metadata), item.error or "unreadable"
        return item, ""

    # -- lists

    def _forget(self) -> None:
        self._found = {}
        self._unreadable = {}
        self._listed_at = ""

    def _find(self, item: O | UndecodableObject) -> None:
        obj, error = self._read(item)
        key = obj.key
        held = self._sink.held(key)
        if held is not None and same(held, obj):
            # Let go of the new copy now, not at the end of the list: a list over a full store would
            # double it.
            obj, error = held, ""
        self._found[key] = obj
        if error:
            self._unreadable[key] = error
        else:
            self._unreadable.pop(key, None)

    def _complete(self, resource_version: str) -> None:
        found, unreadable = self._found, self._unreadable
        self._forget()
        self._sink.replaced(found, unreadable, resource_version)

    async def _page(self, state: Paging) -> Happening:
        if not state.page.token:
            self._forget()
        # differs: client-go's first list asks for "0", any version the server has at hand. This always
        # asks for the newest, so that a restart never goes back in time.
        page = await list_page(self._api, self.kind, state.page, field_selector=self.kind.fields)
        for item in page.items:
            self._find(item)
        if not state.page.token:
            self._listed_at = page.resource_version
        if page.continue_:
            return Paged(page.continue_)
        at = self._listed_at
        self._complete(at)
        return Synced(at)

    # -- streams

    async def _follow(self, since: str, *, initial: bool) -> Happening:
        """Read a stream to its end. With ``initial`` it begins with all there is."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        # In the server's own process no connection can die, so that a watch need not be made anew.
        lasts = math.inf if self._api.capabilities.steady else jittered(self._clock.random, WATCH, 1.0)
        end = started + lasts + LATE if lasts < math.inf else None
        stream = self._api.watch(
            self.kind,
            field_selector=self.kind.fields,
            resource_version=since,
            send_initial_events=initial,
            timeout_seconds=int(lasts) if lasts < math.inf else None,
            level_triggered=True,
        )
        events = 0
        try:
            patience = started + PATIENCE if initial and end is not None else end
            async with _closing(stream), asyncio.timeout_at(patience) as limit:
                async for event in stream:
                    if not initial:
                        self._take(event)
                    elif self._gather(event):
                        initial = False
                        if end is not None:
                            limit.reschedule(end)
                    events += 1
                    if events % BREATH == 0:
                        await asyncio.sleep(0)
                        if initial and end is not None:
                            limit.reschedule(loop.time() + PATIENCE)
        except TimeoutError:
            if not limit.expired():
                raise
            # The connection is dead, or the server never heard of initial events and will not end them.
            raise Unreachable("the stream went silent", uncertain=True) from None
        lasted = loop.time() - started
        return Ended(
            self._at,
            short=self._at == since and lasted < SHORT,
            silent=not events and lasted >= SILENT,
        )

    def _gather(self, event: WatchEvent[O | UndecodableObject]) -> bool:
        """An event of a streamed list; whether it was the last."""
        if event.type is EventType.BOOKMARK:
            if not event.initial_end:
                return False
            self._begin_at(event.resource_version)
            self._complete(self._at)
            self.state = step(self.state, Synced(self._at))
            return True
        assert event.obj is not None
        if event.type is EventType.DELETED:
            key = self._read(event.obj)[0].key
            self._found.pop(key, None)
            self._unreadable.pop(key, None)
        else:
            self._find(event.obj)
        return False

    def _take(self, event: WatchEvent[O | UndecodableObject]) -> None:
        """An event of a watch."""
        reached = self._reach(event)
        if event.type is EventType.BOOKMARK:
            self._sink.reached(reached)
            return
        assert event.obj is not None
        obj, error = self._read(event.obj)
        if event.type is EventType.DELETED:
            self._sink.removed(obj, error, reached)
        else:
            self._sink.changed(obj, error, reached)

    def _reach(self, event: WatchEvent[Any]) -> str:
        """Move to the resourceVersion of an event, never back. Answers where we are."""
        after = event.resource_version
        if nowhere(self._at) and event.type is EventType.ADDED:
            # A watch from nowhere begins with what is there, in any order: no place to go on from.
            return self._at
        revision = revision_of(after)
        if revision is not None and revision < self._revision:
            log.warning("%s: an event at %s came after %s", self.kind, after, self._at)
        elif after:
            self._at = after
            self._revision = revision or 0
        return self._at


def same(one: Object, other: Object) -> bool:
    """Whether two copies are of the same version of the same object."""
    a, b = one.metadata, other.metadata
    return a.resourceVersion == b.resourceVersion and a.uid == b.uid


@asynccontextmanager
async def _closing(stream: AsyncIterator[Any]) -> AsyncIterator[None]:
    """End a stream when we leave it, where it can be ended."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
