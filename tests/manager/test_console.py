"""The console of ``steersman up``: short, and one line for each thing that repeats."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from steersman.api.clock import RealClock
from steersman.api.verbosity import structured
from steersman.manager.console import CAPACITY, Line, Repeats
from steersman.manager.up import _serve, read
from steersman.manager.verbs import KUBECONFIG


def record(text: str, err: object = None, logger: str = "replicaset-controller") -> logging.LogRecord:
    made = logging.LogRecord("x", logging.WARNING, "runner.py", 7, "%s default/a: %s", (logger, text), None)
    vars(made).update(structured("Reconciliation failed", logger=logger, err=err or text))
    return made


def shown(records: list[logging.LogRecord]) -> list[str]:
    repeats, line = Repeats(), Line()
    return [line.format(each) for each in records if repeats.filter(each)]


def test_what_repeats_is_shown_with_its_number_ever_more_rarely() -> None:
    refused = 'pods "web-{0}" is forbidden: exceeded quota: q, limited: pods=2'
    lines = shown([record(refused.format(number)) for number in range(1, 1500)])
    assert lines == [
        'warning: replicaset-controller default/a: pods "web-1" is forbidden: exceeded quota: q, limited: pods=2',
        'warning: replicaset-controller default/a: pods "web-10" is forbidden: exceeded quota: q, limited: pods=2'
        " (the 10th time)",
        'warning: replicaset-controller default/a: pods "web-100" is forbidden: exceeded quota: q, limited: pods=2'
        " (the 100th time)",
        'warning: replicaset-controller default/a: pods "web-1000" is forbidden: exceeded quota: q, limited: pods=2'
        " (the 1,000th time)",
    ]


def test_other_reasons_and_other_controllers_are_other_lines() -> None:
    lines = shown(
        [record("no"), record("never"), record("no", logger="job-controller"), record("no"), record("never")]
    )
    assert [line.partition(": ")[2] for line in lines] == [
        "replicaset-controller default/a: no",
        "replicaset-controller default/a: never",
        "job-controller default/a: no",
    ]


def test_memory_is_bounded_and_what_comes_often_is_remembered() -> None:
    repeats = Repeats()
    for number in range(3 * CAPACITY):
        repeats.filter(record(f"reason {number}"))
        repeats.filter(often := record("often"))
    assert vars(often)["count"] == 3 * CAPACITY
    assert len(repeats._counts) == CAPACITY


def test_a_message_cannot_forge_a_line_and_a_crash_names_its_error() -> None:
    assert "\n" not in Line().format(record("a\nerror: b"))
    try:
        raise KeyError("x")
    except KeyError:
        crash = logging.LogRecord("x", logging.ERROR, "r.py", 1, "broken", None, sys.exc_info())
    assert Line().format(crash) == "error: broken: KeyError: 'x' (-v=1 shows where)"


# -- the whole of it --------------------------------------------------------------------------


async def up(*argv: str, meanwhile: Callable[[Path], object] = lambda config: None) -> int:
    """Run a control plane in the working directory and interrupt it when it has written its kubeconfig."""
    options = read(["--port=0", "--nodes=0", "--no-controllers", *argv])
    serving = asyncio.create_task(_serve(options, RealClock))
    async with asyncio.timeout(60):
        while not options.kubeconfig.exists():
            await asyncio.sleep(0.01)
        meanwhile(options.kubeconfig)
        signal.raise_signal(signal.SIGINT)
        return await serving


@pytest.mark.parametrize(
    ("argv", "name", "left"),
    [((), "steersman.kubeconfig", []), (("--kubeconfig=mine",), "mine", ["mine"])],
)
async def test_a_kubeconfig_is_left_only_where_it_was_asked_for_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...],
    name: str,
    left: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await up(*argv) == 0
    first, export, hint, dashboard, last = capsys.readouterr().out.splitlines()
    assert dashboard.startswith("  dashboard: http://127.0.0.1:")
    assert first.startswith("steersman is up at https://127.0.0.1:")
    assert export.strip() == f"export KUBECONFIG={tmp_path / name}"
    assert "Ctrl-C" in hint
    assert last == "stopping"
    assert [each.name for each in tmp_path.iterdir()] == left


async def test_a_kubeconfig_that_another_program_wrote_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await up(meanwhile=lambda config: config.write_text("of another"))
    assert (tmp_path / "steersman.kubeconfig").read_text() == "of another"


async def test_quiet_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await up("--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_the_kubeconfig_is_not_committed_by_accident() -> None:
    root = Path(__file__).parents[2]
    patterns = (root / ".gitignore").read_text().splitlines()
    assert any(fnmatch(KUBECONFIG, pattern) for pattern in patterns)
