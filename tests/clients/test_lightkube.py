"""lightkube: typed models, generic resources, server-side apply; in plain code and in asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import (
    ALL_NS,
    ApiError,
    AsyncClient,
    Client,
    KubeConfig,
    codecs,
    operators,
)
from lightkube.generic_resource import (
    async_load_in_cluster_generic_resources,
    create_namespaced_resource,
    create_resources_from_crd,
    get_generic_resource,
    load_in_cluster_generic_resources,
)
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret
from lightkube.types import CascadeType, OnErrorAction, OnErrorResult, PatchType

LABELS = {"app": "web"}


@pytest.fixture
def cluster(plane: Any, namespace: str) -> Iterator[Client]:
    with Client(KubeConfig.from_file(plane.kubeconfig), namespace=namespace) as made:
        yield made


@pytest.fixture
async def later(plane: Any, namespace: str) -> AsyncIterator[AsyncClient]:
    made = AsyncClient(KubeConfig.from_file(plane.kubeconfig), namespace=namespace)
    yield made
    await made.close()


def configmap(name: str, data: dict[str, str] | None = None, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels or None), data=data)


def workload(name: str, replicas: int) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name=name),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(matchLabels=LABELS),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=LABELS),
                spec=PodSpec(containers=[Container(name="main", image="app:1")]),
            ),
        ),
    )


# -- in plain code ----------------------------------------------------------------------------


def test_objects_are_created_read_replaced_patched_and_deleted(cluster: Client) -> None:
    made = cluster.create(configmap("c", {"k": "v"}))
    assert made.metadata.creationTimestamp.tzinfo is not None
    made.data["l"] = "w"
    replaced = cluster.replace(made)
    assert replaced.data == {"k": "v", "l": "w"}
    with pytest.raises(ApiError) as refused:
        cluster.replace(made)
    assert (refused.value.status.code, refused.value.status.reason) == (409, "Conflict")
    assert cluster.patch(ConfigMap, "c", {"data": {"k": None}}).data == {"l": "w"}
    assert cluster.patch(ConfigMap, "c", {"data": {"l": "x"}}, patch_type=PatchType.MERGE).data == {"l": "x"}
    change = [{"op": "add", "path": "/data/m", "value": "y"}]
    assert cluster.patch(ConfigMap, "c", change, patch_type=PatchType.JSON).data == {"l": "x", "m": "y"}
    labelled = cluster.set(ConfigMap, "c", labels={"a": "b"}, annotations={"c": "d"})
    assert (labelled.metadata.labels, labelled.metadata.annotations) == ({"a": "b"}, {"c": "d"})
    assert cluster.get(ConfigMap, "c").metadata.uid == made.metadata.uid
    cluster.delete(ConfigMap, "c", cascade=CascadeType.BACKGROUND)
    with pytest.raises(ApiError) as refused:
        cluster.get(ConfigMap, "c")
    assert (refused.value.status.code, refused.value.status.reason) == (404, "NotFound")
    assert refused.value.status.details.name == "c"


def test_lists_come_in_pages_and_are_narrowed(cluster: Client, namespace: str) -> None:
    for number in range(5):
        cluster.create(configmap(f"c-{number}", of=namespace, number=str(number)))
    mine = {"of": namespace}
    found = cluster.list(ConfigMap, chunk_size=2, labels=mine)
    assert [each.metadata.name for each in found] == [f"c-{number}" for number in range(5)]
    assert int(found.resourceVersion) > 0

    def names(**options: Any) -> list[str]:
        return [each.metadata.name for each in cluster.list(ConfigMap, **options)]

    assert names(labels={**mine, "number": operators.in_(["1", "3"])}) == ["c-1", "c-3"]
    assert names(labels={**mine, "number": operators.not_in(["1", "3"])}) == ["c-0", "c-2", "c-4"]
    assert names(labels={**mine, "missing": operators.exists()}) == []
    assert names(labels=mine, fields={"metadata.name": operators.not_equal("c-0")})[0] == "c-1"
    assert len(names(labels=mine, namespace=ALL_NS)) == 5
    cluster.deletecollection(ConfigMap)
    assert names(labels=mine) == []


def test_applying_has_an_owner_and_conflicts(plane: Any, namespace: str) -> None:
    def owner(name: str) -> Client:
        return Client(KubeConfig.from_file(plane.kubeconfig), namespace=namespace, field_manager=name)

    with owner("one") as one, owner("two") as two:
        made = one.apply(configmap("c", {"k": "v", "l": "w"}))
        assert [(each.manager, each.operation) for each in made.metadata.managedFields] == [("one", "Apply")]
        with pytest.raises(ApiError) as refused:
            two.apply(configmap("c", {"k": "x"}))
        assert 'conflict with "one": .data.k' in refused.value.status.message
        assert two.apply(configmap("c", {"k": "x"}), force=True).data == {"k": "x", "l": "w"}
        tried = two.apply(configmap("d"), dry_run=True)
        assert tried.metadata.uid
        with pytest.raises(ApiError, match='"d" not found'):
            two.get(ConfigMap, "d")


def test_a_deployment_is_waited_for_and_scaled(cluster: Client) -> None:
    cluster.create(workload("web", 1))
    cluster.wait(Deployment, "web", for_conditions=["Available"])
    scale = Deployment.Scale(metadata=ObjectMeta(name="web"), spec=ScaleSpec(replicas=2))
    assert cluster.replace(scale, "web").spec.replicas == 2
    for _, found in cluster.watch(Deployment, fields={"metadata.name": "web"}):
        if found.status.readyReplicas == 2:
            break
    assert len(list(cluster.list(Pod, labels=LABELS))) == 2
    assert cluster.get(Deployment.Status, "web").status.replicas == 2


def test_a_watch_goes_on_after_the_server_ended_it(cluster: Client) -> None:
    version = cluster.create(configmap("a")).metadata.resourceVersion
    stream = cluster.watch(Secret, resource_version=version, server_timeout=1)
    cluster.create(Secret(metadata=ObjectMeta(name="b")))
    event, found = next(stream)
    assert (event, found.metadata.name) == ("ADDED", "b")
    # The next one is found by a second request: the first was over before it was created.
    requests = []
    send = cluster._client.send

    def sending(request: Any, **options: Any) -> Any:
        requests.append(request.url.params["resourceVersion"])
        cluster._client.send = send
        cluster.create(Secret(metadata=ObjectMeta(name="c")))
        return send(request, **options)

    cluster._client.send = sending
    event, found = next(stream)
    assert (event, found.metadata.name) == ("ADDED", "c")
    assert len(requests) == 1


def test_a_version_that_is_forgotten_is_told_and_got_over(
    cluster: Client, widgets: str, namespace: str
) -> None:
    kind = create_namespaced_resource(widgets, "v1", "Widget", "widgets")
    with pytest.raises(ApiError) as refused:
        next(iter(cluster.watch(kind, resource_version="1")))
    assert refused.value.status.code == 410
    cluster.create(kind(metadata={"name": "w"}, spec={"size": 1}))
    codes = []

    def again(error: Any, count: int) -> OnErrorResult:
        codes.append(error.status.code)
        return OnErrorResult(OnErrorAction.RETRY)

    event, found = next(iter(cluster.watch(kind, resource_version="1", on_error=again)))
    assert (event, found.metadata.name, codes) == ("ADDED", "w", [410])


def test_generic_resources_are_made_of_definitions(cluster: Client, widgets: str) -> None:
    definition = cluster.get(CustomResourceDefinition, f"widgets.{widgets}")
    create_resources_from_crd(definition)
    load_in_cluster_generic_resources(cluster)
    kind = get_generic_resource(f"{widgets}/v1", "Widget")
    made = cluster.create(kind(metadata=ObjectMeta(name="w"), spec={"size": 1}))
    assert made.spec == {"size": 1, "colour": "blue"}
    status = cluster.patch(kind.Status, "w", {"status": {"phase": "Fine"}}, patch_type=PatchType.MERGE)
    assert status.status == {"phase": "Fine"}
    applied = kind(metadata=ObjectMeta(name="w"), spec={"size": 3})
    assert cluster.apply(applied, field_manager="me", force=True).spec["size"] == 3
    scaled = cluster.patch(kind.Scale, "w", {"spec": {"replicas": 2}}, patch_type=PatchType.MERGE)
    assert scaled.spec.replicas == 2
    assert [each.metadata.name for each in cluster.list(kind)] == ["w"]


def test_manifests_are_loaded_applied_and_deleted(cluster: Client, widgets: str, namespace: str) -> None:
    load_in_cluster_generic_resources(cluster)
    text = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: one, namespace: {namespace}}}
---
apiVersion: {widgets}/v1
kind: Widget
metadata: {{name: two, namespace: {namespace}}}
spec: {{size: 2}}
"""
    objects = codecs.load_all_yaml(text)
    for obj in objects:
        cluster.apply(obj, field_manager="me")
    assert "size: 2" in codecs.dump_all_yaml(objects)
    for obj in objects:
        cluster.delete(type(obj), obj.metadata.name)
    assert cluster.get(Namespace, namespace).status.phase == "Active"


