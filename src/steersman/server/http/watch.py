"""Watch over HTTP: events as lines of JSON or frames of protobuf, until the client or the timeout ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from steersman.api.errors import ApiError, Expired
from steersman.api.generated.meta_v1 import ListMeta
from steersman.client.api import EventType, WatchEvent
from steersman.http.limits import client_time
from steersman.http.response import StreamingResponse
from steersman.http.target import first
from steersman.server import status_errors
from steersman.server.calls import CallNeeded
from steersman.server.codec.convert import CODECS
from steersman.server.codec.encoding import dump
from steersman.server.codec.negotiation import JSON, PROTOBUF, MediaTypeOptions
from steersman.server.http import query_options
from steersman.server.http.context import Context
from steersman.server.http.handlers import list_request
from steersman.server.http.heavy_requests import TOO_MANY
from steersman.server.http.responses import error_status, table
from steersman.server.http.watch_registry import ActiveWatch
from steersman.server.registry.resources import Resource
from steersman.server.rest.restart import restartable
from steersman.server.rest.watch import watch
from steersman.server.storage.watch import Subscription

DEFAULT_TIMEOUT = 1800
"""Seconds that a watch without a timeout lasts; a random factor of up to 2 keeps watches from ending all at once."""
_CHUNK = 64 * 1024
_EVENT = 128
"""Bytes that an unread event takes, without its object."""
_INITIAL_END = {"k8s.io/initial-events-end": "true"}

LineEncoder: TypeAlias = Callable[[WatchEvent[Any]], bytes]


async def handle_watch(ctx: Context, resource: Resource) -> StreamingResponse:
    """Serves a watch to its end. Raises the refusal of a watch that cannot begin."""
    if ctx.state.watches.full:
        raise status_errors.too_many_requests(TOO_MANY, retry_after=1.0)
    await ctx.state.heavy.turn()
    options = query_options.list_options(ctx.query, watch=True)
    choice = ctx.choice(custom=resource.type in CODECS, stream=True)
    line = _line_encoder(ctx, choice, resource)
    headers = _PROTOBUF_HEADERS if choice.media_type == PROTOBUF else _HEADERS
    error = b""
    try:
        subscription = watch(ctx.server, list_request(ctx, resource, options))
    except Expired as expired:
        # As upstream: a watch from a revision that is gone begins, sends an ERROR event, and ends.
        subscription, status = None, error_status(expired)
        in_protobuf = choice.media_type == PROTOBUF
        error = ctx.protobuf.error_frame(status) if in_protobuf else _event("ERROR", dump(status))
    response = StreamingResponse(ctx.http.writer)
    if subscription is None:
        try:
            response.begin(headers)
            await response.write(error)
        except ConnectionError:
            pass  # the client has gone
        return response
    current = ActiveWatch(
        resource.id, subscription, ctx.http.transport, bookmarks=options.allow_watch_bookmarks
    )
    ctx.state.watches.add(current)
    seconds = options.timeout_seconds or DEFAULT_TIMEOUT * (1 + ctx.server.clock.random.random())
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, _time_out, ctx, subscription)
    try:
        response.begin(headers)
        await _send(response, current, _waiting(ctx, line), options.allow_watch_bookmarks)
    except ConnectionError:
        pass  # the client has gone, which is how most watches end
    finally:
        timer.cancel()
        subscription.close()
        ctx.state.watches.remove(current)
    return response


def _time_out(ctx: Context, subscription: Subscription) -> None:
    """Ends a watch with a last bookmark."""
    subscription.bookmark(ctx.server.store.revision)
    subscription.close()


def _waiting(ctx: Context, line: LineEncoder) -> Callable[[WatchEvent[Any]], bytes | Awaitable[bytes]]:
    """An encoder that returns an awaitable where a line must wait for a conversion webhook."""

    def encode(event: WatchEvent[Any]) -> bytes | Awaitable[bytes]:
        try:
            return line(event)
        except CallNeeded:
            return restartable(ctx.server, lambda: line(event))

    return encode


async def _send(
    response: StreamingResponse,
    watch: ActiveWatch,
    line: Callable[[WatchEvent[Any]], bytes | Awaitable[bytes]],
    bookmarks: bool,
) -> None:
    """Sends events until the subscription ends, many at once where many are waiting."""
    subscription = watch.subscription
    loop = asyncio.get_running_loop()
    async for event in subscription:
        lines: list[bytes] = []
        size = 0
        while True:
            if event.obj is not None or bookmarks:
                made = line(event)
                if not isinstance(made, bytes):
                    try:
                        made = await made
                    except ApiError as error:
                        # As upstream: a watch whose objects cannot be converted ends with an error.
                        await response.write(b"".join((*lines, _event("ERROR", dump(error_status(error))))))
                        return
                lines.append(made)
                size += len(made)
            if size > _CHUNK or not subscription.unread:
                break
            event = await anext(subscription)
        if lines:
            watch.since = client_time(loop)
            response.keep(_EVENT * subscription.unread)
            await response.write(b"".join(lines))
            watch.since = None


# -- lines ------------------------------------------------------------------------------------


def _event(type_: str, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), obj)


def _line_encoder(ctx: Context, choice: MediaTypeOptions, resource: Resource) -> LineEncoder:
    """Encodes events as lines or frames, in the representation that the client accepts."""
    if choice.media_type == PROTOBUF:
        return ctx.protobuf.frames(resource, choice.target.version if choice.target is not None else "")
    if choice.target is None:
        return _object_lines(ctx, resource)
    if choice.target.kind == "Table":
        return _table_lines(ctx, choice.target.version, resource)
    from steersman.server.tables import partial_object_metadata

    version = choice.target.version

    def partial(event: WatchEvent[Any]) -> bytes:
        if event.obj is None:
            return _bookmark(f"meta.k8s.io/{version}", "PartialObjectMetadata", event)
        return _event(event.type.value, dump(partial_object_metadata(event.obj, version)))

    return partial


def _object_lines(ctx: Context, resource: Resource) -> LineEncoder:
    api_version, kind, serve = resource.api_version, resource.kind, resource.serve
    encoded = ctx.state.encoded

    def whole(event: WatchEvent[Any]) -> bytes:
        obj = event.obj
        if obj is None:
            return _bookmark(api_version, kind, event)
        return _event(event.type.value, encoded.get(api_version, kind, obj if serve is None else serve(obj)))

    return whole


def _table_lines(ctx: Context, version: str, resource: Resource) -> LineEncoder:
    from steersman.server.tables import parse_include_object

    include = parse_include_object(first(ctx.query, "includeObject"))
    headers = True

    def laid_out(event: WatchEvent[Any]) -> bytes:
        nonlocal headers
        objects = () if event.obj is None else (event.obj,)
        if resource.serve is not None:
            objects = tuple(map(resource.serve, objects))
        metadata = ListMeta(resourceVersion=event.resource_version)
        made = table(ctx, version, resource, objects, metadata, include=include, headers=headers)
        # Only the first table has column definitions.
        headers = False
        return _event(event.type.value, made)

    return laid_out


def _bookmark(api_version: str, kind: str, event: WatchEvent[Any]) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": event.resource_version}
    if event.initial_end:
        metadata["annotations"] = _INITIAL_END
    made = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return _event(EventType.BOOKMARK.value, dump(made))


_HEADERS = (("Content-Type", JSON), ("Cache-Control", "no-cache, private"))
_PROTOBUF_HEADERS = (("Content-Type", f"{PROTOBUF};stream=watch"), ("Cache-Control", "no-cache, private"))
