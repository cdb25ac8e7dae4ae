from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from steersman.api.errors import BadRequest, Expired, Forbidden, Invalid, NotFound, UnsupportedMediaType
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import Object
from steersman.api.scheme import Kind
from steersman.client.api import EventType, UndecodableObject
from steersman.server.crd.custom import CustomResource
from steersman.server.crd.establishing import CLEANUP, EstablishingController
from steersman.server.local import LocalApi
from steersman.sim.world import World

CRDS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
WIDGETS = Kind("x.test", "v1", "Widget", "widgets", True, dict)


def definition(plural: str = "widgets", kind: str = "Widget", **version: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
            }
        },
    }
    return {
        "metadata": {"name": f"{plural}.x.test"},
        "spec": {
            "group": "x.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=1) as world:
        yield world


@pytest.fixture
def api(world: World) -> LocalApi:
    return world.api()


def test_a_definition_is_established_when_its_creation_is_answered(world: World, api: LocalApi) -> None:
    async def story() -> list[Any]:
        watch = api.watch(CRDS, send_initial_events=True)
        assert (await anext(watch)).initial_end
        created = await api.create(CRDS, "", definition())
        assert created["status"]["conditions"] is None
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}})
        return [(await anext(watch)).obj for _ in range(3)]

    steps = [
        [(each["type"], each["status"], each["reason"]) for each in seen["status"]["conditions"] or ()]
        for seen in world.run(story())
    ]
    assert steps == [
        [],
        [("NamesAccepted", "True", "NoConflicts"), ("Established", "False", "Installing")],
        [("NamesAccepted", "True", "NoConflicts"), ("Established", "True", "InitialNamesAccepted")],
    ]


def test_nothing_is_served_before_a_definition_and_after_it(world: World, api: LocalApi) -> None:
    async def story() -> None:
        with pytest.raises(NotFound):
            await api.list(WIDGETS, "default")
        await api.create(CRDS, "", definition())
        assert (await api.list(WIDGETS, "default")).items == []
        await api.delete(CRDS, "", "widgets.x.test")
        with pytest.raises(NotFound):
            await api.list(WIDGETS, "default")
        with pytest.raises(NotFound):
            await api.get(CRDS, "", "widgets.x.test")

    world.run(story())


def test_watches_end_with_the_definition(world: World, api: LocalApi) -> None:
    async def story() -> list[str]:
        await api.create(CRDS, "", definition())
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}})
        watch = asyncio.ensure_future(_collected(api))
        await asyncio.sleep(0)
        await api.delete(CRDS, "", "widgets.x.test")
        return await watch

    assert world.run(story()) == ["ADDED w", "DELETED w"]


async def _collected(api: LocalApi) -> list[str]:
    return [
        f"{event.type.value} {event.obj['metadata']['name']}"
        async for event in api.watch(WIDGETS, "default", send_initial_events=True)
        if event.type is not EventType.BOOKMARK
    ]


def test_no_watch_is_resumed_from_before_a_definition_or_a_change_of_it(world: World, api: LocalApi) -> None:
    """What was told before is in a form that does not count any more; a real server begins anew, too."""

    async def story() -> None:
        before = (await api.create(CRDS, "", definition()))["metadata"]["resourceVersion"]
        with pytest.raises(Expired):
            await anext(api.watch(WIDGETS, "default", resource_version=before))
        made = await api.create(WIDGETS, "default", {"metadata": {"name": "w"}, "spec": {"size": 1}})
        version = made["metadata"]["resourceVersion"]
        await api.update(WIDGETS, "default", "w", {**made, "spec": {"size": 2}})
        assert (await anext(api.watch(WIDGETS, "default", resource_version=version))).obj["spec"]["size"] == 2
        wider = {"spec": {"versions": definition(additionalPrinterColumns=COLUMNS)["spec"]["versions"]}}
        await api.patch(CRDS, "", "widgets.x.test", wider)
        with pytest.raises(Expired):
            await anext(api.watch(WIDGETS, "default", resource_version=version))

    world.run(story())


