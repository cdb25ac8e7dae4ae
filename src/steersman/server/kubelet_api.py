"""KubeletApi: what the API server asks kubelets for. The simulation implements it (`Server.kubelets`)."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

import msgspec

from steersman.api.generated.core_v1 import Node, Pod


class LogOptions(msgspec.Struct, frozen=True):
    """Which part of a container's log is asked for."""

    follow: bool = False
    previous: bool = False
    """The log of the container before its last restart."""
    since: datetime | None = None
    timestamps: bool = False
    tail: int | None = None
    """Lines at the end of the log, before ``since`` is applied."""
    limit: int | None = None
    """Bytes."""


class CommandOptions(msgspec.Struct, frozen=True):
    """A command to run in a container, or to attach to."""

    command: tuple[str, ...] = ()
    """The command and its arguments; none to attach."""
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class TerminalSize(msgspec.Struct, frozen=True):
    width: int
    height: int


class CommandStreams(Protocol):
    """The streams of a command that runs for a client."""

    async def read(self) -> bytes | TerminalSize:
        """The next input, or a new size of the terminal; empty at the end of the input."""
        ...

    async def write(self, data: bytes, *, error: bool = False) -> None:
        """Send output, or error output, and wait while the client reads slowly."""
        ...


class KubeletAnswer(msgspec.Struct, frozen=True):
    """The answer of a kubelet to a request that is passed on to it."""

    body: bytes
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


class KubeletApi(Protocol):
    """The kubelets of a control plane. All methods may raise `ApiError`."""

    def log(self, pod: Pod, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a container. An error is raised before the first piece is awaited."""
        ...

    def authorize(self, pod: Pod, container: str, subresource: str, options: CommandOptions) -> None:
        """Refuse a command, an attachment or a forwarded port, before its connection is upgraded."""
        ...

    async def run(
        self, pod: Pod, container: str, options: CommandOptions, streams: CommandStreams
    ) -> int | str:
        """Run a command for a client, or attach to the container; returns the exit code, or why it could not be run."""
        ...

    async def dial(self, pod: Pod, port: int) -> tuple[StreamReader, StreamWriter]:
        """Connect to a port of a pod. Raises `OSError`."""
        ...

    def answer(self, node: Node, path: str) -> KubeletAnswer:
        """The answer of a node's kubelet to a GET request."""
        ...
