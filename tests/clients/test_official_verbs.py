"""The official client for Python: patches, pages, deletion, and what lies below objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, utils, watch
from kubernetes.client.exceptions import (
    ApiException,
    BadRequestException,
    ConflictException,
    NotFoundException,
    UnprocessableEntityException,
)
from kubernetes.stream import portforward as port_forward
from kubernetes.stream import stream as over_websocket

WAIT = 60
LABELS = {"app": "web"}


@pytest.fixture
def core(admin: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(admin)


@pytest.fixture
def apps(admin: client.ApiClient) -> client.AppsV1Api:
    return client.AppsV1Api(admin)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "app:1"}
    return {"metadata": {"name": name, "labels": LABELS}, "spec": {"containers": [main], **spec}}


def deployment(name: str, replicas: int = 0) -> client.V1Deployment:
    """Made of the client's own models."""
    container = client.V1Container(
        name="main", image="app:1", env=[client.V1EnvVar(name="A", value="1"), client.V1EnvVar(name="B")]
    )
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1DeploymentSpec(
            replicas=replicas,
            selector=client.V1LabelSelector(match_labels=LABELS),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=LABELS),
                spec=client.V1PodSpec(containers=[container]),
            ),
        ),
    )


# -- patches ----------------------------------------------------------------------------------


def test_a_patch_is_strategic_a_merge_or_operations_as_its_content_type_says(
    apps: client.AppsV1Api, namespace: str
) -> None:
    apps.create_namespaced_deployment(namespace, deployment("web"))

    def patched(body: Any, content_type: str) -> Any:
        made = apps.patch_namespaced_deployment("web", namespace, body, _content_type=content_type)
        return made.spec.template.spec.containers

    def with_env(**env: str) -> dict[str, Any]:
        entries = [{"name": name, "value": value} for name, value in env.items()]
        return {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": entries}]}}}}

    (main,) = patched(with_env(B="2", C="3"), "application/strategic-merge-patch+json")
    assert {each.name: each.value for each in main.env} == {"A": "1", "B": "2", "C": "3"}
    operations = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2"}]
    (main,) = patched(operations, "application/json-patch+json")
    assert main.image == "app:2"
    with pytest.raises(UnprocessableEntityException, match="image: Required value"):
        # A merge knows nothing of names: the list is another one now, and its container has no image.
        patched(with_env(D="4"), "application/merge-patch+json")


def test_a_patch_that_does_not_hold_changes_nothing(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}, "data": {"k": "v"}})
    operations = [
        {"op": "add", "path": "/data/l", "value": "w"},
        {"op": "test", "path": "/data/k", "value": "x"},
    ]
    with pytest.raises(UnprocessableEntityException):
        core.patch_namespaced_config_map(
            "c", namespace, operations, _content_type="application/json-patch+json"
        )
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"l": "w"}}
    with pytest.raises(ConflictException):
        core.patch_namespaced_config_map("c", namespace, stale)
    assert core.read_namespaced_config_map("c", namespace).data == {"k": "v"}


def test_who_applies_owns_fields_and_is_told_of_conflicts(core: client.CoreV1Api, namespace: str) -> None:
    def apply(manager: str, data: dict[str, str], **options: Any) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        return core.patch_namespaced_config_map(
            "c",
            namespace,
            body,
            field_manager=manager,
            _content_type="application/apply-patch+yaml",
            **options,
        )

    made = apply("one", {"k": "v", "l": "w"})
    assert [(each.manager, each.operation) for each in made.metadata.managed_fields] == [("one", "Apply")]
    with pytest.raises(ConflictException, match='conflict with \\\\"one\\\\"'):
        apply("two", {"k": "x"})
    assert apply("two", {"k": "x"}, force=True).data == {"k": "x", "l": "w"}
    assert apply("one", {}).data == {"k": "x"}, "what one left out goes, what two has taken stays"


def test_a_status_is_changed_through_its_own_path_only(apps: client.AppsV1Api, namespace: str) -> None:
    body = deployment("web")
    body.spec.paused = True
    apps.create_namespaced_deployment(namespace, body)
    condition = {"type": "Mine", "status": "True", "reason": "R", "message": "m"}
    change = {"status": {"conditions": [condition]}, "spec": {"replicas": 5}}
    changed = apps.patch_namespaced_deployment_status("web", namespace, change)
    assert "Mine" in [each.type for each in changed.status.conditions]
    assert changed.spec.replicas == 0
    changed = apps.patch_namespaced_deployment("web", namespace, {"status": {"observedGeneration": 99}})
    assert changed.status.observed_generation != 99


