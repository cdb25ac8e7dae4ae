"""Creating objects: generated names, uids, namespaces, forks, and the order of admission."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists, Forbidden, MethodNotAllowed
from steersman.api.generated.core_v1 import ConfigMap, Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.auth.users import User
from steersman.server.server import AdmissionAttributes, BeforeWrite, Server
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Stuck(random.Random):
    """Chance that always falls the same way."""

    def choices(self, population: Any, *args: Any, **options: Any) -> list[Any]:
        return [population[0]] * options["k"]


@pytest.fixture
def server() -> Server:
    server = Server(FakeClock())
    namespaces = server.registry.find("", "v1", "namespaces")
    verbs.create(server, namespaces, "", Namespace(metadata=ObjectMeta(name="default")))
    return server


def create(server: Server, **meta: Any) -> Any:
    resource = server.registry.find("", "v1", "configmaps")
    return verbs.create(server, resource, "default", ConfigMap(metadata=ObjectMeta(**meta)))


def test_uids_are_random_uuids(server: Server) -> None:
    uids = [create(server, generateName="x-").metadata.uid for _ in range(50)]
    assert len(set(uids)) == 50
    assert {uuid.UUID(uid).version for uid in uids} == {4}
    assert {uuid.UUID(uid).variant for uid in uids} == {uuid.RFC_4122}
    assert all(str(uuid.UUID(uid)) == uid for uid in uids)


def test_a_generated_name_that_is_taken_is_drawn_again(server: Server) -> None:
    twin = Server(FakeClock(), store=server.store.fork(), names=random.Random(5))
    taken = create(twin, generateName="x-").metadata.name
    assert taken.startswith("x-")
    again = Server(FakeClock(), store=twin.store, names=random.Random(5))
    assert create(again, generateName="x-").metadata.name != taken


def test_when_every_generated_name_is_taken_the_client_may_try_again(server: Server) -> None:
    stuck = Server(FakeClock(), store=server.store, names=Stuck(1))
    name = create(stuck, generateName="x-").metadata.name
    with pytest.raises(AlreadyExists) as refusal:
        create(stuck, generateName="x-")
    assert refusal.value.message == (
        f'configmaps "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    assert refusal.value.retry_after == 1


def test_a_namespaced_object_is_not_created_in_all_namespaces(server: Server) -> None:
    resource = server.registry.find("", "v1", "configmaps")
    with pytest.raises(MethodNotAllowed):
        verbs.create(server, resource, "", ConfigMap(metadata=ObjectMeta(name="x")))


def test_a_fork_goes_its_own_way(server: Server) -> None:
    create(server, name="both")
    fork = server.fork()
    create(fork, name="only-there")
    resource = server.registry.find("", "v1", "configmaps")
    assert server.table(resource).keys() == ["default/both"]
    assert fork.table(resource).keys() == ["default/both", "default/only-there"]


def test_admission_may_change_then_refuse_and_takes_note_only_of_what_is_done(server: Server) -> None:
    asked: list[tuple[str, str, str]] = []
    done: list[str] = []

    class Labelling:
        def mutate(self, request: AdmissionAttributes) -> Any:
            if request.obj is None:
                return None
            meta = request.obj.metadata
            return ConfigMap(
                metadata=ObjectMeta(name=meta.name, labels={"seen": "yes"}), data=request.obj.data
            )

        def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
            asked.append((request.operation, request.name, request.user.name))
            if request.obj is not None and request.obj.data.get("refuse"):
                raise Forbidden("no")
            return lambda: done.append(request.operation)

        def warnings(self, request: AdmissionAttributes) -> tuple[str, ...]:
            return ()

    server.admission = Labelling()
    resource = server.registry.find("", "v1", "configmaps")
    body = ConfigMap(metadata=ObjectMeta(name="x"))
    assert dict(verbs.create(server, resource, "default", body, user=User("me")).metadata.labels) == {
        "seen": "yes"
    }
    with pytest.raises(AlreadyExists):
        verbs.create(server, resource, "default", body, user=User("me"))
    refused = ConfigMap(metadata=ObjectMeta(name="x"), data={"refuse": "1"})
    with pytest.raises(Forbidden):
        verbs.update(server, resource, "default", "x", refused, user=User("you"))
    verbs.delete(server, resource, "default", "x", user=User("you"))
    assert asked == [
        ("CREATE", "x", "me"),
        ("CREATE", "x", "me"),
        ("UPDATE", "x", "you"),
        ("DELETE", "x", "you"),
    ]
    assert done == ["CREATE"]
