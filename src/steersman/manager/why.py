"""``steersman why KIND/NAME``: why an object is not as it should be, in plain language. Also installed as ``kubectl why``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from steersman.api.errors import ApiError, Unreachable
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.explain.asking import Question, ask, parse_subject
from steersman.explain.collect import UnknownKind
from steersman.explain.render import document, text
from steersman.manager import output, process
from steersman.manager.flags import UsageError
from steersman.manager.node import connect
from steersman.manager.trace_client import trace_connection
from steersman.manager.verb import Given

if TYPE_CHECKING:
    from steersman.explain.model import Explanation

INTERVAL = 2.0
"""Seconds between two looks with ``--watch``."""
CLEAR = "\033[H\033[2J"
"""Clears a terminal."""


def main(given: Given) -> int:
    """Entry point of ``steersman why``; the exit code is 0 also where something is wrong, and 1 where it cannot be told."""
    try:
        connection = connect(given.values["kubeconfig"])
        word, name = parse_subject(given.arguments)
        question = Question(word, name, given.values["namespace"] or connection.namespace)
        return process.run(_answer(connection, question, given))
    except (ConfigError, UnknownKind) as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        raise UsageError(str(error)) from None


async def _answer(connection: ClientConfig, question: Question, given: Given) -> int:
    form, paint = given.values["output"], output.paint_for_stdout()
    shown = ""
    async with AsyncExitStack() as stack:
        api, trace = await stack.enter_async_context(HttpApi(connection, qps=0)), None
        if given.values["trace-url"]:
            trace = await stack.enter_async_context(HttpApi(trace_connection(connection, given), qps=0))
        while True:
            try:
                asked = not given.values["no-decisions"]
                told = await ask(api, question, datetime.now(UTC), decisions=asked, trace=trace)
            except Unreachable as error:
                print(f"Error: no answer from {connection.server}: {error.message}", file=sys.stderr)
                return 1
            except ApiError as error:
                print(f"Error: {error.message}", file=sys.stderr)
                return 1
            page = _page(told, form, paint)
            if not given.values["watch"]:
                print(page)
                return 0
            if page != shown:
                shown = page
                print(f"{CLEAR if sys.stdout.isatty() and form == 'text' else ''}{page}", flush=True)
            await asyncio.sleep(INTERVAL)


def _page(told: Explanation, form: str, paint: output.Paint) -> str:
    return output.document(document(told), form) if form in output.DOCUMENTS else text(told, paint)
