"""``./dev build``: writes the wheel, the source archive and the program as a single file to dist/.

The single file is a zip archive (made by shiv) with the wheel and everything it depends on, by the hashes of deploy/requirements.lock.
Some of the dependencies are compiled for one version of Python and one platform. The file has them for every version of `PYTHONS`,
side by side, and for the platform it was built on, which its name says. It unpacks itself to ``~/.shiv`` when it is started first.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LOCK = ROOT / "deploy" / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13")
"""The versions that a single file works with."""
PREAMBLE = """\
import platform, sys
if "{{}}.{{}}".format(*sys.version_info) not in {versions} or (sys.platform, platform.machine()) != {system}:
    sys.exit(
        "steersman: this file is for Python {names} on {platform}, and this is Python "
        + platform.python_version() + " on " + sys.platform + "-" + platform.machine()
        + "; start it with another Python (python3.12 FILE), or build it here with ./dev build"
    )
"""


def preamble(pythons: Sequence[str]) -> str:
    """The script that a single file runs first: it ends where the compiled packages do not fit."""
    return PREAMBLE.format(
        versions=tuple(pythons),
        system=(sys.platform, platform.machine()),
        names=", ".join(pythons),
        platform=f"{sys.platform}-{platform.machine()}",
    )


def run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def archives() -> Path:
    """Write the wheel and the source archive; returns the wheel."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel")
    [wheel] = DIST.glob("*.whl")
    return wheel


def single_file(wheel: Path, pythons: Sequence[str] = PYTHONS) -> Path:
    """Write the program as one file."""
    name, version, *_ = wheel.name.split("-")
    system = f"{sys.platform}-{platform.machine()}"
    target = DIST / f"{name}-{version}-{system}.pyz"
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder, "packages")
        for python in pythons:
            into = Path(folder, python)
            uv = (
                "uv",
                "pip",
                "install",
                "--quiet",
                "--target",
                into,
                "--python-version",
                python,
                "--no-deps",
            )
            run(sys.executable, "-m", *uv, "--require-hashes", "--only-binary=:all:", "-r", LOCK)
            run(sys.executable, "-m", *uv, "--no-index", wheel)
            # What is compiled has the version of Python in its name, and all else is the same.
            shutil.copytree(into, packages, dirs_exist_ok=True)
        first = Path(folder, "preamble.py")
        first.write_text(preamble(pythons))
        shiv = ("shiv", "--compressed", "--compile-pyc", "--console-script", name, "--preamble", first)
        run(sys.executable, "-m", *shiv, "--site-packages", packages, "--output-file", target)
    return target


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    single_file(archives())
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
