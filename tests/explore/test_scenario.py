"""Scenarios as files: what they may say, what is refused, and that they are played as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.explore.scenario import InvalidScenario, Scenario, StepFailed, catalogue, find, load, seconds
from steersman.sim import faults
from steersman.testing.cluster import Cluster

WEB = """
  - apply:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 2
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: main, image: "app:1"}]}
"""


def written(steps: str) -> Scenario:
    return load(f"name: test\ndescription: A test.\nsteps:{WEB}{steps}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(seed=1) as made:
        yield made


def test_every_scenario_of_ours_has_a_name_a_description_and_expectations() -> None:
    for scenario in catalogue():
        assert scenario.description.endswith("."), scenario.name
        assert any(step.verb in ("expect", "until") for step in scenario.steps), scenario.name
        assert scenario.selected_controllers, scenario.name


def test_a_scenario_is_found_by_name_or_by_file(tmp_path: Path) -> None:
    assert find("rolling-update").name == "rolling-update"
    file = tmp_path / "mine.yaml"
    file.write_text("description: Mine.\nsteps: [settle]\n")
    found = find(str(file))
    assert (found.name, found.path) == ("mine", str(file))
    with pytest.raises(InvalidScenario, match=r"unknown scenario 'rol'; available: .*rollback"):
        find("rol")
    with pytest.raises(InvalidScenario, match="No such file"):
        find(str(tmp_path / "other.yaml"))


def test_a_cluster_may_have_flags_and_devices() -> None:
    flags = "{legacy-service-account-token-clean-up-period: 24h, terminated-pod-gc-threshold: 2}"
    found = load(f"cluster: {{dra: true, flags: {flags}}}\nsteps: [settle]\n")
    assert found.dra
    assert found.flags == {
        "legacy-service-account-token-clean-up-period": 86400.0,
        "terminated-pod-gc-threshold": 2,
    }
    with pytest.raises(InvalidScenario, match="no controller has the flag frob"):
        load("cluster: {flags: {frob: 1}}\nsteps: [settle]\n")


def test_what_happened_is_what_is_written(cluster: Cluster) -> None:
    written("""
  - until: deployment/web
    has: {status: {readyReplicas: 2}}
  - scale: deployment/web
    to: 4
  - settle: 20s
  - expect: pods
    selector: app=web
    count: 4
    has: {status: {phase: Running}}
  - image: deployment/web
    to: app:2
  - settle
  - expect: deployment/web
    has: {spec: {template: {spec: {containers: [{image: "app:2"}]}}}}
  - patch: pods
    selector: app=web
    first: 1
    with: {metadata: {labels: {extra: "yes"}}}
  - expect: pods
    selector: extra=yes
    count: 1
  - delete: deployment/web
  - expect: deployment/web
    absent: true
  - node: node-1
    do: cordon
  - expect: node/node-1
    has: {spec: {unschedulable: true}}
""").play(cluster)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("{expect: deployment/web, has: {spec: {replicas: 5}}}", "web: spec.replicas is 2, not 5"),
        ("{expect: deployment/other}", "not found"),
        ("{expect: deployment/web, absent: true}", "1 found"),
        ("{expect: deployments, count: 2}", "count is 1, not 2"),
        ("{until: deployment/web, has: {spec: {replicas: 5}}, within: 3s}", "not within 3 s"),
        ("{delete: deployment/other}", "not found"),
        ("{delete: pods, selector: app=none, first: 1}", "0 objects found, not 1"),
        ("{create: {apiVersion: v1, kind: Namespace, metadata: {name: default}}}", "already exists"),
    ],
)
def test_a_step_that_is_not_met_says_which_it_is_and_why(cluster: Cluster, step: str, why: str) -> None:
    with pytest.raises(StepFailed, match=f"step 2, .*{why}"):
        written(f"\n  - {step}").play(cluster)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "a scenario is a map"),
        ("{name: x}", "a scenario is a map with a name, a description and steps"),
        ("{steps: [settle], more: 1}", "has no field more"),
        ("{steps: [sleep]}", "a step has exactly one of"),
        ("{steps: [{scale: deployment/web}]}", "scale needs to"),
        ("{steps: [{settle: 1, selector: x}]}", "settle has no field selector"),
        ("{steps: [{settle: 1, advance: 2}]}", "a step has exactly one of"),
        ("{steps: [settle], cluster: {controllers: [unknown]}}", "unknown controller unknown"),
        ("{steps: [settle], cluster: {kubelets: {start-delay: soon}}}", "is not a duration"),
        ("{steps: [settle], cluster: 3}", "is not a map"),
        ("{steps: [settle], cluster: {write-latency: 300ms}}", "'300ms' is not a minimum and a maximum"),
        ("{steps: [settle], cluster: {write-latency: [1ms]}}", "is not a minimum and a maximum"),
        (
            "{steps: [settle], cluster: {write-latency: [1ms, long]}}",
            "write latency: 'long' is not a duration",
        ),
        ("{steps: [settle], cluster: {write-latency: [2s, 1s]}}", "write latency: minimum and maximum must"),
        ("{steps: [", "the scenario: "),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidScenario, match=why):
        load(text)


def test_a_scenario_may_say_how_long_writes_take() -> None:
    latency = load("{steps: [settle], cluster: {write-latency: [1ms, 0.3s]}}").latency
    assert latency == (faults.request_latency(0.001, 0.3),)
    assert load("{steps: [settle]}").latency == ()


@pytest.mark.parametrize(("said", "found"), [(5, 5), (0.5, 0.5), ("90s", 90), ("1m30s", 90), ("2d", 172_800)])
def test_spans_of_time_are_written_as_people_write_them(said: object, found: float) -> None:
    assert seconds(said) == found
