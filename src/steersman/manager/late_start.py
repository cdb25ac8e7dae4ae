"""Controllers whose resources are not served: they are left out, and start when these appear."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from steersman.api.discovery import Discovered
from steersman.api.errors import ApiError
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.runtime.controller_group import ControllerGroup

log = logging.getLogger(__name__)

Controllers: TypeAlias = tuple[Controller[Any], ...]

PERIOD = 30.0
"""Seconds between two looks at discovery while something is left out."""


async def served(controllers: Controllers, api: Api) -> tuple[Controllers, Controllers]:
    """Those of the controllers for which the server serves what they need, and the others."""
    if not any(controller.required_kinds for controller in controllers):
        return controllers, ()
    found = await _discovered(api)
    present = tuple(one for one in controllers if not any(_lacking(one, found)))
    absent = tuple(one for one in controllers if one not in present)
    for controller in absent:
        log.info("%s is left out for now: %s", controller.name, "; ".join(_lacking(controller, found)))
    return present, absent


async def arrivals(
    fleet: ControllerGroup, absent: Controllers, api: Api, joined: Callable[[], None] = lambda: None
) -> None:
    """Look again and again for what the absent need, and have them join; until none is left.

    differs: upstream looks once, when it starts.
    """
    while absent:
        await asyncio.sleep(PERIOD)
        found = await _discovered(api)
        for controller in (one for one in absent if not any(_lacking(one, found))):
            log.info("%s starts: what it needs is served now", controller.name)
            fleet.join(controller)
            joined()
        absent = tuple(one for one in absent if any(_lacking(one, found)))


async def _discovered(api: Api) -> Discovered | None:
    """What is served; None where the server does not say."""
    try:
        return await api.discover()
    except Exception as error:
        # An odd document is no more than that: the controllers at work have nothing to do with it.
        log.warning(
            "cannot discover what is served: %s",
            error,
            exc_info=None if isinstance(error, ApiError) else error,
        )
        return None


def _lacking(controller: Controller[Any], found: Discovered | None) -> Iterator[str]:
    """Why a controller cannot run."""
    for kind in controller.required_kinds:
        if found is None or found.lacks(kind.group):
            # Not known is not the same as not there, but its caches could not be filled either.
            yield f"the server does not say whether it serves {kind}"
        elif not any(
            (one.group, one.version, one.name) == (kind.group, kind.version, kind.plural)
            for one in found.resources
        ):
            yield f"the server does not serve {kind}"
