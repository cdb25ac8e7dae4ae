"""The official client for Python: custom resources, the dynamic client and its discovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client.exceptions import (
    ConflictException,
    NotFoundException,
    UnprocessableEntityException,
)
from kubernetes.dynamic import exceptions

WAIT = 60


@pytest.fixture
def anything(admin: client.ApiClient, tmp_path: Path) -> dynamic.DynamicClient:
    """A dynamic client with a discovery cache of its own."""
    return dynamic.DynamicClient(admin, cache_file=str(tmp_path / "discovery.json"))


def widget(group: str, name: str, size: int = 1, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


# -- custom objects ---------------------------------------------------------------------------


def test_custom_objects_live_by_their_schema(admin: client.ApiClient, widgets: str, namespace: str) -> None:
    custom, where = client.CustomObjectsApi(admin), (widgets, "v1", namespace, "widgets")
    made = custom.create_namespaced_custom_object(*where, widget(widgets, "w", unknown=True))
    assert made["spec"] == {"size": 1, "colour": "blue"}, "defaulted and pruned"
    with pytest.raises(UnprocessableEntityException, match="should be greater than or equal to 1"):
        custom.create_namespaced_custom_object(*where, widget(widgets, "v", 0))
    changed = custom.patch_namespaced_custom_object(*where, "w", {"spec": {"size": 2}})
    assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (2, 2)
    with pytest.raises(ConflictException):
        custom.replace_namespaced_custom_object(*where, "w", made)
    changed = custom.patch_namespaced_custom_object_status(*where, "w", {"status": {"phase": "Fine"}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"phase": "Fine"}, 2)
    scaled = custom.patch_namespaced_custom_object_scale(*where, "w", {"spec": {"replicas": 4}})
    assert (scaled["kind"], scaled["spec"]) == ("Scale", {"replicas": 4})
    (listed,) = custom.list_namespaced_custom_object(*where)["items"]
    assert listed["spec"]["replicas"] == 4
    custom.delete_namespaced_custom_object(*where, "w")
    with pytest.raises(NotFoundException):
        custom.get_namespaced_custom_object(*where, "w")


def test_custom_objects_are_watched(admin: client.ApiClient, widgets: str, namespace: str) -> None:
    custom, where = client.CustomObjectsApi(admin), (widgets, "v1", namespace, "widgets")
    stream = watch.Watch().stream(
        custom.list_namespaced_custom_object, *where, resource_version="0", timeout_seconds=WAIT
    )
    custom.create_namespaced_custom_object(*where, widget(widgets, "w"))
    event = next(stream)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "w")
    custom.delete_namespaced_custom_object(*where, "w")
    assert next(stream)["type"] == "DELETED"
    stream.close()


def test_a_definition_goes_with_all_its_objects(
    admin: client.ApiClient, widgets: str, namespace: str
) -> None:
    extensions, custom = client.ApiextensionsV1Api(admin), client.CustomObjectsApi(admin)
    where = (widgets, "v1", namespace, "widgets")
    custom.create_namespaced_custom_object(*where, widget(widgets, "w"))
    name = f"widgets.{widgets}"
    found = extensions.list_custom_resource_definition(field_selector=f"metadata.name={name}")
    extensions.delete_custom_resource_definition(name)
    stream = watch.Watch().stream(
        extensions.list_custom_resource_definition,
        field_selector=f"metadata.name={name}",
        resource_version=found.metadata.resource_version,
        timeout_seconds=WAIT,
    )
    assert "DELETED" in (event["type"] for event in stream)
    with pytest.raises(NotFoundException):
        custom.list_namespaced_custom_object(*where)


# -- the dynamic client -----------------------------------------------------------------------


def test_discovery_finds_kinds_by_any_of_their_names(anything: dynamic.DynamicClient) -> None:
    resources = anything.resources
    assert anything.version["kubernetes"]["gitVersion"].startswith(
        ("v1.36.", "v0.0.0-")
    )  # the latter of a build without stamps
    deployments = resources.get(kind="Deployment")
    assert (deployments.group_version, deployments.name, deployments.namespaced) == (
        "apps/v1",
        "deployments",
        True,
    )
    assert resources.get(api_version="v1", short_names=["po"]).kind == "Pod"
    assert resources.get(api_version="v1", singular_name="node").namespaced is False
    assert {each.api_version for each in resources.search(group="autoscaling")} == {"v1", "v2"}
    assert "scale" in deployments.subresources
    with pytest.raises(exceptions.ResourceNotFoundError):
        resources.get(kind="Nonsense")


def test_discovery_is_kept_in_a_file_and_renewed_for_what_is_new(
    admin: client.ApiClient, widgets: str, tmp_path: Path
) -> None:
    cache = tmp_path / "discovery.json"
    first = dynamic.DynamicClient(admin, cache_file=str(cache))
    assert first.resources.get(api_version=f"{widgets}/v1", kind="Widget").name == "widgets"
    assert cache.stat().st_size > 0
    again = dynamic.DynamicClient(admin, cache_file=str(cache))
    assert again.resources.get(kind="Widget", group=widgets).short_names == ["wd"]


def test_the_dynamic_client_creates_changes_and_deletes(
    anything: dynamic.DynamicClient, namespace: str
) -> None:
    maps = anything.resources.get(api_version="v1", kind="ConfigMap")
    made = maps.create(body={"metadata": {"name": "c"}, "data": {"k": "v"}}, namespace=namespace)
    assert (made.kind, made.data.k) == ("ConfigMap", "v")
    assert maps.get(name="c", namespace=namespace).metadata.uid == made.metadata.uid
    patched = maps.patch(name="c", namespace=namespace, body={"data": {"l": "w"}})
    assert patched.data.to_dict() == {"k": "v", "l": "w"}
    merged = maps.patch(
        name="c", namespace=namespace, body={"data": {"k": None}}, content_type="application/merge-patch+json"
    )
    assert merged.data.to_dict() == {"l": "w"}
    made.metadata.resourceVersion = "1"
    with pytest.raises(exceptions.ConflictError):
        maps.replace(body=made, namespace=namespace)
    assert [
        each.metadata.name for each in maps.get(namespace=namespace, field_selector="metadata.name=c").items
    ]
    maps.delete(name="c", namespace=namespace)
    with pytest.raises(exceptions.NotFoundError):
        maps.get(name="c", namespace=namespace)


def test_the_dynamic_client_applies_on_the_server(
    anything: dynamic.DynamicClient, widgets: str, namespace: str
) -> None:
    kind = anything.resources.get(api_version=f"{widgets}/v1", kind="Widget")

    def apply(manager: str, *, force: bool | None = None, **spec: Any) -> Any:
        body = widget(widgets, "w", **spec)
        return kind.server_side_apply(
            body=body, namespace=namespace, field_manager=manager, force_conflicts=force
        )

    assert apply("one", size=1, colour="red").spec.to_dict() == {"size": 1, "colour": "red"}
    with pytest.raises(exceptions.ConflictError, match=r"\.spec\.size"):
        apply("two", size=2)
    changed = apply("two", size=2, force=True)
    assert changed.spec.to_dict() == {"size": 2, "colour": "red"}
    owners = {each.manager: each.fieldsV1.to_dict() for each in changed.metadata.managedFields}
    assert owners == {"one": {"f:spec": {"f:colour": {}}}, "two": {"f:spec": {"f:size": {}}}}


def test_the_dynamic_client_watches_and_reaches_below(
    anything: dynamic.DynamicClient, widgets: str, namespace: str
) -> None:
    kind = anything.resources.get(api_version=f"{widgets}/v1", kind="Widget")
    kind.create(body=widget(widgets, "w"), namespace=namespace)
    watcher = watch.Watch()
    seen: list[tuple[str, Any]] = []
    for event in kind.watch(namespace=namespace, timeout=WAIT, watcher=watcher):
        seen.append((event["type"], event["object"].status and event["object"].status.phase))
        if len(seen) == 1:
            body = {"status": {"phase": "Fine"}}
            kind.status.patch(
                name="w", namespace=namespace, body=body, content_type="application/merge-patch+json"
            )
        elif len(seen) == 2:
            kind.delete(name="w", namespace=namespace)
        else:
            watcher.stop()
    assert seen == [("ADDED", None), ("MODIFIED", "Fine"), ("DELETED", "Fine")]
