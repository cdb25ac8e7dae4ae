"""The wheel: small, with all that the program reads and nothing of what only we use."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from steersman import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as ``./dev build`` builds it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """A folder with what the wheel installs."""
    folder = wheel.with_name("unpacked")
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def steersman(unpacked: Path, *arguments: str) -> str:
    """What the program of the wheel prints, which is not that of this repository."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import steersman; from steersman.manager.cli import main; "
        "assert steersman.__file__.startswith(sys.path[0]); sys.exit(main())"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code, unpacked, *arguments],
        cwd=unpacked,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_it_is_small_and_has_the_package_alone(wheel: Path) -> None:
    assert wheel.name == f"steersman-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2_300_000
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"steersman", f"steersman-{__version__}.dist-info"}
    ours = [name for name in names if "harness" in name or "__pycache__" in name or "/test_" in name]
    assert ours == []


def test_it_has_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    there = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert there - set(ZipFile(wheel).namelist()) == set()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("version",), f"steersman {__version__}"),
        (("controllers",), "deployment-controller"),
        (("demo",), "of cluster time in"),
        (("explore", "--help"), "rollout"),
        (("run", "--help"), "--kubeconfig"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_its_program_runs_from_the_wheel_alone(
    unpacked: Path, arguments: Sequence[str], expected: str
) -> None:
    assert expected in steersman(unpacked, *arguments)


def test_it_installs_the_commands_and_the_plugin(unpacked: Path) -> None:
    points = ConfigParser()
    points.read(unpacked / f"steersman-{__version__}.dist-info" / "entry_points.txt")
    assert {"steersman", "kube-controller-manager"} <= set(points["console_scripts"])
    assert (
        dict(points["console_scripts"])
        == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    )
    assert dict(points["pytest11"]) == {"steersman": "steersman.testing.plugin"}


def test_it_needs_at_most_25_packages() -> None:
    lock = (ROOT / "deploy" / "requirements.lock").read_text()
    direct = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = [line for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert len(direct) < len(pinned) + 1 <= 25