def test_a_definition_waits_for_objects_that_wait_for_their_finalizers(world: World, api: LocalApi) -> None:
    async def story() -> None:
        await api.create(CRDS, "", definition())
        await api.create(WIDGETS, "default", {"metadata": {"name": "w", "finalizers": ["x.test/f"]}})
        await api.create(WIDGETS, "default", {"metadata": {"name": "free"}})
        await api.delete(CRDS, "", "widgets.x.test")
        left = await api.get(CRDS, "", "widgets.x.test")
        assert left["metadata"]["finalizers"] == [CLEANUP]
        assert [each["metadata"]["name"] for each in (await api.list(WIDGETS)).items] == ["w"]
        with pytest.raises(
            Forbidden, match="create not allowed while custom resource definition is terminating"
        ):
            await api.create(WIDGETS, "default", {"metadata": {"name": "late"}})
        await api.patch(WIDGETS, "default", "w", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await api.get(CRDS, "", "widgets.x.test")

    world.run(story())


def test_a_definition_with_a_finalizer_of_somebody_elses_stays_without_objects(
    world: World, api: LocalApi
) -> None:
    async def story() -> dict[str, Any]:
        given = definition()
        given["metadata"]["finalizers"] = ["x.test/mine"]
        await api.create(CRDS, "", given)
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}})
        await api.delete(CRDS, "", "widgets.x.test")
        return await api.get(CRDS, "", "widgets.x.test")

    left = world.run(story())
    assert left["metadata"]["finalizers"] == ["x.test/mine"]
    assert left["status"]["conditions"][-1]["reason"] == "InstanceDeletionCompleted"


def test_a_name_is_taken_over_when_it_is_given_away(world: World, api: LocalApi) -> None:
    async def story() -> None:
        first, second = definition(), definition("gadgets", "Gadget")
        first["spec"]["names"]["shortNames"] = second["spec"]["names"]["shortNames"] = ["w"]
        await api.create(CRDS, "", first)
        await api.create(CRDS, "", second)
        refused = (await api.get(CRDS, "", "gadgets.x.test"))["status"]["conditions"][0]
        assert (refused["reason"], refused["message"]) == ("ShortNamesConflict", '"w" is already in use')
        await api.delete(CRDS, "", "widgets.x.test")
        taken = await api.get(CRDS, "", "gadgets.x.test")
        assert taken["status"]["acceptedNames"]["shortNames"] == ["w"]
        assert [each["status"] for each in taken["status"]["conditions"]] == ["True", "True"]

    world.run(story())


def test_what_is_built_in_cannot_be_defined_anew(world: World, api: LocalApi) -> None:
    async def story() -> Any:
        given = definition("leases", "Lease")
        given["metadata"] = {
            "name": "leases.coordination.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved"},
        }
        given["spec"]["group"] = "coordination.k8s.io"
        await api.create(CRDS, "", given)
        leases = load("coordination.k8s.io", "v1", "Lease").untyped
        return await api.create(
            leases, "default", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
        )

    assert world.run(story())["spec"]["holderIdentity"] == "me"


def test_what_a_client_does_to_its_documents_does_not_reach_the_server(world: World, api: LocalApi) -> None:
    async def story() -> None:
        await api.create(CRDS, "", definition())
        mine = {"metadata": {"name": "w"}, "spec": {"size": 1}}
        answer = await api.create(WIDGETS, "default", mine)
        mine["spec"]["size"] = 2
        answer["spec"]["size"] = 3
        assert (await api.get(WIDGETS, "default", "w"))["spec"] == {"size": 1, "color": "red"}

    world.run(story())


def test_an_object_read_after_a_change_of_schema_and_back_is_as_it_was(world: World, api: LocalApi) -> None:
    async def story() -> None:
        await api.create(CRDS, "", definition())
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}, "spec": {"size": 1}})
        live = await api.get(CRDS, "", "widgets.x.test")
        narrow = copy.deepcopy(live)
        del narrow["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
            "size"
        ]
        narrow = await api.update(CRDS, "", "widgets.x.test", narrow)
        before = await api.get(WIDGETS, "default", "w")
        assert before["spec"] == {"color": "red"}
        narrow["spec"] = live["spec"]
        await api.update(CRDS, "", "widgets.x.test", narrow)
        after = await api.get(WIDGETS, "default", "w")
        assert after["spec"] == {"size": 1, "color": "red"}
        assert after["metadata"] == before["metadata"]

    world.run(story())


class Spec(msgspec.Struct):
    size: int = 0


class Widget(msgspec.Struct):
    metadata: ObjectMeta
    spec: Spec


