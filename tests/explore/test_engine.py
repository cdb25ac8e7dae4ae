"""The explorer itself: what it tries, what it finds, how small it makes it."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.scheme import Key
from steersman.controllers import deployment, replicaset
from steersman.explore import scenario
from steersman.explore.elected_cluster import ElectedManager
from steersman.explore.engine import (
    BrokenReference,
    Trial,
    crash_trials,
    distinct_crash_trials,
    explore,
    lost_response_trials,
    reference,
    run_trial,
    sampled_trials,
    shrink,
    shrink_result,
)
from steersman.explore.fault_sampling import SAMPLERS, sample
from steersman.explore.oracle import check
from steersman.explore.parallel import WorkerFailed, run_parallel
from steersman.explore.run import Outcome, run
from steersman.explore.scenario import Scenario, find, load
from steersman.intent.actions import Update
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim import faults
from steersman.sim.faults import Fault


@pytest.fixture(scope="module")
def create() -> Scenario:
    return find("deployment-create")


@pytest.fixture(scope="module")
def wanted(create: Scenario) -> Outcome:
    return reference(create)


def test_the_same_run_comes_to_the_same_twice(create: Scenario) -> None:
    one = run(create, faults.parse("crash_after_write(3)"), seed=5)
    assert one == run(create, faults.parse("crash_after_write(3)"), seed=5)
    assert one.injected


def test_every_write_is_a_crash_point_before_and_after(create: Scenario, wanted: Outcome) -> None:
    trials = list(crash_trials(create, wanted))
    assert len(trials) == 2 * wanted.writes
    assert len(list(lost_response_trials(create, wanted))) == wanted.writes
    injected = [run(create, trial.faults).injected for trial in trials[:4]]
    assert [bool(each) for each in injected] == [True] * 4, "each of them happens"


def test_a_crash_is_tried_once_for_each_state_of_the_server(create: Scenario, wanted: Outcome) -> None:
    every = [trial.faults for trial in crash_trials(create, wanted)]
    once = [trial.faults for trial in distinct_crash_trials(create, wanted)]
    assert set(once) < set(every)
    # The second manager's first look depends on the state alone, so nothing new is in what is left out.
    ends = [run(create, faults_).creates for faults_ in every]
    assert ends == [wanted.creates] * len(every)
    assert faults.parse("crash_before_write(1)") in once
    assert (faults.crash_after_write(wanted.writes),) in once


def test_what_is_drawn_from_a_seed_depends_on_the_seed_alone(create: Scenario, wanted: Outcome) -> None:
    drawn = [trial.faults for trial in sampled_trials(create, wanted, range(1, 200))]
    assert drawn == [trial.faults for trial in sampled_trials(create, wanted, range(1, 200))]
    words = Counter(fault.name for each in drawn for fault in each)
    assert set(words) >= {word for word in SAMPLERS if word != "outage"}, "all of them come up"
    slow = sum("request_latency" in faults.text(each) for each in drawn)
    assert len(drawn) / 4 < slow < len(drawn) * 3 / 5, "requests take time in some, and in some they do not"
    only = sample(3, wanted, ("frozen_watch",))
    assert {fault.name for fault in only} == {"frozen_watch"}


def test_faults_are_sampled_for_a_scenario_with_custom_resources() -> None:
    custom = find("cascade-crd")
    assert list(sampled_trials(custom, reference(custom), range(1, 200)))


def test_every_fault_that_is_drawn_reads_back_from_a_command_line(create: Scenario, wanted: Outcome) -> None:
    for trial in sampled_trials(create, wanted, range(1, 200)):
        assert faults.parse(faults.text(trial.faults)) == trial.faults


def test_a_finding_comes_with_the_command_that_shows_it_again(create: Scenario) -> None:
    trial = Trial(create, faults.parse("crash_after_write(3) + frozen_watch(pods, 5)"), seed=4)
    assert trial.command == (
        "steersman explore deployment-create --seed=4 '--faults=crash_after_write(3) + frozen_watch(pods, 5)'"
    )


def test_a_scenario_that_fails_by_itself_is_to_be_mended_first() -> None:
    broken = load("{name: broken, steps: [{expect: deployment/web}]}")
    with pytest.raises(BrokenReference, match="broken: step 1, expect deployment/web: not found"):
        reference(broken)


# -- the oracle -------------------------------------------------------------------------------


def outcome(**fields: object) -> Outcome:
    base = Outcome(
        state={"pods": {"web-*": [{"status": "Running"}]}},
        creates={"pods web-": 3},
        deletes={"pods web-": 1},
        writes=20,
        applied=20,
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
        ({"applied": 81}, ["writes"]),
        ({"applied": 80}, []),
        ({"writes": 301}, ["writes"]),
        ({"violations": {"error": "KeyError"}}, ["error"]),
        ({"violations": {"leadership": "wrote"}}, ["leadership"]),
        ({"violations": {"overlap": "two writes at once"}}, ["overlap"]),
        ({"violations": {"protection": "a claim in use"}}, ["protection"]),
        ({"violations": {"convergence": "no end"}, "state": {}}, ["convergence"]),
    ],
)
def test_invariants_are_violated_by_what_they_are_about(
    create: Scenario, fields: dict[str, object], rules: list[str]
) -> None:
    found = check(create, outcome(), outcome(**fields))
    assert [finding.invariant for finding in found] == rules


def test_a_fault_allows_the_violations_that_no_manager_can_prevent(create: Scenario) -> None:
    found = outcome(creates={"pods web-": 9}, state={})
    assert [each.invariant for each in check(create, outcome(), found, faults.parse("two_leaders(3)"))] == [
        "state"
    ]


def test_a_scenario_may_allow_for_what_time_decides(create: Scenario) -> None:
    tolerant = replace(create, tolerance={"pods": 2})
    found = outcome(creates={"pods web-": 4, "pods other-": 1})
    assert check(tolerant, outcome(), found) == ()
    more = outcome(creates={"pods web-": 4, "pods other-": 2})
    assert [each.invariant for each in check(tolerant, outcome(), more)] == ["creates"]


def test_pods_that_are_made_twice_are_found_out_where_nothing_excuses_it(
    create: Scenario, wanted: Outcome
) -> None:
    """The oracle can fail: a manager that reads the past makes pods again, which no manager could help."""
    trial = Trial(create, faults.parse("crash_after_write(5) + stale_restart(9, 5)"))
    assert run_trial(trial, wanted).findings == ()
    found = check(create, wanted, run(create, trial.faults))
    assert "creates" in [finding.invariant for finding in found]


# -- smaller, and on all cores ----------------------------------------------------------------


def test_faults_are_shrunk_to_those_that_matter() -> None:
    tried: list[str] = []

    def breaks(given: tuple[Fault, ...]) -> bool:
        tried.append(faults.text(given))
        return any(fault.name == "frozen_watch" for fault in given)

    many = faults.parse("crash_after_write(3) + frozen_watch(pods, 60, nth=9) + response_lost(2, times=5)")
    assert faults.text(shrink(many, breaks)) == "frozen_watch(pods, 60)"
    assert len(tried) < 20


def test_a_finding_is_shown_with_as_few_faults_as_will_do() -> None:
    story = find("deployment-create")
    # The reference is emptied, so every create is a finding.
    odd = replace(story, name="odd", steps=story.steps[:-1])
    wanted = replace(reference(odd), creates={}, deletes={})
    given = faults.parse("crash_after_write(2) + duplicated_events(pods)")
    verdict = run_trial(Trial(odd, given), wanted)
    assert [finding.invariant for finding in verdict.findings] == ["creates"]
    assert shrink_result(verdict, wanted).trial.faults == ()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_work_is_spread_over_processes_and_all_of_it_comes_back(jobs: int) -> None:
    pieces = list(range(20))
    found = dict(run_parallel(lambda piece: (piece * 2, "x" * 100_000), pieces, jobs))
    assert {piece: double for piece, (double, _) in found.items()} == {each: each * 2 for each in pieces}


def test_a_process_that_ends_without_an_answer_is_told() -> None:
    with pytest.raises(WorkerFailed):
        list(run_parallel(lambda piece: os._exit(3), [1, 2], 2))


def test_trials_on_two_cores_come_to_what_they_come_to_on_one(create: Scenario, wanted: Outcome) -> None:
    trials = list(crash_trials(create, wanted))[:6]
    # Nothing may be created at all: then everything is a finding.
    strict = {create.name: replace(wanted, creates={})}
    one = explore(trials, strict, jobs=1)
    two = explore(trials, strict, jobs=2)
    assert len(one) == len(trials)
    assert sorted(map(str, one)) == sorted(map(str, two))


def test_a_manager_that_works_without_the_lease_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle can fail: this one never asked whether it leads."""

    async def work(self: ElectedManager) -> None:
        await self.fleet.run()

    monkeypatch.setattr(ElectedManager, "_work", work)
    monkeypatch.setattr(ElectedManager, "fence", lambda self: self.alive)
    story = find("scale-down")
    outcome = run(story, faults.parse("lease_stolen(1)"))
    assert "while no manager leads" in outcome.violations["leadership"]


