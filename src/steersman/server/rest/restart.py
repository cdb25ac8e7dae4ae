"""Restart: carries out a request again and again until it has the answers of all webhooks it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from steersman.api.errors import ServerTimeout
from steersman.server.calls import TIMEOUT, Answer, Answers, CallNeeded
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
    try:
        return run()
    except CallNeeded:
        # The first run has had no answers to look into: the next one says what it asks.
        pass
    answers = Answers(server.names.getrandbits(64), server.now())
    outgoing = server.outgoing
    begin = outgoing.time() if outgoing is not None else 0.0
    try:
        for _ in range(_MOST_RUNS):
            try:
                with server.answering(answers):
                    return run()
            except CallNeeded as needed:
                calls = needed.calls
            left = TIMEOUT - (outgoing.time() - begin) if outgoing is not None else TIMEOUT
            if left <= 0:
                break
            calls = tuple(call._replace(timeout=min(call.timeout, left)) for call in calls)
            made = [_NO_CLIENT] * len(calls) if outgoing is None else await outgoing.ask(calls)
            for call, answer in zip(calls, made, strict=True):
                answers.record(call, answer)
    finally:
        if warnings is not None:
            warnings += answers.warnings
    raise ServerTimeout("Timeout: request did not complete within requested timeout", reason="Timeout")
