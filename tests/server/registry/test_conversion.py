"""Objects that two versions serve are the same objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import BadRequest, NotFound
from steersman.api.generated import autoscaling_v2, load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.client.api import EventType
from steersman.server.registry.autoscaling_conversion import to_v1, to_v2
from steersman.sim.world import World

CORE, NEW = load("", "v1", "Event"), load("events.k8s.io", "v1", "Event")
V1 = load("autoscaling", "v1", "HorizontalPodAutoscaler")
V2 = load("autoscaling", "v2", "HorizontalPodAutoscaler")
ABOUT = {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"}
EVENT = {
    "metadata": {"name": "e", "namespace": "default"},
    "regarding": ABOUT,
    "reason": "Scheduled",
    "note": "it has a place",
    "action": "Binding",
    "eventTime": "2026-01-01T00:00:00.5Z",
    "reportingController": "scheduler",
    "reportingInstance": "scheduler-1",
    "type": "Normal",
}


@pytest.fixture
def world() -> Iterator[World]:
    with World() as world:
        yield world


def test_an_event_of_the_new_group_is_one_of_the_core_and_goes_with_it(world: World) -> None:
    api = world.api()
    world.run(api.create(NEW.untyped, "default", EVENT))
    seen = world.run(api.get(CORE, "default", "e"))
    assert (seen.message, seen.involvedObject.uid, seen.reportingComponent) == (
        "it has a place",
        "u",
        "scheduler",
    )
    world.run(api.delete(CORE, "default", "e"))
    with pytest.raises(NotFound, match=r'events\.events\.k8s\.io "e" not found'):
        world.run(api.get(NEW, "default", "e"))


def test_a_watch_of_one_group_shows_what_is_written_to_the_other(world: World) -> None:
    api = world.api()
    core = {
        "metadata": {"name": "c", "namespace": "default"},
        "involvedObject": ABOUT,
        "message": "hello",
        "reason": "Hi",
        "type": "Normal",
        "count": 1,
    }

    async def watch() -> Any:
        stream = api.watch(NEW, "default", field_selector="regarding.name=p")
        await api.create(CORE.untyped, "default", core)
        async for event in stream:
            if event.type is EventType.ADDED:
                return event.obj
        return None

    found = world.run(watch())
    assert (found.note, found.regarding.name, found.deprecatedCount) == ("hello", "p", 1)
    with pytest.raises(BadRequest, match=r"field label not supported: involvedObject\.name"):
        world.run(api.list(NEW, "default", field_selector="involvedObject.name=p"))


def test_events_of_both_groups_have_the_same_hour_to_live(world: World) -> None:
    api = world.api()
    world.run(api.create(NEW.untyped, "default", EVENT))
    world.run(world.advance(3599.0))
    assert len(world.run(api.list(CORE)).items) == 1
    world.run(world.advance(1.0))
    assert world.run(api.list(CORE)).items == []
    assert world.run(api.list(NEW)).items == []


def scaler(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec}}


def test_an_autoscaler_of_v1_is_one_of_v2_with_a_metric(world: World) -> None:
    api = world.api()
    world.run(api.create(V1.untyped, "default", scaler(targetCPUUtilizationPercentage=40)))
    spec = world.run(api.get(V2.untyped, "default", "web"))["spec"]
    target = {"type": "Utilization", "averageUtilization": 40}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert spec["minReplicas"] == 1


def test_what_v1_has_no_field_for_survives_an_update_through_it(world: World) -> None:
    api = world.api()
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "64Mi"}}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    body = scaler(metrics=[{"type": "Resource", "resource": memory}], behavior=behavior)
    before = world.run(api.create(V2.untyped, "default", body))
    seen = world.run(api.get(V1.untyped, "default", "web"))
    assert "targetCPUUtilizationPercentage" not in seen["spec"]
    seen["spec"]["maxReplicas"] = 9
    world.run(api.update(V1.untyped, "default", "web", seen))
    after = world.run(api.get(V2.untyped, "default", "web"))
    assert after["spec"] == {**before["spec"], "maxReplicas": 9}
    assert "annotations" not in after["metadata"]


# -- nothing is lost --------------------------------------------------------------------------

amounts = st.sampled_from(["1", "250m", "64Mi"])
percents = st.integers(1, 100)
selectors = st.none() | st.just({"matchLabels": {"a": "b"}})


def kept(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


named = st.builds(lambda name, selector: kept(name=name, selector=selector), st.sampled_from("ab"), selectors)
averages = st.builds(lambda amount: {"type": "AverageValue", "averageValue": amount}, amounts)
values = st.builds(lambda amount: {"type": "Value", "value": amount}, amounts)
loads = st.builds(lambda percent: {"type": "Utilization", "averageUtilization": percent}, percents)
described = st.just({"apiVersion": "v1", "kind": "Service", "name": "s"})
metrics = st.one_of(
    st.builds(
        lambda target: {"type": "Resource", "resource": {"name": "memory", "target": target}},
        averages | loads,
    ),
    st.builds(
        lambda target: {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "c", "target": target},
        },
        averages | loads,
    ),
    st.builds(
        lambda metric, target: {"type": "Pods", "pods": {"metric": metric, "target": target}}, named, averages
    ),
    st.builds(
        lambda metric, target: {"type": "External", "external": {"metric": metric, "target": target}},
        named,
        averages | values,
    ),
    st.builds(
        lambda metric, target, about: {
            "type": "Object",
            "object": {"metric": metric, "target": target, "describedObject": about},
        },
        named,
        averages | values,
        described,
    ),
)
rules = st.none() | st.builds(
    lambda window, policy: {
        "stabilizationWindowSeconds": window,
        "selectPolicy": policy,
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}],
    },
    st.integers(0, 3600),
    st.sampled_from(["Max", "Min", "Disabled"]),
)


@given(st.lists(metrics, min_size=1, max_size=4), rules, rules, st.none() | percents)
def test_to_the_older_version_and_back_is_the_same(
    others: list[dict[str, Any]], up: Any, down: Any, cpu: int | None
) -> None:
    found = list(others)
    if cpu is not None:
        target = {"type": "Utilization", "averageUtilization": cpu}
        found.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    behavior = kept(scaleUp=up, scaleDown=down)
    body = scaler(metrics=found, **({"behavior": behavior} if behavior else {}))
    before = msgspec.convert(body, autoscaling_v2.HorizontalPodAutoscaler)
    before = msgspec.structs.replace(before, metadata=ObjectMeta(name="web", annotations={"mine": "stays"}))
    seen = to_v1(before)
    assert seen.spec.targetCPUUtilizationPercentage == cpu
    assert to_v2(seen) == before


@pytest.mark.parametrize("text", ["no JSON", "{}", "[1]", '[{"type":"Pods","pods":{}}]', "null"])
def test_an_annotation_that_makes_no_sense_is_let_go(text: str) -> None:
    meta = ObjectMeta(name="web", annotations={"autoscaling.alpha.kubernetes.io/metrics": text})
    seen = msgspec.structs.replace(to_v1(autoscaling_v2.HorizontalPodAutoscaler()), metadata=meta)
    made = to_v2(seen)
    assert [each.type for each in made.spec.metrics] == ["Resource"]
    assert made.metadata.annotations == {}
