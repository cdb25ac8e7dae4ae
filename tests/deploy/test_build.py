"""The single-file program: it says where it does not fit."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tools.build import PYTHONS, preamble


def started(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_starts_with_a_python_that_it_was_built_for() -> None:
    this = "{}.{}".format(*sys.version_info)
    assert started(preamble([*PYTHONS, this])).returncode == 0


@pytest.mark.parametrize("pythons", [["2.7"], ["2.6", "2.7"]])
def test_with_another_python_it_names_those_that_it_is_for(pythons: list[str]) -> None:
    ended = started(preamble(pythons))
    assert ended.returncode == 1
    assert f"for Python {', '.join(pythons)} on {sys.platform}-{platform.machine()}" in ended.stderr
    assert f"this is Python {platform.python_version()}" in ended.stderr
