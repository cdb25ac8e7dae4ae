"""Requests that take long: one in each iteration of the event loop, and not too many of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.api.errors import TooManyRequests
from steersman.server.codec import json_yaml
from steersman.server.http.heavy_requests import LARGE_BODY, MAX_WAITING, HeavyRequests

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_one_runs_in_each_iteration_in_the_order_of_their_arrival() -> None:
    heavy = HeavyRequests()
    ran: list[tuple[int, int]] = []
    iteration = 0

    async def one(number: int) -> None:
        await heavy.turn()
        ran.append((number, iteration))

    tasks = [asyncio.create_task(one(number)) for number in range(10)]
    while len(ran) < 10:
        await asyncio.sleep(0)
        iteration += 1
        assert iteration < 100
    assert [number for number, _ in ran] == list(range(10))
    assert len({when for _, when in ran}) == 10
    await asyncio.gather(*tasks)


async def test_those_that_do_not_wait_any_more_are_passed_over() -> None:
    heavy = HeavyRequests()
    await heavy.turn()
    gone, left = (asyncio.create_task(heavy.turn()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await left
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(heavy) == 0
    await heavy.turn()


async def test_too_many_are_refused_and_told_when_to_try_again() -> None:
    heavy = HeavyRequests()
    await heavy.turn()
    waiting = [asyncio.ensure_future(heavy.turn()) for _ in range(MAX_WAITING + 2)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    (refused,) = [each for each in results if each is not None]
    assert isinstance(refused, TooManyRequests)
    assert refused.retry_after == 1


async def test_lists_watches_and_large_bodies_take_a_turn_and_small_requests_do_not(
    plane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    turn = HeavyRequests.turn

    async def counted(self: HeavyRequests) -> None:
        nonlocal taken
        taken += 1
        await turn(self)

    monkeypatch.setattr(HeavyRequests, "turn", counted)
    async with plane.session() as session:
        small = {"metadata": {"name": "a"}, "data": {"k": "v"}}
        for method, path, body, turns in (
            ("GET", "/readyz", None, 0),
            ("POST", CONFIGMAPS, small, 0),
            ("GET", f"{CONFIGMAPS}/a", None, 0),
            ("GET", CONFIGMAPS, None, 1),
            ("GET", f"{CONFIGMAPS}?watch=1", None, 1),
            ("PUT", f"{CONFIGMAPS}/a", {**small, "data": {"k": "v" * LARGE_BODY}}, 1),
        ):
            taken = 0
            async with session.request(method, path, json=body) as answer:
                assert answer.status in (200, 201)
            assert taken == turns, (method, path)


async def test_more_yaml_than_is_kept_is_refused(plane: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_yaml._slow_yaml(), "_waiting", json_yaml.MAX_WAITING_YAML)
    text = "metadata: {name: y}\ndata:\n" + "".join(f"  k{number}: v\n" for number in range(2000))
    headers = {"Content-Type": "application/yaml"}
    async with plane.session() as session, session.post(CONFIGMAPS, data=text, headers=headers) as answer:
        assert answer.status == 429
        assert answer.headers["Retry-After"] == "1"


async def test_a_watch_beyond_the_limit_is_refused_until_another_ends(plane: Any) -> None:
    plane.edge.state.watches._most = 2
    async with plane.session() as session:
        first, second = [await session.get(f"{CONFIGMAPS}?watch=1") for _ in range(2)]
        async with session.get(f"{CONFIGMAPS}?watch=1") as third:
            assert third.status == 429
            assert third.headers["Retry-After"] == "1"
            assert (await third.json())["reason"] == "TooManyRequests"
        first.close()
        while len(plane.edge.state.watches) > 1:
            await asyncio.sleep(0)
        async with session.get(f"{CONFIGMAPS}?watch=1") as fourth:
            assert fourth.status == 200
        second.close()


async def test_refused_requests_are_counted_without_the_names_that_clients_make_up(plane: Any) -> None:
    counted = plane.edge.state.metrics._requests
    async with plane.session("") as anonymous:
        for number in range(20):
            for path in (
                f"/p{number}",
                f"/apis/g{number}/v1/things",
                f"/api/v1/pods{number}",
                f"/api/v{number}/pods",
            ):
                async with anonymous.get(path) as answer:
                    assert answer.status == 403
            async with anonymous.get(f"/api/v1/namespaces/n{number}/pods/p/s{number}") as answer:
                assert answer.status == 403
            method = f"M{'X' * number}"
            async with anonymous.request(method, "/version") as answer:
                assert answer.status >= 400
        async with anonymous.get("/api/v1/pods") as answer:
            assert answer.status == 403
    assert len(counted) < 12
    assert any(labels.resource == "pods" and labels.code == 403 for labels in counted)


async def test_decisions_about_long_paths_are_not_remembered(plane: Any) -> None:
    def remembered() -> int:
        rules = [rules for _, rules in plane.authorizer._rules.items()]
        return sum(len(str(key)) for each in rules for key, _ in each._permitted.items())

    async with plane.session("") as anonymous:
        for number in range(5):
            async with anonymous.get(f"/p{number}{'x' * 4000}") as answer:
                assert answer.status == 403
    assert remembered() < 4000
