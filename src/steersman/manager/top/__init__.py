"""``steersman top``: the controllers of a running manager at work, live on a terminal or once for pipes.

Answers of ``/debug/rounds`` (`answer`) become a picture (`model`), which `draw` and `columns` show; `keys` changes what is
shown, and `session` has the terminal.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Self

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.client.tls import TlsMaterial, load_material
from steersman.explain.collect import UnknownKind, find_kind
from steersman.manager import output, process
from steersman.manager.flags import UsageError
from steersman.manager.node import connect
from steersman.manager.top.answer import read_answer
from steersman.manager.top.columns import text
from steersman.manager.top.keys import View
from steersman.manager.top.model import Picture, advance, document
from steersman.manager.top.owners import Contest, Suspect, compare, name_fights, owners_of, suspects
from steersman.manager.trace_client import NoTrace, read_rounds, trace_connection
from steersman.manager.verb import Given
from steersman.runtime.trace_view import MAX_LIMIT

TIMEOUT = 10.0
"""Seconds to wait for an answer."""
LEAST_INTERVAL = 0.1
MAX_ANSWERS = 5
"""Answers that are read at once while there are more rounds; a busy manager has always more."""
MAX_CONTESTS = 32
"""Objects whose owners of fields are remembered."""


def main(given: Given) -> int:
    """Entry point of ``steersman top``."""
    interval = given.values["interval"]
    if not LEAST_INTERVAL <= interval < math.inf:
        raise UsageError(f"--interval must be at least {LEAST_INTERVAL} seconds, but got {interval:g}")
    controller = _controller(given.values["controller"])
    try:
        return process.run(_show(controller, given))
    except (ConfigError, NoTrace) as error:
        raise UsageError(str(error)) from None


def _controller(word: str) -> str:
    """The name of a controller, from its name or alias. Other names may be those of controllers of other authors."""
    if not word:
        return ""
    from steersman.manager.controller_selection import KNOWN

    return next(
        (
            name
            for name, aliases in KNOWN.items()
            if word in (name, name.removesuffix("-controller"), *aliases)
        ),
        word,
    )


class Endpoints(msgspec.Struct, frozen=True):
    """Where answers come from, with the certificates that their files hold now."""

    trace: ClientConfig
    cluster: ClientConfig
    certificates: tuple[TlsMaterial, TlsMaterial]


def read_endpoints(given: Given) -> Endpoints:
    """Read the kubeconfig and the flags. Raises `ConfigError` and `UsageError`."""
    cluster = connect(given.values["kubeconfig"])
    trace = trace_connection(cluster, given)
    return Endpoints(trace, cluster, (load_material(trace.tls), load_material(cluster.tls)))


class Source:
    """Makes pictures from the answers of a manager. An async context manager."""

    def __init__(self, read: Callable[[], Endpoints], controller: str) -> None:
        """``read`` reads the kubeconfig, and is called again when there is no answer; ``controller`` is the one to ask for, empty: all."""
        self._read = read
        self._controller = controller
        self._contests: dict[Suspect, Contest] = {}

    async def __aenter__(self) -> Self:
        await self._connect(self._read())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._connections.aclose()

    async def _connect(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._connections = AsyncExitStack()
        # The API server, and what has the trace.
        self._cluster = await self._connections.enter_async_context(HttpApi(endpoints.cluster, qps=0))
        self._api = await self._connections.enter_async_context(HttpApi(endpoints.trace, qps=0))

    @property
    def server(self) -> str:
        """The URL of what has the trace."""
        return self._endpoints.trace.server

    async def look(self, before: Picture | None = None) -> Picture:
        """The picture of now. Raises `NoTrace`.

        A `steersman up` that is started again has another CA, and may have another port: its kubeconfig has both.
        """
        try:
            return await self._look(before)
        except NoTrace:
            if before is None or not await self._reconnect():
                raise
            return await self._look(None)

    async def _reconnect(self) -> bool:
        """Read the kubeconfig again, and connect if it has changed; returns whether it has."""
        try:
            endpoints = self._read()
        except (ConfigError, UsageError):
            # It is gone, or half written: the connection that there is stays.
            return False
        if endpoints == self._endpoints:
            return False
        await self._connections.aclose()
        await self._connect(endpoints)
        return True

    async def _look(self, before: Picture | None) -> Picture:
        picture = before
        for _ in range(MAX_ANSWERS):
            query = {"limit": str(MAX_LIMIT), "controller": self._controller}
            if picture is not None:
                query["after"] = str(picture.next)
            try:
                async with asyncio.timeout(TIMEOUT):
                    found = await read_rounds(self._api, query)
                answer = read_answer(found)
            except TimeoutError:
                raise NoTrace(f"no answer from {self._api.config.server} within {TIMEOUT:g} s") from None
            except ValueError as error:
                raise NoTrace(f"{self._api.config.server}: {error}") from None
            if picture is not None and answer.last < picture.next:
                # Numbers begin anew: another process answers now.
                picture = None
                continue
            picture = advance(picture, answer, self._controller)
            if not answer.truncated or before is None:
                break
        assert picture is not None
        if before is not None:
            await self._look_at_owners(picture)
        return replace(picture, fights=name_fights(picture.fights, self._contests, picture.now))

    async def _look_at_owners(self, picture: Picture) -> None:
        """Look at the managers of the fields of objects that seem to be fought over, if the user may read them."""
        for about in suspects(picture):
            try:
                async with asyncio.timeout(TIMEOUT):
                    kind = await find_kind(self._cluster, about.resource)
                    found = await self._cluster.get(kind, about.namespace, about.name)
            except (ApiError, UnknownKind, TimeoutError):
                continue
            before = self._contests.pop(about, None)
            # The one that was looked at last is inserted last.
            self._contests[about] = compare(before, owners_of(found), picture.now)
        while len(self._contests) > MAX_CONTESTS:
            del self._contests[next(iter(self._contests))]


async def _show(controller: str, given: Given) -> int:
    form = given.values["output"]
    async with Source(partial(read_endpoints, given), controller) as source:
        picture = await source.look()
        if controller and picture.running and not picture.rows:
            raise UsageError(
                f"no controller {controller} runs there; `steersman top --once --sort=controller` lists them"
            )
        if given.values["once"] or "output" in given.set or not _is_terminal():
            if form in output.DOCUMENTS:
                print(output.document(document(picture, given.values["sort"]), form))
            else:
                print(text(picture, given.values["sort"]))
            return 0
        # rich takes a moment to import, and only a terminal needs it.
        from steersman.manager.top.session import Session

        view = View(
            sort=given.values["sort"],
            selected=picture.rows[0].controller if controller and picture.rows else "",
        )
        await Session(source, picture, view, given.values["interval"]).run()
    return 0


def _is_terminal() -> bool:
    """Whether both ends are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
