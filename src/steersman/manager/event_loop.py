"""Running a program on the quickest event loop there is, and loading quickly what it runs with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_AUTHORITIES = "SSL_CERT_FILE"


def load() -> None:
    """Load the HTTP library without the system's certificate authorities, which it would read twice.

    That takes a tenth of a second and is never used here: every connection has a context of its own. Only for a process
    that is ours, since others in it would be without authorities, too.
    """
    before = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    try:
        import aiohttp  # noqa: F401
    finally:
        if before is None:
            del os.environ[_AUTHORITIES]
        else:
            os.environ[_AUTHORITIES] = before


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on uvloop where it is installed, on asyncio's own loop elsewhere."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
