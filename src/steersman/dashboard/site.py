"""The site under ``/ui/``: routes requests to the documents and the stream of the dashboard.

`steersman up` and `steersman run` authenticate a request, authorize its path, and hand it on with an `Api` that has the rights of
its user: a viewer is shown what that user may get and list, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

import msgspec

from steersman.api.clock import Clock
from steersman.api.errors import (
    ApiError,
    BadRequest,
    Conflict,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
    UnsupportedMediaType,
    to_status,
)
from steersman.client.api import Api
from steersman.dashboard.feed import Feed, Mailbox, Sleep
from steersman.dashboard.object_page import object_page
from steersman.dashboard.static_files import JSON, JSON_HEADERS
from steersman.explain.collect import LEASES, MANAGER, Target, UnknownKind, find_kind

MAX_VIEWERS = 100
"""Streams at once; others are refused with 429."""
CHUNK = 64 * 1024
"""Bytes of a stream that are sent at once, about."""
PAUSE = 0.05
"""Seconds between two pieces of a stream: what changes several times meanwhile is sent once."""
LIFETIME = 1800.0
"""Seconds after which a stream ends, with a random factor of up to 2, as a watch does. The page begins another, with the user's new rights."""
PATIENCE = 10.0
"""Seconds that the page of an object waits for the objects around it."""
MAX_BODY = 4096
"""Bytes of a request body."""
STREAM_HEADERS = (("Content-Type", "application/x-ndjson"), *JSON_HEADERS)
CONTROLLERS = "/debug/rounds?include=controllers,fights"

Header = tuple[str, str]


class Reply(msgspec.Struct, frozen=True):
    """A whole response."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[Header, ...] = JSON_HEADERS


class StreamWriter(Protocol):
    """A response whose end is not known when it begins."""

    def begin(self, headers: Iterable[Header]) -> None: ...

    async def write(self, data: bytes) -> None: ...

    def keep(self, size: int) -> None: ...


class Viewer(msgspec.Struct, frozen=True):
    """The user of a request."""

    name: str
    identity: Hashable
    """Equal for requests that may see the same."""
    api: Api
    """Acts with the rights of the user, and serves the trace where these include it."""


class SiteRequest(msgspec.Struct, frozen=True):
    """A request whose path is authorized."""

    method: str
    path: str
    """Below ``/ui/api/``: ``plane``."""
    query: Mapping[str, Sequence[str]]
    content_type: str
    read: Callable[[int], Awaitable[bytes | None]]
    """Reads the body; None if it is longer than this many bytes."""

    def value(self, name: str, default: str = "") -> str:
        """The first value of a parameter."""
        values = self.query.get(name) or ()
        return values[0] if values else default


class ClockControl(Protocol):
    """The clock of a simulated control plane, which can be steered."""

    listeners: list[Callable[[], None]]
    """Called when the clock was changed."""

    def state(self) -> dict[str, Any]:
        """Speed, whether it is paused, and what is next."""
        ...

    def set_speed(self, speed: float) -> None:
        """Change the speed. Raises `ValueError`."""
        ...

    def set_paused(self, paused: bool) -> None: ...

    async def jump(self) -> None:
        """Let time pass until the next thing happens. Raises `Conflict` where a jump is under way."""
        ...


class Program(Protocol):
    """The program that serves the dashboard, as far as it is shown."""

    name: str
    """``up`` or ``run``."""
    version: str
    simulated: bool
    """Whether it has simulated nodes."""
    clock: Clock
    time: ClockControl | None

    @property
    def controllers(self) -> int:
        """How many controllers it runs now; 0 while another manager leads."""
        ...

    async def act_on_node(self, api: Api, name: str, action: str) -> None:
        """Fail or recover a simulated node. Raises `ApiError`."""
        ...


class NodeAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to fail or recover a node."""

    name: str
    action: str


class ClockAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to change the clock."""

    speed: float | None = None
    paused: bool | None = None
    jump: str | None = None


class Site:
    """The dashboard of one program."""

    def __init__(self, program: Program, *, sleep: Sleep = asyncio.sleep) -> None:
        """``sleep`` waits in real time."""
        self._program = program
        self._sleep = sleep
        self._feeds: dict[tuple[Hashable, str], Feed] = {}
        """By the viewer's identity and the namespace."""
        self._viewers = 0
        if program.time is not None:
            program.time.listeners.append(self._tell_now)

    async def close(self) -> None:
        """End all streams."""
        feeds, self._feeds = list(self._feeds.values()), {}
        for feed in feeds:
            await feed.close()

    async def answer(
        self, request: SiteRequest, viewer: Viewer, stream: Callable[[], StreamWriter]
    ) -> Reply | StreamWriter:
        """Answer a request. ``stream`` begins a streaming response, which is returned when it has ended."""
        try:
            if (request.method, request.path) == ("GET", "stream"):
                return await self._stream(request, viewer, stream)
            found = await self._document(request, viewer)
        except ApiError as error:
            return Reply(msgspec.json.encode(to_status(error)), error.code or 500)
        return Reply(msgspec.json.encode(found))

    async def _document(self, request: SiteRequest, viewer: Viewer) -> object:
        match request.method, request.path:
            case "GET", "plane":
                return await self._plane(viewer)
            case "GET", "object":
                return await self._object(request, viewer)
            case "GET", "controllers":
                return await viewer.api.document(CONTROLLERS)
            case "POST", "node":
                return await self._node(await _body(request, NodeAction), viewer)
            case "POST", "clock":
                return await self._steer(await _body(request, ClockAction))
            case _, "plane" | "object" | "controllers" | "node" | "clock" | "stream":
                raise MethodNotAllowed(f"{request.method} is not allowed here", reason="MethodNotAllowed")
        raise NotFound(f"the dashboard has no {request.path!r}", reason="NotFound")

    # -- documents ----------------------------------------------------------------------------

    async def _plane(self, viewer: Viewer) -> dict[str, Any]:
        program = self._program
        holder = ""
        with suppress(ApiError):
            lease = await viewer.api.get(LEASES, "kube-system", MANAGER)
            holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
        return {
            "program": program.name,
            "version": program.version,
            "now": program.clock.now(),
            "leading": bool(program.controllers),
            "holder": holder,
            "controllers": program.controllers,
            "user": viewer.name,
            "simulated": program.simulated,
            "clock": self._clock(),
        }

    def _clock(self) -> dict[str, Any] | None:
        return None if self._program.time is None else self._program.time.state()

    def _now(self) -> dict[str, Any]:
        return {"type": "now", "now": self._program.clock.now(), "clock": self._clock()}

    async def _object(self, request: SiteRequest, viewer: Viewer) -> dict[str, Any]:
        word, name = request.value("kind"), request.value("name")
        if not word or not name:
            raise BadRequest(
                "name the object: ?kind=Deployment&namespace=default&name=web", reason="BadRequest"
            )
        try:
            kind = await find_kind(viewer.api, word)
        except UnknownKind as error:
            raise NotFound(str(error), reason="NotFound") from None
        target = Target(kind, request.value("namespace") if kind.namespaced else "", name)
        found = await viewer.api.get(kind, target.namespace, name)
        document = {**found, "kind": kind.name}
        place = self._place_of(viewer, target)
        feed = self._feed(place, viewer)
        feed.holders += 1
        try:
            await self._wait(feed)
            return await object_page(viewer.api, feed, target, document, self._program.clock.now())
        finally:
            feed.holders -= 1
            await self._release(place, feed)

    def _place_of(self, viewer: Viewer, target: Target) -> tuple[Hashable, str]:
        """The key of the feed for an object: that of all namespaces where it exists and has the kind, else that of the object's namespace."""
        everywhere = self._feeds.get((viewer.identity, ""))
        if everywhere is not None and target.kind.name not in everywhere.unread:
            return viewer.identity, ""
        return viewer.identity, target.namespace

    async def _wait(self, feed: Feed) -> None:
        """Wait until a feed knows all objects, or for as long as is reasonable."""
        tasks = [asyncio.ensure_future(feed.synced.wait()), asyncio.ensure_future(self._sleep(PATIENCE))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    # -- actions ------------------------------------------------------------------------------

    async def _node(self, action: NodeAction, viewer: Viewer) -> dict[str, Any]:
        if action.action not in ("fail", "recover"):
            raise BadRequest(
                f"action must be fail or recover, but got {action.action!r}", reason="BadRequest"
            )
        if not self._program.simulated:
            raise Conflict("this control plane has no simulated nodes", reason="Conflict")
        await self._program.act_on_node(viewer.api, action.name, action.action)
        return {}

    async def _steer(self, action: ClockAction) -> dict[str, Any]:
        time = self._program.time
        if time is None:
            raise Conflict(
                "the clock of this control plane cannot be changed: start it with `steersman up --speed=1`",
                reason="Conflict",
            )
        try:
            if action.speed is not None:
                time.set_speed(action.speed)
        except ValueError as error:
            raise BadRequest(str(error), reason="BadRequest") from None
        if action.jump not in (None, "next"):
            raise BadRequest(f"jump must be next, but got {action.jump!r}", reason="BadRequest")
        if action.paused is not None:
            time.set_paused(action.paused)
        if action.jump is not None:
            await time.jump()
        return time.state()

    # -- the stream ---------------------------------------------------------------------------

    async def _stream(
        self, request: SiteRequest, viewer: Viewer, stream: Callable[[], StreamWriter]
    ) -> StreamWriter:
        if self._viewers >= MAX_VIEWERS:
            raise TooManyRequests(
                f"too many viewers: {MAX_VIEWERS} streams are open", reason="TooManyRequests", retry_after=1.0
            )
        place = (viewer.identity, request.value("namespace"))
        self._viewers += 1
        try:
            await self._drop_outdated(place)
            feed = self._feed(place, viewer)
            mailbox = feed.join()
            writer = stream()
            try:
                writer.begin(STREAM_HEADERS)
                await self._send(writer, mailbox)
            except ConnectionError:
                pass  # the viewer has gone, which is how most streams end
            finally:
                feed.leave(mailbox)
                await self._release(place, feed)
        finally:
            self._viewers -= 1
        return writer

    async def _send(self, writer: StreamWriter, mailbox: Mailbox) -> None:
        end = monotonic() + LIFETIME * (1 + self._program.clock.random.random())
        while not mailbox.closed and monotonic() < end:
            await mailbox.wait()
            while data := mailbox.take(CHUNK):
                # A reference for each message; the messages themselves are shared.
                writer.keep(64 * len(mailbox))
                await writer.write(data)
            await self._sleep(PAUSE)

    async def _drop_outdated(self, place: tuple[Hashable, str]) -> None:
        """Close a feed whose user has other rights now: its streams end, and begin anew with those."""
        known = self._feeds.get(place)
        if known is not None and not await known.is_current():
            if self._feeds.get(place) is known:
                del self._feeds[place]
            await known.close()

    def _feed(self, place: tuple[Hashable, str], viewer: Viewer) -> Feed:
        """The feed that the viewers of one user share."""
        feed = self._feeds.get(place)
        if feed is None:
            program = self._program
            feed = Feed(viewer.api, program.clock, namespace=place[1], sleep=self._sleep, now=self._now)
            self._feeds[place] = feed
            feed.start()
        return feed

    async def _release(self, place: tuple[Hashable, str], feed: Feed) -> None:
        """Close a feed whose last viewer has gone."""
        if not feed.viewers:
            if self._feeds.get(place) is feed:
                del self._feeds[place]
            await feed.close()

    def _tell_now(self) -> None:
        for feed in self._feeds.values():
            feed.tell_now()


async def _body(request: SiteRequest, type_: type[msgspec.Struct]) -> Any:
    """The body of a request, decoded. Raises `BadRequest`."""
    if request.content_type.partition(";")[0].strip() != JSON:
        # A page of another origin could send any other type with the browser's client certificate, unasked.
        raise UnsupportedMediaType(f"the body must be {JSON}", reason="UnsupportedMediaType")
    body = await request.read(MAX_BODY)
    if body is None:
        raise TooLarge(f"the body is larger than {MAX_BODY} bytes", reason="RequestEntityTooLarge")
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRequest(f"the body cannot be read: {error}", reason="BadRequest") from None
