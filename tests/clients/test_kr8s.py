"""kr8s, the client that looks like kubectl: in plain code and in asyncio."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import kr8s
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import Deployment as AsyncDeployment
from kr8s.asyncio.objects import Pod as AsyncPod
from kr8s.asyncio.objects import new_class as new_async_class
from kr8s.objects import ConfigMap, Deployment, Namespace, Pod, Service, new_class, objects_from_files

WAIT = 60
LABELS = {"app": "web"}
# It works with this version of Kubernetes, and has not been told so yet.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")
POD = {"containers": [{"name": "main", "image": "app:1"}]}


@pytest.fixture
def api(plane: Any, namespace: str) -> Any:
    return kr8s.api(kubeconfig=str(plane.kubeconfig), namespace=namespace)


def body(name: str, namespace: str, **content: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace, "labels": LABELS}, **content}
    return copy.deepcopy(made)


def workload(name: str, namespace: str, replicas: int) -> dict[str, Any]:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": POD},
    }
    return body(name, namespace, spec=spec)


# -- in plain code ----------------------------------------------------------------------------


def test_the_version_and_the_resources_are_told(api: Any) -> None:
    assert api.version()["gitVersion"].startswith(
        ("v1.36.", "v0.0.0-")
    )  # the latter of a build without stamps
    resources = {(each["version"], each["name"]) for each in api.api_resources()}
    assert {("v1", "pods"), ("apps/v1", "deployments"), ("batch/v1", "jobs")} <= resources
    assert {"v1", "apps/v1", "rbac.authorization.k8s.io/v1"} <= set(api.api_versions())
    assert api.lookup_kind("deploy") == ("deployment.apps/v1", "deployments", True)
    assert api.lookup_kind("ns")[1:] == ("namespaces", False)


def test_a_pod_is_created_waited_for_and_deleted(api: Any, namespace: str) -> None:
    pod = Pod(body("web", namespace, spec=POD), api=api)
    assert not pod.exists()
    pod.create()
    pod.wait("condition=Ready", timeout=WAIT)
    assert pod.ready()
    assert pod.status.phase == "Running"
    pod.wait("jsonpath='{.status.phase}'=Running", timeout=WAIT)
    pod.delete()
    # As a kubelet does it: what is to go is unready first, and then gone.
    pod.wait("condition=Ready=False", timeout=WAIT)
    pod.wait("delete", timeout=WAIT)
    assert not pod.exists()
    with pytest.raises(kr8s.NotFoundError):
        pod.refresh()


def test_objects_are_labelled_annotated_and_patched(api: Any, namespace: str) -> None:
    found = ConfigMap(body("c", namespace, data={"k": "v"}), api=api)
    found.create()
    found.label({"tier": "back"})
    found.annotate({"example.com/note": "hello"})
    found.patch({"data": {"l": "w"}})
    found.patch([{"op": "remove", "path": "/data/k"}], type="json")
    found.label("app-")
    again = ConfigMap.get("c", namespace=namespace, api=api)
    assert (again.labels, again.annotations, again.raw["data"]) == (
        {"tier": "back"},
        {"example.com/note": "hello"},
        {"l": "w"},
    )
    found.patch({"immutable": True})
    with pytest.raises(kr8s.ServerError, match="Forbidden: field is immutable"):
        found.patch({"data": {"l": "x"}})


def test_objects_are_selected_by_labels_and_fields(api: Any, namespace: str) -> None:
    maps = []
    for number in range(3):
        made = body(f"c-{number}", namespace)
        made["metadata"]["labels"] = {"number": str(number)}
        maps.append(ConfigMap(made, api=api))
    api.create(maps)

    def names(*which: str, **options: Any) -> list[str]:
        return sorted(each.name for each in api.get("configmaps", *which, namespace=namespace, **options))

    assert names(label_selector={"number": "1"}) == ["c-1"]
    assert names(label_selector="number in (0, 2)") == ["c-0", "c-2"]
    assert names(field_selector={"metadata.name": "c-2"}) == ["c-2"]
    assert names("c-0", "c-1") == ["c-0", "c-1"]
    everywhere = api.get("cm", namespace=kr8s.ALL, label_selector="number=1")
    assert (namespace, "c-1") in [(each.namespace, each.name) for each in everywhere]


def test_more_than_a_page_is_listed(api: Any, namespace: str) -> None:
    api.create([ConfigMap(body(f"c-{number:03}", namespace), api=api) for number in range(105)])
    found = list(api.get("configmaps", namespace=namespace, label_selector=LABELS))
    assert [each.name for each in found] == [f"c-{number:03}" for number in range(105)]


def test_a_deployment_is_scaled_and_its_pods_are_found(api: Any, namespace: str) -> None:
    web = Deployment(workload("web", namespace, 1), api=api)
    web.create()
    web.wait("condition=Available", timeout=WAIT)
    web.scale(2)
    assert web.replicas == 2
    web.wait("jsonpath='{.status.readyReplicas}'=2", timeout=WAIT)
    assert len(web.pods()) == 2
    assert web.ready()
    service = Service(body("web", namespace, spec={"selector": LABELS, "ports": [{"port": 80}]}), api=api)
    service.create()
    assert len(service.ready_pods()) == 2
    web.delete(propagation_policy="Background")


def test_a_watch_tells_what_happens(api: Any, namespace: str) -> None:
    found = ConfigMap(body("c", namespace), api=api)
    found.create()
    seen = []
    for event, obj in api.watch("configmaps", namespace=namespace, label_selector=LABELS):
        seen.append((event, obj.name))
        if event == "ADDED":
            found.patch({"data": {"k": "v"}})
        elif event == "MODIFIED":
            found.delete()
        else:
            break
    assert seen == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "c")]


def test_custom_objects_have_a_class_of_their_own(api: Any, widgets: str, namespace: str) -> None:
    kind = new_class("Widget", f"{widgets}/v1", namespaced=True, scalable=True)
    made = kind(body("w", namespace, spec={"size": 1, "replicas": 1}), api=api)
    made.create()
    assert made.spec.colour == "blue"
    made.scale(3)
    assert made.replicas == 3
    made.patch({"status": {"phase": "Fine"}}, subresource="status")
    assert made.status.phase == "Fine"
    # Without a class: by what discovery says.
    (found,) = api.get(f"widgets.{widgets}/v1", namespace=namespace)
    assert (found.kind, found.name) == ("Widget", "w")
    with pytest.raises(kr8s.ServerError, match=r"spec\.size"):
        made.patch({"spec": {"size": "large"}})


def test_manifests_are_read_and_created(api: Any, namespace: str, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\nstringData: {k: v}\n"
    )
    for each in objects_from_files(path, api=api):
        each.create()
    assert ConfigMap.get("one", namespace=namespace, api=api).exists()
    (secret,) = api.get("secrets", "two", namespace=namespace)
    assert secret.raw["data"] == {"k": "dg=="}


def test_refusals_are_told_in_the_servers_words(api: Any, namespace: str) -> None:
    with pytest.raises(kr8s.ServerError, match='namespaces "default" already exists'):
        Namespace({"metadata": {"name": "default"}}, api=api).create()
    with pytest.raises(ValueError, match="Kind nonsense not found"):
        list(api.get("nonsense"))
    assert api.whoami()


def test_nodes_are_listed_and_cordoned(api: Any) -> None:
    nodes = {each.name: each for each in api.get("nodes")}
    assert {"node-1", "node-2", "node-3"} <= set(nodes)
    nodes["node-3"].cordon()
    assert nodes["node-3"].unschedulable
    nodes["node-3"].uncordon()
    assert not nodes["node-3"].unschedulable


def test_logs_of_a_simulated_container_tell_what_happened_to_it(plane: Any, api: Any, namespace: str) -> None:
    if plane.real:
        pytest.skip("a real server asks a kubelet, and there is none")
    pod = Pod(body("web", namespace, spec=POD), api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=WAIT)
    assert list(pod.logs()) == ["started container main with image app:1"]


# -- in asyncio -------------------------------------------------------------------------------


async def test_asyncio_has_it_all_too(plane: Any, widgets: str, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(plane.kubeconfig), namespace=namespace)
    web = await AsyncDeployment(workload("web", namespace, 1), api=api)
    await web.create()
    await web.wait("condition=Available", timeout=WAIT)
    await web.scale(2)
    await web.wait("jsonpath='{.status.readyReplicas}'=2", timeout=WAIT)
    pods = [each async for each in api.get("pods", namespace=namespace, label_selector=LABELS)]
    assert len(pods) == 2
    assert all(isinstance(each, AsyncPod) for each in pods)
    kind = new_async_class("Widget", f"{widgets}/v1", namespaced=True)
    made = await kind(body("w", namespace, spec={"size": 1}), api=api)
    await made.create()
    seen = []
    async for event, obj in api.watch(kind, namespace=namespace):
        seen.append((event, obj.spec.size))
        if event == "ADDED":
            await made.patch({"spec": {"size": 2}})
        elif event == "MODIFIED":
            await made.delete()
        else:
            break
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]
    assert "widgets" in [each["name"] for each in await api.api_resources()]


async def test_a_program_in_a_pod_is_its_service_account(mounted: Path, namespace: str) -> None:
    api = await kr8s.asyncio.api(serviceaccount=str(mounted), namespace=namespace)
    assert (await api.version())["major"] == "1"
    with pytest.raises(kr8s.ServerError, match=f"system:serviceaccount:{namespace}:default"):
        [each async for each in api.get("secrets")]
