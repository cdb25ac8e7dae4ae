"""The explorer: a scenario with nothing wrong, then with everything that may go wrong, and what is found."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from steersman.explore.fault_sampling import crash_points, crash_states, lost_answers, sample
from steersman.explore.oracle import Finding, judge
from steersman.explore.parallel import spread
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import Scenario
from steersman.explore.shrink import shrink
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.text import text

Faults: TypeAlias = tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One run to be made: which faults, from which seed."""

    scenario: Scenario
    faults: Faults
    seed: int = 0

    @property
    def command(self) -> str:
        """What to type to see it again."""
        words = ["steersman", "explore", self.scenario.path or self.scenario.name]
        words += [f"--seed={self.seed}"] if self.seed else []
        return shlex.join([*words, f"--faults={text(self.faults)}"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a trial."""

    trial: Trial
    findings: tuple[Finding, ...]
    struck: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.trial.scenario.name}: {text(self.trial.faults) or 'no faults'}"]
        lines += [f"  {each}" for each in self.findings]
        lines += [f"  at {each}" for each in self.struck[:3]]
        return "\n".join([*lines, f"  {self.trial.command}"])


class BrokenReference(AssertionError):
    """A scenario that breaks rules though nothing goes wrong: it is to be mended first."""


def reference(scenario: Scenario) -> Outcome:
    """How a scenario goes when nothing goes wrong. Raises `BrokenReference`."""
    outcome = run(scenario)
    if outcome.broken:
        raise BrokenReference(f"{scenario.name}: " + "; ".join(outcome.broken.values()))
    return outcome


def attempt(trial: Trial, wanted: Outcome) -> Verdict:
    """Make one trial."""
    outcome = run(trial.scenario, trial.faults, trial.seed)
    return Verdict(trial, judge(trial.scenario, wanted, outcome, trial.faults), outcome.struck)


def exhaustive(scenario: Scenario, wanted: Outcome) -> Iterator[Trial]:
    """A crash before and after every write."""
    for faults in crash_points(wanted):
        yield Trial(scenario, faults)


def distinct(scenario: Scenario, wanted: Outcome) -> Iterator[Trial]:
    """The same, but once for each state in which the server is then."""
    for faults in crash_states(wanted):
        yield Trial(scenario, faults)


def unanswered(scenario: Scenario, wanted: Outcome) -> Iterator[Trial]:
    """Every answer lost, one at a time."""
    for faults in lost_answers(wanted):
        yield Trial(scenario, faults)


def sampled(
    scenario: Scenario, wanted: Outcome, seeds: Sequence[int], only: tuple[str, ...] = ()
) -> Iterator[Trial]:
    """Faults drawn from seeds."""
    for seed in seeds:
        yield Trial(scenario, sample(seed, wanted, only), seed)


def explore(
    trials: Sequence[Trial],
    references: dict[str, Outcome],
    jobs: int = 1,
    told: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Make trials on so many cores; answers those that found something. ``told`` of each as it is done."""
    found = []

    def make(trial: Trial) -> Verdict:
        return attempt(trial, references[trial.scenario.name])

    for _, verdict in spread(make, trials, jobs):
        told(verdict)
        if verdict.findings:
            found.append(verdict)
    return found


def smallest(verdict: Verdict, wanted: Outcome) -> Verdict:
    """The same finding with as few and as plain faults as will do."""
    trial = verdict.trial
    rules = {finding.rule for finding in verdict.findings}

    def breaks(faults: Faults) -> bool:
        said = attempt(replace(trial, faults=faults), wanted)
        return any(finding.rule in rules for finding in said.findings)

    return attempt(replace(trial, faults=shrink(trial.faults, breaks)), wanted)
