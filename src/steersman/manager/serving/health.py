"""Health checks: ``/healthz``, in upstream's text format.

A check is a function that returns an error, or None. The error is shown only at ``/healthz/NAME``, which needs permission:
``/healthz`` itself is open to all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from steersman.manager.serving.responses import NOT_FOUND, TEXT, Response, error_response, text_response

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], str | None]
Query: TypeAlias = Mapping[str, Sequence[str]]

METRICS = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
PING = "ping"


class Health:
    """The health checks of a manager, and their results."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._last: dict[str, bool] = {}
        self._counts: dict[tuple[str, bool], int] = {}

    def add(self, checks: Mapping[str, Check]) -> None:
        """Add checks by name."""
        self._checks |= checks

    @property
    def _all(self) -> Mapping[str, Check]:
        # As upstream: without other checks, at least a ping.
        return self._checks or {PING: _well}

    def answer(self, query: Query) -> Response:
        """``/healthz``."""
        excluded = query.get("exclude", ())
        lines, failed = [], []
        for name, check in self._all.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            wrong = check()
            self._count(name, wrong is None)
            if wrong is None:
                lines.append(f"[+]{name} ok")
            else:
                lines.append(f"[-]{name} failed: reason withheld")
                failed.append(f"{name}: {wrong}")
        unknown = sorted(dict.fromkeys(name for name in excluded if name not in self._all))
        if unknown:
            names = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            log.info("healthz check failed: %s", "; ".join(failed))
            return error_response(500, "\n".join([*lines, "healthz check failed"]))
        if "verbose" not in query:
            return text_response("ok")
        return text_response("".join(f"{line}\n" for line in [*lines, "healthz check passed"]))

    def check(self, name: str) -> Response:
        """``/healthz/NAME``. differs: upstream's controller manager has no such path."""
        check = {PING: _well, **self._all}.get(name)
        if check is None:
            return NOT_FOUND
        wrong = check()
        return (
            text_response("ok") if wrong is None else error_response(500, f"internal server error: {wrong}")
        )

    # -- metrics/slis -------------------------------------------------------------------------

    def _count(self, name: str, well: bool) -> None:
        self._last[name] = well
        self._counts[name, well] = self._counts.get((name, well), 0) + 1

    def slis(self) -> Response:
        """``/metrics/slis``: the results of all checks, for service level indicators."""
        return Response("".join(f"{line}\n" for line in self._lines()).encode(), 200, METRICS)

    def reset(self) -> Response:
        """``DELETE /metrics/slis``: reset the results."""
        self._last.clear()
        self._counts.clear()
        return Response(b"metrics reset\n", 200, TEXT)

    def _lines(self) -> Iterable[str]:
        if not self._last:
            return
        name = "kubernetes_healthcheck"
        yield f"# HELP {name} [STABLE] This metric records the result of a single healthcheck."
        yield f"# TYPE {name} gauge"
        for check in sorted(self._last):
            yield f'{name}{{name="{check}",type="healthz"}} {int(self._last[check])}'
        name = "kubernetes_healthchecks_total"
        yield f"# HELP {name} [STABLE] This metric records the results of all healthcheck."
        yield f"# TYPE {name} counter"
        for check, well in sorted(self._counts):
            status = "success" if well else "error"
            yield f'{name}{{name="{check}",status="{status}",type="healthz"}} {self._counts[check, well]}'


def _well() -> str | None:
    return None
