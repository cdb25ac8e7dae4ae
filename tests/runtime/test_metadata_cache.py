"""One cache over all resources: objects by key, by uid, and by what indexes find."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.discovery import ApiResource
from steersman.api.kinds import OwnerReference
from steersman.api.partial_object import PartialObject, PartialObjectMeta
from steersman.api.scheme import Key
from steersman.intent.controller import Change
from steersman.runtime.metadata_cache import MetadataCache
from steersman.runtime.store import Store

PODS = ApiResource("", "v1", "Pod", "pods", True)
SETS = ApiResource("apps", "v1", "ReplicaSet", "replicasets", True)


def obj(name: str, *owners: str, uid: str = "", version: str = "1") -> PartialObject:
    references = tuple(OwnerReference(uid=owner) for owner in owners)
    return PartialObject(
        metadata=PartialObjectMeta(
            name=name,
            namespace="ns",
            uid=uid or f"uid-{name}",
            resourceVersion=version,
            ownerReferences=references,
        )
    )


def owners(found: Any) -> list[str]:
    return [reference.uid for reference in found.metadata.ownerReferences]


class Filled:
    def __init__(self) -> None:
        self.everything = MetadataCache()
        self.everything.add_index("owner", owners)
        self.stores: dict[str, Store[PartialObject]] = {}
        for resource in (PODS, SETS):
            self.stores[resource.id] = Store()
            self.everything.attach(resource.partial, self.stores[resource.id])

    def put(self, resource: ApiResource, new: PartialObject) -> None:
        self.everything.take(resource.partial, Change(self.stores[resource.id].put(new), new))

    def remove(self, resource: ApiResource, old: PartialObject) -> None:
        self.stores[resource.id].remove(old.key)
        self.everything.take(resource.partial, Change(old, None))

    def under(self, value: str) -> list[str]:
        return [str(item.key) for item in self.everything.by("owner", value)]


@pytest.fixture
def filled() -> Filled:
    return Filled()


def test_an_object_is_found_by_its_key_its_place_and_its_uid(filled: Filled) -> None:
    web = obj("web")
    filled.put(SETS, web)
    item = filled.everything.of("uid-web")
    assert item is not None
    assert item.key == Key("ns", "replicasets.apps/web")
    assert filled.everything.get(item.key) is item
    assert filled.everything.at(SETS, "ns", "web") is item
    assert filled.everything.at(PODS, "ns", "web") is None
    assert str(item) == "replicaset ns/web"


def test_objects_of_all_kinds_are_filed_together_in_the_order_they_came(filled: Filled) -> None:
    filled.put(PODS, obj("a", "o"))
    filled.put(SETS, obj("b", "o", "p"))
    filled.put(PODS, obj("c", "o"))
    assert filled.under("o") == ["ns/pods/a", "ns/replicasets.apps/b", "ns/pods/c"]
    assert filled.under("p") == ["ns/replicasets.apps/b"]
    assert filled.under("q") == []


def test_a_change_moves_an_object_between_files(filled: Filled) -> None:
    filled.put(PODS, obj("a", "o"))
    filled.put(PODS, obj("b", "o"))
    filled.put(PODS, obj("a", "p", version="2"))
    assert (filled.under("o"), filled.under("p")) == (["ns/pods/b"], ["ns/pods/a"])
    item = filled.everything.of("uid-a")
    assert item is not None
    assert item.obj.metadata.resourceVersion == "2"


def test_what_goes_is_found_no_more(filled: Filled) -> None:
    one = obj("a", "o")
    filled.put(PODS, one)
    filled.remove(PODS, one)
    assert filled.under("o") == []
    assert filled.everything.of("uid-a") is None
    assert len(filled.everything) == 0


def test_an_object_that_took_the_name_of_another_is_another(filled: Filled) -> None:
    one = obj("a", "o")
    filled.put(PODS, one)
    filled.remove(PODS, one)
    filled.put(PODS, obj("a", "p", uid="new"))
    assert filled.everything.of("uid-a") is None
    assert (filled.under("o"), filled.under("p")) == ([], ["ns/pods/a"])


def test_an_index_added_late_knows_what_was_there(filled: Filled) -> None:
    filled.put(PODS, obj("a"))
    filled.everything.add_index("name", lambda found: [found.metadata.name])
    assert [item.name for item in filled.everything.by("name", "a")] == ["a"]


def test_nothing_is_known_of_a_resource_that_was_detached(filled: Filled) -> None:
    filled.put(PODS, obj("a", "o"))
    filled.put(SETS, obj("b", "o"))
    filled.everything.detach(PODS.partial)
    assert filled.under("o") == ["ns/replicasets.apps/b"]
    assert filled.everything.at(PODS, "ns", "a") is None


def test_an_object_that_cannot_be_filed_is_there_all_the_same(filled: Filled) -> None:
    def broken(found: Any) -> list[str]:
        raise ValueError("odd")

    filled.everything.add_index("broken", broken)
    filled.put(PODS, obj("a", "o"))
    assert filled.under("o") == ["ns/pods/a"]
    assert list(filled.everything.by("broken", "x")) == []
