"""A controller that can only crash is not well; one that is refused something is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from steersman.api.errors import Forbidden
from steersman.api.kinds import NAMESPACES
from steersman.api.scheme import Key
from steersman.intent.controller import Caches, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.manager.serving.routes import MAX_CRASHES, RouteRequest, Routes
from steersman.runtime.controller_group import ControllerGroup
from steersman.sim.world import World

ROUND = Key("", "round")


def controller(name: str, *ends: Exception | None) -> Controller[Any]:
    """One that looks at one thing again and again, and ends as told; at last in peace."""
    left = list(ends)

    async def decide(seen: object, now: datetime) -> Verdict:
        end = left.pop(0) if left else None
        if end is not None:
            raise end
        return Rest("all is well")

    def observe(caches: Caches, key: Key) -> object:
        return key

    watches = (Watch(NAMESPACES, to=lambda caches, change: []),)
    return Controller(
        name=name, watches=watches, decide=decide, observe=observe, workers=1, initial_keys=(ROUND,)
    )


def asked(routes: Routes, path: str) -> tuple[int, str]:
    raw, _, query = path.partition("?")
    words = {name: [value] for name, _, value in (word.partition("=") for word in query.split("&")) if name}
    answer = asyncio.run(routes.answer(RouteRequest("GET", raw, words)))
    return answer.status, answer.body.decode()


@pytest.fixture
def routes() -> Iterator[Routes]:
    """With three controllers, after a minute."""
    routes = Routes(metrics=lambda: b"", configz=dict, pages={})
    with World(seed=1) as world:
        controllers = [
            controller("crashing", *[ZeroDivisionError("oh no")] * MAX_CRASHES),
            controller("refused", *[Forbidden("quota is used up")] * MAX_CRASHES),
            controller("better", *[ZeroDivisionError("oh no")] * (MAX_CRASHES - 1)),
        ]
        fleet = ControllerGroup(controllers, world.api(), world)
        routes.follow(fleet)
        world.spawn(fleet.run(), name="manager")
        # The tenth round in a row comes after 2.6 s, and the next after 5.1 s.
        world.run(world.advance(4))
        yield routes


def test_only_who_can_do_nothing_but_crash_is_not_well(routes: Routes) -> None:
    assert asked(routes, "/healthz/refused") == (200, "ok")
    assert asked(routes, "/healthz/better") == (200, "ok")
    status, body = asked(routes, "/healthz/crashing")
    assert (status, body) == (
        500,
        "internal server error: 10 consecutive rounds crashed; see the log\n",
    )
    assert asked(routes, "/healthz") == (
        500,
        "[-]crashing failed: reason withheld\n[+]refused ok\n[+]better ok\nhealthz check failed\n",
    )


def test_a_controller_shows_its_queue_its_caches_and_its_last_rounds(routes: Routes) -> None:
    status, body = asked(routes, "/debug/controllers/refused?rounds=2")
    view = json.loads(body)
    assert status == 200
    assert view["queue"] == {
        "ready": 0,
        "waiting": 1,
        "working": 0,
        "unfinishedSeconds": 0,
        "longestSeconds": 0.0,
    }
    assert view["caches"]["namespaces/v1"]["objects"] > 0
    assert [one["ending"]["failure"] for one in view["rounds"]] == ["quota is used up"] * 2
    assert asked(routes, "/debug/controllers/refused?rounds=none")[0] == 400
    assert asked(routes, "/debug/controllers/nobody") == (404, "404 page not found\n")
    assert json.loads(asked(routes, "/debug/controllers/refused?rounds=0")[1])["rounds"] == []


@pytest.mark.parametrize(
    ("method", "body", "code", "told", "verbosity"),
    [
        ("PUT", b"5", 200, "successfully set klog.logging.verbosity to 5\n", [5]),
        ("PUT", b"", 400, 'strconv.ParseUint: parsing "": invalid syntax\n', []),
        ("PUT", b"-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax\n', []),
        ("GET", b"", 406, "unsupported http method\n", []),
    ],
)
async def test_how_much_is_logged_can_be_changed(
    method: str, body: bytes, code: int, told: str, verbosity: list[int]
) -> None:
    heard: list[int] = []
    routes = Routes(metrics=lambda: b"", configz=dict, pages={}, profiling=True, set_verbosity=heard.append)
    answer = await routes.answer(RouteRequest(method, "/debug/flags/v", {}, body=body))
    assert (answer.status, answer.body.decode(), heard) == (code, told, verbosity)
