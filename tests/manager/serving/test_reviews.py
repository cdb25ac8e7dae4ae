"""Questions to an API server that has its bad moments, under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, Forbidden, ServerError, TooManyRequests, Unreachable
from steersman.manager.serving.reviews import ATTEMPTS, TIMEOUT, TOKENS, review
from steersman.sim.loop import VirtualLoop


class Moody:
    """Answers with what it is told to, one after the other; None is no answer at all."""

    def __init__(self, *moods: ApiError | dict[str, Any] | None) -> None:
        self._moods: Iterator[ApiError | dict[str, Any] | None] = iter(moods)
        self.asked: list[float] = []

    async def create(self, kind: Any, namespace: str, body: Any) -> dict[str, Any]:
        assert body == {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": "t"},
        }
        self.asked.append(asyncio.get_running_loop().time())
        mood = next(self._moods)
        if mood is None:
            await asyncio.get_running_loop().create_future()
        if isinstance(mood, ApiError):
            raise mood
        assert mood is not None
        return mood


def ask(api: Moody) -> Any:
    """The answer, or what was raised instead."""

    async def asking() -> Any:
        try:
            return await review(api, RealClock(), TOKENS, {"token": "t"})  # type: ignore[arg-type]
        except ApiError as error:
            return error, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(asking())


YES = {"status": {"authenticated": True}}


def test_a_bad_moment_passes() -> None:
    api = Moody(ServerError("later"), TooManyRequests("later"), YES)
    assert ask(api) == {"authenticated": True}
    first, second = (after - before for before, after in zip(api.asked, api.asked[1:], strict=False))
    assert 0.5 <= first <= 0.6
    assert 0.75 <= second <= 0.9


def test_a_server_that_stays_bad_is_asked_a_few_times() -> None:
    api = Moody(*[ServerError("later")] * ATTEMPTS)
    error, _ = ask(api)
    assert isinstance(error, ServerError)
    assert len(api.asked) == ATTEMPTS


@pytest.mark.parametrize("no", [Forbidden("no"), Unreachable("connection refused")])
def test_what_would_be_said_again_is_not_asked_again(no: ApiError) -> None:
    api = Moody(no)
    assert ask(api)[0] is no


def test_a_server_that_does_not_answer_is_not_waited_for_longer_than_that() -> None:
    error, at = ask(Moody(None))
    assert str(error) == "context deadline exceeded"
    assert at == TIMEOUT


def test_an_answer_without_a_status_says_nothing() -> None:
    assert ask(Moody({})) == {}
