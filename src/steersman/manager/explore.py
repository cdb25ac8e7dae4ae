"""``steersman explore``: run scenarios under injected faults, on all cores."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.explore.engine import (
    BrokenReference,
    Trial,
    TrialResult,
    crash_trials,
    explore,
    lost_response_trials,
    reference,
    run_trial,
    sampled_trials,
    shrink_result,
)
from steersman.explore.fault_sampling import SAMPLERS
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import InvalidScenario, Scenario, catalogue, find, write_latency
from steersman.manager.flag_types import BOOL, INT, STRING, STRINGS
from steersman.manager.flags import Option, UsageError, parse, usage
from steersman.runtime.trace import span
from steersman.sim.faults.requests import RequestLatency
from steersman.sim.faults.text import InvalidFault, text
from steersman.sim.faults.text import parse as parse_faults
from steersman.testing.cluster import Cluster

ALL, CRASHES, LOST_RESPONSES = "all", "crashes", "lost-responses"
OPTIONS = (
    Option(
        "faults",
        STRING,
        ALL,
        "Faults to inject. all; crashes: a crash before and after every write; lost-responses: every response lost in "
        "turn; names of faults to sample, such as frozen_watch,watch_cut; or a single run with given faults, such as "
        "'crash_after_write(7) + response_lost(9)'.",
        "Explore",
    ),
    Option(
        "write-latency",
        STRINGS,
        (),
        "Shortest and longest time that a write of a controller takes in every trial, such as 1ms,300ms. By default writes take "
        "no time, except in trials that sample request_latency.",
        "Explore",
    ),
    Option("seeds", INT, 20, "Number of trials with sampled faults for each scenario.", "Explore"),
    Option("first-seed", INT, 1, "First seed of the sampled faults.", "Explore"),
    Option("seed", INT, 0, "Seed of a single run with given faults.", "Explore"),
    Option("jobs", INT, 0, "Number of processes. By default one for each core.", "Explore"),
    Option("all-controllers", BOOL, False, "Run all controllers, not only those of the scenario.", "Explore"),
    Option("history", BOOL, False, "Print the history of a single run with given faults.", "Explore"),
    Option("help", BOOL, False, "Show this help and exit.", "Explore", "h"),
)
HEAD = """\
Run scenarios under injected faults: managers that crash between any two writes, lost responses, frozen watches,
errors of the API server. A run whose end state differs from the run without faults is a finding. Findings are
shown with the fewest faults that reproduce them and the command to repeat them.

Usage: steersman explore SCENARIO... [flags]     (all: every scenario; a .yaml file: your own scenario)
"""
MAX_SHOWN = 20
"""Maximum number of findings that are shrunk and shown, and of injected faults shown for a single run."""


def main(argv: Sequence[str]) -> int:
    """Entry point; returns the exit code: 1 where there are findings."""
    if any(word in ("-h", "--help") for word in argv):
        print(HEAD + "\nScenarios:\n")
        for each in catalogue():
            print(f"  {each.name:<28} {each.description}")
        print("\n" + usage(OPTIONS))
        return 0
    try:
        names = list(takewhile(lambda word: not word.startswith("-"), argv))
        flags = parse(OPTIONS, argv[len(names) :])
        flags["write-latency"] = write_latency(flags["write-latency"])
        scenarios = _select(names)
        if flags["all-controllers"]:
            scenarios = [replace(each, controllers=()) for each in scenarios]
        if "(" in flags["faults"]:
            return max(_run_once(each, flags) for each in scenarios)
        return _explore(scenarios, flags)
    except (UsageError, InvalidScenario, InvalidFault, BrokenReference) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _select(names: Sequence[str]) -> list[Scenario]:
    if not names:
        raise UsageError("name a scenario, or all; --help lists the scenarios")
    return [each for name in names for each in (catalogue() if name == ALL else (find(name),))]


# -- a single run -----------------------------------------------------------------------------


def _run_once(scenario: Scenario, flags: dict[str, Any]) -> int:
    trial = _slowed(Trial(scenario, parse_faults(flags["faults"]), flags["seed"]), flags)
    expected = reference(scenario)
    if flags["history"]:
        run(scenario, trial.faults, trial.seed, _print_history)
    result = run_trial(trial, expected)
    print(f"{scenario.name}: {text(trial.faults)}")
    injected = result.injected or ("no fault took effect",)
    for each in injected[:MAX_SHOWN]:
        print(f"  {each}")
    if len(injected) > MAX_SHOWN:
        print(f"  … and {len(injected) - MAX_SHOWN} more")
    for finding in result.findings:
        print(f"  FOUND {finding}")
    if not result.findings:
        print("  no findings")
    return 1 if result.findings else 0


def _print_history(cluster: Cluster) -> None:
    for entry in cluster.history():
        print(entry)


# -- all trials -------------------------------------------------------------------------------


class Row(msgspec.Struct):
    """A scenario in the final table."""

    writes: int
    trials: int = 0
    findings: int = 0
    seconds: float = 0.0


def _explore(scenarios: Sequence[Scenario], flags: dict[str, Any]) -> int:
    jobs = flags["jobs"] or os.cpu_count() or 1
    began = time.perf_counter()
    rows: dict[str, Row] = {}
    for scenario in scenarios:
        start = time.perf_counter()
        expected = reference(scenario)
        trials = [_slowed(trial, flags) for trial in _trials(scenario, expected, flags)]
        row = rows[scenario.name] = Row(expected.writes, len(trials))
        with _progress(scenario.name, len(trials)) as tick:
            found: list[TrialResult] = explore(trials, {scenario.name: expected}, jobs, tick)
        row.findings = len(found)
        row.seconds = time.perf_counter() - start
        for result in found[: max(1, MAX_SHOWN // len(scenarios))]:
            print(shrink_result(result, expected), flush=True)
    _table(rows)
    total = sum(row.trials for row in rows.values())
    findings = sum(row.findings for row in rows.values())
    print(f"\n{total} runs in {span(time.perf_counter() - began)}: {findings or 'no'} findings")
    return 1 if findings else 0


def _trials(scenario: Scenario, expected: Outcome, flags: dict[str, Any]) -> Iterator[Trial]:
    names = flags["faults"].split(",")
    unknown = [name for name in names if name not in (ALL, CRASHES, LOST_RESPONSES, *SAMPLERS)]
    if unknown:
        known = ", ".join((ALL, CRASHES, LOST_RESPONSES, *SAMPLERS))
        raise UsageError(f"--faults: unknown fault {unknown[0]!r}; available: {known}")
    everything = ALL in names
    if everything or CRASHES in names:
        yield from crash_trials(scenario, expected)
    if everything or LOST_RESPONSES in names:
        yield from lost_response_trials(scenario, expected)
    sampled = tuple(name for name in names if name in SAMPLERS)
    if everything or sampled:
        seeds = range(flags["first-seed"], flags["first-seed"] + flags["seeds"])
        yield from sampled_trials(scenario, expected, seeds, sampled)


def _slowed(trial: Trial, flags: dict[str, Any]) -> Trial:
    """A trial with the latency of the flag, unless it has one of its own."""
    if any(isinstance(fault, RequestLatency) for fault in trial.faults):
        return trial
    return replace(trial, faults=(*flags["write-latency"], *trial.faults))


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
    """A progress bar on a terminal: rich's where it is installed, otherwise a plain one."""
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
        sys.stderr.write(f"\r{name:<28} [{'#' * full}{' ' * (30 - full)}] {done}/{total}")
        sys.stderr.flush()

    yield tick
    sys.stderr.write("\r\033[K")
