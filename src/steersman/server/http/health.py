"""Is it alive, is it ready, and what has it done."""

from __future__ import annotations

from steersman.api.errors import ApiError
from steersman.server.http.context import Context
from steersman.server.http.metrics import CONTENT_TYPE
from steersman.server.http.responses import Answer

CHECKS = ("ping", "store", "crd-informer-synced")
"""What is looked at. The server is one process and its state in memory, so there is little to look at."""

_TEXT = "text/plain; charset=utf-8"
_PLAIN = (("X-Content-Type-Options", "nosniff"),)


def serve(ctx: Context, name: str, check: str) -> Answer | None:
    """``/healthz``, ``/livez`` and ``/readyz``, and each check below them; None for what is no check."""
    failed = _failed(ctx)
    if check:
        if check not in CHECKS:
            return None
        return _wrong(failed[check]) if check in failed else Answer(b"ok", 200, _TEXT)
    excluded = ctx.query.get("exclude", ())
    failing = [each for each in CHECKS if each in failed and each not in excluded]
    if "verbose" not in ctx.query and not failing:
        return Answer(b"ok", 200, _TEXT, _PLAIN)
    lines = [_line(each, each in excluded, each in failed) for each in CHECKS]
    unknown = [each for each in sorted(dict.fromkeys(excluded)) if each not in CHECKS]
    if unknown:
        told = ",".join(f'"{each}"' for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {told}")
    lines.append(f"{name} check {'failed' if failing else 'passed'}")
    return Answer("".join(f"{line}\n" for line in lines).encode(), 500 if failing else 200, _TEXT, _PLAIN)


def _line(check: str, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    # Why is in the log: anybody may ask.
    return f"[-]{check} failed: reason withheld" if failed else f"[+]{check} ok"


def _failed(ctx: Context) -> dict[str, str]:
    """The checks that fail, and why."""
    gate = ctx.plant.server.store.write_gate
    try:
        if gate is not None:
            gate()
    except ApiError as error:
        return {"store": error.message}
    return {}


def _wrong(why: str) -> Answer:
    return Answer(f"internal server error: {why}\n".encode(), 500, _TEXT, _PLAIN)


def metrics(ctx: Context) -> Answer:
    """``/metrics``."""
    plant = ctx.plant
    text = plant.metrics.text(plant.server.store, plant.watches.resources())
    return Answer(text.encode(), 200, CONTENT_TYPE)
