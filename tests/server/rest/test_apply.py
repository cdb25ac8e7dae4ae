"""Apply as a request: it creates, changes, refuses, and leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.server.local import LocalApi
from steersman.sim.world import World

APPLY = "application/apply-patch+yaml"
CONFIGMAPS = load("", "v1", "ConfigMap").untyped
DEPLOYMENTS = load("apps", "v1", "Deployment").untyped
CRDS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped


class Cluster:
    def __init__(self, world: World) -> None:
        self.world = world

    def api(self, manager: str = "me") -> LocalApi:
        return LocalApi(self.world.server, manager=manager)

    def run(self, request: Any) -> Any:
        return self.world.run(request)

    def apply(
        self,
        body: dict[str, Any],
        manager: str = "me",
        *,
        kind: Kind[Any] = CONFIGMAPS,
        name: str = "",
        force: bool = False,
        subresource: str = "",
    ) -> Any:
        body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return self.run(
            self.api(manager).patch(
                kind,
                "default",
                name or body["metadata"]["name"],
                body,
                content_type=APPLY,
                field_manager=manager,
                force=force,
                subresource=subresource,
            )
        )

    def revision(self) -> int:
        return self.world.server.store.revision


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with World(seed=1) as world:
        yield Cluster(world)


def owners(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in document["metadata"]["managedFields"]
    ]


def test_what_is_not_there_is_created(cluster: Cluster) -> None:
    made = cluster.apply({"metadata": {"name": "c"}, "data": {"a": "1"}})
    assert made["metadata"]["uid"]
    assert made["data"] == {"a": "1"}
    assert owners(made) == [("me", "Apply", "")]


def test_applying_the_same_again_writes_nothing(cluster: Cluster) -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    first, before = cluster.apply(body), cluster.revision()
    assert cluster.apply(body) == first
    assert cluster.revision() == before


def test_a_new_owner_of_an_old_value_is_written(cluster: Cluster) -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    cluster.apply(body)
    before = cluster.revision()
    assert owners(cluster.apply(body, "you")) == [("you", "Apply", ""), ("me", "Apply", "")]
    assert cluster.revision() == before + 1


def test_defaults_are_filled_in_and_owned_by_nobody(cluster: Cluster) -> None:
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    made = cluster.apply({"metadata": {"name": "d"}, "spec": spec}, kind=DEPLOYMENTS)
    assert made["spec"]["replicas"] == 1
    assert "f:replicas" not in made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    scaled = cluster.run(cluster.api("you").patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 2}}))
    assert owners(scaled) == [("me", "Apply", ""), ("you", "Update", "")]
    ready = {"metadata": {"name": "d"}, "status": {"replicas": 1}, "spec": {"replicas": 7}}
    status = cluster.apply(ready, "loop", kind=DEPLOYMENTS, subresource="status")
    assert status["status"]["replicas"] == 1
    assert status["spec"]["replicas"] == 2
    assert ("loop", "Apply", "status") in owners(status)


@pytest.mark.parametrize(
    ("body", "name", "error", "says"),
    [
        ({"metadata": {}}, "c", BadRequest, "was undeterminable: name must be provided"),
        ({"metadata": {"name": "d"}}, "c", BadRequest, "does not match the name on the URL"),
        ({"metadata": {"name": "c", "namespace": "x"}}, "c", BadRequest, "does not match the namespace"),
        (
            {"metadata": {"name": "c", "uid": "u"}},
            "c",
            Conflict,
            "uid mismatch: the provided object specified uid u",
        ),
        (
            {"kind": "Secret", "metadata": {"name": "c"}},
            "c",
            BadRequest,
            "invalid object type: /v1, Kind=Secret",
        ),
    ],
)
def test_what_is_not_meant_is_refused(
    cluster: Cluster, body: dict[str, Any], name: str, error: type[ApiError], says: str
) -> None:
    with pytest.raises(error) as refused:
        cluster.apply(body, name=name)
    assert says in refused.value.message


def test_an_outdated_version_is_a_conflict(cluster: Cluster) -> None:
    cluster.apply({"metadata": {"name": "c"}, "data": {"a": "1"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        cluster.apply({"metadata": {"name": "c", "resourceVersion": "1"}, "data": {"a": "2"}})


def test_a_status_is_not_applied_to_what_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        cluster.apply({"metadata": {"name": "d"}, "status": {}}, kind=DEPLOYMENTS, subresource="status")


@pytest.mark.parametrize(
    ("content_type", "manager", "force", "says"),
    [
        (APPLY, "", False, "fieldManager: Required value: is required for apply patch"),
        (
            "application/merge-patch+json",
            "",
            True,
            "force: Forbidden: may not be specified for non-apply patch",
        ),
        (APPLY, "x" * 129, False, "fieldManager: Too long: may not be more than 128 bytes"),
        (APPLY, "a\tb", False, "invalid character U+0009 (at position 1)"),
    ],
)
def test_options_that_do_not_fit_a_patch_are_refused(
    cluster: Cluster, content_type: str, manager: str, force: bool, says: str
) -> None:
    request = cluster.api().patch(
        CONFIGMAPS, "default", "c", {}, content_type=content_type, field_manager=manager, force=force
    )
    with pytest.raises(Invalid) as refused:
        cluster.run(request)
    assert says in refused.value.message


def test_a_scale_is_owned_by_whoever_scales(cluster: Cluster) -> None:
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    cluster.apply({"metadata": {"name": "d"}, "spec": spec}, kind=DEPLOYMENTS)
    scale = {"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 5}}
    cluster.run(cluster.api("hpa").subresource(DEPLOYMENTS, "default", "d", "scale", scale, verb="update"))
    live = cluster.run(cluster.api().get(DEPLOYMENTS, "default", "d"))
    assert owners(live) == [("me", "Apply", ""), ("hpa", "Update", "scale")]
    assert live["metadata"]["managedFields"][1]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    with pytest.raises(Conflict, match='conflict with "hpa" with subresource "scale" using apps/v1'):
        cluster.apply({"metadata": {"name": "d"}, "spec": spec}, kind=DEPLOYMENTS)


def definition() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        },
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def test_a_custom_resource_has_owners_at_each_of_its_versions(cluster: Cluster) -> None:
    cluster.run(cluster.api().create(CRDS, "", definition()))
    one: Kind[Any] = Kind("example.com", "v1", "Widget", "widgets", True, dict)
    two: Kind[Any] = Kind("example.com", "v2", "Widget", "widgets", True, dict)
    cluster.apply({"metadata": {"name": "w"}, "spec": {"a": 1, "b": 1}}, "one", kind=one)
    both = cluster.apply({"metadata": {"name": "w"}, "spec": {"b": 1}}, "two", kind=two)
    assert [(entry["manager"], entry["apiVersion"]) for entry in both["metadata"]["managedFields"]] == [
        ("two", "example.com/v2"),
        ("one", "example.com/v1"),
    ]
    with pytest.raises(Conflict, match='1 conflict: conflict with "one"'):
        cluster.apply({"metadata": {"name": "w"}, "spec": {"a": 2, "b": 1}}, "two", kind=two)
    less = cluster.apply({"metadata": {"name": "w"}, "spec": {"a": 1}}, "one", kind=two)
    assert less["spec"] == {"a": 1, "b": 1}
    assert cluster.apply({"metadata": {"name": "w"}}, "two", kind=one)["spec"] == {"a": 1}
