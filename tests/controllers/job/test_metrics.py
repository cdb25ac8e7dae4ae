"""Metrics of job-controller: from its rounds, and from changes of Jobs and pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from steersman.api.errors import Forbidden
from steersman.api.kinds import (
    JOBS,
    Condition,
    Job,
    JobSpec,
    JobStatus,
    LabelSelector,
    ObjectMeta,
    OnPodCondition,
    OwnerReference,
    Pod,
    PodFailurePolicy,
    PodFailurePolicyRule,
    PodStatus,
    PodTemplateSpec,
)
from steersman.api.scheme import Key
from steersman.controllers.job import controller
from steersman.controllers.job.metrics import (
    EXTERNAL,
    FINISHED,
    HANDLED,
    INDEXES,
    PODS_FINISHED,
    TRACKED,
    measure_job,
    measure_pod,
)
from steersman.controllers.job.pods import TRACKING_FINALIZER
from steersman.intent.actions import Action, Create
from steersman.intent.controller import Change
from steersman.intent.metrics import Elapsed, Measure
from steersman.runtime.controller_group import ControllerGroup
from steersman.sim.nodes import Nodes
from steersman.sim.world import World
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app": "x"}


def job(*, status: JobStatus | None = None, **spec: Any) -> Job:
    wanted = {"parallelism": 2, "completions": 2, "backoffLimit": 6, **spec}
    template = PodTemplateSpec(metadata=ObjectMeta(labels=LABELS))
    return Job(
        metadata=ObjectMeta(name="j", namespace="d", uid="j"),
        spec=JobSpec(selector=LabelSelector(matchLabels=LABELS), template=template, **wanted),
        status=status or JobStatus(startTime=NOW),
    )


def pod(phase: str = "Running", tracked: bool = True, **conditions: str) -> Pod:
    owner = OwnerReference(apiVersion="batch/v1", kind="Job", name="j", uid="j", controller=True)
    told = tuple(Condition(type=type_, status=status) for type_, status in conditions.items())
    return Pod(
        metadata=ObjectMeta(
            name="p",
            namespace="d",
            uid="p",
            labels=LABELS,
            finalizers=(TRACKING_FINALIZER,) if tracked else (),
            ownerReferences=(owner,),
        ),
        status=PodStatus(phase=phase, conditions=told),
    )


def measured(of: Job, *pods: Pod, answers: Any = None) -> list[tuple[str, float, tuple[str, ...]]]:
    """What one look counts, without what upstream calls it where that is longer than needed to tell."""
    seen = controller.see(StaticCaches(controller, of, *pods), Key("d", "j"))
    assert seen is not None
    said: list[Action[Any]] = []
    try:
        walk(controller.decide(seen, NOW), answers, recorded=said)
    except Forbidden:
        pass
    return [
        (one.metric.name.removeprefix("job_controller_"), one.value, one.labels)
        for one in said
        if isinstance(one, Measure)
    ]


@pytest.mark.parametrize(
    ("of", "pods", "action"),
    [
        (job(), (), "pods_created"),
        (job(parallelism=0), (pod(),), "pods_deleted"),
        (job(suspend=True), (), "pods_deleted"),
        (job(parallelism=1, completions=1), (pod(),), "tracking"),
        (job(parallelism=1, backoffLimit=0), (pod("Failed"),), "reconciling"),
    ],
)
def test_a_look_is_counted_and_timed_by_what_it_did(of: Job, pods: tuple[Pod, ...], action: str) -> None:
    labels = ("NonIndexed", "success", action)
    found = measured(of, *pods, answers={Elapsed: [0.5, 0.75]})
    assert found[-2:] == [("job_sync_duration_seconds", 0.25, labels), ("job_syncs_total", 1.0, labels)]


def test_a_look_that_fails_is_counted_as_such() -> None:
    found = measured(job(completionMode="Indexed"), answers={Create: Forbidden("quota")})
    assert found == [
        ("job_pods_creation_total", 1.0, ("new", "failed")),
        ("job_sync_duration_seconds", 0.0, ("Indexed", "error", "pods_created")),
        ("job_syncs_total", 1.0, ("Indexed", "error", "pods_created")),
    ]


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (job(), "new"),
        (job(status=JobStatus(startTime=NOW, failed=1)), "recreate_terminating_or_failed"),
        (
            job(status=JobStatus(startTime=NOW, failed=1), podReplacementPolicy="Failed"),
            "recreate_failed",
        ),
    ],
)
def test_pods_created_are_counted_by_what_for(of: Job, reason: str) -> None:
    of = replace(of, status=replace(of.status, succeeded=1))  # so that nothing backs off
    assert ("job_pods_creation_total", 1.0, (reason, "succeeded")) in measured(of)


def test_a_look_at_what_has_ended_counts_nothing() -> None:
    ended = JobStatus(conditions=(Condition(type="Complete", status="True"),))
    assert measured(job(status=ended)) == []


ENDED = Condition(type="Failed", status="True", reason="BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("spec", "before", "after", "counted"),
    [
        ({}, {"active": 1}, {"active": 2}, []),
        (
            {},
            {"succeeded": 1},
            {"succeeded": 3, "failed": 1},
            [
                Measure(PODS_FINISHED, 2, ("NonIndexed", "succeeded")),
                Measure(PODS_FINISHED, 1, ("NonIndexed", "failed")),
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 5},
            {"completedIndexes": "0"},
            {"completedIndexes": "0-2"},
            [
                Measure(INDEXES, 2, ("succeeded", "global")),
                Measure(PODS_FINISHED, 2, ("Indexed", "succeeded")),
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 2},  # there were five
            {"completedIndexes": "0,4", "succeeded": 2},
            {"completedIndexes": "0", "succeeded": 1},
            [],
        ),
        (
            {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1},
            {},
            {"failedIndexes": "1,3", "failed": 4},
            [Measure(INDEXES, 2, ("failed", "perIndex")), Measure(PODS_FINISHED, 4, ("Indexed", "failed"))],
        ),
        (
            {},
            {},
            {"conditions": (ENDED,)},
            [Measure(FINISHED, labels=("NonIndexed", "failed", "BackoffLimitExceeded"))],
        ),
        ({}, {"conditions": (ENDED,)}, {"conditions": (ENDED,), "startTime": NOW}, []),
        ({"managedBy": "example.com/it"}, {}, {"succeeded": 3}, []),
    ],
)
def test_what_became_of_a_job_is_read_off_its_status(
    spec: dict[str, Any], before: dict[str, Any], after: dict[str, Any], counted: list[Measure]
) -> None:
    change = Change(job(status=JobStatus(**before), **spec), job(status=JobStatus(**after), **spec))
    assert list(measure_job(StaticCaches(controller), change)) == counted


def test_a_job_of_another_controller_is_counted_once() -> None:
    foreign = job(managedBy="example.com/it")
    caches = StaticCaches(controller)
    assert list(measure_job(caches, Change(None, foreign))) == [Measure(EXTERNAL, labels=("example.com/it",))]
    assert list(measure_job(caches, Change(foreign, None))) == []
    assert list(measure_job(caches, Change(None, job()))) == []


IGNORE = PodFailurePolicy(
    rules=(
        PodFailurePolicyRule(
            action="Ignore", onPodConditions=(OnPodCondition(type="DisruptionTarget", status="True"),)
        ),
    )
)


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        (None, pod(), []),
        (pod(), pod("Failed"), [Measure(TRACKED, labels=("add",))]),
        (pod("Failed"), pod("Failed", tracked=False), [Measure(TRACKED, labels=("delete",))]),
        (pod("Succeeded"), None, [Measure(TRACKED, labels=("delete",))]),
        (
            pod("Failed", DisruptionTarget="True"),
            pod("Failed", tracked=False, DisruptionTarget="True"),
            [Measure(TRACKED, labels=("delete",)), Measure(HANDLED, labels=("Ignore",))],
        ),
    ],
)
def test_a_pod_that_ended_is_counted_as_it_begins_and_ceases_to_wait(
    before: Pod | None, after: Pod | None, counted: list[Measure]
) -> None:
    caches = StaticCaches(controller, job(podFailurePolicy=IGNORE))
    assert list(measure_pod(caches, Change(before, after))) == counted


def test_a_manager_counts_what_its_jobs_do() -> None:
    with World(seed=5) as world:
        fleet = ControllerGroup((controller,), world.api("manager"), world)
        world.spawn(fleet.run(), name="manager")
        world.spawn(Nodes(world.api("nodes"), world).run(), name="nodes")
        main = {"name": "main", "image": "app:1", "command": ["sh", "-c", "exit 3"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [main]}}
        spec = {"backoffLimit": 0, "template": template}
        world.run(world.api().create(JOBS, "default", {"metadata": {"name": "bad"}, "spec": spec}))
        world.run(world.settle(60.0))
        text = fleet.metrics.render().decode()
        steps = [step.action for round_ in fleet.trace.rounds() for step in round_.steps]
    found = {
        (
            sample.name.removeprefix("job_controller_"),
            *(sample.labels[name] for name in sorted(sample.labels)),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["job_pods_creation_total", "new", "succeeded"] == 1
    assert found["job_pods_finished_total", "NonIndexed", "failed"] == 1
    assert found["jobs_finished_total", "NonIndexed", "BackoffLimitExceeded", "failed"] == 1
    assert found["terminated_pods_tracking_finalizer_total", "add"] == 1
    assert found["terminated_pods_tracking_finalizer_total", "delete"] == 1
    assert found["job_syncs_total", "pods_created", "NonIndexed", "success"] == 1
    assert found["job_sync_duration_seconds_count", "pods_created", "NonIndexed", "success"] == 1
    assert steps, "it has done something"
    assert not [step for step in steps if "measure" in step], "what is only counted is no part of the story"
