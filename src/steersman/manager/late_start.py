"""Late start: controllers whose resources are not served start once the resources appear."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.runtime.controller_group import ControllerGroup

log = logging.getLogger(__name__)

Controllers: TypeAlias = tuple[Controller[Any], ...]

PERIOD = 30.0
"""Seconds between two discovery requests while a controller waits."""


async def served(controllers: Controllers, api: Api) -> tuple[Controllers, Controllers]:
    """The controllers whose resources the server serves, and the others."""
    if not any(controller.required_kinds for controller in controllers):
        return controllers, ()
    discovered = await _discover(api)
    present = tuple(one for one in controllers if not any(_missing(one, discovered)))
    absent = tuple(one for one in controllers if one not in present)
    for controller in absent:
        log.info("%s does not start yet: %s", controller.name, "; ".join(_missing(controller, discovered)))
    return present, absent


async def start_late(
    fleet: ControllerGroup, absent: Controllers, api: Api, started: Callable[[], None] = lambda: None
) -> None:
    """Start each absent controller once its resources are served; returns when none is left.

    differs: upstream checks once, at start.
    """
    while absent:
        await asyncio.sleep(PERIOD)
        discovered = await _discover(api)
        for controller in (one for one in absent if not any(_missing(one, discovered))):
            log.info("%s starts: its resources are served now", controller.name)
            fleet.join(controller)
            started()
        absent = tuple(one for one in absent if any(_missing(one, discovered)))


async def _discover(api: Api) -> DiscoveryResult | None:
    """The resources the server serves; None where discovery fails."""
    try:
        return await api.discover()
    except Exception as error:
        # A malformed discovery document must not stop the controllers that run.
        log.warning(
            "discovery failed: %s",
            error,
            exc_info=None if isinstance(error, ApiError) else error,
        )
        return None


def _missing(controller: Controller[Any], discovered: DiscoveryResult | None) -> Iterator[str]:
    """Reasons why a controller cannot start."""
    for kind in controller.required_kinds:
        if discovered is None or discovered.is_incomplete(kind.group):
            # Unknown is not the same as missing, but the caches could not be filled either.
            yield f"discovery does not say whether {kind} is served"
        elif not any(
            (one.group, one.version, one.name) == (kind.group, kind.version, kind.plural)
            for one in discovered.resources
        ):
            yield f"the server does not serve {kind}"
