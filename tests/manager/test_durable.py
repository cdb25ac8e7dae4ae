"""A control plane with a data directory, killed in the midst of writes that come over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.crash_loop import Ordeal, Story

KILLS = 5


async def test_a_plane_that_is_killed_keeps_all_it_acknowledged_and_is_still_trusted(tmp_path: Path) -> None:
    seed = 7
    print(f"seed {seed}")  # noqa: T201  (shown where it fails)
    async with asyncio.timeout(240):
        tally = await Ordeal(tmp_path, seed).go(KILLS, most=150)
    assert tally.kills == KILLS
    assert tally.acknowledged > KILLS
    assert list(dict.fromkeys(sorted(tally.verbs))) == ["apply", "create", "delete", "patch", "update"]


def story(content: str | None, version: int, under_way: tuple[str | None] | None = None) -> Story:
    return Story("c", content, version, under_way)


def found(content: str, version: int) -> dict[str, object]:
    return {"metadata": {"name": "c", "resourceVersion": str(version)}, "data": {"content": content}}


@pytest.mark.parametrize(
    ("told", "there", "why"),
    [
        (story("1 x", 5), None, "write 1 .* was acknowledged, there is nothing"),
        (story("1 x", 5), found("2 y", 6), "write 1 .* was acknowledged, there is write 2"),
        (story("1 x", 5), found("1 x", 4), "is at 4, 5 was acknowledged"),
        (story(None, 5), found("1 x", 5), "nothing was acknowledged, there is write 1"),
        (story("1 x", 5, ("2 whole",)), found("2 who", 6), "write 1 .* was acknowledged, there is write 2"),
        (story("1 x", 5, ("2 y",)), None, "write 1 .* was acknowledged, there is nothing"),
        (story("1 x", 5, ("2 y",)), found("2 y", 4), "write 1 .* was acknowledged, there is write 2"),
    ],
)
def test_the_check_notices_what_is_lost_half_written_or_gone_back(
    tmp_path: Path, told: Story, there: dict[str, object] | None, why: str
) -> None:
    with pytest.raises(AssertionError, match=why):
        Ordeal(tmp_path, 1)._compare(told, there)


@pytest.mark.parametrize(
    ("told", "there"),
    [
        (story("1 x", 5), found("1 x", 5)),
        (story(None, 5), None),
        (story("1 x", 5, ("2 y",)), found("1 x", 5)),
        (story("1 x", 5, ("2 y",)), found("2 y", 6)),
        (story("1 x", 5, (None,)), found("1 x", 5)),
        (story("1 x", 5, (None,)), None),
    ],
)
def test_a_write_that_nobody_answered_for_may_be_there_whole_or_not_at_all(
    tmp_path: Path, told: Story, there: dict[str, object] | None
) -> None:
    Ordeal(tmp_path, 1)._compare(told, there)