def test_reviews_answer_and_nodes_are_typed(cluster: Client, namespace: str) -> None:
    asked = {"namespace": namespace, "verb": "delete", "resource": "pods"}
    review = SelfSubjectAccessReview.from_dict({"spec": {"resourceAttributes": asked}})
    assert cluster.create(review).status.allowed
    nodes = {each.metadata.name: each for each in cluster.list(Node)}
    assert {"node-1", "node-2", "node-3"} <= set(nodes)
    assert int(nodes["node-1"].status.capacity["pods"]) > 0


def test_a_program_in_a_pod_is_its_service_account(mounted: Path, namespace: str) -> None:
    with Client(KubeConfig.from_service_account(mounted)) as inside:
        assert inside.namespace == namespace
        with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:default"):
            inside.get(ConfigMap, "c")


def test_who_would_rather_speak_http2_is_served(plane: Any) -> None:
    with Client(KubeConfig.from_file(plane.kubeconfig), http2=True) as eager:
        assert eager.get(Namespace, "default").status.phase == "Active"


def test_logs_of_a_simulated_container_tell_what_happened_to_it(plane: Any, cluster: Client) -> None:
    if plane.real:
        pytest.skip("a real server asks a kubelet, and there is none")
    pod = PodSpec(containers=[Container(name="main", image="app:1")], nodeName="node-1")
    cluster.create(Pod(metadata=ObjectMeta(name="web"), spec=pod))
    cluster.wait(Pod, "web", for_conditions=["Ready"])
    assert "started container" in "".join(cluster.log("web"))


# -- in asyncio -------------------------------------------------------------------------------


async def test_asyncio_has_it_all_too(later: AsyncClient, widgets: str) -> None:
    await later.create(workload("web", 1))
    await later.wait(Deployment, "web", for_conditions=["Available"])
    assert [each.status.phase async for each in later.list(Pod, labels=LABELS, chunk_size=1)] == ["Running"]
    await async_load_in_cluster_generic_resources(later)
    kind = get_generic_resource(f"{widgets}/v1", "Widget")
    await later.create(kind(metadata=ObjectMeta(name="w"), spec={"size": 1}))
    seen = []
    async for event, found in later.watch(kind):
        seen.append((event, found.spec["size"]))
        if event == "ADDED":
            await later.patch(kind, "w", {"spec": {"size": 2}}, patch_type=PatchType.MERGE)
        elif event == "MODIFIED":
            await later.delete(kind, "w")
        else:
            break
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]
    await later.apply(configmap("c", {"k": "v"}), field_manager="me")
    assert (await later.get(ConfigMap, "c")).data == {"k": "v"}
