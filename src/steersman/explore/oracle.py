"""The oracle: whether a run under faults came to what it would have come to without.

| rule | broken when |
|---|---|
| ``failure`` | a task failed that nobody looked after, or the scenario could not be played |
| ``mistake`` | a round, a handler or anything else failed with an error of the program's own |
| ``quiet`` | there was no end to it |
| ``expect`` | a step of the scenario was not met |
| ``state`` | it ended in another state |
| ``creates`` | something was created more often than when nothing goes wrong |
| ``deletes`` | the same, deleted |
| ``writes`` | there were many more writes |
| ``leadership`` | a manager wrote that did not lead |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from steersman.explore.run import Outcome
from steersman.explore.scenario import Scenario
from steersman.explore.state import differences
from steersman.sim.faults.fault import Fault

RULES = (
    "failure",
    "mistake",
    "quiet",
    "expect",
    "state",
    "creates",
    "deletes",
    "writes",
    "leadership",
)
STORM = 2, 40
"""How many times as many writes, and how many more, may be carried out than when nothing goes wrong."""
ATTEMPTS = 5, 200
"""The same for writes that are tried."""
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken."""

    rule: str
    words: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}"


def judge(
    scenario: Scenario, reference: Outcome, outcome: Outcome, faults: Sequence[Fault] = ()
) -> tuple[Finding, ...]:
    """The rules that a run broke, but for those its faults excuse."""
    excused = {rule for fault in faults for rule in fault.excused}
    found = (Finding(rule, words) for rule, words in _broken(scenario, reference, outcome))
    return tuple(finding for finding in found if finding.rule not in excused)


def _broken(scenario: Scenario, reference: Outcome, outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield from outcome.broken.items()
    if "failure" in outcome.broken or "quiet" in outcome.broken:
        return  # it did not come to an end that could be compared
    unlike = list(differences(reference.state, outcome.state))
    if unlike:
        yield "state", _some(unlike)
    surplus = list(_surplus(reference.creates, outcome.creates, scenario.slack))
    if surplus:
        yield "creates", _some(surplus)
    surplus = list(_surplus(reference.deletes, outcome.deletes, scenario.slack))
    if surplus:
        yield "deletes", _some(surplus)
    for words, (factor, more), was, now in (
        ("carried out", STORM, reference.done, outcome.done),
        ("tried", ATTEMPTS, reference.writes, outcome.writes),
    ):
        if now > factor * was + more:
            yield "writes", f"{now} writes were {words}, {was} would do"
            return


def _surplus(wanted: Mapping[str, int], found: Mapping[str, int], slack: Mapping[str, int]) -> Iterator[str]:
    left = dict(slack)
    for title, count in found.items():
        plural = title.partition(" ")[0].partition(".")[0]
        extra = count - wanted.get(title, 0)
        if extra > 0:
            allowed = min(extra, left.get(plural, 0))
            left[plural] = left.get(plural, 0) - allowed
            if extra > allowed:
                yield f"{title}: {count} instead of {wanted.get(title, 0)}"


def _some(words: list[str]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return "; ".join(words[:SHOWN]) + more
