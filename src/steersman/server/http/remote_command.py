"""exec and attach: commands whose streams are channels of a WebSocket, as kubectl 1.30 and later and the Python client use them.

Every message begins with the number of its channel: 0 to 2 are stdin, stdout and stderr, 3 is the final Status, 4 the size of the
terminal. In version 5 a message of 255 and a channel's number closes that channel, so a command sees the end of its input.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
from typing import Any

from steersman.api.errors import ApiError
from steersman.api.generated.core_v1 import Pod
from steersman.http import websocket
from steersman.http.response import StreamingResponse
from steersman.server import status_errors
from steersman.server.http.context import Context
from steersman.server.kubelet_api import CommandOptions, KubeletApi, TerminalSize
from steersman.server.rest.connect import PodAttachOptions, PodExecOptions

_log = logging.getLogger(__name__)

V5, V4, V4_BASE64 = "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"
PROTOCOLS = (V5, V4, V4_BASE64)
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
MAX_TERMINAL = 10_000
"""Rows and columns of a terminal."""


def command_options(ctx: Context, given: PodExecOptions | PodAttachOptions) -> CommandOptions:
    """The command of exec or attach. Raises `BadRequest`."""
    query = ctx.query
    attach = isinstance(given, PodAttachOptions)
    command = () if isinstance(given, PodAttachOptions) else given.command or ()
    options = CommandOptions(
        command,
        given.stdin,
        given.stdout or (attach and "stdout" not in query),
        given.stderr or (attach and "stderr" not in query),
        given.tty,
    )
    if not attach and not (command and command[0]):
        raise status_errors.bad_request("you must specify at least 1 command for the container")
    if not (options.stdin or options.stdout or options.stderr):
        raise status_errors.bad_request("you must specify at least one of stdin, stdout, stderr")
    if options.tty and given.stderr:
        raise status_errors.bad_request("tty and stderr cannot both be true")
    return options


def upgrade(ctx: Context, protocols: tuple[str, ...]) -> tuple[websocket.WebSocket, str]:
    """Upgrade a request to a WebSocket, with the first of these protocols that the client offers. Raises `BadRequest`."""
    headers = ctx.http.headers
    if not websocket.is_upgrade(headers):
        wanted = headers.get("Upgrade")
        detail = f"; {wanted} is not served" if wanted else ""
        raise status_errors.bad_request(
            f"Upgrade request required: {ctx.info.subresource} is served over WebSocket{detail}"
        )
    if error := websocket.refusal(ctx.http):
        raise status_errors.bad_request(error)
    protocol = websocket.choose(websocket.subprotocols(headers), protocols)
    if not protocol:
        raise status_errors.bad_request(
            f"none of the offered protocols is served; {ctx.info.subresource} has {', '.join(protocols)}"
        )
    socket = websocket.WebSocket(ctx.http)
    socket.accept(ctx.http, protocol)
    return socket, protocol


async def serve_command(
    ctx: Context, kubelets: KubeletApi, pod: Pod, container: str, options: CommandOptions
) -> StreamingResponse:
    """Run a command, or attach, for as long as both the command and the client are there."""
    socket, protocol = upgrade(ctx, PROTOCOLS)
    channels = Channels(socket, protocol, options)
    code = websocket.NORMAL
    try:
        try:
            status = final_status(await kubelets.run(pod, container, options, channels))
        except ApiError as error:
            status = _failure(error.message, str(error.reason) or "InternalError", error.code)
        except (ConnectionError, websocket.WebSocketError):
            raise
        except Exception:
            # The connection has left HTTP: the error cannot be answered there.
            _log.exception("%s failed in pod %s", ctx.info.subresource, pod.key)
            status = _failure("see the server's log", "InternalError", 500)
        await channels.send(ERROR, json.dumps(status, separators=(",", ":")).encode())
    except websocket.WebSocketError as error:
        code = error.code
    await socket.close(code)
    return socket


def final_status(ended: int | str) -> dict[str, Any]:
    """The Status that a command ends with, as kubelets write it: by its exit code, or why it could not be run."""
    if isinstance(ended, str):
        return _failure(ended, "InternalError", 500)
    if not ended:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {ended}"
    causes = [{"reason": "ExitCode", "message": str(ended)}]
    return {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "NonZeroExitCode",
        "details": {"causes": causes},
    }


def _failure(message: str, reason: str, code: int) -> dict[str, Any]:
    if reason == "InternalError":
        message = f"Internal error occurred: {message}"
    return {"metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


class Channels:
    """The streams of a command as channels of a WebSocket. A `CommandStreams`."""

    def __init__(self, socket: websocket.WebSocket, protocol: str, options: CommandOptions) -> None:
        self._socket = socket
        self._protocol = protocol
        self._options = options

    async def read(self) -> bytes | TerminalSize:
        """The next input or size of the terminal; empty once the client has closed its input or the connection."""
        while True:
            data = await self._socket.receive()
            if data is None:
                return b""
            channel, data = self._split(data)
            if channel == STDIN and data:
                return data
            if channel == CLOSE and data == b"\x00" and self._protocol == V5:
                return b""
            if channel == RESIZE and (size := terminal_size(data)) is not None:
                return size

    async def write(self, data: bytes, *, error: bool = False) -> None:
        if self._options.stderr if error else self._options.stdout:
            await self.send(STDERR if error else STDOUT, data)

    async def send(self, channel: int, data: bytes) -> None:
        """Send a message on a channel."""
        if self._protocol == V4_BASE64:
            await self._socket.send(b"%d%b" % (channel, base64.b64encode(data)))
        else:
            await self._socket.send(bytes((channel,)) + data)

    def _split(self, data: bytes) -> tuple[int, bytes]:
        """The channel of a message, and its data; -1 where it has none."""
        if not data:
            return -1, b""
        if self._protocol != V4_BASE64:
            return data[0], data[1:]
        try:
            return data[0] - ord("0"), base64.b64decode(data[1:], validate=True)
        except binascii.Error:
            return -1, b""


def terminal_size(data: bytes) -> TerminalSize | None:
    """A size that a client sent; None where it is invalid."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    width, height = (found.get(name) for name in ("Width", "Height")) if isinstance(found, dict) else (0, 0)
    if type(width) is not int or type(height) is not int:
        return None
    if not (0 < width <= MAX_TERMINAL and 0 < height <= MAX_TERMINAL):
        return None
    return TerminalSize(width, height)
