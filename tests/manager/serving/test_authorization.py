"""What clients may ask of a manager."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError
from steersman.manager.flags import UsageError
from steersman.manager.serving.authorization import AccessReviewer, AllowedPaths, Authorizer
from steersman.server.auth.users import ANONYMOUS, User

MONITOR = User("monitor", groups=("system:monitoring",))
MASTER = User("me", groups=("system:masters",))


@pytest.mark.parametrize(
    ("paths", "path", "expected"),
    [
        (["/healthz"], "/healthz", True),
        (["healthz"], "/healthz", True),
        (["/healthz"], "/healthz/ping", False),
        (["/healthz"], "/health", False),
        (["/healthz*"], "/healthz/ping", True),
        (["/healthz/*"], "/healthz", False),
        (["/*"], "/metrics", True),
        (["*"], "/metrics", True),
        (["/"], "/", True),
        (["/"], "/metrics", False),
        ([], "/healthz", False),
    ],
)
async def test_paths_are_open_to_all_as_they_are_written(paths: list[str], path: str, expected: bool) -> None:
    decision = await Authorizer(AllowedPaths(paths)).authorize(ANONYMOUS, "get", path)
    assert decision.allowed is expected


def test_a_star_in_the_middle_is_refused() -> None:
    with pytest.raises(UsageError, match='only trailing \\* allowed in "a\\*b"'):
        AllowedPaths(["/a*b"])


async def test_masters_may_do_anything_without_asking() -> None:
    assert (await Authorizer(AllowedPaths([])).authorize(MASTER, "post", "/anything")).allowed


async def test_the_api_server_says_who_else_may(plane: Any) -> None:
    async with plane.api("manager") as api:
        authorizer = Authorizer(AllowedPaths([]), AccessReviewer(api, RealClock(), allowed=10, denied=10))
        assert (await authorizer.authorize(MONITOR, "get", "/metrics")).allowed
        assert not (await authorizer.authorize(MONITOR, "post", "/metrics")).allowed
        assert not (await authorizer.authorize(ANONYMOUS, "get", "/metrics")).allowed


async def test_yes_and_no_hold_for_as_long_as_each_is_to(plane: Any, wound: Any) -> None:
    async with plane.api("manager") as api:
        access = AccessReviewer(api, wound, allowed=10, denied=5)

        async def asked() -> int:
            assert (await access.review(MONITOR, "get", "/metrics")).allowed
            assert not (await access.review(ANONYMOUS, "get", "/metrics")).allowed
            return len(plane.asked)

        assert [await asked(), await asked()] == [2, 2]
        wound.at = 5.0
        assert await asked() == 3
        wound.at = 10.0
        assert await asked() == 5


async def test_who_could_not_be_asked_about_is_not_let_in_and_asked_about_again(plane: Any) -> None:
    async with plane.api("wrong") as api:
        access = AccessReviewer(api, RealClock(), allowed=10, denied=10)
        for _ in range(2):
            with pytest.raises(ApiError, match="Unauthorized"):
                await access.review(MONITOR, "get", "/metrics")
    assert len(plane.asked) == 2
