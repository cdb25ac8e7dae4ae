"""The oracle: checks the invariants of a run under faults against the run without faults.

| invariant | violated when |
|---|---|
| ``failure`` | a background task failed, or the scenario could not be run |
| ``error`` | a round or a handler failed with an unexpected exception |
| ``convergence`` | the cluster never settled |
| ``expect`` | an expectation of the scenario was not met |
| ``state`` | the end state differs |
| ``creates`` | an object was created more often |
| ``deletes`` | an object was deleted more often |
| ``writes`` | there were many more writes |
| ``leadership`` | a manager wrote without holding the lease |
| ``protection`` | a claim, volume or VolumeAttributesClass was removed while it was in use |
| ``overlap`` | a controller wrote an object while an earlier write of it was under way: two of its rounds are about one object |
| ``cidrs`` | the pod CIDRs of two nodes overlapped at some time |
| ``evictions`` | a pod was evicted from a node whose kubelet ran |
| ``attachments`` | a volume that one node at a time may have was attached to a second one |
| ``detaches`` | a volume was detached while its node reported it, or had it mounted |
| ``binding`` | a claim was bound to a volume that was bound to another claim |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from steersman.explore.run import Outcome
from steersman.explore.scenario import Scenario
from steersman.explore.state import differences
from steersman.sim.faults.fault import Fault

INVARIANTS = (
    "failure",
    "error",
    "convergence",
    "expect",
    "state",
    "creates",
    "deletes",
    "writes",
    "leadership",
    "protection",
    "overlap",
    "cidrs",
    "evictions",
    "attachments",
    "detaches",
    "binding",
)
APPLIED_LIMIT = 2, 40
"""Factor and number by which applied writes may exceed those of the reference."""
ATTEMPTED_LIMIT = 5, 200
"""The same for attempted writes."""
SHOWN = 4


class Finding(msgspec.Struct, frozen=True):
    """A violated invariant."""

    invariant: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.message}"


def check(
    scenario: Scenario, reference: Outcome, outcome: Outcome, faults: Sequence[Fault] = ()
) -> tuple[Finding, ...]:
    """The invariants that a run violated, except those its faults allow to be violated."""
    allowed = {invariant for fault in faults for invariant in fault.allows()}
    found = (Finding(invariant, message) for invariant, message in _violations(scenario, reference, outcome))
    return tuple(finding for finding in found if finding.invariant not in allowed)


def _violations(scenario: Scenario, reference: Outcome, outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield from outcome.violations.items()
    if "failure" in outcome.violations or "convergence" in outcome.violations:
        return  # there is no end state to compare
    different = list(differences(reference.state, outcome.state))
    if different:
        yield "state", _some(different)
    surplus = list(_surplus(reference.creates, outcome.creates, scenario.tolerance))
    if surplus:
        yield "creates", _some(surplus)
    surplus = list(_surplus(reference.deletes, outcome.deletes, scenario.tolerance))
    if surplus:
        yield "deletes", _some(surplus)
    for what, (factor, more), was, now in (
        ("applied", APPLIED_LIMIT, reference.applied, outcome.applied),
        ("attempted", ATTEMPTED_LIMIT, reference.writes, outcome.writes),
    ):
        if now > factor * was + more:
            yield "writes", f"{now} writes {what}, {was} without faults"
            return


def _surplus(
    wanted: Mapping[str, int], found: Mapping[str, int], tolerance: Mapping[str, int]
) -> Iterator[str]:
    left = dict(tolerance)
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
