"""Kill a writer again and again: what it acknowledged is there, whole, and revisions never go back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.data_dir_crash import Story, check, kill

KILLS = 20


def test_a_writer_that_is_killed_twenty_times_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path, story, acknowledged = tmp_path / "data", Story(), 0
    for seed in range(KILLS):
        acknowledged += kill(path, seed, story)
        check(path, story)
    assert acknowledged >= KILLS


def test_the_check_notices_a_directory_that_lost_an_acknowledged_write(tmp_path: Path) -> None:
    path, story = tmp_path / "data", Story()
    kill(path, 1, story)
    check(path, story)
    following = story.highest + 20_001
    story.hear([f"t {following} put thing-new\n", f"a {following}\n"])
    with pytest.raises(AssertionError):
        check(path, story)
