"""Is it alive, is it ready, and what has it done."""

from __future__ import annotations

from steersman.server.edge.answers import Answer
from steersman.server.edge.context import Context
from steersman.server.edge.metrics import CONTENT_TYPE

CHECKS = ("ping", "store", "crd-informer-synced")
"""What is looked at. The server is one process and its state in memory, so there is little to look at."""

_TEXT = "text/plain; charset=utf-8"
_PLAIN = (("X-Content-Type-Options", "nosniff"),)


def serve(ctx: Context, name: str, check: str) -> Answer | None:
    """``/healthz``, ``/livez`` and ``/readyz``, and each check below them; None for what is no check."""
    if check:
        return Answer(b"ok", 200, _TEXT) if check in CHECKS else None
    if "verbose" not in ctx.query:
        return Answer(b"ok", 200, _TEXT, _PLAIN)
    excluded = ctx.query.get("exclude", ())
    lines = [f"[+]{each} excluded: ok" if each in excluded else f"[+]{each} ok" for each in CHECKS]
    unknown = [each for each in sorted(dict.fromkeys(excluded)) if each not in CHECKS]
    if unknown:
        told = ",".join(f'"{each}"' for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {told}")
    lines.append(f"{name} check passed")
    return Answer("".join(f"{line}\n" for line in lines).encode(), 200, _TEXT, _PLAIN)


def metrics(ctx: Context) -> Answer:
    """``/metrics``."""
    plant = ctx.plant
    text = plant.metrics.text(plant.server.store, plant.watches.resources())
    return Answer(text.encode(), 200, CONTENT_TYPE)
