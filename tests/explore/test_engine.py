"""The explorer itself: what it tries, what it finds, how small it makes it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from steersman.explore.elected_cluster import Elected
from steersman.explore.engine import (
    BrokenReference,
    Trial,
    attempt,
    distinct,
    exhaustive,
    explore,
    reference,
    sampled,
    smallest,
    unanswered,
)
from steersman.explore.fault_sampling import DRAWS, sample
from steersman.explore.oracle import judge
from steersman.explore.parallel import Lost, spread
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import Scenario, find, load
from steersman.explore.shrink import shrink
from steersman.sim import faults
from steersman.sim.faults import Fault


@pytest.fixture(scope="module")
def create() -> Scenario:
    return find("create")


@pytest.fixture(scope="module")
def wanted(create: Scenario) -> Outcome:
    return reference(create)


def test_the_same_run_comes_to_the_same_twice(create: Scenario) -> None:
    one = run(create, faults.parse("crash_after_write(3)"), seed=5)
    assert one == run(create, faults.parse("crash_after_write(3)"), seed=5)
    assert one.struck


def test_every_write_is_a_crash_point_before_and_after(create: Scenario, wanted: Outcome) -> None:
    trials = list(exhaustive(create, wanted))
    assert len(trials) == 2 * wanted.writes
    assert len(list(unanswered(create, wanted))) == wanted.writes
    struck = [run(create, trial.faults).struck for trial in trials[:4]]
    assert [bool(each) for each in struck] == [True] * 4, "each of them happens"


def test_a_crash_is_tried_once_for_each_state_of_the_server(create: Scenario, wanted: Outcome) -> None:
    every = [trial.faults for trial in exhaustive(create, wanted)]
    once = [trial.faults for trial in distinct(create, wanted)]
    assert set(once) < set(every)
    # The second manager's first look depends on the state alone, so nothing new is in what is left out.
    ends = [run(create, faults_).creates for faults_ in every]
    assert ends == [wanted.creates] * len(every)
    assert faults.parse("crash_before_write(1)") in once
    assert (faults.crash_after_write(wanted.writes),) in once


def test_what_is_drawn_from_a_seed_depends_on_the_seed_alone(create: Scenario, wanted: Outcome) -> None:
    drawn = [trial.faults for trial in sampled(create, wanted, range(1, 200))]
    assert drawn == [trial.faults for trial in sampled(create, wanted, range(1, 200))]
    words = Counter(fault.word for each in drawn for fault in each)
    assert set(words) >= {word for word in DRAWS if word != "outage"}, "all of them come up"
    only = sample(3, wanted, ("frozen_watch",))
    assert {fault.word for fault in only} == {"frozen_watch"}


def test_every_fault_that_is_drawn_reads_back_from_a_command_line(create: Scenario, wanted: Outcome) -> None:
    for trial in sampled(create, wanted, range(1, 200)):
        assert faults.parse(faults.text(trial.faults)) == trial.faults


def test_a_finding_comes_with_the_command_that_shows_it_again(create: Scenario) -> None:
    trial = Trial(create, faults.parse("crash_after_write(3) + frozen_watch(pods, 5)"), seed=4)
    assert trial.command == (
        "steersman explore create --seed=4 '--faults=crash_after_write(3) + frozen_watch(pods, 5)'"
    )


def test_a_scenario_that_fails_by_itself_is_to_be_mended_first() -> None:
    broken = load("{name: broken, steps: [{expect: deployment/web}]}")
    with pytest.raises(BrokenReference, match="broken: step 1, expect deployment/web: there is none"):
        reference(broken)


# -- the oracle -------------------------------------------------------------------------------


def outcome(**fields: object) -> Outcome:
    base = Outcome(
        state={"pods": {"web-*": [{"status": "Running"}]}},
        creates={"pods web-": 3},
        deletes={"pods web-": 1},
        writes=20,
        done=20,
    )
    return replace(base, **fields)


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({}, []),
        ({"state": {"pods": {}}}, ["state"]),
        ({"creates": {"pods web-": 4}}, ["creates"]),
        ({"creates": {"pods web-": 2}}, []),
        ({"creates": {"pods web-": 3, "pods other-": 1}}, ["creates"]),
        ({"deletes": {"pods web-": 2}}, ["deletes"]),
        ({"done": 81}, ["writes"]),
        ({"done": 80}, []),
        ({"writes": 301}, ["writes"]),
        ({"broken": {"mistake": "KeyError"}}, ["mistake"]),
        ({"broken": {"leadership": "wrote"}}, ["leadership"]),
        ({"broken": {"quiet": "no end"}, "state": {}}, ["quiet"]),
    ],
)
def test_rules_are_broken_by_what_they_are_about(
    create: Scenario, fields: dict[str, object], rules: list[str]
) -> None:
    found = judge(create, outcome(), outcome(**fields))
    assert [finding.rule for finding in found] == rules


def test_a_fault_excuses_what_nobody_could_help(create: Scenario) -> None:
    found = outcome(creates={"pods web-": 9}, state={})
    assert [each.rule for each in judge(create, outcome(), found, faults.parse("two_leaders(3)"))] == [
        "state"
    ]


def test_a_scenario_may_allow_for_what_time_decides(create: Scenario) -> None:
    slack = replace(create, slack={"pods": 2})
    found = outcome(creates={"pods web-": 4, "pods other-": 1})
    assert judge(slack, outcome(), found) == ()
    more = outcome(creates={"pods web-": 4, "pods other-": 2})
    assert [each.rule for each in judge(slack, outcome(), more)] == ["creates"]


def test_pods_that_are_made_twice_are_found_out_where_nothing_excuses_it(
    create: Scenario, wanted: Outcome
) -> None:
    """The oracle can fail: a manager that reads the past makes pods again, which no manager could help."""
    trial = Trial(create, faults.parse("crash_after_write(5) + stale_restart(9, 5)"))
    assert attempt(trial, wanted).findings == ()
    found = judge(create, wanted, run(create, trial.faults))
    assert "creates" in [finding.rule for finding in found]


# -- smaller, and on all cores ----------------------------------------------------------------


def test_faults_are_shrunk_to_those_that_matter() -> None:
    tried: list[str] = []

    def breaks(given: tuple[Fault, ...]) -> bool:
        tried.append(faults.text(given))
        return any(fault.word == "frozen_watch" for fault in given)

    many = faults.parse("crash_after_write(3) + frozen_watch(pods, 60, nth=9) + answer_lost(2, times=5)")
    assert faults.text(shrink(many, breaks)) == "frozen_watch(pods, 60)"
    assert len(tried) < 20


def test_a_finding_is_shown_with_as_few_faults_as_will_do() -> None:
    story = find("create")
    # Nobody allows for a pod that is deleted by the scenario and made anew.
    odd = replace(story, name="odd", steps=story.steps[:-1])
    wanted = replace(reference(odd), creates={}, deletes={})
    given = faults.parse("crash_after_write(2) + duplicated_events(pods)")
    verdict = attempt(Trial(odd, given), wanted)
    assert [finding.rule for finding in verdict.findings] == ["creates"]
    assert smallest(verdict, wanted).trial.faults == ()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_work_is_spread_over_processes_and_all_of_it_comes_back(jobs: int) -> None:
    pieces = list(range(20))
    found = dict(spread(lambda piece: (piece * 2, "x" * 100_000), pieces, jobs))
    assert {piece: double for piece, (double, _) in found.items()} == {each: each * 2 for each in pieces}


def test_a_process_that_ends_without_an_answer_is_told() -> None:
    with pytest.raises(Lost):
        list(spread(lambda piece: os._exit(3), [1, 2], 2))


def test_trials_on_two_cores_come_to_what_they_come_to_on_one(create: Scenario, wanted: Outcome) -> None:
    trials = list(exhaustive(create, wanted))[:6]
    # Nothing may be created at all: then everything is a finding.
    strict = {create.name: replace(wanted, creates={})}
    one = explore(trials, strict, jobs=1)
    two = explore(trials, strict, jobs=2)
    assert len(one) == len(trials)
    assert sorted(map(str, one)) == sorted(map(str, two))


def test_a_manager_that_works_without_the_lease_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle can fail: this one never asked whether it leads."""

    async def work(self: Elected) -> None:
        await self.fleet.run()

    monkeypatch.setattr(Elected, "_work", work)
    monkeypatch.setattr(Elected, "fence", lambda self: self.alive)
    story = find("scale-down")
    outcome = run(story, faults.parse("lease_stolen(1)"))
    assert "while nobody leads" in outcome.broken["leadership"]
