"""An event loop for the checks of fuzz targets: one for all inputs, since making a loop takes longer than most checks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import cache
from typing import TypeVar

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def run(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end. Raises what a callback of the loop raised, which asyncio would only log."""
    loop = _loop()
    failed: list[BaseException] = []

    def remember(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        failed.append(error if isinstance(error, BaseException) else AssertionError(context.get("message")))

    loop.set_exception_handler(remember)
    result = loop.run_until_complete(work)
    if failed:
        raise failed[0]
    return result
