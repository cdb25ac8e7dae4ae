"""The script ``dev``: what it installs, when, and in which folder it runs.

A clone of the script and the lock files it names stands in for the repository, and a shell script that records its arguments for Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """\
#!/bin/sh
echo "$PWD: $*" >>{log}
case "$*" in
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-c import sysconfig"*) echo {site} ;;
esac
"""


class Clone:
    """A folder with the script, and a Python that only records."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.elsewhere = folder / "clone", folder / "elsewhere"
        self.log, self.python, site = folder / "log", folder / "python", folder / "site"
        for path in (self.folder / "deploy", self.folder / "src", self.elsewhere, site):
            path.mkdir(parents=True)
        for name in ("dev", "requirements.lock", "deploy/requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        self.python.write_text(PYTHON.format(log=self.log, site=site))
        self.python.chmod(0o755)

    def dev(self, *arguments: str) -> list[str]:
        """Runs it in another folder; returns the calls of Python."""
        self.log.write_text("")
        subprocess.run(
            [self.folder / "dev", *arguments],
            cwd=self.elsewhere,
            env={**os.environ, "PYTHON": str(self.python)},
            check=True,
            capture_output=True,
            timeout=60,
        )
        return self.log.read_text().splitlines()

    def installed(self, *arguments: str) -> list[str]:
        """What a call installs."""
        return [
            line.split()[-1].removeprefix(f"{self.folder}/")
            for line in self.dev(*arguments)
            if " -m pip install " in line
        ]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_user_gets_what_the_program_needs_and_a_developer_the_rest(clone: Clone) -> None:
    assert clone.installed("steersman", "version") == ["deploy/requirements.lock"]
    assert clone.installed("steersman", "version") == [], "once"
    assert clone.installed("test") == ["requirements.lock", str(clone.folder)]
    assert clone.installed("test") == [] == clone.installed("steersman", "version")


def test_every_package_is_checked_by_its_hash(clone: Clone) -> None:
    calls = [line for verb in ("steersman", "test") for line in clone.dev(verb) if " -r " in line]
    assert len(calls) == 2
    assert all("--require-hashes" in call for call in calls)


def test_a_new_lock_and_a_moved_folder_are_installed_again(clone: Clone) -> None:
    clone.dev("steersman")
    os.utime(clone.folder / "deploy" / "requirements.lock", (2e9, 2e9))
    assert clone.installed("steersman") == ["deploy/requirements.lock"]
    os.utime(clone.folder / "deploy" / "requirements.lock", (1e9, 1e9))
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    calls = clone.dev("steersman")
    assert any("-m venv" in call for call in calls), "scripts name the old folder"
    assert any("deploy/requirements.lock" in call for call in calls)


def test_modules_are_compiled_once_and_after_a_change(clone: Clone) -> None:
    def compiled() -> bool:
        return any(f"compileall -q -j 0 {clone.folder}/src" in call for call in clone.dev("steersman"))

    assert compiled()
    assert not compiled()
    module = clone.folder / "src" / "module.py"
    module.touch()
    os.utime(module, (2e9, 2e9))
    assert compiled()


def test_paths_mean_the_folder_of_the_caller(clone: Clone) -> None:
    (clone.elsewhere / "web.yaml").touch()
    (clone.elsewhere / "test_web.py").touch()
    last = clone.dev("steersman", "demo", "--file", "web.yaml", "two words")[-1]
    assert last == f"{clone.elsewhere}: -m steersman.manager.cli demo --file web.yaml two words"
    last = clone.dev("test", "-k", "name", "test_web.py::test_a[x/y]")[-1]
    assert last.startswith(f"{clone.folder}: -m pytest ")
    assert last.endswith(f" -k name {clone.elsewhere}/test_web.py::test_a[x/y]")


def test_arguments_for_pytest_at_the_root_are_left_alone(clone: Clone) -> None:
    clone.elsewhere = clone.folder
    assert clone.dev("test", "-k", "src")[-1].endswith(" -k src"), "there is a folder of that name"


def test_an_old_python_is_refused_by_name(clone: Clone) -> None:
    clone.python.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        clone.dev("steersman")
    assert b"older than Python 3.11; point PYTHON at a newer one" in refused.value.stderr


def test_its_help_names_every_command() -> None:
    shown = subprocess.run([ROOT / "dev"], capture_output=True, text=True, check=True, timeout=60).stdout
    commands = re.findall(r"^([a-z]+)\)$", (ROOT / "dev").read_text(), re.MULTILINE)
    assert len(commands) >= 8
    assert [command for command in commands if f"./dev {command}" not in shown] == []
    assert "set -eu" not in shown


def test_git_ignores_what_commands_write() -> None:
    ignored = set((ROOT / ".gitignore").read_text().splitlines())
    assert {".venv", "__pycache__/", "build/", "dist/", "*.kubeconfig"} <= ignored
