"""Connect: requests that a kubelet, a pod or a Service answers, and what admission is shown of them.

exec, attach, port forwarding and proxying have no object of their own. Admission is asked about the operation CONNECT, with the
options of the request as its object, before anything is looked up or upgraded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import Struct
from steersman.http.target import Query, first, flag
from steersman.server import status_errors
from steersman.server.rest.request import Request
from steersman.server.server import Server

_PORT = re.compile("[0-9]+").fullmatch


class PodExecOptions(Struct, frozen=True, gc=False):
    """The options of a command to run in a container."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""
    command: tuple[str, ...] | msgspec.UnsetType | None = msgspec.UNSET
    """Shown also where there is none: null."""


class PodAttachOptions(Struct, frozen=True, gc=False):
    """The options of attaching to a container."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class PodPortForwardOptions(Struct, frozen=True, gc=False):
    """The options of forwarding ports of a pod."""

    ports: tuple[int, ...] = ()


class ProxyOptions(Struct, frozen=True, gc=False):
    """The options of a request that is passed on."""

    path: str = ""
    """The path of the request below the subresource."""


class PodProxyOptions(ProxyOptions, frozen=True, gc=False):
    """The options of a request to a pod."""


class ServiceProxyOptions(ProxyOptions, frozen=True, gc=False):
    """The options of a request to a Service."""


class NodeProxyOptions(ProxyOptions, frozen=True, gc=False):
    """The options of a request to a kubelet."""


ConnectOptions: TypeAlias = PodExecOptions | PodAttachOptions | PodPortForwardOptions | ProxyOptions


def connect_options(
    plural: str, subresource: str, query: Query, path: str, rest: tuple[str, ...]
) -> ConnectOptions:
    """The options of a request for a subresource that is connected to. Raises `BadRequest`.

    ``path`` is that of the whole request, and ``rest`` its segments after the subresource.
    """
    if query.get("dryRun"):
        raise status_errors.bad_request("dryRun is not supported")
    return _OPTIONS[plural, subresource](query, _subpath(path, rest))


def admit_connect(server: Server, request: Request, options: ConnectOptions) -> ConnectOptions:
    """Asks admission about a connection; returns its options, which mutating admission may have changed."""
    server.request_warnings.clear()
    admission = server.attributes(
        "CONNECT",
        request.resource,
        request.subresource,
        request.namespace,
        request.name,
        options,
        None,
        request,
    )
    changed: ConnectOptions = server.admit(admission)
    server.validate(replace(admission, obj=changed))
    return changed


def _subpath(path: str, rest: tuple[str, ...]) -> str:
    """The path below the subresource, with a slash at its end where the whole path has one."""
    below = "/".join(rest)
    if below and not below.startswith("/"):
        below = f"/{below}"
    return f"{below}/" if path.endswith("/") and not below.endswith("/") else below


def _exec(query: Query, path: str) -> PodExecOptions:
    command = query.get("command")
    return PodExecOptions(**_streams(query), command=None if command is None else tuple(command))


def _attach(query: Query, path: str) -> PodAttachOptions:
    return PodAttachOptions(**_streams(query))


def _streams(query: Query) -> dict[str, Any]:
    streams = {name: flag(query, name) for name in ("stdin", "stdout", "stderr", "tty")}
    return {**streams, "container": first(query, "container")}


def _ports(query: Query, path: str) -> PodPortForwardOptions:
    texts = [text for value in query.get("ports", ()) for text in value.split(",")]
    for text in texts:
        problem = ""
        if not _PORT(text):
            problem = "invalid syntax"
        elif len(text.lstrip("0")) > 5 or int(text) > 65535:
            problem = "value out of range"
        if problem:
            shown = status_errors.quote(text[:64])
            raise status_errors.bad_request(
                f"cannot convert to []int32: strconv.ParseUint: parsing {shown}: {problem}"
            )
    return PodPortForwardOptions(ports=tuple(map(int, texts)))


_OPTIONS: Mapping[tuple[str, str], Callable[[Query, str], ConnectOptions]] = {
    ("pods", "exec"): _exec,
    ("pods", "attach"): _attach,
    ("pods", "portforward"): _ports,
    ("pods", "proxy"): lambda query, path: PodProxyOptions(path=path),
    ("services", "proxy"): lambda query, path: ServiceProxyOptions(path=path),
    ("nodes", "proxy"): lambda query, path: NodeProxyOptions(path=path),
}
