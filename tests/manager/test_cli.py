"""``steersman``: which verb a command line means, and how every verb ends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from steersman.manager import cli
from steersman.manager.verb import Verb, help_text
from steersman.manager.verbs import VERBS

ALL = [each for verb in VERBS for each in (verb, *verb.verbs)]


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_the_help_lists_every_verb(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb.name} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.path)
def test_every_verb_has_help_of_one_form(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    words = verb.path.split()[1:]
    told = []
    for call in ([*words, "--help"], ["--help", *words], ["help", *words], [*words, "-h"]):
        assert cli.main(call) == 0
        told.append(capsys.readouterr().out)
    assert told == [help_text(verb) + "\n"] * 4
    lines = told[0].splitlines()
    assert lines[0].endswith(".")
    assert f"Usage: {verb.path} " in told[0]
    assert "  -h, --help" in lines
    if verb.name != "run":
        assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.path)
def test_examples_are_calls_of_the_verb(verb: Verb) -> None:
    assert all(verb.path in example.command for example in verb.examples)
    assert bool(verb.examples) is (verb.name != "version" and not verb.of)


def test_an_unknown_verb_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controller"]) == 1
    assert capsys.readouterr().err == (
        "Error: unknown verb 'controller' of `steersman`; did you mean `steersman controllers`?\n"
    )
    assert cli.main(["qqq"]) == 1
    assert "available: run, up, node," in capsys.readouterr().err
    assert cli.main(["--qqq"]) == 1
    assert cli.main(["demo", "--sed=3"]) == 1
    assert "did you mean --seed?" in capsys.readouterr().err


def test_flags_may_come_before_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["-o", "json", "controllers", "job"]) == 0
    before = capsys.readouterr().out
    assert cli.main(["controllers", "job", "-o", "json"]) == 0
    assert capsys.readouterr().out == before
    # A value that is called like a verb is a value.
    assert cli.main(["--kubeconfig", "up", "node", "list"]) == 1
    assert capsys.readouterr().err.startswith("Error: up: ")


@pytest.mark.parametrize(
    "words", [["run", "--help"], ["controllers"], ["controllers", "-o", "json"], ["version"]]
)
def test_output_that_is_not_read_ends_the_program_quietly(words: Sequence[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "steersman.manager.cli", *words]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["controllers"], ["version"], ["up", "--port=0", "--no-ui"]])
def test_output_that_a_full_disk_does_not_take_is_one_line(words: Sequence[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "steersman.manager.cli", *words]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.stderr == "Error: cannot write the output: No space left on device\n"
    assert done.returncode == 1


def test_a_disk_that_is_full_elsewhere_is_not_hidden() -> None:
    with pytest.raises(OSError, match="No space left"):
        cli._guarded(
            lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device", "state.db"))
        )


@pytest.mark.parametrize("words", ["controllers", "up --port=0 --no-ui -- true"])
def test_closed_standard_streams_are_no_sockets(words: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m steersman.manager.cli {words} <&- >&- 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, timeout=60)
    assert done.returncode == 0


def test_a_pipe_that_broke_elsewhere_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokenPipeError):
        cli._guarded(lambda: (_ for _ in ()).throw(BrokenPipeError()))


def test_the_help_of_the_program_loads_little() -> None:
    script = "import sys; from steersman.manager import cli; cli.main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = done.stdout.splitlines()[-1].split()
    heavy = ("asyncio", "ssl", "aiohttp", "yaml", "importlib.metadata", "email", "steersman.controllers")
    assert [name for name in heavy if name in loaded] == []
