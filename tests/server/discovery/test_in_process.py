"""Discovery in process agrees with the discovery documents."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.discovery import DiscoveryResult, merge_results
from steersman.api.generated import load
from steersman.api.partial_object import partial_kind
from steersman.api.scheme import Kind
from steersman.client.discovery import parse_aggregated
from steersman.server.http.discovery_cache import DiscoveryCache
from steersman.sim.world import World

DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGETS: Kind[dict[str, Any]] = Kind("example.com", "v1", "Widget", "widgets", True, dict)


def definition(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": name, "served": True, "storage": name == versions[0], "schema": schema}
                for name in versions
            ],
        },
    }


def documents(world: World) -> DiscoveryResult:
    catalogue = DiscoveryCache(world.server)
    found = catalogue.discovery
    catalogue.close()
    return merge_results(
        parse_aggregated(msgspec.json.decode(tagged.body))
        for tagged in (found.aggregated_api, found.aggregated_apis)
    )


def shown(found: DiscoveryResult) -> list[tuple[Any, ...]]:
    return sorted(
        (each.group, each.version, each.kind, each.name, each.namespaced, sorted(each.verbs))
        for each in found.resources
    )


def test_kinds_of_enabled_gates_are_among_them() -> None:
    with World(1) as world:
        world.server.registry.enable(["GenericWorkload"])
        found = shown(world.run(world.api().discover()))
        assert found == shown(documents(world))
        assert ("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", True) in [row[:5] for row in found]
        assert not any(row[1] == "v1alpha3" for row in found)


def test_it_is_what_the_documents_say_before_and_after_a_definition() -> None:
    with World(1) as world:
        api = world.api()
        assert shown(world.run(api.discover())) == shown(documents(world))
        world.run(api.create(DEFINITIONS, "", definition("v1", "v2", "v1beta1")))
        found = world.run(api.discover())
        assert shown(found) == shown(documents(world))
        versions = [each.version for each in found.resources if each.name == "widgets"]
        assert versions == ["v2", "v1", "v1beta1"]
        assert found.preferred == documents(world).preferred


def test_the_same_is_said_with_the_same_words_until_something_changes() -> None:
    with World(1) as world:
        api = world.api()
        before = world.run(api.discover())
        assert world.run(api.discover()) is before
        world.run(api.create(DEFINITIONS, "", definition("v1")))
        assert world.run(api.discover()) is not before
        world.run(api.delete(DEFINITIONS, "", "widgets.example.com"))
        assert world.run(api.discover()) == before


def test_metadata_of_a_custom_resource_is_the_object_itself_and_no_copy() -> None:
    with World(1) as world:
        api = world.api()
        world.run(api.create(DEFINITIONS, "", definition("v1")))
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"x": 1}}
        world.run(api.create(WIDGETS, "default", body))
        kind = partial_kind("example.com", "v1", "Widget", "widgets", True)
        one, page = world.run(api.get(kind, "default", "w")), world.run(api.list(kind, "default"))
        assert one is page.items[0]
        assert one.metadata.name == "w"
        assert one is world.server.store.table("widgets.example.com").get("default/w")
