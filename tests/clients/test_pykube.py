"""pykube-ng: a small client over requests, often met beside kopf."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest
import requests

POD = {"containers": [{"name": "main", "image": "app:1"}]}


@pytest.fixture
def api(plane: Any) -> Iterator[pykube.HTTPClient]:
    made = pykube.HTTPClient(pykube.KubeConfig.from_file(str(plane.kubeconfig)))
    yield made
    made.session.close()


def test_objects_are_created_updated_watched_and_deleted(api: pykube.HTTPClient, namespace: str) -> None:
    body = {"metadata": {"name": "c", "namespace": namespace, "labels": {"a": "b"}}, "data": {"k": "v"}}
    found = pykube.ConfigMap(api, {"apiVersion": "v1", "kind": "ConfigMap", **body})
    found.create()
    assert found.exists()
    found.obj["data"]["k"] = "w"
    found.update()
    found.annotations["note"] = "hello"
    found.update()
    (again,) = pykube.ConfigMap.objects(api, namespace=namespace).filter(selector={"a": "b"})
    assert (again.obj["data"], again.annotations) == ({"k": "w"}, {"note": "hello"})
    seen = []
    for event in pykube.ConfigMap.objects(api, namespace=namespace).filter(selector={"a": "b"}).watch():
        seen.append((event.type, event.object.name))
        if event.type == "ADDED":
            found.delete()
        else:
            break
    assert seen == [("ADDED", "c"), ("DELETED", "c")]
    with pytest.raises(pykube.exceptions.ObjectDoesNotExist):
        pykube.ConfigMap.objects(api, namespace=namespace).get_by_name("c")


def test_a_deployment_is_scaled_and_its_pods_are_listed(api: pykube.HTTPClient, namespace: str) -> None:
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
    }
    body = {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}
    web = pykube.Deployment(api, {"apiVersion": "apps/v1", "kind": "Deployment", **body})
    web.create()
    web.reload()
    web.patch({"spec": {"replicas": 2}})
    for event in pykube.Pod.objects(api, namespace=namespace).watch():
        ready = [each for each in pykube.Pod.objects(api, namespace=namespace) if each.ready]
        if len(ready) == 2:
            break
        assert event.type != "DELETED"


def test_custom_objects_have_a_class_of_their_own(
    api: pykube.HTTPClient, widgets: str, namespace: str
) -> None:
    kind = pykube.object_factory(api, f"{widgets}/v1", "Widget")
    body = {"metadata": {"name": "w", "namespace": namespace}, "spec": {"size": 1}}
    made = kind(api, {"apiVersion": f"{widgets}/v1", "kind": "Widget", **body})
    made.create()
    assert made.obj["spec"]["colour"] == "blue"
    made.patch({"status": {"phase": "Fine"}}, subresource="status")
    assert kind.objects(api).filter(namespace=namespace).get(name="w").obj["status"] == {"phase": "Fine"}
    with pytest.raises(pykube.exceptions.HTTPError, match=r"spec\.size"):
        made.patch({"spec": {"size": 0}})


def test_a_program_in_a_pod_is_its_service_account(mounted: Path, namespace: str) -> None:
    inside = pykube.HTTPClient(pykube.KubeConfig.from_service_account(str(mounted)))
    with pytest.raises(requests.HTTPError) as refused:
        list(pykube.Pod.objects(inside, namespace=namespace))
    assert f"system:serviceaccount:{namespace}:default" in refused.value.response.json()["message"]
    inside.session.close()
