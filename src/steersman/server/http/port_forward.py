"""Port forwarding: connections to ports of a pod, as streams of SPDY in a WebSocket (kubectl) or as its channels (the Python client).

kubectl opens two streams for each connection, one for data and one for an error. The Python client has two channels for each port:
they begin with the port's number.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from steersman.api.errors import ApiError
from steersman.api.generated.core_v1 import Pod
from steersman.http import spdy, websocket
from steersman.http.response import StreamingResponse
from steersman.server import status_errors
from steersman.server.http.context import Context
from steersman.server.http.remote_command import V4, upgrade
from steersman.server.kubelet_api import KubeletApi

SPDY = "SPDY/3.1+portforward.k8s.io"
MAX_CONNECTIONS = 64
"""Connections that one client forwards at once."""
MAX_PORTS = 64
"""Ports in one request of channels."""
PIECE = 16 * 1024
"""Bytes read from a connection at once."""
MAX_UNSENT = 256 * 1024
"""Bytes that wait for a connection whose peer does not read; then it is closed, as others of the same client must go on."""


async def serve_ports(
    ctx: Context, kubelets: KubeletApi, pod: Pod, ports: tuple[int, ...]
) -> StreamingResponse:
    """Forward ports of a pod for as long as the client is there."""
    _check_ports(ports)
    # The channels of a WebSocket belong to ports that are named before it is upgraded.
    socket, protocol = upgrade(ctx, (SPDY, V4) if ports else (SPDY,))
    code, lost = websocket.NORMAL, False
    try:
        async with asyncio.TaskGroup() as group:
            forwarder: _SpdyForwarder | _ChannelForwarder
            if protocol == SPDY:
                forwarder = _SpdyForwarder(socket, kubelets, pod, group)
            else:
                forwarder = _ChannelForwarder(socket, kubelets, pod, ports)
                await forwarder.start(group)
            try:
                while (data := await socket.receive()) is not None:
                    await forwarder.receive(data)
            finally:
                forwarder.close()
    except* (websocket.WebSocketError, spdy.SpdyError):
        code = websocket.PROTOCOL_ERROR
    except* ConnectionError:
        lost = True
    if lost:
        raise ConnectionResetError("the client closed the connection")
    await socket.close(code)
    return socket


def _check_ports(ports: tuple[int, ...]) -> None:
    if 0 in ports:
        raise status_errors.bad_request("port '0' must be between 1 and 65535")
    if len(ports) > MAX_PORTS:
        raise status_errors.bad_request(f"at most {MAX_PORTS} ports can be forwarded at once")


Callbacks: TypeAlias = tuple[
    Callable[[bytes], Awaitable[None]], Callable[[str], Awaitable[None]], Callable[[], Awaitable[None]]
]


class Connection:
    """A connection to a port of a pod, on its way to one stream of a client."""

    def __init__(
        self,
        kubelets: KubeletApi,
        pod: Pod,
        port: int,
        send: Callable[[bytes], Awaitable[None]],
        fail: Callable[[str], Awaitable[None]],
        done: Callable[[], Awaitable[None]],
    ) -> None:
        """``send`` sends data to the client, ``fail`` an error, ``done`` the end of the data."""
        self._kubelets = kubelets
        self._pod = pod
        self._port = port
        self._send = send
        self._fail = fail
        self._done = done
        self._unsent = bytearray()
        self._ended = False
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, group: asyncio.TaskGroup) -> None:
        """Connect, and forward until one side ends."""
        self._task = group.create_task(self._run(), name="port-forward")

    async def _run(self) -> None:
        meta, port = self._pod.metadata, self._port
        try:
            reader, self._writer = await self._kubelets.dial(self._pod, port)
        except (OSError, ApiError) as error:
            why = (
                error.message
                if isinstance(error, ApiError)
                else f"failed to connect: {error.strerror or error}"
            )
            await self._fail(f"error forwarding port {port} to pod {meta.name}, uid {meta.uid}: {why}")
            await self._done()
            return
        try:
            if self._unsent:
                self._writer.write(bytes(self._unsent))
                self._unsent.clear()
            if self._ended:
                self._end_input(self._writer)
            try:
                while data := await reader.read(PIECE):
                    await self._send(data)
            except OSError as error:
                await self._fail(f"error forwarding port {port} to pod {meta.name}, uid {meta.uid}: {error}")
            await self._done()
        finally:
            self._writer.close()

    def write(self, data: bytes) -> None:
        """Take data of the client."""
        writer = self._writer
        if writer is None:
            self._unsent += data
            held = len(self._unsent)
        elif writer.is_closing():
            return
        else:
            writer.write(data)
            held = writer.transport.get_write_buffer_size()
        if held > MAX_UNSENT:
            self.cancel()

    def end(self) -> None:
        """The client sends no more."""
        self._ended = True
        if self._writer is not None:
            self._end_input(self._writer)

    @staticmethod
    def _end_input(writer: asyncio.StreamWriter) -> None:
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()

    def cancel(self) -> None:
        """Give the connection up."""
        if self._writer is not None:
            self._writer.transport.abort()
        if self._task is not None:
            self._task.cancel()


class _SpdyForwarder:
    """The streams of kubectl: pairs of an error stream and a data stream with the same request id."""

    def __init__(
        self, socket: websocket.WebSocket, kubelets: KubeletApi, pod: Pod, group: asyncio.TaskGroup
    ) -> None:
        self._socket = socket
        self._kubelets = kubelets
        self._pod = pod
        self._group = group
        self._reader = spdy.FrameReader()
        self._frames = spdy.FrameWriter()
        self._errors: dict[str, int] = {}
        """The error streams whose data stream is not there yet, by request id."""
        self._connections: dict[int, Connection] = {}
        """By data stream."""

    async def receive(self, data: bytes) -> None:
        for frame in self._reader.receive(data):
            match frame:
                case spdy.NewStream():
                    await self._open(frame)
                case spdy.Data():
                    if (connection := self._connections.get(frame.stream)) is not None:
                        if frame.data:
                            connection.write(frame.data)
                        if frame.fin:
                            connection.end()
                case spdy.Reset():
                    if (reset := self._connections.pop(frame.stream, None)) is not None:
                        reset.cancel()
                case spdy.Ping():
                    await self._socket.send(self._frames.ping(frame.number))

    async def _open(self, new: spdy.NewStream) -> None:
        headers, stream = new.headers, new.stream
        request, port = headers.get("requestid", ""), headers.get("port", "")
        number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
        room = len(self._connections) + len(self._errors) < 2 * MAX_CONNECTIONS and len(request) < 64
        known = stream in self._connections or stream in self._errors.values()
        match headers.get("streamtype", ""):
            case "error" if room and not known and request not in self._errors:
                self._errors[request] = stream
                await self._socket.send(self._frames.reply(stream))
            case "data" if (
                0 < number < 65536
                and not known
                and request in self._errors
                and len(self._connections) < MAX_CONNECTIONS
            ):
                await self._socket.send(self._frames.reply(stream))
                self._connect(stream, self._errors.pop(request), number)
                if new.fin:
                    self._connections[stream].end()
            case _:
                await self._socket.send(self._frames.reset(stream, spdy.REFUSED_STREAM))

    def _connect(self, stream: int, error: int, port: int) -> None:
        socket, frames = self._socket, self._frames

        async def send(data: bytes) -> None:
            await socket.send(frames.data(stream, data))

        async def fail(message: str) -> None:
            await socket.send(frames.data(error, message.encode()))

        async def done() -> None:
            self._connections.pop(stream, None)
            await socket.send(frames.data(stream, b"", fin=True) + frames.data(error, b"", fin=True))

        connection = Connection(self._kubelets, self._pod, port, send, fail, done)
        self._connections[stream] = connection
        connection.start(self._group)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.cancel()


class _ChannelForwarder:
    """The channels of the Python client: two for each port of the request."""

    def __init__(
        self, socket: websocket.WebSocket, kubelets: KubeletApi, pod: Pod, ports: tuple[int, ...]
    ) -> None:
        self._socket = socket
        self._ports = ports
        self._open = len(ports)
        self._connections = [
            Connection(kubelets, pod, port, *self._callbacks(number)) for number, port in enumerate(ports)
        ]

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Open all channels, and connect."""
        for number, port in enumerate(self._ports):
            for channel in (2 * number, 2 * number + 1):
                await self._socket.send(struct.pack("<BH", channel, port))
        for connection in self._connections:
            connection.start(group)

    def _callbacks(self, number: int) -> Callbacks:
        socket, data_channel, error_channel = self._socket, bytes((2 * number,)), bytes((2 * number + 1,))

        async def send(data: bytes) -> None:
            await socket.send(data_channel + data)

        async def fail(message: str) -> None:
            await socket.send(error_channel + message.encode())

        async def done() -> None:
            # A channel cannot be closed alone: all are closed after the last one.
            self._open -= 1
            if not self._open:
                socket.finish()

        return send, fail, done

    async def receive(self, data: bytes) -> None:
        number, odd = divmod(data[0], 2) if data else (-1, 1)
        if not odd and 0 <= number < len(self._connections) and len(data) > 1:
            self._connections[number].write(data[1:])

    def close(self) -> None:
        for connection in self._connections:
            connection.cancel()