# -- writing ----------------------------------------------------------------------------------


def test_a_dry_run_answers_as_if_and_leaves_nothing(apps: client.AppsV1Api, namespace: str) -> None:
    made = apps.create_namespaced_deployment(namespace, deployment("web"), dry_run="All")
    assert made.spec.strategy.type == "RollingUpdate"
    with pytest.raises(NotFoundException):
        apps.read_namespaced_deployment("web", namespace)


def test_a_name_is_generated_and_a_taken_one_is_refused(core: client.CoreV1Api, namespace: str) -> None:
    made = [
        core.create_namespaced_config_map(namespace, {"metadata": {"generateName": "c-"}}) for _ in range(2)
    ]
    names = [each.metadata.name for each in made]
    assert names[0] != names[1]
    assert all(name.startswith("c-") and len(name) == 7 for name in names)
    with pytest.raises(ConflictException) as refused:
        core.create_namespaced_config_map(namespace, {"metadata": {"name": names[0]}})
    assert '"reason":"AlreadyExists"' in refused.value.body


def test_a_replacement_of_an_old_version_is_a_conflict(core: client.CoreV1Api, namespace: str) -> None:
    old = core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}})
    core.patch_namespaced_config_map("c", namespace, {"data": {"k": "v"}})
    with pytest.raises(ConflictException, match="the object has been modified"):
        core.replace_namespaced_config_map("c", namespace, old)


def test_what_is_wrong_with_an_object_is_said_field_by_field(core: client.CoreV1Api, namespace: str) -> None:
    body = pod("Bad_Name", restartPolicy="Sometimes")
    with pytest.raises(UnprocessableEntityException) as refused:
        core.create_namespaced_pod(namespace, body)
    causes = yaml.safe_load(refused.value.body)["details"]["causes"]
    assert [each["field"] for each in causes] == ["metadata.name", "spec.restartPolicy"]


def test_files_of_several_documents_are_created(
    admin: client.ApiClient, core: client.CoreV1Api, namespace: str, tmp_path: Path
) -> None:
    web = admin.sanitize_for_serialization(deployment("web"))
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}},
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two"}}],
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", **web},
    ]
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    utils.create_from_yaml(admin, str(path), namespace=namespace)
    assert core.read_namespaced_config_map("one", namespace)
    assert core.read_namespaced_secret("two", namespace)
    with pytest.raises(utils.FailToCreateError, match="AlreadyExists"):
        utils.create_from_yaml(admin, str(path), namespace=namespace)
    utils.create_from_yaml(admin, yaml_objects=documents, namespace=namespace, apply=True)


# -- reading ----------------------------------------------------------------------------------


def test_a_long_list_comes_in_pages_that_agree(core: client.CoreV1Api, namespace: str) -> None:
    names = [f"c-{number:02}" for number in range(7)]
    for name in names:
        core.create_namespaced_secret(namespace, {"metadata": {"name": name}})
    page = core.list_namespaced_secret(namespace, limit=3)
    version = page.metadata.resource_version
    # What comes in between is not on a later page: a list is of one moment.
    core.create_namespaced_secret(namespace, {"metadata": {"name": "c-99"}})
    found, left = [each.metadata.name for each in page.items], [page.metadata.remaining_item_count]
    while page.metadata._continue:
        page = core.list_namespaced_secret(namespace, limit=3, _continue=page.metadata._continue)
        assert page.metadata.resource_version == version
        found += [each.metadata.name for each in page.items]
        left.append(page.metadata.remaining_item_count)
    assert (found, left) == (names, [4, 1, None])


