"""Requests that kubelets answer: logs, exec, attach, port forwarding, and proxying to nodes, pods and services."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial

from steersman.api.errors import ApiError, ServiceUnavailable, TooManyRequests
from steersman.api.generated.core_v1 import Pod, Service
from steersman.api.go_time import parse_rfc3339
from steersman.http.response import StreamingResponse
from steersman.http.target import Query, first, flag
from steersman.server import status_errors
from steersman.server.http.context import Context
from steersman.server.http.port_forward import serve_ports
from steersman.server.http.remote_command import command_options, serve_command
from steersman.server.http.responses import Response
from steersman.server.kubelet_api import CommandOptions, LogOptions
from steersman.server.registry.resources import Resource
from steersman.server.rest.connect import (
    ConnectOptions,
    PodPortForwardOptions,
    ProxyOptions,
    admit_connect,
    connect_options,
)
from steersman.server.rest.request import Request
from steersman.server.rest.restart import restartable
from steersman.server.rest.subresources import check_addresses, connect, kubelets_of
from steersman.server.status_errors import FieldError
from steersman.server.storage.watch import Selection

MAX_STREAMS = 200
"""Logs that are followed, commands and port forwardings at once."""
_TEXT = "text/plain"
_SERVICE_NAME = "kubernetes.io/service-name"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}").fullmatch


async def handle_connect(ctx: Context, resource: Resource) -> Response | StreamingResponse:
    """Any request for logs, exec, attach, port forwarding or proxying."""
    info = ctx.info
    namespace = info.namespace if resource.namespaced else ""
    request = Request(ctx.user, info.verb, resource, namespace, info.name, info.subresource)
    if info.subresource == "log":
        return await _log(ctx, request)
    given = connect_options(resource.plural, info.subresource, ctx.query, info.path, info.rest)
    given = await _admitted(ctx, request, given)
    if isinstance(given, ProxyOptions):
        return _proxy(ctx, request, given)
    container = "" if isinstance(given, PodPortForwardOptions) else given.container
    pod = connect(ctx.server, request, container)
    assert pod is not None, "only the log of a pod without a node is no error"
    check_addresses(ctx.server, pod.spec.nodeName, "pods")
    kubelets = kubelets_of(ctx.server, request)
    container = container or pod.spec.containers[0].name
    command = CommandOptions() if isinstance(given, PodPortForwardOptions) else command_options(ctx, given)
    kubelets.authorize(pod, container, info.subresource, command)
    tasks = await _enter(ctx)
    try:
        if isinstance(given, PodPortForwardOptions):
            return await serve_ports(ctx, kubelets, pod, given.ports)
        return await serve_command(ctx, kubelets, pod, container, command)
    finally:
        tasks.pop(asyncio.current_task(), None)


async def _admitted(ctx: Context, request: Request, options: ConnectOptions) -> ConnectOptions:
    """Asks admission about a request. Warnings are sent also where it is refused."""
    known = len(ctx.warnings)

    def run() -> ConnectOptions:
        try:
            return ctx.audited(partial(admit_connect, ctx.server, request, options))
        finally:
            ctx.warnings[known:] = ctx.server.request_warnings

    return await restartable(ctx.server, run, ctx.warnings)


async def _enter(ctx: Context) -> dict[asyncio.Task[object] | None, None]:
    """Count a stream among those of the server, which ends them when it closes. Raises `TooManyRequests`."""
    tasks = ctx.state.streams
    if len(tasks) >= MAX_STREAMS:
        raise TooManyRequests(
            f"too many streams: {MAX_STREAMS} logs, commands and port forwardings are open",
            reason="TooManyRequests",
            retry_after=1.0,
        )
    # A handler becomes a task when it first waits.
    await asyncio.sleep(0)
    tasks[asyncio.current_task()] = None
    return tasks


# -- logs -------------------------------------------------------------------------------------


async def _log(ctx: Context, request: Request) -> Response | StreamingResponse:
    """The log of a container."""
    container = first(ctx.query, "container")
    options = _log_options(ctx, request.name)
    pod = connect(ctx.server, request, container)
    if pod is None:
        return Response(b"", 204, "")
    check_addresses(ctx.server, pod.spec.nodeName, "pods")
    kubelets = kubelets_of(ctx.server, request)
    pieces = kubelets.log(pod, container or pod.spec.containers[0].name, options)
    return await _streamed(ctx, pieces) if options.follow else await _send_log(ctx, pieces)


def _log_options(ctx: Context, name: str) -> LogOptions:
    """The options of a request for a log, validated as upstream does. Raises `BadRequest` and `Invalid`."""
    query, wrong = ctx.query, []
    tail, limit, seconds = (_integer(query, each) for each in ("tailLines", "limitBytes", "sinceSeconds"))
    if tail is not None and tail < 0:
        wrong.append(status_errors.field_invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        wrong.append(status_errors.field_invalid("limitBytes", limit, "must be greater than 0"))
    since = _since(ctx, seconds, wrong)
    if first(query, "stream"):
        # The feature gate PodLogsQuerySplitStreams is off by default.
        wrong.append(status_errors.field_forbidden("stream", "may not be specified"))
    if wrong:
        raise status_errors.invalid("", "PodLogOptions", name, wrong)
    options = LogOptions(
        flag(query, "follow"), flag(query, "previous"), since, flag(query, "timestamps"), tail, limit
    )
    return options


def _integer(query: Query, name: str) -> int | None:
    text = first(query, name)
    if not text:
        return None
    if not _INTEGER(text):
        raise status_errors.bad_request(
            f"strconv.ParseInt: parsing {status_errors.quote(text[:64])}: invalid syntax"
        )
    return int(text)


def _since(ctx: Context, seconds: int | None, wrong: list[FieldError]) -> datetime | None:
    text = first(ctx.query, "sinceTime")
    if seconds is not None and text:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        wrong.append(status_errors.field_forbidden("[]", detail))  # upstream's path of no field
    elif seconds is not None:
        if seconds < 1:
            wrong.append(status_errors.field_invalid("sinceSeconds", seconds, "must be greater than 0"))
        else:
            return ctx.server.clock.now() - timedelta(seconds=min(seconds, 10**9))
    elif text:
        try:
            return parse_rfc3339(text)
        except ValueError as error:
            shown = status_errors.quote(text[:64])
            layout = "2006-01-02T15:04:05Z07:00"
            raise status_errors.bad_request(
                f'parsing time {shown} as "{layout}": cannot parse {shown} as "2006"'
            ) from error
    return None


async def _streamed(ctx: Context, pieces: AsyncIterator[bytes]) -> StreamingResponse:
    tasks = await _enter(ctx)
    try:
        return await _send_log(ctx, pieces)
    finally:
        tasks.pop(asyncio.current_task(), None)


async def _send_log(ctx: Context, pieces: AsyncIterator[bytes]) -> StreamingResponse:
    response = StreamingResponse(ctx.http.writer)
    response.begin((("Content-Type", _TEXT), ("Cache-Control", "no-cache, private")))
    async for piece in pieces:
        if piece:
            await response.write(piece)
    return response


# -- proxying ---------------------------------------------------------------------------------


def _proxy(ctx: Context, request: Request, options: ProxyOptions) -> Response:
    """Pass a request on: to the kubelet of a node, which answers; to a pod or service, where nothing listens."""
    server, resource = ctx.server, request.resource
    _, name, port = split_name(request.name, resource.kind.lower())
    if resource.plural == "nodes":
        node = server.get(resource, "", name)
        check_addresses(server, name, "nodes")
        kubelets = kubelets_of(server, request)
        kubelet_port = str(node.status.daemonEndpoints.kubeletEndpoint.Port or 10250)
        if port and port != kubelet_port:
            address = next((each.address for each in node.status.addresses), name)
            raise _unreachable(f"dial tcp {address}:{port}: connect: connection refused")
        if ctx.http.method not in ("GET", "HEAD"):
            return Response(b"405 method not allowed\n", 405, _TEXT)
        answer = kubelets.answer(node, options.path.strip("/"))
        return Response(answer.body, answer.status, answer.content_type)
    found = server.get(resource, request.namespace, name)
    if isinstance(found, Pod):
        ports = [each.containerPort for container in found.spec.containers for each in container.ports]
        address, port = found.status.podIP, port or str(ports[0] if ports else 80)
        if not address:
            raise status_errors.bad_request("address not allowed")
        raise _unreachable(f"dial tcp {address}:{port}: connect: connection refused")
    assert isinstance(found, Service)
    if port.isdigit() and all(str(each.port) != port for each in found.spec.ports):
        raise ServiceUnavailable(
            f'no service port {port} found for service "{name}"', reason="ServiceUnavailable"
        )
    slices = server.store.table("endpointslices.discovery.k8s.io").select(Selection(found.metadata.namespace))
    if not any(each.metadata.labels.get(_SERVICE_NAME) == name for each in slices):
        raise status_errors.not_found("", "services", name)
    raise ServiceUnavailable(
        f'no endpoints available for service "{request.name}"', reason="ServiceUnavailable"
    )


def split_name(text: str, kind: str = "node") -> tuple[str, str, str]:
    """The scheme, name and port of an object to proxy to: ``name``, ``name:port``, ``scheme:name:port``."""
    parts = text.split(":")
    match parts:
        case [name]:
            return "", name, ""
        case [name, port]:
            return "", name, port
        case ["" | "http" | "https" as scheme, name, port]:
            return scheme, name, port
    raise status_errors.bad_request(f"invalid {kind} request {status_errors.quote(text)}")


def _unreachable(why: str) -> ApiError:
    return ServiceUnavailable(f"error trying to reach service: {why}", reason="ServiceUnavailable")