def test_clients_may_read_as_types_of_their_own(world: World, api: LocalApi) -> None:
    async def story() -> None:
        given = definition()
        schema = given["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"] = {"x-kubernetes-preserve-unknown-fields": True}
        await api.create(CRDS, "", given)
        mine = WIDGETS.as_(Widget)
        made = await api.create(mine, "default", Widget(ObjectMeta(name="w"), Spec(3)))
        assert made.spec.size == 3
        await api.create(WIDGETS, "default", {"metadata": {"name": "odd"}, "spec": {"size": "x"}})
        listed = (await api.list(mine, "default")).items
        assert [type(each) for each in listed] == [UndecodableObject, Widget]
        whole = await api.get(WIDGETS.as_(Object), "default", "w")
        assert isinstance(whole, CustomResource)
        watch = api.watch(mine, "default", send_initial_events=True)
        assert [type((await anext(watch)).obj) for _ in range(2)] == [UndecodableObject, Widget]

    world.run(story())


def test_lists_do_not_merge_by_a_strategy_nobody_knows(world: World, api: LocalApi) -> None:
    async def story() -> None:
        await api.create(CRDS, "", definition())
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}})
        with pytest.raises(
            UnsupportedMediaType, match=r"application/merge-patch.json, application/apply-patch.yaml$"
        ):
            await api.patch(
                WIDGETS, "default", "w", {}, content_type="application/strategic-merge-patch+json"
            )

    world.run(story())


def test_a_fork_has_definitions_of_its_own(world: World, api: LocalApi) -> None:
    world.run(api.create(CRDS, "", definition()))
    world.run(api.create(WIDGETS, "default", {"metadata": {"name": "w"}}))
    fork = LocalApi(world.server.fork())
    world.run(fork.create(CRDS, "", definition("gadgets", "Gadget")))
    gadgets = Kind("x.test", "v1", "Gadget", "gadgets", True, dict)
    assert world.run(fork.list(gadgets)).items == []
    assert len(world.run(fork.list(WIDGETS)).items) == 1
    with pytest.raises(NotFound):
        world.run(api.list(gadgets))
    world.run(fork.delete(CRDS, "", "widgets.x.test"))
    assert len(world.run(api.list(WIDGETS)).items) == 1


def test_definitions_that_are_there_are_served_from_the_start(world: World, api: LocalApi) -> None:
    world.run(api.create(CRDS, "", definition()))
    world.run(api.create(WIDGETS, "default", {"metadata": {"name": "w"}, "spec": {"size": 1}}))
    store = world.server.store.fork()
    with World(seed=2, store=store) as later:
        assert later.run(later.api().get(WIDGETS, "default", "w"))["spec"]["size"] == 1
        definitions = EstablishingController(later.server)
        assert [version.plural for version in definitions.served()] == ["widgets"]
        assert definitions.find("x.test", "v1", "widgets") is not None
        assert definitions.find("x.test", "v2", "widgets") is None


