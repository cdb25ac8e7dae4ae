"""``steersman shadow`` as a command: over HTTP beside `steersman up`, and what it says to bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

STEERSMAN = [sys.executable, "-m", "steersman.manager.cli"]


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STEERSMAN, *argv], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_it_agrees_with_the_controllers_of_an_embedded_control_plane(tmp_path: Path) -> None:
    shadow = ("shadow", "--for=4s", "--grace=1s", "-o=json", "--report=report.json", "--metrics-file=metrics")
    done = run("up", "--port=0", "--nodes=1", "--quiet", "--", *STEERSMAN, *shadow, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["differences"] == report["errors"] == []
    assert sum(each["rounds"] for each in report["controllers"]) > 0
    assert "steersman_shadow_rounds_total" in (tmp_path / "metrics").read_text()


def test_it_finds_that_no_manager_acts(tmp_path: Path) -> None:
    shadow = ("shadow", "--for=6s", "--grace=1s", "--controllers=serviceaccount-controller")
    done = run(
        "up", "--port=0", "--nodes=0", "--no-controllers", "--quiet", "--", *STEERSMAN, *shadow, cwd=tmp_path
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "ServiceAccount default/default: we would, they did not (serviceaccount-controller)" in done.stdout
    assert "they:  no such object was created" in done.stdout


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--grace=0s",), "--grace must be more than 0"),
        (("--controllers=-ttl",), "--controllers selects no controller"),
        (("--controllers=tll",), "did you mean"),
        (("--kubeconfig=absent",), "absent"),
    ],
)
def test_bad_input_is_one_line_that_names_it(tmp_path: Path, argv: Sequence[str], message: str) -> None:
    done = run("shadow", *argv, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
