"""The end of a plan: what converges too late, what never does, and how much room is missing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.plan.assumptions import Assumptions
from steersman.plan.change import Apply, Delete, Drain, Scale, SetImage
from steersman.plan.render import markdown, text
from steersman.sim.kubelet import Shape
from steersman.testing import Cluster
from tests.plan.test_rehearsal import copy_of, deployment, one_at_a_time, plan, web


def with_pod(replicas: int = 4, finalizers: tuple[str, ...] = (), **spec: Any) -> dict[str, Any]:
    document = deployment(replicas=replicas)
    template = document["spec"]["template"]
    template["metadata"]["finalizers"] = list(finalizers)
    template["spec"].update(spec)
    return document


def budget(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }


def test_a_roll_that_is_slow_is_told_apart_from_one_that_never_ends() -> None:
    loaded = copy_of(web)
    roll = SetImage("deploy", "web", "web:v2")
    slow = plan(loaded, roll, assumptions=Assumptions(ready=3600))
    assert slow.exit_code == 2
    assert [each.waits for each in slow.not_converged] == [True]
    for page in (text(slow), markdown(slow)):
        assert "Not converged within 30 min" in page
        assert "Never converges" not in page
    never = plan(loaded, roll, assumptions=Assumptions(ready=3600, missing_images=("web:v2",)))
    assert never.exit_code == 2
    for page in (text(never), markdown(never)):
        assert "Never converges" in page
        assert "Not converged within" not in page
    assert plan(loaded, roll, minutes=300, assumptions=Assumptions(ready=3600)).converged


def test_a_drain_that_a_finalizer_holds_up_never_converges() -> None:
    loaded = copy_of(lambda cluster: cluster.apply(with_pod(finalizers=("example.com/hold",))))
    report = plan(loaded, Drain("node-1"), minutes=5)
    assert report.exit_code == 2
    (stuck,) = report.not_converged
    assert str(stuck.object) == "Node node-1"
    assert "example.com/hold" in stuck.causes[0]
    assert not stuck.waits


def test_a_drain_whose_pods_take_long_to_stop_is_slow() -> None:
    loaded = copy_of(lambda cluster: cluster.apply(with_pod(terminationGracePeriodSeconds=7200)))
    report = plan(loaded, Drain("node-1"), minutes=5, assumptions=Assumptions(shutdown=3600))
    assert report.exit_code == 2
    assert [(str(each.object), each.waits) for each in report.not_converged] == [("Node node-1", True)]


def test_a_drain_that_a_budget_slows_down_is_told_apart_from_one_that_it_stops() -> None:
    slow = Assumptions(ready=240)
    report = plan(copy_of(one_at_a_time), Drain("node-1"), minutes=3, assumptions=slow)
    assert [
        (str(each.object), each.waits) for each in report.not_converged if each.object.kind == "Node"
    ] == [("Node node-1", True)]
    never = Assumptions(missing_images=("web:v1",))
    report = plan(copy_of(one_at_a_time), Drain("node-1"), minutes=3, assumptions=never)
    assert [
        (str(each.object), each.waits) for each in report.not_converged if each.object.kind == "Node"
    ] == [("Node node-1", False)]


def test_an_eviction_that_fails_ends_the_drain_and_is_told() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(with_pod())
        cluster.apply(budget("a"))
        cluster.apply(budget("b"))

    report = plan(copy_of(prepare), Drain("node-1"), minutes=5)
    assert report.exit_code == 2
    assert [each.by for each in report.refusals] == ["PodDisruptionBudget"]
    assert "more than one PodDisruptionBudget" in report.refusals[0].message


@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_a_budget_converges_whether_it_allows_evictions_or_not(replicas: int) -> None:
    report = plan(copy_of(lambda cluster: cluster.apply(with_pod(replicas))), Apply(budget("a"), "a.yaml"))
    assert report.not_converged == ()
    assert report.exit_code == 0


def test_a_budget_that_cannot_be_computed_does_not_converge() -> None:
    bare = {"apiVersion": "v1", "kind": "Pod", **with_pod()["spec"]["template"]}
    bare["metadata"] |= {"name": "bare", "namespace": "default"}
    computed = budget("a")
    computed["spec"] = {"maxUnavailable": 1, "selector": computed["spec"]["selector"]}
    report = plan(copy_of(lambda cluster: cluster.apply(bare)), Apply(computed, "a.yaml"))
    assert [each.object.name for each in report.not_converged] == ["a"]


def test_missing_capacity_is_what_the_scheduler_looks_for() -> None:
    def asks(cpu: str) -> dict[str, Any]:
        return {"requests": {"cpu": cpu, "memory": "64Mi"}}

    def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "image": f"{name}:v1", "resources": asks(cpu), **more}

    document = with_pod(
        replicas=0,
        containers=[container("main", "100m")],
        initContainers=[container("proxy", "200m", restartPolicy="Always"), container("setup", "1500m")],
    )
    shape = Shape(capacity={"cpu": "1", "memory": "4Gi", "pods": "110", "ephemeral-storage": "1Ti"})
    loaded = copy_of(lambda cluster: cluster.apply(document), shape=shape)
    (missing,) = plan(loaded, Scale("deploy", "web", 2)).capacity
    assert len(missing.pods) == 2
    assert missing.requests == {"cpu": "3400m", "memory": "256Mi"}


def test_objects_that_were_not_looked_at_are_counted() -> None:
    loaded = copy_of(web)
    steps = [Apply(deployment(name=f"app-{n}", replicas=1)) for n in range(5)]
    report = plan(loaded, *steps, minutes=1, max_explained=2)
    (told,) = [each for each in report.unknown if "more objects" in each]
    assert told == "whether 3 more objects that the change touches converge: the first 2 were looked at"
    assert not [each for each in plan(loaded, *steps, minutes=1).unknown if "more objects" in each]


HOSTILE = "\x1b[2J\x9b2J\u202e\nConverges within 0 s.\r| x | <img src=y> [a](http://b) `c` \\\\|"


def test_texts_of_others_make_no_line_and_no_control_sequence() -> None:
    report = plan(copy_of(web), Delete("deploy", "web"), minutes=1)
    entry = report.timeline[0]
    hostile = replace(
        report,
        change=(HOSTILE,),
        timeline=tuple(
            replace(
                entry,
                verb=verb,
                actor=HOSTILE,
                aspect=aspect,
                fields=(HOSTILE,),
                object=replace(entry.object, name=HOSTILE),
            )
            for verb, aspect in (("change", "spec"), ("create", ""))
        ),
        unknown=(HOSTILE,),
        assumptions=(HOSTILE,),
    )
    plain, marked = text(hostile), markdown(hostile)
    for page in (plain, marked):
        assert page.replace("\n", "").isprintable()
        assert not [line for line in page.splitlines() if line.startswith("Converges within 0 s.")]
    assert len(plain.splitlines()) < 30
    rows = [line for line in marked.splitlines() if line.startswith("| ") and "img" in line]
    assert rows
    for row in rows:
        unescaped = row.replace("\\\\", "").replace("\\|", "")
        assert unescaped.count("|") == 5, row
    assert "](" not in marked
    assert "\\<img" in marked
