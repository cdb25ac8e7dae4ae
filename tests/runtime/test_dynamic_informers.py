"""Following every resource there is, as discovery says it comes and goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.discovery import DiscoveryResult, FailedGroupVersion
from steersman.api.errors import ServiceUnavailable
from steersman.api.generated import load
from steersman.api.kinds import PODS
from steersman.api.scheme import Key, Kind
from steersman.client.capabilities import REMOTE
from steersman.intent.all_resources import AllResources, Item
from steersman.intent.controller import Caches, Change
from steersman.runtime.dynamic_informers import PERIOD, RARE, DynamicInformers
from steersman.runtime.informer import Informers
from steersman.runtime.metrics import Metrics
from steersman.server.local import LocalApi
from steersman.sim.world import World

DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
CONFIGMAPS = load("", "v1", "ConfigMap")
WIDGETS: Kind[dict[str, Any]] = Kind("example.com", "v1", "Widget", "widgets", True, dict)
WIDGET = "widgets.example.com"


def definition(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = versions or ("v1",)
    return {
        "metadata": {"name": WIDGET},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": name, "served": True, "storage": name == names[0], "schema": schema}
                for name in names
            ],
        },
    }


def widget(name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


class Moody(LocalApi):
    """A server whose discovery can be made to fail, as a whole or in parts."""

    mood: Exception | str | None = None
    asked = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.capabilities = REMOTE

    async def discover(self) -> DiscoveryResult:
        self.asked += 1
        found = await super().discover()
        if isinstance(self.mood, Exception):
            raise self.mood
        if self.mood is None:
            return found
        kept = tuple(each for each in found.resources if each.group != self.mood)
        return DiscoveryResult(kept, (FailedGroupVersion(f"{self.mood}/v1", "away"),))


def itself(caches: Caches, kind: Kind[Any], change: Change[Any]) -> Iterator[Key]:
    yield Item(kind, change.obj).key


class Around:
    def __init__(self, world: World, *, typed: tuple[Kind[Any], ...] = ()) -> None:
        self.world = world
        self.api = Moody(world.server)
        self.metrics = Metrics()
        self.informers = Informers(self.api, world)
        for kind in typed:
            self.informers.informer(kind)
        self.dynamic_informers = DynamicInformers(self.informers, self.api, world, metrics=self.metrics)
        self.heard: list[str] = []
        declared = AllResources(to=itself, excluded=("events", "events.events.k8s.io"))
        self.caches = self.dynamic_informers.join(
            declared, lambda key, cause: self.heard.append(f"{key}: {cause}"), memory=[]
        )
        world.spawn(self.informers.run(), name="informers")
        world.spawn(self.dynamic_informers.run(), name="dynamic informers")
        world.run(world.advance(1))

    def knows(self, resource: str, name: str) -> bool:
        return self.dynamic_informers.all_objects.get(Key("default", f"{resource}/{name}")) is not None

    def follows(self, resource: str) -> bool:
        return any(informer.kind.resource == resource for informer in self.informers)

    def pass_(self, seconds: float) -> None:
        self.world.run(self.world.advance(seconds))


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as world:
        yield world


def test_everything_that_can_be_deleted_is_followed_but_for_what_is_left_out(world: World) -> None:
    around = Around(world)
    found = world.run(world.api().discover())
    wanted = {each.id for each in found.preferred if each.supports("delete", "list", "watch")}
    assert {informer.kind.resource for informer in around.informers} == wanted - {
        "events",
        "events.events.k8s.io",
    }


def test_what_comes_is_seen_and_told(world: World) -> None:
    around = Around(world)
    around.heard.clear()
    world.run(world.api().create(CONFIGMAPS, "default", {"metadata": {"name": "m"}}))
    around.pass_(1)
    assert around.knows("configmaps", "m")
    assert around.heard == ["default/configmaps/m: ConfigMap default/m added"]


def test_a_resource_that_somebody_reads_by_its_type_is_not_read_twice(world: World) -> None:
    around = Around(world, typed=(PODS,))
    pods = [informer for informer in around.informers if informer.kind.resource == "pods"]
    assert [informer.kind for informer in pods] == [PODS]


def test_a_new_resource_is_followed_soon_after_its_definition(world: World) -> None:
    around = Around(world)
    world.run(world.api().create(DEFINITIONS, "", definition()))
    world.run(world.api().create(WIDGETS, "default", widget("w")))
    around.pass_(1)
    assert around.knows(WIDGET, "w")


def test_a_resource_that_is_gone_is_let_go_after_its_last_events_were_heard(world: World) -> None:
    around = Around(world)
    world.run(world.api().create(DEFINITIONS, "", definition()))
    world.run(world.api().create(WIDGETS, "default", widget("w")))
    around.pass_(1)
    around.heard.clear()
    world.run(world.api().delete(DEFINITIONS, "", WIDGET))
    around.pass_(1)
    assert "default/widgets.example.com/w: Widget default/w deleted" in around.heard
    assert around.follows(WIDGET)
    around.pass_(2 * PERIOD)
    assert not around.follows(WIDGET)
    world.run(world.api().create(DEFINITIONS, "", definition()))
    world.run(world.api().create(WIDGETS, "default", widget("again")))
    around.pass_(1)
    assert around.knows(WIDGET, "again")


def test_a_resource_is_followed_on_in_another_version_when_its_own_is_gone(world: World) -> None:
    around = Around(world)
    api = world.api()
    world.run(api.create(DEFINITIONS, "", definition("v1")))
    world.run(api.create(WIDGETS, "default", widget("w")))
    around.pass_(1)
    world.run(api.patch(DEFINITIONS, "", WIDGET, {"spec": definition("v2", "v1")["spec"]}))
    around.pass_(1)
    versions = [informer.kind.version for informer in around.informers if informer.kind.resource == WIDGET]
    assert versions == ["v1"]
    spec = definition("v2", "v1")["spec"]
    spec["versions"][1]["served"] = False
    world.run(api.patch(DEFINITIONS, "", WIDGET, {"spec": spec}))
    around.pass_(2)
    versions = [informer.kind.version for informer in around.informers if informer.kind.resource == WIDGET]
    assert versions == ["v2"]
    assert around.knows(WIDGET, "w")


def test_nothing_is_let_go_while_discovery_fails(world: World) -> None:
    around = Around(world)
    followed = {informer.kind.resource for informer in around.informers}
    around.api.mood = ServiceUnavailable("away")
    around.pass_(10 * PERIOD)
    assert {informer.kind.resource for informer in around.informers} == followed
    assert b"garbagecollector_controller_resources_sync_error_total 10" in around.metrics.render()


def test_an_odd_answer_is_a_failure_and_does_not_stop_anything(world: World) -> None:
    around = Around(world)
    around.api.mood = AttributeError("'list' object has no attribute 'get'")
    around.pass_(PERIOD)
    around.api.mood = None
    world.run(world.api().create(DEFINITIONS, "", definition()))
    around.pass_(PERIOD)
    assert around.follows(WIDGET)


def test_an_empty_answer_is_taken_for_a_failure(world: World) -> None:
    around = Around(world)

    async def nothing() -> DiscoveryResult:
        return DiscoveryResult()

    around.api.discover = nothing  # type: ignore[method-assign]
    around.pass_(10 * PERIOD)
    assert around.follows("configmaps")


def test_what_is_in_a_group_that_does_not_answer_stays_and_others_come(world: World) -> None:
    around = Around(world)
    around.api.mood = "apps"
    world.run(world.api().create(DEFINITIONS, "", definition()))
    around.pass_(10 * PERIOD)
    assert around.follows("deployments.apps")
    assert around.follows(WIDGET)
    assert around.dynamic_informers.all_objects.discovered.find("apps/v1", "Deployment") is not None
    assert around.dynamic_informers.all_objects.discovered.is_incomplete("apps")
    around.api.mood = None
    around.pass_(2 * PERIOD)
    assert not around.dynamic_informers.all_objects.discovered.is_incomplete("apps")
    assert around.follows("deployments.apps")


def test_discovery_is_asked_every_half_minute_while_another_server_provides_resources(world: World) -> None:
    around = Around(world)
    around.pass_(PERIOD)
    before = around.api.asked
    around.pass_(RARE)
    assert around.api.asked - before == 1
    services = load("apiregistration.k8s.io", "v1", "APIService")
    spec = {
        "group": "metrics.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": "metrics"},
        "insecureSkipTLSVerify": True,
    }
    name = "v1.metrics.example.com"
    world.run(around.api.create(services, "", {"metadata": {"name": name}, "spec": spec}))
    around.pass_(PERIOD)
    before = around.api.asked
    around.pass_(20 * PERIOD)
    assert around.api.asked - before == 20
    world.run(around.api.delete(services, "", name))
    around.pass_(PERIOD)
    before = around.api.asked
    around.pass_(RARE)
    assert around.api.asked - before == 1


def test_until_everything_has_been_read_it_is_known_what_has_not(world: World) -> None:
    informers = Informers(world.api(), world)
    dynamic_informers = DynamicInformers(informers, world.api(), world)
    dynamic_informers.join(AllResources(to=itself), lambda key, cause: None)
    world.run(dynamic_informers.refresh())
    assert "configmaps" in dynamic_informers.all_objects.unfilled
    world.spawn(informers.run(), name="informers")
    world.run(dynamic_informers.wait_filled(30))
    assert dynamic_informers.all_objects.unfilled == ()


def test_each_controller_has_a_memory_of_its_own(world: World) -> None:
    around = Around(world)
    other = around.dynamic_informers.join(AllResources(to=itself), lambda key, cause: None, memory=[])
    assert around.caches.memory == []
    assert around.caches.memory is not other.memory


def test_a_controller_that_does_not_follow_all_resources_does_not_see_all_objects(world: World) -> None:
    with pytest.raises(LookupError, match="follows_all"):
        _ = Informers(world.api(), world).all_objects
