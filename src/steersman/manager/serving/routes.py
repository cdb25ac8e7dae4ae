"""Which path is answered by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from steersman.manager.serving import debug, profile
from steersman.manager.serving.health import METRICS, Check, Health
from steersman.manager.serving.responses import JSON, NOSNIFF, NOT_FOUND, Answer
from steersman.manager.serving.zpages import Page
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.controller_runner import ControllerRunner

EPOCH = datetime.fromtimestamp(0, UTC)
CRASHES = 10
"""Rounds in a row that end in an error of the program itself, after which a controller does not count as well."""


class Asked(NamedTuple):
    """What a request asks for."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    accept: str = ""
    body: bytes = b""


class Routes:
    """What a manager answers. Controllers appear when they are started."""

    def __init__(
        self,
        *,
        metrics: Callable[[], bytes],
        configz: Callable[[], Mapping[str, Any]],
        pages: Mapping[str, Page],
        profiling: bool = False,
        talk: Callable[[int], object] = lambda verbosity: None,
        started: datetime = EPOCH,
    ) -> None:
        """``pages`` are further ones by their paths; ``talk`` changes how much is logged."""
        self.health = Health()
        self._started = (("Process-Start-Time-Unix", f"{started.timestamp():.0f}"),)
        self._metrics = metrics
        self._configz = configz
        self._pages = pages
        self._profiling = profiling
        self._talk = talk
        self._controllers: dict[str, tuple[ControllerGroup, ControllerRunner[Any]]] = {}

    def follow(self, fleet: ControllerGroup) -> None:
        """Controllers are about to start: look after them."""
        self._controllers |= {host.controller.name: (fleet, host) for host in fleet.hosts}
        self.health.add({host.controller.name: _well(host) for host in fleet.hosts})

    async def answer(self, asked: Asked) -> Answer:
        """The answer to who may ask."""
        path, query = asked.path, asked.query
        match path.split("/")[1:]:
            case ["healthz"]:
                return self.health.answer(query)
            case ["healthz", name]:
                return self.health.one(name)
            case ["metrics"]:
                return Answer(self._metrics(), 200, METRICS, self._started)
            case ["metrics", "slis"]:
                return self.health.reset() if asked.method == "DELETE" else self.health.indicators()
            case ["configz"]:
                return Answer(msgspec.json.encode(self._configz()), 200, JSON, (NOSNIFF,))
            case ["debug", "controllers", name] if name in self._controllers:
                return debug.view(*self._controllers[name], query)
            case ["debug", "pprof"] if self._profiling:
                page = b'<a href="/debug/pprof/">Found</a>.\n\n'
                return Answer(page, 302, "text/html; charset=utf-8", (("Location", "/debug/pprof/"),))
            case ["debug", "pprof", name] if self._profiling:
                return await profile.serve(name, query)
            case ["debug", "flags", "v"] if self._profiling:
                return self._verbosity(asked)
        if path in self._pages:
            return self._pages[path].answer(asked.accept)
        return NOT_FOUND

    def _verbosity(self, asked: Asked) -> Answer:
        """``PUT /debug/flags/v``: log more, or less, from now on."""
        said = asked.body.decode("utf-8", "replace")
        if asked.method != "PUT":
            code, told = 406, "unsupported http method"
        elif not said.isdecimal():
            code, told = 400, f'strconv.ParseUint: parsing "{said}": invalid syntax'
        else:
            self._talk(int(said))
            code, told = 200, f"successfully set klog.logging.verbosity to {said}"
        return Answer(f"{told}\n".encode(), code, "text/plain", (NOSNIFF,))


def _well(host: ControllerRunner[Any]) -> Check:
    """A controller is not well when it can only crash.

    What the API server refuses is no illness: a quota that is used up would have the whole manager restarted.
    """

    def check() -> str | None:
        if host.crashes < CRASHES:
            return None
        return f"{host.crashes} rounds in a row ended in an error of the program; see the log"

    return check
