"""An operator with something to do all the time, and with handlers that fail at first.

After the examples of kopf (github.com/nolar/kopf, MIT): 03-exceptions, 14-daemons and 15-timers.
"""

import asyncio
from typing import Any

import kopf


@kopf.on.create("kopfexamples")
def eventual_success(retry: int, **_: Any) -> Any:
    if retry < 2:
        raise kopf.TemporaryError("Expected recoverable error.", delay=0.1)
    return {"retries": retry}


@kopf.on.create("kopfexamples")
def instant_failure(**_: Any) -> None:
    raise kopf.PermanentError("Fail once and for all.")


@kopf.timer("kopfexamples", interval=0.2)
def every_moment(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.daemon("kopfexamples", cancellation_timeout=5)
async def beside(patch: kopf.Patch, **_: Any) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        patch.status["daemon"] = "ended"
        raise
