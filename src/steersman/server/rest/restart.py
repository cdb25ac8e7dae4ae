"""Restart: carries out a request again and again until it has the answers of all webhooks and the values of all expressions it needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from time import monotonic
from typing import Any, TypeVar

from steersman.api.errors import ServerTimeout
from steersman.server.calls import TIMEOUT, Answer, Answers, CallNeeded, Outgoing
from steersman.server.evaluation import EvaluationNeeded, sliced
from steersman.server.server import Server

T = TypeVar("T")

_MOST_RUNS = 1000
"""Runs of one request. An object that changes while each webhook is asked ends it."""
_NO_CLIENT = Answer(error="this server makes no calls to webhooks")


async def restartable(server: Server, run: Callable[[], T], warnings: list[str] | None = None) -> T:
    """Carries out a request. Most need no call and are done at once.

    ``run`` is synchronous and pure until it writes, so it can be run again. The warnings of webhooks are added to
    ``warnings``, also where the request is refused.
    """
    thread = server.evaluation_thread
    try:
        if thread is None:
            return run()
        with sliced({}):
            return run()
    except CallNeeded:
        # The first run has had no answers to look into: the next one says what it asks.
        pass
    answers = Answers(server.names.getrandbits(64), server.now())
    results: dict[bytes, Any] = {}
    outgoing = server.outgoing
    begin = _time(outgoing)
    try:
        for _ in range(_MOST_RUNS):
            try:
                with server.answering(answers), nullcontext() if thread is None else sliced(results):
                    return run()
            except CallNeeded as needed:
                left = TIMEOUT - (_time(outgoing) - begin)
                if left <= 0:
                    break
                if thread is not None and isinstance(needed, EvaluationNeeded):
                    found = await thread.evaluate(needed.computations, left)
                    if found is None:
                        break
                    results |= found
                calls = tuple(call._replace(timeout=min(call.timeout, left)) for call in needed.calls)
            if calls:
                made = [_NO_CLIENT] * len(calls) if outgoing is None else await outgoing.ask(calls)
                for call, answer in zip(calls, made, strict=True):
                    answers.record(call, answer)
    finally:
        if warnings is not None:
            warnings += answers.warnings
    raise ServerTimeout("Timeout: request did not complete within requested timeout", reason="Timeout")


def _time(outgoing: Outgoing | None) -> float:
    return monotonic() if outgoing is None else outgoing.time()
