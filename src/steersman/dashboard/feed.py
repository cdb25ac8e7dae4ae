"""Feeds: live summaries of what one user may list, and what is wrong with it, for all viewers of that user.

A feed follows each kind with a reflector, through the `Api` of its user: a kind that the user may not list is told as unread.
Changes are summarized in time slices and put into a mailbox for each viewer, where a later state of an object replaces an earlier one: a
viewer that does not read costs at most one reference for each object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api, Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import Capabilities
from steersman.client.middleware import ApiCall, Middleware
from steersman.dashboard.kinds import SHOWN, followed
from steersman.dashboard.live_objects import LiveObject, LiveObjects, LiveSnapshot
from steersman.dashboard.problems import candidates, find_problems
from steersman.dashboard.time_slices import TimeSlices
from steersman.explain.collect import ENDPOINT_SLICES, LEASES, MANAGER
from steersman.explain.model import Document
from steersman.runtime.reflector import Reflector

log = logging.getLogger(__name__)

T = TypeVar("T")
O = TypeVar("O", bound=Object)

INTERVAL = 1.0
"""Seconds between two looks for problems, at least."""
SHARE = 20
"""Looking for problems takes at most one part in this many of the time."""
TICK = 5.0
"""Seconds between two messages that tell the time."""
ROUNDS = "/debug/rounds?limit=60&include=rounds"
"""The part of the trace that problems are explained with."""

Sleep = Callable[[float], Awaitable[None]]
"""Waits for seconds of real time, whatever the speed of the cluster's clock."""

_encode = msgspec.json.Encoder().encode


class Mailbox:
    """The messages that one viewer has not been sent yet: the latest about each subject."""

    def __init__(self) -> None:
        self._messages: dict[str, tuple[str, bytes]] = {}
        """By subject: the change and the JSON of an object, or an empty text and a whole message."""
        self._filled = asyncio.Event()
        self.closed = False

    def __len__(self) -> int:
        return len(self._messages)

    def tell(self, subject: str, message: Mapping[str, Any]) -> None:
        """Put a message; an earlier one about the same subject is dropped."""
        self._messages.pop(subject, None)
        self._messages[subject] = ("", _encode(message))
        self._filled.set()

    def put(self, uid: str, change: str, encoded: bytes) -> None:
        """Put the summary of an object that was ``added``, ``modified`` or ``deleted``."""
        before = self._messages.pop(uid, None)
        if before is not None and before[0] == "added" and change == "modified":
            # The viewer has not seen it yet.
            change = "added"
        self._messages[uid] = (change, encoded)
        self._filled.set()

    def close(self) -> None:
        """End the stream of this viewer."""
        self.closed = True
        self._filled.set()

    async def wait(self) -> None:
        """Wait for messages, or for the end."""
        await self._filled.wait()

    def take(self, size: int) -> bytes:
        """The first messages, a line each, up to about ``size`` bytes."""
        lines: list[bytes] = []
        total = 0
        for change, encoded in self._messages.values():
            if total >= size:
                break
            line = encoded
            if change:
                line = b'{"type":"object","change":"%b","object":%b}' % (change.encode(), encoded)
            lines.append(line)
            total += len(line) + 1
        for subject in list(self._messages)[: len(lines)]:
            del self._messages[subject]
        if not self._messages and not self.closed:
            self._filled.clear()
        return b"".join(line + b"\n" for line in lines)


