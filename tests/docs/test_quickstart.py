"""The quickstarts, run from an empty directory as a reader runs them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.manager.options import read
from steersman.testing import Cluster

pytest_plugins = "pytester"

QUICKSTART = Path(__file__).parents[2] / "docs" / "quickstart"


def blocks(page: str, language: str) -> list[str]:
    """The listings of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (QUICKSTART / page).read_text("utf-8"), re.DOTALL)


# -- pytest -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded() -> None:
    """What a run inside of this one loads is forgotten after it, and must not be loaded twice."""
    with Cluster():
        pass


@pytest.mark.usefixtures("loaded")
def test_the_tests_of_the_page_pass_but_for_the_one_that_fails(pytester: pytest.Pytester) -> None:
    web, rollout, crash = blocks("pytest.md", "python")
    pytester.makepyfile(test_web=web, test_rollout=rollout, test_crash=crash)
    result = pytester.runpytest("-p", "no:asyncio", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*WaitTimeout: condition not met within 15 min*",
            "*deployment-controller default/web rests: rollout made no progress*",
        ]
    )


# -- kubectl ----------------------------------------------------------------------------------


def test_the_commands_of_the_kubectl_page_succeed(tmp_path: Path) -> None:
    path = os.pathsep.join(
        (str(tmp_path), os.environ.get("KUBEBUILDER_ASSETS", ""), os.environ.get("PATH", ""))
    )
    if shutil.which("kubectl", path=path) is None:
        pytest.skip("there is no kubectl on PATH or in KUBEBUILDER_ASSETS")
    program = tmp_path / "steersman"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steersman.manager.cli "$@"\n')
    program.chmod(0o755)
    up, *others = blocks("kubectl.md", "sh")
    assert up == "steersman up\n"
    script = tmp_path / "page.sh"
    # `up` with a command keeps its kubeconfig to itself; without one, it is where the page expects it.
    script.write_text('cp "$KUBECONFIG" steersman.kubeconfig\n' + "".join(others))
    ran = subprocess.run(
        [program, "up", "--port=0", "--speed=20", "--", "sh", "-eux", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert 'deployment "web" successfully rolled out' in ran.stdout
    assert "ImagePull" in ran.stdout, "the rollout of a bad image does not end"


# -- a real cluster ---------------------------------------------------------------------------


def test_the_flags_of_the_cluster_page_are_accepted() -> None:
    shown = "".join(blocks("cluster.md", "sh")).replace("\\\n", " ")
    commands = re.findall(r"^steersman run (--kubeconfig.*)$", shown, re.MULTILINE)
    assert len(commands) == 2
    for arguments in commands:
        assert read(shlex.split(arguments)).kubeconfig == "admin.kubeconfig"
