"""Routes: the paths of a manager's HTTPS endpoint and their handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from steersman.api.errors import BadRequest
from steersman.manager.serving import debug, profile
from steersman.manager.serving.health import METRICS, Check, Health
from steersman.manager.serving.responses import JSON, NOSNIFF, NOT_FOUND, Response, error_response
from steersman.manager.serving.zpages import Page
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.controller_runner import ControllerRunner
from steersman.runtime.trace_view import TraceView

EPOCH = datetime.fromtimestamp(0, UTC)
MAX_CRASHES = 10
"""Consecutive rounds that crash, after which a controller counts as unhealthy."""


class RouteRequest(NamedTuple):
    """A request, independent of the connection."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    accept: str = ""
    body: bytes = b""


class Routes:
    """Answers requests by path. Controllers are added when they start."""

    def __init__(
        self,
        *,
        metrics: Callable[[], bytes],
        configz: Callable[[], Mapping[str, Any]],
        pages: Mapping[str, Page],
        profiling: bool = False,
        set_verbosity: Callable[[int], object] = lambda verbosity: None,
        started: datetime = EPOCH,
        rounds: TraceView | None = None,
    ) -> None:
        """``pages`` are z-pages by path; ``set_verbosity`` changes the log level; ``rounds`` answers `/debug/rounds`."""
        self.health = Health()
        self._started = (("Process-Start-Time-Unix", f"{started.timestamp():.0f}"),)
        self._metrics = metrics
        self._configz = configz
        self._pages = pages
        self._profiling = profiling
        self._set_verbosity = set_verbosity
        self._rounds = rounds
        self._controllers: dict[str, tuple[ControllerGroup, ControllerRunner[Any]]] = {}

    def follow(self, fleet: ControllerGroup) -> None:
        """Add the controllers of a fleet."""
        if self._rounds is not None and fleet not in self._rounds.groups:
            self._rounds.groups.append(fleet)
        self._controllers |= {host.controller.name: (fleet, host) for host in fleet.runners}
        self.health.add({host.controller.name: _crash_check(host) for host in fleet.runners})

    async def answer(self, request: RouteRequest) -> Response:
        """Answer an authorized request."""
        path, query = request.path, request.query
        match path.split("/")[1:]:
            case ["healthz"]:
                return self.health.answer(query)
            case ["healthz", name]:
                return self.health.check(name)
            case ["metrics"]:
                return Response(self._metrics(), 200, METRICS, self._started)
            case ["metrics", "slis"]:
                return self.health.reset() if request.method == "DELETE" else self.health.slis()
            case ["configz"]:
                return Response(msgspec.json.encode(self._configz()), 200, JSON, (NOSNIFF,))
            case ["debug", "controllers", name] if name in self._controllers:
                return debug.view(*self._controllers[name], query)
            case ["debug", "rounds"] if self._rounds is not None:
                try:
                    return Response(self._rounds.answer(query), 200, JSON, (NOSNIFF,))
                except BadRequest as error:
                    return error_response(400, error.message)
            case ["debug", "pprof"] if self._profiling:
                page = b'<a href="/debug/pprof/">Found</a>.\n\n'
                return Response(page, 302, "text/html; charset=utf-8", (("Location", "/debug/pprof/"),))
            case ["debug", "pprof", name] if self._profiling:
                return await profile.serve(name, query)
            case ["debug", "flags", "v"] if self._profiling:
                return self._verbosity(request)
        if path in self._pages:
            return self._pages[path].answer(request.accept)
        return NOT_FOUND

    def _verbosity(self, request: RouteRequest) -> Response:
        """``PUT /debug/flags/v``: change the log verbosity."""
        value = request.body.decode("utf-8", "replace")
        if request.method != "PUT":
            code, message = 406, "unsupported http method"
        elif not value.isdecimal():
            code, message = 400, f'strconv.ParseUint: parsing "{value}": invalid syntax'
        else:
            self._set_verbosity(int(value))
            code, message = 200, f"successfully set klog.logging.verbosity to {value}"
        return Response(f"{message}\n".encode(), code, "text/plain", (NOSNIFF,))


def _crash_check(host: ControllerRunner[Any]) -> Check:
    """Health check of a controller: unhealthy when all its rounds crash.

    Errors of the API server do not count: an exhausted quota must not restart the whole manager.
    """

    def check() -> str | None:
        if host.crashes < MAX_CRASHES:
            return None
        return f"{host.crashes} consecutive rounds crashed; see the log"

    return check
