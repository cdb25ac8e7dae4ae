"""The README: every figure, version, command and listing in it is that of the program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from steersman.controllers import CONTROLLERS
from steersman.manager.controller_selection import KNOWN
from steersman.manager.controller_table import controller_table
from steersman.manager.verbs import VERBS
from steersman.manager.version import KUBERNETES
from steersman.testing import Cluster

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
STATES = {
    "on": "on by default",
    "off": "off by default",
    "flags": "on with flags they need",
    "gate": "behind feature gates",
    "cloud": "with a cloud provider",
}
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""


def listings(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def pinned(lock: str) -> dict[str, str]:
    """Packages and their versions."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_its_figures_are_those_of_the_program() -> None:
    assert f"has {len(CONTROLLERS)} of {len(KNOWN)} controllers" in README
    assert f"installs {len(pinned('deploy/requirements.lock'))} packages" in README
    assert f"kube-controller-manager {KUBERNETES.removeprefix('v').rpartition('.')[0]}" in README


def test_its_table_of_controllers_is_that_of_the_program() -> None:
    told = {
        state: (int(number), names.split(", "))
        for state, number, names in re.findall(
            r"^\| ([a-z ]+) \| (\d+) \| ([a-z, -]+) \|$", README, re.MULTILINE
        )
    }
    there = controller_table()
    assert told == {
        words: (len(names), names)
        for state, words in STATES.items()
        if (names := [row.name.removesuffix("-controller") for row in there if row.state == state])
    }
    assert sum(number for number, _ in told.values()) == len(there)


def test_the_versions_in_its_table_are_those_that_tests_run_with() -> None:
    [row] = re.findall(r"^\| Python clients \| (.*) \|$", README, re.MULTILINE)
    told = dict(client.split() for client in row.split(", "))
    there = pinned("requirements.lock")
    assert told == {name: there[name] for name in told}
    assert f"| Kubernetes | {KUBERNETES.removeprefix('v')}:" in README


def test_its_commands_exist() -> None:
    script = (ROOT / "dev").read_text()
    commands = set(re.findall(r"\./dev ([a-z]+)", README))
    assert {"steersman", "test", "build", "docs"} <= commands
    assert [command for command in commands if f"\n{command})\n" not in script] == []
    verbs = set(re.findall(r"(?:`|dev )steersman ([a-z]+)", README))
    assert {"demo", "up", "run", "explore"} <= verbs <= {verb.name for verb in VERBS}


def test_a_command_that_does_not_exist_is_an_error_that_says_where_they_are_listed() -> None:
    ran = subprocess.run([ROOT / "dev", "tets"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert ran.stderr == "dev: unknown command 'tets'; ./dev lists them\n"


def test_its_test_passes(pytester: pytest.Pytester) -> None:
    with Cluster():  # what a run inside of this one loads is forgotten after it, and must not be loaded twice
        pass
    test, _ = listings("python")
    pytester.makepyfile(test_readme=test)
    Path(pytester.path, "web.yaml").write_text(WEB)
    pytester.runpytest("-p", "no:asyncio", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_its_controller_is_one_of_ours() -> None:
    _, controller = listings("python")
    source = (ROOT / "src" / "steersman" / "controllers" / "ttlafterfinished.py").read_text()
    there = {line.strip() for line in source.splitlines()}
    assert [line for line in controller.splitlines() if line.strip() not in {*there, "..."}] == []