def test_what_is_not_done_for_a_definition_is_logged(
    world: World, api: LocalApi, caplog: pytest.LogCaptureFixture
) -> None:
    given = definition()
    schema = given["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["shoe"] = {"type": "string", "format": "shoe-size"}
    with caplog.at_level(logging.WARNING):
        world.run(api.create(CRDS, "", given))
    assert 'unrecognized format "shoe-size"' in caplog.text


@pytest.mark.parametrize("depth", [50, 500, 5000])
def test_no_depth_of_an_object_or_a_schema_stops_the_server(world: World, api: LocalApi, depth: int) -> None:
    deep: dict[str, Any] = {}
    for _ in range(depth):
        deep = {"x": deep}
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    given, deeper = definition(), definition("deeps", "Deep")
    given["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    deeper["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    world.run(api.create(CRDS, "", given))
    for kind, body in ((WIDGETS, {"metadata": {"name": "w"}, "spec": deep}), (CRDS, deeper)):
        request = api.create(kind, "default" if kind is WIDGETS else "", body)
        if depth == 50:
            world.run(request)
        elif depth == 5000:
            with pytest.raises((BadRequest, Invalid)):
                world.run(request)
        else:
            with suppress(BadRequest, Invalid):
                world.run(request)
    if depth == 500:
        world.run(api.patch(WIDGETS, "default", "w", {"spec": {"y": True}}))
    assert world.run(api.list(CRDS)).items


@pytest.mark.parametrize(
    ("given", "kept"), [(1.0, 1), (-0.0, 0), (1e20, 1e20), (1e300, 1e300), (2**63 - 1, 2**63 - 1)]
)
def test_numbers_are_kept_as_go_keeps_them(world: World, api: LocalApi, given: float, kept: float) -> None:
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    world.run(api.create(CRDS, "", definition(schema={"openAPIV3Schema": open_})))
    made = world.run(api.create(WIDGETS, "default", {"metadata": {"name": "w"}, "spec": {"n": given}}))
    assert made["spec"]["n"] == kept
    assert type(made["spec"]["n"]) is type(kept)


def test_a_refused_definition_leaves_nothing_behind(world: World, api: LocalApi) -> None:
    with pytest.raises(Invalid):
        world.run(api.create(CRDS, "", definition(schema=None)))
    assert world.run(api.list(CRDS)).items == []
    with pytest.raises(NotFound):
        world.run(api.list(WIDGETS))


def test_the_fields_nobody_would_keep_are_told(world: World, api: LocalApi) -> None:
    given = definition()
    given["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["pod"] = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    world.run(api.create(CRDS, "", given))
    unknown = world.server.registry.of(WIDGETS).strategy.unknown_fields
    assert unknown is not None
    pod = {"metadata": {"name": "p", "odd": 1}, "anything": 1}
    document = {
        "kind": "Widget",
        "metadata": {"odd": 1, "ownerReferences": [{"name": "o", "odd": 1}]},
        "spec": {"size": 1, "odd": {"deep": 1}, "pod": pod},
        "odd": 1,
    }
    # In the order the real server tells them.
    assert unknown(document) == (
        "metadata.odd",
        "metadata.ownerReferences[0].odd",
        "odd",
        "spec.odd",
        "spec.pod.metadata.odd",
    )


def test_a_null_status_is_no_status(world: World, api: LocalApi) -> None:
    async def story() -> dict[str, Any]:
        given = definition(subresources={"status": {}})
        schema = given["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["status"] = {"type": "object", "properties": {"x": {"type": "string"}}}
        await api.create(CRDS, "", given)
        await api.create(WIDGETS, "default", {"metadata": {"name": "w"}})
        await api.patch(WIDGETS, "default", "w", {"status": {"x": "y"}}, subresource="status")
        live = await api.get(WIDGETS, "default", "w")
        assert live["status"] == {"x": "y"}
        return await api.update_status(WIDGETS, "default", "w", {**live, "status": None})

    assert "status" not in world.run(story())


def test_objects_stored_before_a_schema_asked_for_more_can_still_be_read(world: World, api: LocalApi) -> None:
    async def story() -> dict[str, Any]:
        open_: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        given = definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": open_}}})
        await api.create(CRDS, "", given)
        body = {"metadata": {"name": "w"}, "spec": {"kind": 1, "metadata": "odd"}}
        await api.create(WIDGETS, "default", body)
        live = await api.get(CRDS, "", "widgets.x.test")
        schema = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["x-kubernetes-embedded-resource"] = True
        await api.update(CRDS, "", "widgets.x.test", live)
        return await api.get(WIDGETS, "default", "w")

    assert world.run(story())["spec"] == {"kind": 1, "metadata": "odd"}


def test_a_definition_no_server_would_accept_does_not_keep_one_from_starting(
    world: World, api: LocalApi, caplog: pytest.LogCaptureFixture
) -> None:
    world.run(api.create(CRDS, "", definition()))
    store = world.server.store.fork()
    table = store.table("customresourcedefinitions.apiextensions.k8s.io")
    odd = msgspec.structs.replace
    table.convert_objects(
        lambda each: odd(
            each,
            spec=odd(
                each.spec,
                versions=tuple(
                    odd(
                        version,
                        schema=odd(
                            version.schema, openAPIV3Schema=odd(version.schema.openAPIV3Schema, pattern="(")
                        ),
                    )
                    for version in each.spec.versions
                ),
            ),
        )
    )
    with World(seed=2, store=store) as later:
        with pytest.raises(NotFound):
            later.run(later.api().list(WIDGETS))
        conditions = later.run(later.api().get(CRDS, "", "widgets.x.test"))["status"]["conditions"]
    assert "cannot be served" in caplog.text
    assert [each["reason"] for each in conditions if each["type"] == "NonStructuralSchema"] == ["Violations"]
