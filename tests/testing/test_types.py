"""What type checkers see of the package, as an installed distribution shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import steersman
from tools import generate_typed_kinds

PROJECT = Path(__file__).with_name("sample_project")
ROOT = Path(steersman.__file__).parent


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()


def test_the_tests_of_a_user_pass_mypy_strict(tmp_path: Path) -> None:
    """Every mistake in them is noticed as well: an unused ``type: ignore`` is an error.

    Errors in this package are silent, as those of installed packages are.
    """
    options = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "."],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(ROOT.parent), "PATH": "", "HOME": str(tmp_path)},
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_overloads_are_those_of_the_table_of_kinds() -> None:
    for name, text in generate_typed_kinds.files().items():
        written = (generate_typed_kinds.TARGET / name).read_text("utf-8")
        assert written == generate_typed_kinds.formatted(name, text), (
            f"{name}: run python tools/generate_typed_kinds.py"
        )


def test_kinds_by_name_mean_what_the_overloads_say() -> None:
    from steersman.testing.kinds import _built_in

    names = _built_in()
    for row, own in generate_typed_kinds.kinds():
        assert {names[name.lower()] for name in own} == {(row.group, row.version, row.kind)}