def test_a_controller_with_two_rounds_for_one_object_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle can fail: this one enqueues every Deployment under two keys."""
    story = find("deployment-create")
    doubled = replace(
        deployment.controller,
        observe=lambda caches, key: deployment.observe(
            caches, Key(key.namespace, key.name.removesuffix("/2"))
        ),
        watches=tuple(replace(watch, to=_doubled(watch.to)) for watch in deployment.controller.watches),
        configure=None,
    )
    monkeypatch.setattr(scenario, "CONTROLLERS", (doubled, replicaset.replicaset))
    outcome = run(story, faults.parse("request_latency(0.1, 0.3)"))
    assert "deployments.apps default/web" in outcome.violations["overlap"]


@pytest.mark.parametrize(
    ("name", "broken", "finalizer", "user"),
    [
        ("claim-in-use", "persistentvolumeclaim-protection-controller", "pvc", "pod first"),
        ("volume-in-use", "persistentvolume-protection-controller", "pv", "claim data"),
        (
            "volume-attributes-class-in-use",
            "volumeattributesclass-protection-controller",
            "vac",
            "claim data",
        ),
    ],
)
def test_a_controller_that_lets_go_of_objects_in_use_is_found_out(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: str, finalizer: str, user: str
) -> None:
    """The oracle can fail: this one removes the finalizer from all that is being deleted."""
    story = find(name)
    (whole,) = [each for each in story.selected_controllers if each.name == broken]

    async def let_go(seen: Any, now: datetime) -> Verdict:
        meta = seen.metadata
        wanted = () if meta.deletionTimestamp is not None else (f"kubernetes.io/{finalizer}-protection",)
        if meta.finalizers != wanted:
            await Update(replace(seen, metadata=replace(meta, finalizers=wanted)))
        return Rest("let go")

    careless: Controller[Any] = Controller(
        name=broken,
        service_account=whole.service_account,
        watches=(Watch(whole.watches[0].kind),),
        workers=1,
        decide=let_go,
    )
    others = tuple(each for each in story.selected_controllers if each.name != broken)
    monkeypatch.setattr(scenario, "CONTROLLERS", (careless, *others))
    assert f"was removed while {user} uses it" in run(story).violations["protection"]


def _doubled(to: Any) -> Any:
    def keys(caches: Any, change: Any) -> Any:
        for key in to(caches, change):
            yield key
            yield Key(key.namespace, key.name + "/2")

    return keys
