"""The in-process client: what is shared, what bodies it takes, how its watches end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import kinds
from steersman.api.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Invalid,
    NotFound,
    ServerError,
    ServerTimeout,
    TooManyRequests,
)
from steersman.api.generated import apps_v1, core_v1, load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType
from steersman.server.local import LocalApi
from steersman.sim.world import World

CONFIGMAPS = load("", "v1", "ConfigMap")
EVENTS = load("", "v1", "Event")
BUDGETS = load("policy", "v1", "PodDisruptionBudget")


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=3) as world:
        yield world


def template() -> kinds.PodTemplateSpec:
    spec = msgspec.Raw(b'{"containers":[{"name":"c","image":"i:1"}]}')
    return kinds.PodTemplateSpec(metadata=kinds.ObjectMeta(labels={"a": "b"}), spec=spec)


def replica_set(world: World) -> Any:
    body = kinds.ReplicaSet(
        metadata=kinds.ObjectMeta(name="rs"),
        spec=kinds.ReplicaSetSpec(selector=kinds.LabelSelector(matchLabels={"a": "b"}), template=template()),
    )
    return world.run(world.api().create(kinds.REPLICASETS, "default", body))


def test_it_is_an_api(world: World) -> None:
    api: Api = world.api("somebody")
    assert isinstance(api, LocalApi)


def test_a_view_kind_is_answered_with_the_full_struct_and_everybody_shares_it(world: World) -> None:
    made = replica_set(world)
    assert isinstance(made, apps_v1.ReplicaSet)
    assert made.spec.template.spec.containers[0].image == "i:1"
    api = world.api()
    got: object = world.run(api.get(kinds.REPLICASETS, "default", "rs"))
    listed: object = world.run(api.list(kinds.REPLICASETS)).items[0]
    assert got is made
    assert listed is made


def test_pods_of_one_template_share_one_spec(world: World) -> None:
    made = replica_set(world)
    body = kinds.NewPod(metadata=kinds.ObjectMeta(generateName="p-"), spec=made.spec.template.spec)
    pods = [world.run(world.api().create(kinds.NEW_PODS, "default", body)) for _ in range(3)]
    full: Any = pods
    assert full[0].spec is full[1].spec is full[2].spec
    assert full[0].spec.enableServiceLinks is True
    assert made.spec.template.spec.enableServiceLinks is None
    assert len({pod.metadata.name for pod in pods}) == 3


def test_an_untyped_kind_is_answered_with_documents_that_nobody_shares(world: World) -> None:
    replica_set(world)
    api = world.api()
    kind = kinds.REPLICASETS.untyped
    document = world.run(api.get(kind, "default", "rs"))
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "ReplicaSet")
    document["spec"]["replicas"] = 9
    assert world.run(api.get(kind, "default", "rs"))["spec"]["replicas"] == 1
    assert world.run(api.update(kind, "default", "rs", document))["spec"]["replicas"] == 9


NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
WHOLE = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "conditions",
    [
        (kinds.Condition(type="T", status="True", lastTransitionTime=NOW),),
        (apps_v1.ReplicaSetCondition(type="T", status="True", lastTransitionTime=NOW),),
        (
            kinds.Condition(
                type="T", status="True", lastTransitionTime=NOW.astimezone(timezone(timedelta(hours=2)))
            ),
        ),
    ],
)
def test_parts_of_views_in_full_structs_become_full_and_times_whole_seconds_of_utc(
    world: World, conditions: tuple[Any, ...]
) -> None:
    made = replica_set(world)
    body = msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=conditions))
    written: Any = world.run(world.api().update_status(kinds.REPLICASETS, "default", "rs", body))
    (condition,) = written.status.conditions
    assert type(condition) is apps_v1.ReplicaSetCondition
    assert condition.lastTransitionTime == WHOLE
    assert condition.lastTransitionTime.tzinfo is UTC


def test_a_lease_of_a_whole_second_can_be_patched(world: World) -> None:
    api = world.api()
    whole = datetime(2026, 1, 1, tzinfo=UTC)
    spec = kinds.LeaseSpec(holderIdentity="a", renewTime=whole)
    body = kinds.Lease(metadata=kinds.ObjectMeta(name="l"), spec=spec)
    world.run(api.create(kinds.LEASES, "default", body))
    patched = world.run(api.patch(kinds.LEASES, "default", "l", {"spec": {"holderIdentity": "b"}}))
    assert (patched.spec.holderIdentity, patched.spec.renewTime) == ("b", whole)


def test_a_lease_keeps_its_microseconds(world: World) -> None:
    body = kinds.Lease(metadata=kinds.ObjectMeta(name="l"), spec=kinds.LeaseSpec(renewTime=NOW))
    assert world.run(world.api().create(kinds.LEASES, "default", body)).spec.renewTime == NOW


def test_null_is_absent_and_empty_maps_are_not_written(world: World) -> None:
    body: dict[str, Any] = {
        "metadata": {"name": "c", "labels": None, "annotations": {}, "creationTimestamp": None},
        "data": None,
    }
    made = world.run(world.api().create(CONFIGMAPS.untyped, "default", body))
    assert sorted(made["metadata"]) == ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]
    assert "data" not in made


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "ConfigMap"},
            "the API version in the data (apps/v1) does not match",
        ),
        ({"apiVersion": "v1", "kind": "Secret"}, "Secret"),
        ({"metadata": {"name": 5}}, 'ConfigMap in version "v1" cannot be handled as a ConfigMap'),
        ([], 'ConfigMap in version "v1" cannot be handled as a ConfigMap'),
    ],
)
def test_what_is_no_such_object_is_a_bad_request(world: World, body: object, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        world.run(world.api().create(CONFIGMAPS, "default", body))
    assert message in refusal.value.message


def test_a_kind_that_is_not_served_is_not_found(world: World) -> None:
    nothing: Kind[Any] = Kind("example.com", "v1", "Thing", "things", True, dict)
    with pytest.raises(NotFound, match="could not find the requested resource"):
        world.run(world.api().get(nothing, "default", "x"))


def test_a_quantity_that_is_none_is_a_bad_request_and_not_a_crash(world: World) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "lots"}}}
    with pytest.raises(BadRequest):
        world.run(
            world.api().create(
                kinds.PODS, "default", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
            )
        )


def test_others_get_their_turn_between_two_requests(world: World) -> None:
    order: list[str] = []

    async def client(name: str) -> None:
        for i in range(3):
            await world.api().create(CONFIGMAPS, "default", {"metadata": {"name": f"{name}{i}"}})
            order.append(name)

    async def both() -> None:
        await asyncio.gather(client("a"), client("b"))

    world.run(both())
    assert order == ["a", "b"] * 3


# -- watches ----------------------------------------------------------------------------------


def watchers(world: World) -> int:
    return len(world.server.store.table("configmaps").watchers)


def test_a_watch_ends_when_its_time_is_up_with_a_bookmark(world: World) -> None:
    async def follow() -> list[tuple[EventType, str]]:
        stream = world.api().watch(CONFIGMAPS, resource_version="1", timeout_seconds=60)
        return [(event.type, event.resource_version) async for event in stream]

    async def run() -> list[tuple[EventType, str]]:
        following = asyncio.create_task(follow())
        await asyncio.sleep(30)
        await world.api().create(CONFIGMAPS, "default", {"metadata": {"name": "x"}})
        await world.api().create(load("", "v1", "Secret"), "default", {"metadata": {"name": "y"}})
        return await following

    (added, first), (bookmark, last) = world.run(run())
    assert (added, bookmark) == (EventType.ADDED, EventType.BOOKMARK)
    assert int(last) == int(first) + 1
    assert world.monotonic() == 60
    assert watchers(world) == 0


def test_a_watch_that_is_forgotten_is_ended(world: World) -> None:
    async def run() -> None:
        api = world.api()
        await api.create(CONFIGMAPS, "default", {"metadata": {"name": "x"}})
        async for _ in api.watch(CONFIGMAPS, send_initial_events=True, timeout_seconds=600):
            assert watchers(world) == 1
            break

    world.run(run())
    gc.collect()
    assert watchers(world) == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"resource_version": "999", "send_initial_events": True}, ServerTimeout),
        ({"resource_version": "x"}, ServerError),
        ({"label_selector": "a in b"}, BadRequest),
        ({"field_selector": "spec.x=1"}, BadRequest),
    ],
)
def test_a_watch_that_makes_no_sense_is_refused_when_it_is_read(
    world: World, options: dict[str, Any], error: type[ApiError]
) -> None:
    async def run() -> None:
        stream = world.api().watch(CONFIGMAPS, **options)
        with pytest.raises(error):
            await anext(aiter(stream))

    world.run(run())


def test_a_watch_from_too_long_ago_expires(world: World) -> None:
    world.server.store.watch_window = 4

    async def run() -> None:
        api = world.api()
        for i in range(40):
            await api.create(CONFIGMAPS, "default", {"metadata": {"name": f"x{i}"}})
        with pytest.raises(Expired, match="too old resource version"):
            await anext(aiter(api.watch(CONFIGMAPS, resource_version="2")))

    world.run(run())


# -- what goes by itself ----------------------------------------------------------------------


def test_events_go_after_an_hour_unless_they_are_written_again(world: World) -> None:
    api = world.api()
    about = core_v1.ObjectReference(kind="Pod", name="p", namespace="default")

    def event(name: str) -> core_v1.Event:
        return core_v1.Event(metadata=ObjectMeta(name=name), involvedObject=about)

    async def run() -> list[str]:
        for name in ("once", "again"):
            await api.create(EVENTS, "default", event(name))
        await world.advance(1800)
        await api.patch(EVENTS, "default", "again", {"count": 2})
        await world.advance(1801)
        found = await api.list(EVENTS, "default")
        await world.advance(1800)
        with pytest.raises(NotFound):
            await api.get(EVENTS, "default", "again")
        return [obj.metadata.name for obj in found.items]

    assert world.run(run()) == ["again"]


def test_a_pod_whose_budget_nobody_has_looked_at_is_not_evicted_yet(world: World) -> None:
    api = world.api()

    async def run() -> None:
        budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
        await api.create(BUDGETS, "default", budget)
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        await api.create(
            kinds.PODS, "default", {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": spec}
        )
        running = {"metadata": {"name": "p", "labels": {"a": "b"}}, "status": {"phase": "Running"}}
        await api.update_status(kinds.PODS, "default", "p", running)
        await api.subresource(kinds.PODS, "default", "p", "eviction", {"metadata": {"name": "p"}})

    with pytest.raises(TooManyRequests) as refusal:
        world.run(run())
    assert refusal.value.caused_by("DisruptionBudget")
    assert refusal.value.retry_after == 10
    assert world.run(api.get(kinds.PODS, "default", "p")).metadata.deletionTimestamp is None


# -- any interleaving -------------------------------------------------------------------------

ACTION = st.tuples(
    st.sampled_from(["create", "label", "finalize", "release", "delete", "collect"]),
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["yes", "no"]),
)


async def _do(api: LocalApi, what: str, name: str, value: str) -> None:
    labels = {"metadata": {"labels": {"in": value}}}
    match what:
        case "create":
            await api.create(CONFIGMAPS, "default", {"metadata": {"name": name, "labels": {"in": value}}})
        case "label":
            await api.patch(CONFIGMAPS, "default", name, labels)
        case "finalize":
            held = {"metadata": {"finalizers": ["example.com/x"]}}
            await api.patch(CONFIGMAPS, "default", name, held)
        case "release":
            await api.patch(CONFIGMAPS, "default", name, {"metadata": {"finalizers": None}})
        case "delete":
            await api.delete(CONFIGMAPS, "default", name)
        case "collect":
            await api.delete_collection(CONFIGMAPS, "default", label_selector=f"in={value}")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scripts=st.lists(st.lists(ACTION, max_size=12), min_size=1, max_size=4),
    selector=st.sampled_from(["", "in=yes"]),
)
def test_a_watcher_sees_what_is_there_whatever_several_clients_do_at_once(
    seed: int, scripts: list[list[tuple[str, str, str]]], selector: str
) -> None:
    view: dict[str, Any] = {}

    with World(seed=seed, shuffle=True) as world:
        api = world.api()

        async def follow() -> None:
            async for event in api.watch(CONFIGMAPS, label_selector=selector, send_initial_events=True):
                if event.obj is None:
                    continue
                name = event.obj.metadata.name
                if event.type is EventType.DELETED:
                    assert view.pop(name, None) is not None
                else:
                    assert (name in view) == (event.type is EventType.MODIFIED)
                    view[name] = event.obj

        async def play(script: list[tuple[str, str, str]]) -> None:
            for action in script:
                try:
                    await _do(api, *action)
                except (NotFound, Conflict, Invalid):
                    continue

        async def run() -> list[Any]:
            await asyncio.gather(*(play(script) for script in scripts))
            await world.settle()
            return (await api.list(CONFIGMAPS, "default", label_selector=selector)).items

        world.spawn(follow(), name="watcher")
        there = world.run(run())
    assert view == {obj.metadata.name: obj for obj in there}


APPLY = "application/apply-patch+yaml"


def test_whoever_applies_a_scale_owns_the_replicas(world: World) -> None:
    replica_set(world)
    api, sets = world.api(), load("apps", "v1", "ReplicaSet").untyped

    def applied(replicas: int, manager: str, **more: Any) -> Any:
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "rs"}}
        scale["spec"] = {"replicas": replicas}
        more |= {"content_type": APPLY, "subresource": "scale", "field_manager": manager}
        return world.run(api.patch(sets, "default", "rs", scale, **more))

    assert applied(3, "one", force=True)["spec"] == {"replicas": 3}
    with pytest.raises(Conflict, match=r'conflict with "one".*: \.spec\.replicas'):
        applied(4, "two")
    entries = world.run(api.get(sets, "default", "rs"))["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries if entry.get("subresource") == "scale"] == ["one"]


@pytest.mark.parametrize("content_type", ["application/strategic-merge-patch+json", APPLY])
def test_a_part_of_an_object_changes_nothing_else(world: World, content_type: str) -> None:
    api, pods = world.api(), load("", "v1", "Pod").untyped
    spec = {"containers": [{"name": "c", "image": "i:1"}]}
    world.run(api.create(pods, "default", {"metadata": {"name": "p"}, "spec": spec}))
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"not": "this"}},
        "spec": {"ephemeralContainers": [{"name": "e", "image": "dbg"}]},
    }
    made: Any = world.run(
        api.patch(
            pods,
            "default",
            "p",
            body,
            content_type=content_type,
            subresource="ephemeralcontainers",
            field_manager="debugger",
        )
    )
    assert [each["name"] for each in made["spec"]["ephemeralContainers"]] == ["e"]
    assert "labels" not in made["metadata"]