class InNamespace(Middleware):
    """An `Api` whose lists and watches of namespaced kinds are those of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        super().__init__(api)
        self._namespace = namespace
        self.capabilities: Capabilities = api.capabilities

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return send()

    def _handle_watch(
        self, request: ApiCall, send_initial_events: bool, watch: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        return watch()

    def list(
        self, kind: Kind[T], namespace: str = "", **options: Any
    ) -> Coroutine[Any, Any, Page[T | UndecodableObject]]:
        return super().list(kind, self._namespace if kind.namespaced else "", **options)

    def watch(
        self, kind: Kind[T], namespace: str = "", **options: Any
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        return super().watch(kind, self._namespace if kind.namespaced else "", **options)


class _Sink(Generic[O]):
    """Hands the changes of one kind to a feed."""

    def __init__(self, feed: Feed, kind: Kind[O]) -> None:
        self._feed = feed
        self._kind = kind

    def held(self, key: Key) -> O | None:
        entry = self._feed.objects.get(self._kind.name, key)
        return None if entry is None else entry.obj  # type: ignore[return-value]

    def replaced(
        self, objects: Mapping[Key, O], unreadable: Mapping[Key, str], resource_version: str
    ) -> None:
        feed, kind = self._feed, self._kind
        for key in feed.objects.keys(kind.name):
            if key not in objects:
                feed.change(kind, key, None)
        for key, obj in objects.items():
            held = feed.objects.get(kind.name, key)
            if held is None or held.obj is not obj:
                feed.change(kind, key, obj, unreadable.get(key, ""))
        feed.listed(kind)

    def changed(self, obj: O, error: str, resource_version: str) -> None:
        self._feed.change(self._kind, obj.key, obj, error)

    def removed(self, obj: O, error: str, resource_version: str) -> None:
        self._feed.change(self._kind, obj.key, None)

    def reached(self, resource_version: str) -> None:
        pass  # only changes are shown


class Feed:
    """The live summaries of what one user may list."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        namespace: str = "",
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], Mapping[str, Any]],
    ) -> None:
        """``now`` makes the message that tells the time. With a ``namespace`` only its objects are followed, and those of no namespace."""
        self.objects = LiveObjects()
        self.unread: dict[str, str] = {}
        """The kinds that cannot be listed, and why."""
        self._api: Api = InNamespace(api, namespace) if namespace else api
        self._clock = clock
        self._sleep = sleep
        self._now = now
        self._mailboxes: dict[Mailbox, None] = {}
        self._pending: dict[tuple[Kind[Any], Key], tuple[Object | None, str]] = {}
        self._work = asyncio.Event()
        self._unlisted: dict[str, None] = {}
        """The kinds whose first list is not there yet."""
        self._checked = False
        """Whether `unread` is known."""
        self.synced = asyncio.Event()
        """Set when all kinds that can be listed are known."""
        self.holders = 0
        """Requests that look at the objects, besides the viewers."""
        self._changed = asyncio.Event()
        self._problems: bytes = b"[]"
        self._suspects = 0
        """Objects that may have problems: their causes change with time, too."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def viewers(self) -> int:
        """The number of viewers, and of requests that look at the objects."""
        return len(self._mailboxes) + self.holders

    # -- rights -------------------------------------------------------------------------------

    async def check_rights(self) -> dict[str, str]:
        """The kinds that the user may not list now, with the reasons."""
        unread: dict[str, str] = {}
        for kind in followed():
            try:
                await self._api.list(kind, field_selector=kind.fields, limit=1)
            except NotFound:
                unread[kind.name] = "not served"
            except Forbidden as error:
                unread[kind.name] = error.message
            except ApiError as error:
                # Temporary: the reflector tries again.
                log.debug("%s: %s", kind, error)
        return unread

    async def is_current(self) -> bool:
        """Whether the rights of the user are still those that the feed began with."""
        return not self._checked or await self.check_rights() == self.unread

    # -- running ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to follow."""
        self._unlisted = dict.fromkeys(kind.name for kind in followed())
        self._begin(self._follow(), "rights")

    async def _follow(self) -> None:
        self.unread = await self.check_rights()
        self._checked = True
        for mailbox in self._mailboxes:
            self._tell_unread(mailbox)
        kinds = [kind for kind in followed() if kind.name not in self.unread]
        self._unlisted = dict.fromkeys(kind.name for kind in kinds)
        self._begin(self._summarize(), "summaries")
        self._begin(self._look_for_problems(), "problems")
        self._begin(self._tell_time(), "time")
        for kind in kinds:
            self._begin(Reflector(self._api, kind, _Sink(self, kind), self._clock).run(), str(kind))
        self._work.set()

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=f"dashboard {name}"))

    async def close(self) -> None:
        """End all streams, and stop following."""
        for mailbox in tuple(self._mailboxes):
            mailbox.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    # -- viewers ------------------------------------------------------------------------------

    def join(self) -> Mailbox:
        """A mailbox for a new viewer, with all that there is."""
        mailbox = Mailbox()
        mailbox.tell("now", self._now())
        self._tell_unread(mailbox)
        for entry in self.objects.shown():
            mailbox.put(entry.summary.id, "added", entry.encoded)
        self._mailboxes[mailbox] = None
        if self.synced.is_set():
            self._greet(mailbox)
        return mailbox

    def leave(self, mailbox: Mailbox) -> None:
        """Forget a viewer."""
        self._mailboxes.pop(mailbox, None)

    def _tell_unread(self, mailbox: Mailbox) -> None:
        for kind, why in self.unread.items():
            if kind in SHOWN:
                mailbox.tell(f"unread {kind}", {"type": "unread", "kind": kind, "why": why})

    def tell_now(self) -> None:
        """Tell all viewers the time."""
        message = self._now()
        for mailbox in self._mailboxes:
            mailbox.tell("now", message)

    def _greet(self, mailbox: Mailbox) -> None:
        mailbox.tell("synced", {"type": "synced"})
        mailbox.tell("problems", {"type": "problems", "problems": msgspec.Raw(self._problems)})

    def _publish(self, change: str, entry: LiveObject) -> None:
        if entry.kind.name in SHOWN:
            for mailbox in self._mailboxes:
                mailbox.put(entry.summary.id, change, entry.encoded)

    # -- changes ------------------------------------------------------------------------------

    def change(self, kind: Kind[Any], key: Key, obj: Object | None, error: str = "") -> None:
        """Note that an object has changed; None: that it is gone. It is summarized in its turn."""
        self._pending[kind, key] = (obj, error)
        self._work.set()

    def listed(self, kind: Kind[Any]) -> None:
        """Note that the first list of a kind is complete."""
        self._unlisted.pop(kind.name, None)
        self._work.set()

    async def _summarize(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            slices = TimeSlices()
            nodes: dict[str, None] = {}
            while self._pending:
                place = next(iter(self._pending))
                self._apply(*place, *self._pending.pop(place), nodes)
                if slices.over:
                    self._recount(nodes)
                    await slices.pause()
            self._recount(nodes)
            if not self.synced.is_set() and not self._unlisted:
                self.synced.set()
                for mailbox in self._mailboxes:
                    self._greet(mailbox)
            self._changed.set()

    def _apply(
        self, kind: Kind[Any], key: Key, obj: Object | None, error: str, nodes: dict[str, None]
    ) -> None:
        """Take one change over, and note the nodes whose pods it concerns."""
        entry: LiveObject | None = None
        if obj is None:
            before = self.objects.remove(kind, key)
            if before is not None:
                self._publish("deleted", before)
        else:
            entry, before = self.objects.put(kind, obj, error)
            if before is not None and before.summary.id != entry.summary.id:
                # Another object took the name.
                self._publish("deleted", before)
                self._publish("added", entry)
            elif before is None or before.summary != entry.summary:
                self._publish("added" if before is None else "modified", entry)
        on = (entry.node if entry is not None else "", before.node if before is not None else "")
        if on[0] != on[1]:
            nodes.update(dict.fromkeys(filter(None, on)))

    def _recount(self, nodes: dict[str, None]) -> None:
        for node in nodes:
            entry = self.objects.recount(node)
            if entry is not None:
                self._publish("modified", entry)
        nodes.clear()

    # -- time and problems ----------------------------------------------------------------------

    async def _tell_time(self) -> None:
        while True:
            await self._sleep(TICK)
            self.tell_now()
            if self._suspects:
                self._changed.set()

    async def _look_for_problems(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            slices = TimeSlices()
            if self.synced.is_set():
                try:
                    await self._renew_problems(slices)
                except Exception:
                    # One odd object must not end the stream; the next change is another chance.
                    log.exception("the problems of the dashboard cannot be told")
            await self._sleep(max(INTERVAL, SHARE * slices.worked))

    async def _renew_problems(self, slices: TimeSlices) -> None:
        chosen = candidates(self.objects)
        self._suspects = len(chosen)
        await slices.pause()
        rounds = await self._rounds() if chosen else None
        lease = await self.lease() if chosen else ()
        now: datetime = self._clock.now()
        unread = {**self.unread, ENDPOINT_SLICES.name: "not followed"}
        snapshot = LiveSnapshot(now, self.objects, unread, rounds, lease)
        found = await find_problems(self.objects, snapshot, chosen, slices)
        slices.stop()
        encoded = _encode(found)
        if encoded != self._problems:
            self._problems = encoded
            for mailbox in self._mailboxes:
                mailbox.tell("problems", {"type": "problems", "problems": msgspec.Raw(encoded)})

    async def lease(self) -> tuple[Document, ...]:
        """The Lease of the controller manager, which tells whether one leads."""
        try:
            lease = await self._api.get(LEASES, "kube-system", MANAGER)
        except ApiError:
            return ()
        return ({**lease, "kind": "Lease"},)

    async def _rounds(self) -> dict[str, Any] | None:
        """The latest rounds of the trace; None where the user may not read it."""
        try:
            return await self._api.document(ROUNDS)
        except (ApiError, NotImplementedError):
            return None