def test_lists_are_narrowed_by_labels_and_fields(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(3):
        body = pod(f"p-{number}", schedulerName="nobody")
        body["metadata"]["labels"] = {"number": str(number), "odd": str(number % 2 == 1).lower()}
        core.create_namespaced_pod(namespace, body)

    def names(**options: str) -> list[str]:
        return [each.metadata.name for each in core.list_namespaced_pod(namespace, **options).items]

    assert names(label_selector="odd=true") == ["p-1"]
    assert names(label_selector="number notin (0, 1)") == ["p-2"]
    assert names(label_selector="!missing,number!=0") == ["p-1", "p-2"]
    assert names(field_selector="metadata.name=p-0") == ["p-0"]
    assert names(field_selector="spec.nodeName=,status.phase=Pending") == ["p-0", "p-1", "p-2"]
    assert names(field_selector="spec.schedulerName=default-scheduler") == []
    with pytest.raises(BadRequestException, match=r"field label not supported: spec\.priority"):
        names(field_selector="spec.priority=1")
    with pytest.raises(BadRequestException, match="unable to parse requirement"):
        names(label_selector="a b")


def test_all_namespaces_are_listed_together(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "c", "labels": {"of": namespace}}})
    (found,) = core.list_config_map_for_all_namespaces(label_selector=f"of={namespace}").items
    assert found.metadata.namespace == namespace


# -- deleting ---------------------------------------------------------------------------------


def test_a_deletion_minds_its_preconditions(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}})
    for wrong in ({"uid": "other"}, {"resource_version": "1"}):
        options = client.V1DeleteOptions(preconditions=client.V1Preconditions(**wrong))
        with pytest.raises(ConflictException, match="recondition"):
            core.delete_namespaced_config_map("c", namespace, body=options)
    right = client.V1Preconditions(uid=made.metadata.uid, resource_version=made.metadata.resource_version)
    answer = core.delete_namespaced_config_map(
        "c", namespace, body=client.V1DeleteOptions(preconditions=right)
    )
    assert (answer["status"], answer["details"]["uid"]) == ("Success", made.metadata.uid)


def test_what_has_a_finalizer_stays_until_it_is_taken_away(core: client.CoreV1Api, namespace: str) -> None:
    body = {"metadata": {"name": "c", "finalizers": ["example.com/mine"]}}
    core.create_namespaced_config_map(namespace, body)
    core.delete_namespaced_config_map("c", namespace)
    assert core.read_namespaced_config_map("c", namespace).metadata.deletion_timestamp
    core.patch_namespaced_config_map("c", namespace, {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundException):
        core.read_namespaced_config_map("c", namespace)


def test_many_are_deleted_at_once(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(4):
        body = {"metadata": {"name": f"c-{number}", "labels": {"half": str(number % 2)}}}
        core.create_namespaced_secret(namespace, body)
    core.delete_collection_namespaced_secret(namespace, label_selector="half=0")
    assert [each.metadata.name for each in core.list_namespaced_secret(namespace).items] == ["c-1", "c-3"]


def test_a_running_pod_is_given_time_to_end(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web"))
    events = watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=WAIT)
    for event in events:
        found = event["object"]
        if event["type"] == "DELETED":
            break
        if found.status.phase == "Running" and found.metadata.deletion_timestamp is None:
            dying = core.delete_namespaced_pod("web", namespace, grace_period_seconds=7)
            assert dying.metadata.deletion_grace_period_seconds == 7
    with pytest.raises(NotFoundException):
        core.read_namespaced_pod("web", namespace)


# -- below objects ----------------------------------------------------------------------------


def test_a_deployment_is_scaled_and_its_pods_come_and_go(apps: client.AppsV1Api, namespace: str) -> None:
    def until(good: Callable[[client.V1DeploymentStatus], bool]) -> None:
        found = watch.Watch().stream(apps.list_namespaced_deployment, namespace, timeout_seconds=WAIT)
        assert any(good(event["object"].status) for event in found)

    apps.create_namespaced_deployment(namespace, deployment("web", replicas=1))
    until(lambda status: status.ready_replicas == 1)
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (1, "app=web")
    scale.spec.replicas = 2
    # Whoever wants no conflict with the controller names no version.
    scale.metadata.resource_version = None
    apps.replace_namespaced_deployment_scale("web", namespace, scale)
    until(lambda status: status.ready_replicas == 2)
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 0}})
    until(lambda status: not status.replicas)
    assert not apps.read_namespaced_deployment_scale("web", namespace).status.replicas


