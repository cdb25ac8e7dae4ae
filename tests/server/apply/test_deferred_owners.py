"""Managed fields are computed on first read, and not before."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.generated import load
from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ManagedFieldsEntry, ObjectMeta
from steersman.api.scheme import encode_hook
from steersman.server.apply import deferred_owners, field_set
from steersman.server.apply.deferred_owners import MAX_PENDING_WRITES, DeferredManagedFields
from steersman.server.codec.convert import to_document
from steersman.server.registry.resources import Resource
from steersman.server.server import Server
from steersman.sim.world import World
from tests.harness import verbs

CONFIGMAPS = load("", "v1", "ConfigMap")
DEPLOYMENTS = load("apps", "v1", "Deployment")


@pytest.fixture
def server() -> Any:
    with World(seed=1) as world:
        yield world.server


def made(server: Server, **data: str) -> Any:
    obj = ConfigMap(metadata=ObjectMeta(name="c"), data=data)
    return verbs.create(server, resource(server), "default", obj, manager="maker")


def resource(server: Server) -> Resource:
    return server.registry.of(CONFIGMAPS)


def changed(server: Server, manager: str, **data: str) -> Any:
    return verbs.patch(
        server, resource(server), "default", "c", lambda old: replace(old, data=data), manager=manager
    )


def paths_by_manager(obj: Any) -> dict[str, list[str]]:
    return {
        f"{who.name} {who.operation} {who.subresource}".strip(): list(field_set.paths(owned.fields))
        for who, owned in deferred_owners.managed_of(obj.metadata.managedFields).items()
    }


def is_pending(obj: Any) -> bool:
    return "pending" in repr(obj.metadata.managedFields)


def test_a_write_works_nothing_out(server: Server) -> None:
    first = made(server, a="1")
    second = changed(server, "editor", a="2", b="2")
    assert is_pending(first)
    assert is_pending(second)
    assert paths_by_manager(second) == {"maker Update": [".data"], "editor Update": [".data.a", ".data.b"]}
    assert not is_pending(second)
    assert not is_pending(first)


def test_every_version_of_an_object_has_the_owners_it_had_then(server: Server) -> None:
    first = made(server, a="1")
    second = changed(server, "editor", a="2")
    third = changed(server, "other", a="3")
    assert paths_by_manager(third) == {"maker Update": [".data"], "other Update": [".data.a"]}
    assert paths_by_manager(second) == {"maker Update": [".data"], "editor Update": [".data.a"]}
    assert paths_by_manager(first) == {"maker Update": [".data", ".data.a"]}


def test_what_is_encoded_has_its_entries(server: Server) -> None:
    obj = made(server, a="1")
    (entry,) = to_document("v1", "ConfigMap", obj)["metadata"]["managedFields"]
    assert entry == {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        "manager": "maker",
        "operation": "Update",
        "time": "2026-01-01T00:00:00Z",
    }
    raw = msgspec.json.encode(obj, enc_hook=encode_hook)
    assert msgspec.json.decode(raw, type=ConfigMap) == obj


def test_it_can_be_used_as_the_tuple_it_stands_for(server: Server) -> None:
    owners = made(server, a="1").metadata.managedFields
    assert isinstance(owners, DeferredManagedFields)
    assert bool(owners)
    assert entries_pending(owners)
    assert len(owners) == 1
    assert owners[0].manager == "maker"
    assert owners[:1] == tuple(owners)
    assert owners == tuple(owners)
    assert owners != ()
    assert [entry.manager for entry in owners] == ["maker"]


def entries_pending(owners: DeferredManagedFields) -> bool:
    return "pending" in repr(owners)


def test_an_object_of_which_nothing_is_said_has_no_owners_and_gets_none(server: Server) -> None:
    assert made(server).metadata.managedFields == ()
    assert changed(server, "editor", a="1").metadata.managedFields == ()


def test_a_write_that_changes_nothing_is_none(server: Server) -> None:
    obj = made(server, a="1")
    assert changed(server, "editor", a="1") is obj
    assert changed(server, "maker", a="1") is obj


def test_not_too_much_is_put_off(server: Server) -> None:
    made(server, a="0")
    for number in range(3 * MAX_PENDING_WRITES):
        obj = changed(server, "editor", a=str(number + 1))
    chain, at = 0, obj.metadata.managedFields
    while isinstance(at, DeferredManagedFields) and at._managed is None:
        chain, at = chain + 1, at._base
    assert chain <= MAX_PENDING_WRITES
    assert paths_by_manager(obj) == {"maker Update": [".data"], "editor Update": [".data.a"]}


def test_a_write_to_the_object_may_set_its_managed_fields(server: Server) -> None:
    obj = made(server, a="1", b="1")
    mine = ManagedFieldsEntry(
        manager="me",
        operation="Update",
        apiVersion="v1",
        fieldsType="FieldsV1",
        fieldsV1={"f:data": {"f:b": {}}},
    )
    new = replace(obj, metadata=replace(obj.metadata, managedFields=(mine,)), data={"a": "2", "b": "1"})
    put = verbs.update(server, resource(server), "default", "c", new, manager="editor")
    assert paths_by_manager(put) == {"me Update": [".data.b"], "editor Update": [".data.a"]}


def test_entries_that_make_no_sense_are_not_listened_to(server: Server) -> None:
    obj = made(server, a="1")
    odd = (ManagedFieldsEntry(manager="me", operation="Own"),)
    new = replace(obj, metadata=replace(obj.metadata, managedFields=odd), data={"a": "2"})
    put = verbs.update(server, resource(server), "default", "c", new, manager="editor")
    assert paths_by_manager(put) == {"maker Update": [".data"], "editor Update": [".data.a"]}


def test_managed_fields_are_not_tracked_after_a_reset(server: Server) -> None:
    obj = made(server, a="1")
    new = replace(obj, metadata=replace(obj.metadata, managedFields=(ManagedFieldsEntry(),)))
    put = verbs.update(server, resource(server), "default", "c", new, manager="editor")
    assert put.metadata.managedFields == ()
    assert changed(server, "editor", a="2").metadata.managedFields == ()


def test_a_status_leaves_the_spec_and_the_owners_it_is_sent(server: Server) -> None:
    deployments = server.registry.of(DEPLOYMENTS)
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    obj = msgspec.convert({"metadata": {"name": "d"}, "spec": spec}, DEPLOYMENTS.type)
    obj = verbs.create(server, deployments, "default", obj, manager="maker")
    new = replace(
        obj,
        metadata=replace(obj.metadata, managedFields=(ManagedFieldsEntry(),)),
        spec=replace(obj.spec, replicas=9),
        status=replace(obj.status, replicas=1),
    )
    put = verbs.update_status(server, deployments, "default", "d", new, manager="loop")
    assert paths_by_manager(put)["loop Update status"] == [".status.replicas"]
    assert ".spec.replicas" in paths_by_manager(put)["maker Update"]


def test_two_threads_that_look_at_once_see_the_same(server: Server) -> None:
    made(server, a="0")
    objects = [changed(server, f"m{number % 7}", a=str(number + 1)) for number in range(MAX_PENDING_WRITES)]
    seen: list[list[Any]] = []

    def look() -> None:
        seen.append([tuple(obj.metadata.managedFields) for obj in reversed(objects)])

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(each == seen[0] for each in seen)


def test_a_fork_goes_on_with_owners_of_its_own(server: Server) -> None:
    made(server, a="1")
    fork = server.fork()
    there, here = changed(fork, "there", a="2"), changed(server, "here", a="3")
    assert paths_by_manager(there)["there Update"] == [".data.a"]
    assert paths_by_manager(here)["here Update"] == [".data.a"]
