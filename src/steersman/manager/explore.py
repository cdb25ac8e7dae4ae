"""``steersman explore``: run scenarios under injected faults, on all cores."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
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
from steersman.manager.flags import UsageError
from steersman.manager.output import DOCUMENTS, document, table
from steersman.manager.verb import Given
from steersman.runtime.trace import span
from steersman.sim.faults.requests import RequestLatency
from steersman.sim.faults.text import InvalidFault, text
from steersman.sim.faults.text import parse as parse_faults
from steersman.testing.cluster import Cluster

ALL, CRASHES, LOST_RESPONSES = "all", "crashes", "lost-responses"
MAX_SHOWN = 20
"""Maximum number of findings that are shrunk and shown, and of injected faults shown for a single run."""


def main(given: Given) -> int:
    """Entry point; returns the exit code: 1 where there are findings."""
    flags = dict(given.values)
    try:
        flags["write-latency"] = write_latency(flags["write-latency"])
        scenarios = _select(given.arguments)
        if flags["all-controllers"]:
            scenarios = [replace(each, controllers=()) for each in scenarios]
        if "(" in flags["faults"]:
            return _run_each(scenarios, flags)
        return _explore(scenarios, flags)
    except (InvalidScenario, InvalidFault, BrokenReference) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _select(names: Sequence[str]) -> list[Scenario]:
    return [each for name in names for each in (catalogue() if name == ALL else (find(name),))]


# -- a single run -----------------------------------------------------------------------------


class TrialReport(msgspec.Struct, frozen=True):
    """A trial for programs."""

    scenario: str
    faults: str
    injected: tuple[str, ...]
    findings: tuple[str, ...]
    command: str


def _report(result: TrialResult) -> TrialReport:
    trial = result.trial
    findings = tuple(map(str, result.findings))
    return TrialReport(trial.scenario.name, text(trial.faults), result.injected, findings, trial.command)


def _run_each(scenarios: Sequence[Scenario], flags: dict[str, Any]) -> int:
    """Run scenarios once each, with given faults."""
    form = flags["output"]
    if flags["history"] and form in DOCUMENTS:
        raise UsageError(f"--history is text for people: pass it without --output={form}")
    results: list[TrialResult] = []
    for scenario in scenarios:
        trial = _slowed(Trial(scenario, parse_faults(flags["faults"]), flags["seed"]), flags)
        expected = reference(scenario)
        if flags["history"]:
            run(scenario, trial.faults, trial.seed, _print_history)
        results.append(run_trial(trial, expected))
        if form not in DOCUMENTS:
            print(*_lines(results[-1]), sep="\n", flush=True)
    if form in DOCUMENTS:
        print(document([_report(each) for each in results], form))
    return 1 if any(each.findings for each in results) else 0


def _lines(result: TrialResult) -> Iterator[str]:
    yield f"{result.trial.scenario.name}: {text(result.trial.faults)}"
    injected = result.injected or ("no fault took effect",)
    for each in injected[:MAX_SHOWN]:
        yield f"  {each}"
    if len(injected) > MAX_SHOWN:
        yield f"  … and {len(injected) - MAX_SHOWN} more"
    for finding in result.findings:
        yield f"  FOUND {finding}"
    if not result.findings:
        yield "  no findings"


def _print_history(cluster: Cluster) -> None:
    for entry in cluster.history():
        print(entry)


# -- all trials -------------------------------------------------------------------------------


class ScenarioReport(msgspec.Struct, frozen=True):
    """All trials of a scenario."""

    scenario: str
    writes: int
    runs: int
    findings: int
    seconds: float
    examples: tuple[TrialReport, ...]
    """The first findings, each with the fewest faults that reproduce it."""


def _explore(scenarios: Sequence[Scenario], flags: dict[str, Any]) -> int:
    """Run all trials of scenarios."""
    form = flags["output"]
    jobs = flags["jobs"] or os.cpu_count() or 1
    began = time.perf_counter()
    reports: list[ScenarioReport] = []
    for scenario in scenarios:
        start = time.perf_counter()
        expected = reference(scenario)
        trials = [_slowed(trial, flags) for trial in _trials(scenario, expected, flags)]
        with _progress(scenario.name, len(trials)) as tick:
            found: list[TrialResult] = explore(trials, {scenario.name: expected}, jobs, tick)
        seconds = time.perf_counter() - start
        examples: list[TrialReport] = []
        for result in found[: max(1, MAX_SHOWN // len(scenarios))]:
            shrunk = shrink_result(result, expected)
            examples.append(_report(shrunk))
            if form not in DOCUMENTS:
                print(shrunk, flush=True)
        reports.append(
            ScenarioReport(
                scenario.name, expected.writes, len(trials), len(found), round(seconds, 3), tuple(examples)
            )
        )
    findings = sum(each.findings for each in reports)
    if form in DOCUMENTS:
        print(document(reports, form))
    else:
        print("", *_table(reports), sep="\n")
        total = sum(each.runs for each in reports)
        print(f"\n{total} runs in {span(time.perf_counter() - began)}: {findings or 'no'} findings")
    return 1 if findings else 0


def _table(reports: Sequence[ScenarioReport]) -> Iterator[str]:
    rows = [
        (each.scenario, str(each.writes), str(each.runs), str(each.findings or ""), span(each.seconds))
        for each in reports
    ]
    return table([("scenario", "writes", "runs", "findings", "took"), *rows], right=range(1, 5))


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