def test_an_eviction_deletes_a_pod_unless_a_budget_forbids_it(
    admin: client.ApiClient, core: client.CoreV1Api, namespace: str
) -> None:
    for name in ("a", "b"):
        core.create_namespaced_pod(namespace, pod(name, schedulerName="nobody"))
    core.patch_namespaced_pod("b", namespace, {"metadata": {"labels": {"app": "kept"}}})
    policy = client.PolicyV1Api(admin)
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    policy.create_namespaced_pod_disruption_budget(namespace, budget)
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("a", "b"):
        core.patch_namespaced_pod_status(name, namespace, {"status": running})

    def evict(name: str) -> Any:
        metadata = client.V1ObjectMeta(name=name, namespace=namespace)
        return core.create_namespaced_pod_eviction(name, namespace, client.V1Eviction(metadata=metadata))

    evict("a")
    assert core.read_namespaced_pod("b", namespace)
    with pytest.raises(ApiException) as refused:
        evict("b")
    assert refused.value.status == 429
    assert "disruption budget" in refused.value.body


def test_a_pod_is_bound_to_a_node(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web", schedulerName="mine"))
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="node-2")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="web"), target=target)
    # What is answered is a Status, and the client expects a Binding.
    core.create_namespaced_pod_binding("web", namespace, binding, _preload_content=False)
    assert core.read_namespaced_pod("web", namespace).spec.node_name == "node-2"


def test_a_container_to_debug_with_is_added_to_a_pod(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web", schedulerName="nobody"))
    debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    changed = core.patch_namespaced_pod_ephemeralcontainers("web", namespace, debug)
    assert [each.name for each in changed.spec.ephemeral_containers] == ["debug"]


def test_an_event_is_written_and_found_by_what_it_is_about(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}})
    about = client.V1ObjectReference(
        api_version="v1", kind="ConfigMap", name="c", namespace=namespace, uid=made.metadata.uid
    )
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(generate_name="c."),
        involved_object=about,
        reason="Tried",
        message="It was tried.",
        type="Normal",
        count=1,
    )
    core.create_namespaced_event(namespace, event)
    found = core.list_namespaced_event(namespace, field_selector="involvedObject.name=c,reason=Tried").items
    assert [each.message for each in found] == ["It was tried."]


def test_a_pod_that_no_node_has_has_said_nothing_and_can_be_told_nothing(
    core: client.CoreV1Api, namespace: str
) -> None:
    core.create_namespaced_pod(namespace, pod("web", schedulerName="nobody"))
    assert core.read_namespaced_pod_log("web", namespace) is None
    with pytest.raises(BadRequestException, match="container other is not valid for pod web"):
        core.read_namespaced_pod_log("web", namespace, container="other")
    with pytest.raises(ApiException) as refused:
        over_websocket(core.connect_get_namespaced_pod_exec, "web", namespace, command=["true"], stdout=True)
    assert "Handshake status 400 Bad Request" in refused.value.reason


def ready(core: client.CoreV1Api, name: str, namespace: str) -> None:
    events = watch.Watch().stream(
        core.list_namespaced_pod, namespace, field_selector=f"metadata.name={name}", timeout_seconds=WAIT
    )
    assert any((each["object"].status.phase == "Running") for each in events)


def test_logs_of_a_simulated_container_tell_what_happened_to_it(
    plane: Any, core: client.CoreV1Api, namespace: str
) -> None:
    if plane.real:
        pytest.skip("a real server asks a kubelet, and there is none")
    core.create_namespaced_pod(namespace, pod("web", nodeName="node-1"))
    ready(core, "web", namespace)
    assert "started container" in core.read_namespaced_pod_log("web", namespace)
    followed = watch.Watch().stream(core.read_namespaced_pod_log, "web", namespace)
    assert "started container" in next(iter(followed))


def test_commands_and_ports_are_refused_with_the_way_to_allow_them(
    plane: Any, core: client.CoreV1Api, namespace: str
) -> None:
    if plane.real:
        pytest.skip("a real server asks a kubelet, and there is none")
    core.create_namespaced_pod(namespace, pod("web", nodeName="node-1"))
    ready(core, "web", namespace)
    with pytest.raises(ApiException) as refused:
        over_websocket(core.connect_get_namespaced_pod_exec, "web", namespace, command=["true"], stdout=True)
    assert "Handshake status 403 Forbidden" in refused.value.reason
    assert "--allow-exec" in refused.value.reason
    with pytest.raises(ApiException) as refused:
        port_forward(core.connect_get_namespaced_pod_portforward, "web", namespace, ports="80")
    assert "--allow-exec" in refused.value.reason
