"""Clients in process that have the rights of an account, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from steersman.api.errors import Forbidden, NotFound
from steersman.api.generated import load
from steersman.client.api import Api
from steersman.server.auth.rbac import GROUP, RBACAuthorizer, follow
from steersman.server.auth.users import authenticated, service_account_user
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.local import LocalApi
from steersman.sim.world import World

MAPS = load("", "v1", "ConfigMap")
PODS = load("", "v1", "Pod")
NAMESPACES = load("", "v1", "Namespace")
ROLES = load(GROUP, "v1", "Role")
BINDINGS = load(GROUP, "v1", "RoleBinding")
DEPLOYMENTS = load("apps", "v1", "Deployment")
WHO = authenticated(service_account_user("default", "robot", ""))


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


@pytest.fixture
def authorizer(world: World) -> RBACAuthorizer:
    authorizer = world.server.authorizer = follow(world.server.store)
    return authorizer


@pytest.fixture
def robot(world: World, authorizer: RBACAuthorizer) -> Api:
    return AuthorizedApi(LocalApi(world.server, WHO, "robot"), authorizer)


def allow(world: World, *rules: dict[str, Any], name: str = "r", namespace: str = "default") -> None:
    """Give the robot a role in a namespace."""
    api = world.api()
    world.run(api.create(ROLES, namespace, {"metadata": {"name": name}, "rules": list(rules)}))
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    ref = {"apiGroup": GROUP, "kind": "Role", "name": name}
    world.run(
        api.create(BINDINGS, namespace, {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]})
    )


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def config(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"a": "b"}}


async def drained(watch: AsyncIterator[Any]) -> None:
    async for _ in watch:
        return


def test_every_verb_is_refused_without_a_right_in_the_words_of_http(world: World, robot: Api) -> None:
    world.run(world.api().create(MAPS, "default", config("there")))
    before = world.server.store.revision
    attempts: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "get": lambda: robot.get(MAPS, "default", "there"),
        "list": lambda: robot.list(MAPS, "default"),
        "watch": lambda: drained(robot.watch(MAPS, "default")),
        "create": lambda: robot.create(MAPS, "default", config("new")),
        "update": lambda: robot.update(MAPS, "default", "there", config("there")),
        "patch": lambda: robot.patch(MAPS, "default", "there", {"data": {"a": "c"}}),
        "delete": lambda: robot.delete(MAPS, "default", "there"),
        "deletecollection": lambda: robot.delete_collection(MAPS, "default"),
    }
    for verb, attempt in attempts.items():
        with pytest.raises(Forbidden) as caught:
            world.run(attempt())
        named = "" if verb in ("list", "watch", "create", "deletecollection") else ' "there"'
        assert str(caught.value) == (
            f'configmaps{named} is forbidden: User "system:serviceaccount:default:robot" cannot {verb} '
            'resource "configmaps" in API group "" in the namespace "default"'
        )
    assert world.server.store.revision == before


def test_a_right_is_for_its_verb_its_resource_and_its_namespace(world: World, robot: Api) -> None:
    allow(world, rule("create get", "configmaps"))
    world.run(robot.create(MAPS, "default", config("mine")))
    assert world.run(robot.get(MAPS, "default", "mine")).data == {"a": "b"}
    for attempt in (
        robot.create(MAPS, "kube-system", config("mine")),
        robot.delete(MAPS, "default", "mine"),
        robot.list(MAPS, "default"),
        robot.get(PODS, "default", "mine"),
    ):
        with pytest.raises(Forbidden):
            world.run(attempt)


def test_a_status_and_a_scale_are_rights_of_their_own(world: World, robot: Api) -> None:
    allow(world, rule("update get", "deployments", "apps"))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = world.run(world.api().create(DEPLOYMENTS, "default", {"metadata": {"name": "d"}, "spec": spec}))
    with pytest.raises(Forbidden, match='cannot update resource "deployments/status"'):
        world.run(robot.update_status(DEPLOYMENTS, "default", "d", made))
    with pytest.raises(Forbidden, match='cannot get resource "deployments/scale"'):
        world.run(robot.subresource(DEPLOYMENTS, "default", "d", "scale", verb="get"))
    allow(
        world,
        rule("update", "deployments/status", "apps"),
        rule("get", "deployments/scale", "apps"),
        name="s",
    )
    world.run(robot.update_status(DEPLOYMENTS, "default", "d", made))
    assert world.run(robot.subresource(DEPLOYMENTS, "default", "d", "scale", verb="get"))["kind"] == "Scale"


def test_a_right_to_some_names_is_for_those_alone(world: World, robot: Api) -> None:
    for name in ("mine", "yours"):
        world.run(world.api().create(MAPS, "default", config(name)))
    allow(world, rule("get list", "configmaps", resourceNames=["mine"]))
    for _ in range(2):
        world.run(robot.get(MAPS, "default", "mine"))
        with pytest.raises(Forbidden):
            world.run(robot.get(MAPS, "default", "yours"))
    world.run(robot.list(MAPS, "default", field_selector="metadata.name=mine"))
    with pytest.raises(Forbidden):
        world.run(robot.list(MAPS, "default"))


def test_a_namespace_is_within_itself(world: World, robot: Api) -> None:
    allow(world, rule("get", "namespaces"))
    assert world.run(robot.get(NAMESPACES, "", "default")).metadata.name == "default"
    with pytest.raises(Forbidden):
        world.run(robot.get(NAMESPACES, "", "kube-system"))


def test_what_was_allowed_is_forgotten_when_the_role_changes(world: World, robot: Api) -> None:
    allow(world, rule("get", "configmaps"))
    with pytest.raises(NotFound):
        world.run(robot.get(MAPS, "default", "none"))
    world.run(world.api().delete(BINDINGS, "default", "r"))
    with pytest.raises(Forbidden):
        world.run(robot.get(MAPS, "default", "none"))


def test_nobody_grants_what_they_do_not_have(world: World, robot: Api) -> None:
    allow(world, rule("create", "roles", GROUP), rule("get", "configmaps"))
    more = {"metadata": {"name": "more"}, "rules": [rule("delete", "configmaps")]}
    with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
        world.run(robot.create(ROLES, "default", more))
    less = {"metadata": {"name": "less"}, "rules": [rule("get", "configmaps")]}
    made = world.run(robot.create(ROLES, "default", less))
    assert [each.manager for each in made.metadata.managedFields] == ["robot"]


def test_who_may_ask_is_told_what_others_may_do(world: World, robot: Api) -> None:
    def review(verb: str) -> dict[str, Any]:
        resource = {"namespace": "default", "verb": verb, "resource": "configmaps"}
        return {"spec": {"user": WHO.name, "resourceAttributes": resource}}

    reviews = load("authorization.k8s.io", "v1", "SubjectAccessReview")
    with pytest.raises(Forbidden):
        world.run(robot.create(reviews, "", review("get")))
    asks = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}
    api = world.api()
    world.run(
        api.create(load(GROUP, "v1", "ClusterRole"), "", {"metadata": {"name": "asks"}, "rules": [asks]})
    )
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "asks"}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    binding = {"metadata": {"name": "asks"}, "roleRef": ref, "subjects": [subject]}
    world.run(api.create(load(GROUP, "v1", "ClusterRoleBinding"), "", binding))
    allow(world, rule("get", "configmaps"))
    assert world.run(robot.create(reviews, "", review("get"))).status.allowed
    assert not world.run(robot.create(reviews, "", review("delete"))).status.allowed
    assert world.run(robot.create(reviews.untyped, "", review("get")))["status"]["allowed"] is True
