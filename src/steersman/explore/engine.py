"""The exploration engine: runs a scenario without faults, then under faults, and compares the outcomes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.explore.fault_sampling import crash_points, distinct_crash_points, lost_responses, sample
from steersman.explore.oracle import Finding, check
from steersman.explore.parallel import run_parallel
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import Scenario
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.text import text

Faults: TypeAlias = tuple[Fault, ...]
SHRINK_RUNS = 60
"""Maximum number of runs to shrink a finding."""


class Trial(msgspec.Struct, frozen=True):
    """A run to make: a scenario, its faults and its seed."""

    scenario: Scenario
    faults: Faults
    seed: int = 0

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        words = ["steersman", "explore", self.scenario.path or self.scenario.name]
        words += [f"--seed={self.seed}"] if self.seed else []
        return shlex.join([*words, f"--faults={text(self.faults)}"])


class TrialResult(msgspec.Struct, frozen=True):
    """The result of a trial."""

    trial: Trial
    findings: tuple[Finding, ...]
    injected: tuple[str, ...] = ()
    """The faults that took effect, with their times."""

    def __str__(self) -> str:
        lines = [f"{self.trial.scenario.name}: {text(self.trial.faults) or 'no faults'}"]
        lines += [f"  {each}" for each in self.findings]
        lines += [f"  at {each}" for each in self.injected[:3]]
        return "\n".join([*lines, f"  {self.trial.command}"])


class BrokenReference(AssertionError):
    """A scenario that violates invariants without any fault."""


def reference(scenario: Scenario) -> Outcome:
    """The outcome of a scenario without faults. Raises `BrokenReference`."""
    outcome = run(scenario)
    if outcome.violations:
        raise BrokenReference(f"{scenario.name}: " + "; ".join(outcome.violations.values()))
    return outcome


def run_trial(trial: Trial, expected: Outcome) -> TrialResult:
    """Run a trial and compare its outcome with the reference."""
    outcome = run(trial.scenario, trial.faults, trial.seed)
    return TrialResult(trial, check(trial.scenario, expected, outcome, trial.faults), outcome.injected)


# -- trials -----------------------------------------------------------------------------------


def crash_trials(scenario: Scenario, expected: Outcome) -> Iterator[Trial]:
    """A crash before and after every write."""
    for faults in crash_points(expected):
        yield Trial(scenario, faults)


def distinct_crash_trials(scenario: Scenario, expected: Outcome) -> Iterator[Trial]:
    """A crash before or after every write, once for each state of the server."""
    for faults in distinct_crash_points(expected):
        yield Trial(scenario, faults)


def lost_response_trials(scenario: Scenario, expected: Outcome) -> Iterator[Trial]:
    """Every response lost, one at a time."""
    for faults in lost_responses(expected):
        yield Trial(scenario, faults)


def sampled_trials(
    scenario: Scenario, expected: Outcome, seeds: Sequence[int], only: tuple[str, ...] = ()
) -> Iterator[Trial]:
    """Faults sampled from seeds."""
    for seed in seeds:
        yield Trial(scenario, sample(seed, expected, only), seed)


def explore(
    trials: Sequence[Trial],
    references: dict[str, Outcome],
    jobs: int = 1,
    progress: Callable[[TrialResult], None] = lambda result: None,
) -> list[TrialResult]:
    """Run trials in ``jobs`` processes; returns the results with findings. ``progress`` gets every result."""
    found = []

    def work(trial: Trial) -> TrialResult:
        return run_trial(trial, references[trial.scenario.name])

    for _, result in run_parallel(work, trials, jobs):
        progress(result)
        if result.findings:
            found.append(result)
    return found


# -- shrinking --------------------------------------------------------------------------------


def shrink_result(result: TrialResult, expected: Outcome) -> TrialResult:
    """Reproduce a finding with as few and as simple faults as possible."""
    trial = result.trial
    invariants = {finding.invariant for finding in result.findings}

    def fails(faults: Faults) -> bool:
        shrunk = run_trial(replace(trial, faults=faults), expected)
        return any(finding.invariant in invariants for finding in shrunk.findings)

    return run_trial(replace(trial, faults=shrink(trial.faults, fails)), expected)


def shrink(faults: Sequence[Fault], fails: Callable[[Faults], bool], runs: int = SHRINK_RUNS) -> Faults:
    """Remove faults, then simplify the remaining ones, while the trial still ``fails``."""
    smallest = tuple(faults)
    again = True
    while again:
        again = False
        for smaller in _smaller(smallest):
            if runs <= 0:
                return smallest
            runs -= 1
            if fails(smaller):
                smallest = smaller
                again = True
                break
    return smallest


def _smaller(faults: Faults) -> Iterator[Faults]:
    for i in range(len(faults)):
        yield faults[:i] + faults[i + 1 :]
    for i, fault in enumerate(faults):
        for simpler in _simpler(fault):
            yield (*faults[:i], simpler, *faults[i + 1 :])


def _simpler(fault: Fault) -> Iterator[Fault]:
    """A fault with one field at its default, or with a smaller number."""
    for field in msgspec.structs.fields(type(fault)):
        value = getattr(fault, field.name)
        if not field.required and value != field.default:
            yield replace(fault, **{field.name: field.default})
        if field.name in ("times", "revisions") and isinstance(value, int) and value > 1:
            yield replace(fault, **{field.name: value // 2})
