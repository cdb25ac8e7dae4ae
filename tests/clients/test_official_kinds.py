"""The official client for Python: every kind people use, through its typed models and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ConflictException

POD = {"containers": [{"name": "main", "image": "app:1", "ports": [{"containerPort": 80}]}]}
ONCE = {**POD, "restartPolicy": "Never"}
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
WORKLOAD = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
ACCOUNT = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
HOOK = {
    "name": "hook.example.com",
    "clientConfig": {"url": "https://example.com/hook"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [
        {
            "apiGroups": ["none.example.com"],
            "apiVersions": ["v1"],
            "resources": ["*"],
            "operations": ["CREATE"],
        }
    ],
}
MICRO = "2026-01-02T03:04:05.000006Z"


class Row(NamedTuple):
    """A kind: the part of the client that has it, what its functions end in, and something to create."""

    api: str
    suffix: str
    body: dict[str, Any]
    name: str = "mine"


NAMESPACED = [
    Row("CoreV1Api", "config_map", {"data": {"k": "v"}, "binaryData": {"b": "AAE="}}),
    Row("CoreV1Api", "secret", {"stringData": {"user": "me"}, "type": "Opaque"}),
    Row("CoreV1Api", "pod", {"spec": {**POD, "schedulerName": "nobody"}}),
    Row("CoreV1Api", "pod_template", {"template": TEMPLATE}),
    Row(
        "CoreV1Api", "service", {"spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]}}
    ),
    Row(
        "CoreV1Api", "endpoints", {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]}
    ),
    Row("CoreV1Api", "service_account", {"automountServiceAccountToken": False}),
    Row(
        "CoreV1Api",
        "persistent_volume_claim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    Row("CoreV1Api", "limit_range", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
    Row("CoreV1Api", "resource_quota", {"spec": {"hard": {"configmaps": "10"}}}),
    Row(
        "CoreV1Api",
        "replication_controller",
        {"spec": {"replicas": 0, "selector": LABELS, "template": TEMPLATE}},
    ),
    Row("AppsV1Api", "deployment", {"spec": WORKLOAD}),
    Row("AppsV1Api", "replica_set", {"spec": WORKLOAD}),
    Row("AppsV1Api", "stateful_set", {"spec": {**WORKLOAD, "serviceName": "web"}}),
    Row(
        "AppsV1Api",
        "daemon_set",
        {
            "spec": {
                "selector": {"matchLabels": LABELS},
                "template": {**TEMPLATE, "spec": {**POD, "nodeSelector": {"none": "such"}}},
            }
        },
    ),
    Row("AppsV1Api", "controller_revision", {"revision": 3, "data": {}}),
    Row("BatchV1Api", "job", {"spec": {"suspend": True, "template": {"spec": ONCE}}}),
    Row(
        "BatchV1Api",
        "cron_job",
        {
            "spec": {
                "suspend": True,
                "schedule": "*/5 * * * *",
                "jobTemplate": {"spec": {"template": {"spec": ONCE}}},
            }
        },
    ),
    Row(
        "AutoscalingV2Api",
        "horizontal_pod_autoscaler",
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
                "maxReplicas": 3,
            }
        },
    ),
    Row(
        "PolicyV1Api",
        "pod_disruption_budget",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": LABELS}}},
    ),
    Row("NetworkingV1Api", "ingress", {"spec": {"defaultBackend": BACKEND}}),
    Row("NetworkingV1Api", "network_policy", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
    Row(
        "DiscoveryV1Api",
        "endpoint_slice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"port": 80}]},
    ),
    Row(
        "CoordinationV1Api",
        "lease",
        {
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": MICRO,
                "renewTime": MICRO,
            }
        },
    ),
    Row("RbacAuthorizationV1Api", "role", {"rules": RULES}),
    Row(
        "RbacAuthorizationV1Api",
        "role_binding",
        {
            "subjects": ACCOUNT,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        },
    ),
    Row("StorageV1Api", "csi_storage_capacity", {"storageClassName": "fast", "capacity": "10Gi"}),
    Row("ResourceV1Api", "resource_claim", {"spec": {"devices": {}}}),
]

CLUSTER = [
    Row("CoreV1Api", "namespace", {}),
    Row("CoreV1Api", "node", {"spec": {"unschedulable": True}}),
    Row(
        "CoreV1Api",
        "persistent_volume",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp/x"},
                "storageClassName": "none",
            }
        },
    ),
    Row("StorageV1Api", "storage_class", {"provisioner": "example.com/none"}),
    Row("StorageV1Api", "csi_driver", {"spec": {"attachRequired": False}}, "csi.example.com"),
    Row("StorageV1Api", "csi_node", {"spec": {"drivers": [{"name": "csi.example.com", "nodeID": "mine"}]}}),
    Row("SchedulingV1Api", "priority_class", {"value": 7}),
    Row("NodeV1Api", "runtime_class", {"handler": "runc"}),
    Row("NetworkingV1Api", "ingress_class", {"spec": {"controller": "example.com/none"}}),
    Row("RbacAuthorizationV1Api", "cluster_role", {"rules": RULES}),
    Row(
        "RbacAuthorizationV1Api",
        "cluster_role_binding",
        {
            "subjects": ACCOUNT,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        },
    ),
    Row("AdmissionregistrationV1Api", "validating_webhook_configuration", {"webhooks": [HOOK]}),
    Row("AdmissionregistrationV1Api", "mutating_webhook_configuration", {"webhooks": [HOOK]}),
    Row(
        "FlowcontrolApiserverV1Api",
        "priority_level_configuration",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    ),
    Row(
        "FlowcontrolApiserverV1Api",
        "flow_schema",
        {"spec": {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 9000}},
    ),
    Row("ResourceV1Api", "device_class", {"spec": {}}),
]


class Functions:
    """What the client has for one kind, with or without a namespace."""

    def __init__(self, admin: client.ApiClient, row: Row, namespace: str | None) -> None:
        self.api = getattr(client, row.api)(admin)
        self.suffix = row.suffix if namespace is None else f"namespaced_{row.suffix}"
        self.where = () if namespace is None else (namespace,)

    def create(self, body: Any) -> Any:
        return getattr(self.api, f"create_{self.suffix}")(*self.where, body)

    def list(self, **options: Any) -> Any:
        return getattr(self.api, f"list_{self.suffix}")(*self.where, **options)

    def __call__(self, verb: str, name: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self.api, f"{verb}_{self.suffix}")(name, *self.where, *arguments, **options)


def lives(admin: client.ApiClient, row: Row, namespace: str | None) -> None:
    """Create, read, list, change in two ways and delete one object."""
    ask = Functions(admin, row, namespace)
    made = ask.create({"metadata": {"name": row.name, "labels": {"made": "here"}}, **row.body})
    assert made.metadata.name == row.name
    assert made.metadata.uid
    assert made.metadata.managed_fields
    read = ask("read", row.name)
    assert read.metadata.uid == made.metadata.uid
    listed = ask.list(label_selector="made=here")
    assert [each.metadata.uid for each in listed.items] == [made.metadata.uid]
    patched = ask("patch", row.name, {"metadata": {"annotations": {"patched": "yes"}}})
    assert patched.metadata.annotations["patched"] == "yes"
    sent, replaced = replace(ask, row.name)
    assert replaced.metadata.labels["replaced"] == "yes"
    assert replaced.metadata.uid == made.metadata.uid
    assert content(admin, replaced) == content(admin, sent)
    ask("delete", row.name, grace_period_seconds=0, propagation_policy="Background")
    assert gone(ask, row.name)


def replace(ask: Functions, name: str) -> tuple[Any, Any]:
    """Send an object as the models have it, with a label more; what was sent, and what came of it.

    Everything the models know goes there and back, so that nothing may be lost on the way.
    """
    while True:
        found = ask("read", name)
        found.metadata.labels["replaced"] = "yes"
        try:
            return found, ask("replace", name, found)
        except ConflictException:
            continue  # a controller was faster: that is what the version is for


def content(admin: client.ApiClient, obj: Any) -> dict[str, Any]:
    """All of an object that is its author's."""
    document = admin.sanitize_for_serialization(obj)
    return {name: value for name, value in document.items() if name not in ("metadata", "status")}


def gone(ask: Functions, name: str) -> bool:
    """Whether an object is not there any more, or is about to go."""
    try:
        return ask("read", name).metadata.deletion_timestamp is not None
    except client.ApiException as error:
        return bool(error.status == 404)


@pytest.mark.parametrize("row", NAMESPACED, ids=lambda row: row.suffix)
def test_an_object_in_a_namespace_lives_through_the_typed_models(
    admin: client.ApiClient, namespace: str, row: Row
) -> None:
    lives(admin, row, namespace)


@pytest.mark.parametrize("row", CLUSTER, ids=lambda row: row.suffix)
def test_an_object_of_the_cluster_lives_through_the_typed_models(admin: client.ApiClient, row: Row) -> None:
    lives(admin, row, None)
