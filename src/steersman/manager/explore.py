"""``steersman explore``: scenarios lived through with everything that may go wrong, on all cores."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

from steersman.explore.engine import (
    BrokenReference,
    Trial,
    Verdict,
    attempt,
    exhaustive,
    explore,
    reference,
    sampled,
    smallest,
    unanswered,
)
from steersman.explore.fault_sampling import DRAWS
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import BadScenario, Scenario, catalogue, find
from steersman.manager.flag_types import BOOL, INT, STRING
from steersman.manager.flags import Option, UsageError, parse, usage
from steersman.runtime.trace import span
from steersman.sim.faults.text import BadFault, text
from steersman.sim.faults.text import parse as read_faults
from steersman.testing.cluster import Cluster

ALL, CRASHES, ANSWERS = "all", "crashes", "answers"
OPTIONS = (
    Option(
        "faults",
        STRING,
        ALL,
        "What goes wrong. all; crashes: a crash before and after every write; answers: every answer lost in "
        "turn; names to draw from, such as frozen_watch,watch_cut; or exactly these, such as "
        "'crash_after_write(7) + answer_lost(9)'.",
        "Explore",
    ),
    Option("seeds", INT, 20, "How many times faults are drawn for each scenario.", "Explore"),
    Option("first", INT, 1, "The first seed they are drawn from.", "Explore"),
    Option("seed", INT, 0, "The seed of a world with exactly these faults.", "Explore"),
    Option("jobs", INT, 0, "How many processes work at once; as many as there are cores.", "Explore"),
    Option("everybody", BOOL, False, "Run all controllers in every scenario, not just its own.", "Explore"),
    Option("history", BOOL, False, "Show all that happened in a run with exactly these faults.", "Explore"),
    Option("help", BOOL, False, "Show this and end.", "Explore", "h"),
)
HEAD = """\
Live through scenarios with everything that may go wrong: managers that die between any two writes, answers
that are lost, watches that stand still, servers that refuse. What ends otherwise than when nothing goes wrong
is a finding, shown with the fewest faults that bring it about and the command to see it again.

Usage: steersman explore SCENARIO... [flags]     (all is all of them; a .yaml file is one of your own)
"""
SHOWN = 20
"""How many findings are shown, and made smaller, of those there are; and how many faults that struck."""


def main(argv: Sequence[str]) -> int:
    """Entry point; answers the exit code: 1 where something was found."""
    if any(word in ("-h", "--help") for word in argv):
        print(HEAD + "\nScenarios:\n")
        for each in catalogue():
            print(f"  {each.name:<24} {each.story}")
        print("\n" + usage(OPTIONS))
        return 0
    try:
        names = list(takewhile(lambda word: not word.startswith("-"), argv))
        flags = parse(OPTIONS, argv[len(names) :])
        scenarios = _chosen(names)
        if flags["everybody"]:
            scenarios = [replace(each, controllers=()) for each in scenarios]
        if "(" in flags["faults"]:
            return max(_once(each, flags) for each in scenarios)
        return _explore(scenarios, flags)
    except (UsageError, BadScenario, BadFault, BrokenReference) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _chosen(names: Sequence[str]) -> list[Scenario]:
    if not names:
        raise UsageError("name a scenario, or all; --help shows those there are")
    return [each for name in names for each in (catalogue() if name == ALL else (find(name),))]


# -- exactly these ----------------------------------------------------------------------------


def _once(scenario: Scenario, flags: dict[str, Any]) -> int:
    trial = Trial(scenario, read_faults(flags["faults"]), flags["seed"])
    wanted = reference(scenario)
    if flags["history"]:
        run(scenario, trial.faults, trial.seed, _history)
    verdict = attempt(trial, wanted)
    print(f"{scenario.name}: {text(trial.faults)}")
    struck = verdict.struck or ("nothing went wrong: it never came to that",)
    for each in struck[:SHOWN]:
        print(f"  {each}")
    if len(struck) > SHOWN:
        print(f"  … and {len(struck) - SHOWN} more")
    for finding in verdict.findings:
        print(f"  FOUND {finding}")
    if not verdict.findings:
        print("  ended as it should")
    return 1 if verdict.findings else 0


def _history(cluster: Cluster) -> None:
    for entry in cluster.history():
        print(entry)


# -- all that may go wrong --------------------------------------------------------------------


@dataclass
class Row:
    """What is told of a scenario in the end."""

    writes: int
    trials: int = 0
    findings: int = 0
    seconds: float = 0.0
    found: list[Verdict] = field(default_factory=list)


def _explore(scenarios: Sequence[Scenario], flags: dict[str, Any]) -> int:
    jobs = flags["jobs"] or os.cpu_count() or 1
    began = time.perf_counter()
    rows: dict[str, Row] = {}
    for scenario in scenarios:
        start = time.perf_counter()
        wanted = reference(scenario)
        trials = list(_trials(scenario, wanted, flags))
        row = rows[scenario.name] = Row(wanted.writes, len(trials))
        with _progress(scenario.name, len(trials)) as tick:
            row.found = explore(trials, {scenario.name: wanted}, jobs, tick)
        row.findings = len(row.found)
        row.seconds = time.perf_counter() - start
        for verdict in row.found[: max(1, SHOWN // len(scenarios))]:
            print(smallest(verdict, wanted), flush=True)
    _table(rows)
    total = sum(row.trials for row in rows.values())
    found = sum(row.findings for row in rows.values())
    print(f"\n{total} runs in {span(time.perf_counter() - began)}: {found or 'no'} findings")
    return 1 if found else 0


def _trials(scenario: Scenario, wanted: Outcome, flags: dict[str, Any]) -> Iterator[Trial]:
    words = flags["faults"].split(",")
    unknown = [word for word in words if word not in (ALL, CRASHES, ANSWERS, *DRAWS)]
    if unknown:
        known = ", ".join((ALL, CRASHES, ANSWERS, *DRAWS))
        raise UsageError(f"--faults: there is no {unknown[0]!r}; there are: {known}")
    everything = ALL in words
    if everything or CRASHES in words:
        yield from exhaustive(scenario, wanted)
    if everything or ANSWERS in words:
        yield from unanswered(scenario, wanted)
    drawn = tuple(word for word in words if word in DRAWS)
    if everything or drawn:
        seeds = range(flags["first"], flags["first"] + flags["seeds"])
        yield from sampled(scenario, wanted, seeds, drawn)


def _table(rows: dict[str, Row]) -> None:
    head = ("scenario", "writes", "runs", "findings", "took")
    lines = [head] + [
        (name, str(row.writes), str(row.trials), str(row.findings or ""), span(row.seconds))
        for name, row in rows.items()
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    print()
    for line in lines:
        first, *others = (
            word.ljust(width) if column == 0 else word.rjust(width)
            for column, (word, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join((first, *others)).rstrip())


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[object], None]]:
    """A bar on a terminal: rich's where it is installed, a plain one where not, none in a file."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    if find_spec("rich") is not None:
        progress = import_module("rich.progress")
        console = import_module("rich.console").Console(stderr=True)
        with progress.Progress(console=console, transient=True) as bar:
            task = bar.add_task(name, total=total)
            yield lambda _: bar.advance(task)
        return
    done = 0

    def tick(_: object) -> None:
        nonlocal done
        done += 1
        full = 30 * done // max(1, total)
        sys.stderr.write(f"\r{name:<24} [{'#' * full}{' ' * (30 - full)}] {done}/{total}")
        sys.stderr.flush()

    yield tick
    sys.stderr.write("\r\033[K")
