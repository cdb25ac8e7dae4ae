"""``steersman completion``: what shells offer is what the verbs declare."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from steersman.manager import cli
from steersman.manager.verbs import VERBS

DRIVER = """\
source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_steersman
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell."""
    from contextlib import redirect_stdout

    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        with (folder / shell).open("w") as out, redirect_stdout(out):
            assert cli.main(["completion", shell]) == 0
    return folder


def in_bash(scripts: Path, *words: str) -> list[str]:
    quoted = " ".join(map(shlex.quote, ("steersman", *words)))
    text = DRIVER.format(script=scripts / "bash", words=quoted)
    done = subprocess.run(
        ["bash", "--norc", "-c", text], capture_output=True, text=True, cwd=scripts, timeout=30
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("",), [verb.name for verb in VERBS]),
        (("sna",), ["snapshot"]),
        (("node", "re"), ["recover", "reboot", "recover-device"]),
        (("node", "drain", "--fo"), ["--force"]),
        (("node", "drain", "--force", "--ti"), ["--timeout"]),
        (("node", "list", "-o", ""), ["table", "json", "yaml"]),
        (("controllers", "--output", "=", "js"), ["json"]),
        (("controllers", "--output", "="), ["table", "wide", "markdown", "json", "yaml"]),
        (("controllers", "cronj"), ["cronjob-controller"]),
        (("run", "--concurrent-job"), ["--concurrent-job-syncs"]),
        (("run", "--feature-gates", ""), []),
        (("up", "--kubeconfig", "zs"), ["zsh"]),
        (("explore", "zs"), ["zsh"]),
        (("explore", "cascade-cy"), ["cascade-cycle"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_bash_offers_what_may_follow(scripts: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert in_bash(scripts, *words) == offered


def test_bash_offers_every_flag_of_every_verb(scripts: Path) -> None:
    for verb in VERBS:
        for each in (verb, *verb.verbs):
            found = in_bash(scripts, *each.path.split()[1:], "--")
            assert found == [f"--{option.name}" for option in each.options if not option.deprecated]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(scripts: Path) -> None:
    text = f"source {scripts / 'zsh'} && print -r -- $_comps[steersman]"
    done = subprocess.run(["zsh", "-f", "-c", text], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    assert "_bash_complete" in done.stdout
    assert "_steersman" in done.stdout


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("steersman sna", ["snapshot"]),
        ("steersman node dra", ["drain"]),
        ("steersman node drain --forc", ["--force"]),
        ("steersman controllers --output j", ["json"]),
    ],
)
def test_fish_offers_what_may_follow(scripts: Path, line: str, offered: list[str]) -> None:
    text = f"source {scripts / 'fish'}; complete -C {shlex.quote(line)}"
    done = subprocess.run(["fish", "-N", "-c", text], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    assert [row.partition("\t")[0] for row in done.stdout.splitlines()] == offered
