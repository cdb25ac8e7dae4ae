"""Watches: events as lines of JSON, for as long as both sides like."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.errors import BadRequest, Expired, ServerError
from steersman.api.generated.meta_v1 import ListMeta
from steersman.client.api import EventType, WatchEvent
from steersman.http.response import StreamingResponse
from steersman.server import status_errors, tables
from steersman.server.codec.negotiation import Choice
from steersman.server.http import query_options
from steersman.server.http.context import Context
from steersman.server.http.encoding import dump
from steersman.server.http.request_info import first
from steersman.server.http.responses import status, table
from steersman.server.http.watch_registry import Watch
from steersman.server.registry.resources import Resource
from steersman.server.rest.list import parse_version
from steersman.server.storage.selection import select
from steersman.server.storage.watch import Selection, Subscription

LONGEST = 1800
"""Seconds a watch lasts whose client does not say; up to twice that, so that not all end at once."""
_CHUNK = 64 * 1024
_INITIAL_END = {"k8s.io/initial-events-end": "true"}

Line: TypeAlias = Callable[[WatchEvent[Any]], bytes]


async def watch(ctx: Context, resource: Resource) -> StreamingResponse:
    """Serve a watch to its end. Raises what is refused before it begins."""
    asked = query_options.listing(ctx.query, watch=True)
    choice = ctx.choice(stream=True)
    line = _line(ctx, choice, resource)
    namespace = ctx.asked.namespace if resource.namespaced else ""
    selection = select(resource, namespace, asked.labels, asked.fields)
    if ctx.asked.name and not selection.name:
        # The old way to ask for a watch of one object has its name in the path.
        selection = Selection(namespace, ctx.asked.name, selection.test)
    end = b""
    try:
        subscription = _begin(ctx, resource, selection, asked)
    except Expired as error:
        # As upstream: a watch that cannot begin where it was asked to begins, says so, and ends.
        subscription, end = None, _event("ERROR", dump(status(error)))
    response = StreamingResponse(ctx.request.writer)
    transport = ctx.request.transport
    if subscription is None:
        try:
            response.begin(_HEADERS)
            await response.write(end)
        except ConnectionError:
            pass  # the client did not wait for it
        return response
    current = Watch(resource.id, subscription, transport, bookmarks=asked.bookmarks)
    ctx.plant.watches.add(current)
    seconds = asked.timeout or LONGEST * (1 + ctx.server.clock.random.random())
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, _expire, ctx, subscription)
    try:
        response.begin(_HEADERS)
        await _send(response, current, line, asked.bookmarks)
    except ConnectionError:
        pass  # the client went away: what a watch usually ends with
    finally:
        timer.cancel()
        subscription.close()
        ctx.plant.watches.remove(current)
    return response


def _begin(
    ctx: Context, resource: Resource, selection: Selection, asked: query_options.Listing
) -> Subscription:
    server = ctx.server
    server.reap(resource)
    try:
        version = parse_version(asked.version)
    except BadRequest as error:
        # As upstream, which minds it in lists and is at a loss here.
        raise ServerError(error.message.removeprefix("invalid resource version: ")) from None
    if asked.initial and version > server.store.revision:
        raise status_errors.too_new(version, server.store.revision)
    from_now = asked.initial is False and not version
    since = server.store.revision if from_now else None if asked.initial else version or None
    return server.table(resource).watch(selection, since=since, initial_end=bool(asked.initial))


def _expire(ctx: Context, subscription: Subscription) -> None:
    """Time is up: say how far things have got, and end."""
    subscription.bookmark(ctx.server.store.revision)
    subscription.close()


async def _send(response: StreamingResponse, watch: Watch, line: Line, bookmarks: bool) -> None:
    """Send what happens until nothing more can."""
    subscription = watch.subscription
    loop = asyncio.get_running_loop()
    async for event in subscription:
        lines: list[bytes] = []
        size = 0
        while True:
            if event.obj is not None or bookmarks:
                made = line(event)
                lines.append(made)
                size += len(made)
            if size > _CHUNK or not subscription.unread:
                break
            event = await anext(subscription)
        if lines:
            watch.since = loop.time()
            await response.write(b"".join(lines))
            watch.since = None


# -- lines ------------------------------------------------------------------------------------


def _event(type_: str, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), obj)


def _line(ctx: Context, choice: Choice, resource: Resource) -> Line:
    """What makes a line of an event, in the form the client asked for."""
    if choice.target is None:
        return _objects(ctx, resource)
    if choice.target.kind == "Table":
        return _tables(ctx, choice.target.version, resource)
    version = choice.target.version

    def partial(event: WatchEvent[Any]) -> bytes:
        if event.obj is None:
            return _bookmark(f"meta.k8s.io/{version}", "PartialObjectMetadata", event)
        return _event(event.type.value, dump(tables.partial(event.obj, version)))

    return partial


def _objects(ctx: Context, resource: Resource) -> Line:
    api_version, kind, serve = resource.api_version, resource.kind, resource.serve
    encoded = ctx.plant.encoded

    def whole(event: WatchEvent[Any]) -> bytes:
        obj = event.obj
        if obj is None:
            return _bookmark(api_version, kind, event)
        return _event(event.type.value, encoded.get(api_version, kind, obj if serve is None else serve(obj)))

    return whole


def _tables(ctx: Context, version: str, resource: Resource) -> Line:
    include = tables.include_of(first(ctx.query, "includeObject"))
    headers = True

    def laid_out(event: WatchEvent[Any]) -> bytes:
        nonlocal headers
        objects = () if event.obj is None else (event.obj,)
        if resource.serve is not None:
            objects = tuple(map(resource.serve, objects))
        metadata = ListMeta(resourceVersion=event.resource_version)
        made = table(ctx, version, resource, objects, metadata, include=include, headers=headers)
        # Only the first says what the columns are.
        headers = False
        return _event(event.type.value, made)

    return laid_out


def _bookmark(api_version: str, kind: str, event: WatchEvent[Any]) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": event.resource_version}
    if event.initial_end:
        metadata["annotations"] = _INITIAL_END
    made = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return _event(EventType.BOOKMARK.value, dump(made))


_HEADERS = (("Content-Type", "application/json"), ("Cache-Control", "no-cache, private"))
