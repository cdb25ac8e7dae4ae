from __future__ import annotations

import json
import random
import tracemalloc
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import (
    Condition,
    Deployment,
    Job,
    Object,
    ObjectMeta,
    OwnerReference,
    Pod,
    ReplicaSet,
    Struct,
)
from steersman.client.interning import Interner


def pod(number: int, chance: random.Random) -> dict[str, Any]:
    """A pod as big clusters have them: about six kilobytes of JSON."""
    group = number // 10
    owner = f"checkout-{group:08x}"
    second = f"2026-01-{1 + number % 28:02d}T{number % 24:02d}:{number % 60:02d}:0"
    created, ready = f"{second}1Z", f"{second}9Z"
    address = f"10.{number % 200}.{number % 250}.7"

    def uid() -> str:
        return str(uuid.UUID(int=chance.getrandbits(128)))

    def condition(type_: str, since: str) -> dict[str, Any]:
        return {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": since}

    labels = {
        "app.kubernetes.io/component": "api",
        "app.kubernetes.io/instance": f"checkout-{group % 20}",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": "checkout",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": "2.14.3",
        "helm.sh/chart": "checkout-1.4.2",
        "pod-template-hash": f"{group:010x}",
        "team": "payments",
        "tier": "backend",
        "topology.kubernetes.io/region": "eu-west-1",
        "track": "stable",
    }
    annotations = {
        "checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "cni.projectcalico.org/containerID": uid().replace("-", "") * 2,
        "cni.projectcalico.org/podIP": f"{address}/32",
        "cni.projectcalico.org/podIPs": f"{address}/32",
        "kubectl.kubernetes.io/restartedAt": "2026-01-02T10:11:12Z",
        "prometheus.io/port": "8080",
        "prometheus.io/scrape": "true",
        "sidecar.istio.io/inject": "true",
    }
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "timeoutSeconds": 1, "periodSeconds": 10}
    containers = [
        {
            "name": name,
            "image": f"images.example/shop/{name}:2.14.3",
            "args": ["--port=8080", "--config=/etc/checkout/config.yaml"],
            "env": [{"name": "DATABASE", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}}],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "livenessProbe": probe,
            "readinessProbe": probe,
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/checkout"}],
        }
        for name in ("app", "proxy")
    ]
    fields: dict[str, dict[str, object]] = {f"f:{name}": {} for name in (*labels, *annotations)}
    managed = [
        {
            "manager": manager,
            "operation": "Update",
            "time": ready,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for manager in ("kube-controller-manager", "kubelet")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owner}-{number:05x}",
            "generateName": f"{owner}-",
            "namespace": f"shop-{group % 7}",
            "uid": uid(),
            "resourceVersion": str(10_000_000 + number * 13),
            "generation": 1,
            "creationTimestamp": created,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": str(uuid.UUID(int=group)),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": managed,
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": "checkout", "defaultMode": 420}},
                {"name": "data", "emptyDir": {}},
            ],
            "containers": containers,
            "nodeName": f"node-{number % 250}.eu-west-1.compute.internal",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                condition("PodReadyToStartContainers", ready),
                condition("Initialized", created),
                condition("Ready", ready),
                condition("ContainersReady", ready),
                condition("PodScheduled", created),
            ],
            "podIP": address,
            "startTime": created,
            "containerStatuses": [
                {
                    "name": name,
                    "ready": True,
                    "restartCount": 0,
                    "imageID": f"images.example/shop/{name}@sha256:{'ab' * 32}",
                    "containerID": f"containerd://{'cd' * 32}",
                }
                for name in ("app", "proxy")
            ],
        },
    }


@pytest.fixture(scope="module")
def documents() -> list[bytes]:
    chance = random.Random(1)
    return [json.dumps(pod(number, chance), separators=(",", ":")).encode() for number in range(2000)]


def read(documents: list[bytes], interner: Interner | None) -> list[Pod]:
    decode = msgspec.json.Decoder(Pod).decode
    plan = interner.interner_for(Pod) if interner is not None else None
    return [plan(decode(document)) if plan is not None else decode(document) for document in documents]


def test_compacted_objects_are_equal_to_the_ones_they_were(documents: list[bytes]) -> None:
    assert read(documents, Interner()) == read(documents, None)


def test_a_cached_pod_takes_less_than_two_kilobytes(documents: list[bytes]) -> None:
    # The least of several: the first also fills what Python keeps for tuples and dictionaries to come.
    taken = min(bytes_taken(documents) for _ in range(5))
    assert taken / len(documents) < 2048, "including the tables of shared values"


def bytes_taken(documents: list[bytes]) -> int:
    """The memory that pods take which are read from these documents."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        pods = read(documents, Interner())
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(pods) == len(documents)
    return after - before


def test_pods_of_one_owner_share_their_labels_owner_and_strings(documents: list[bytes]) -> None:
    one, other = read(documents[:2], Interner())
    assert one.metadata.labels is other.metadata.labels
    assert one.metadata.ownerReferences is other.metadata.ownerReferences
    assert one.metadata.namespace is other.metadata.namespace
    assert one.status.containerStatuses is other.status.containerStatuses
    assert one.status.conditions[0].type is other.status.conditions[0].type
    assert one.metadata.annotations is not other.metadata.annotations
    first, _, third, *_ = one.status.conditions
    assert first.lastTransitionTime is third.lastTransitionTime


def test_equal_templates_share_one_text_across_kinds() -> None:
    interner = Interner()
    text = b'{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}'
    deployment, replicaset = (
        interner.interner_for(type_)(msgspec.json.decode(text, type=type_))  # type: ignore[misc]
        for type_ in (Deployment, ReplicaSet)
    )
    assert deployment.spec.template.spec is replicaset.spec.template.spec
    assert bytes(deployment.spec.template.spec) == b'{"containers":[{"name":"a"}]}'


def test_what_is_absent_stays_the_default_it_was() -> None:
    intern = Interner().interner_for(ReplicaSet)
    assert intern is not None
    empty = intern(msgspec.json.decode(b"{}", type=ReplicaSet))
    assert empty == ReplicaSet()
    assert empty.spec is ReplicaSet().spec


def test_tables_stay_bounded_however_many_values_come() -> None:
    interner = Interner()
    intern = interner.interner_for(Object)
    assert intern is not None
    for number in range(40_000):
        labels = {"unique": str(number)}
        owner = OwnerReference(apiVersion="batch/v1", kind="Job", name=f"job-{number}", uid=str(number))
        intern(Object(metadata=ObjectMeta(namespace=f"n{number}", labels=labels, ownerReferences=(owner,))))
    assert len(interner._strings) <= 16_385


def test_when_owners_are_all_different_their_texts_are_still_shared() -> None:
    intern = Interner().interner_for(Object)
    assert intern is not None

    def made(number: int) -> Object:
        text = {"metadata": {"ownerReferences": [{"kind": "Job", "name": f"job-{number}"}]}}
        return intern(msgspec.json.decode(json.dumps(text).encode(), type=Object))

    for number in range(10_000):
        made(number)
    one, other = made(20_000), made(20_001)
    assert one.metadata.ownerReferences[0].kind is other.metadata.ownerReferences[0].kind
    assert [o.metadata.ownerReferences[0].name for o in (one, other)] == ["job-20000", "job-20001"]


class Tree(Struct, frozen=True):
    kind: str = ""
    left: Tree | None = None
    children: tuple[Tree, ...] = ()


def test_a_type_that_contains_itself_is_shared_all_the_way_down() -> None:
    intern = Interner().interner_for(Tree)
    assert intern is not None
    text = b'{"kind":"abc","left":{"kind":"abc","left":{"kind":"abc"}},"children":[{"kind":"abc"}]}'
    tree = intern(msgspec.json.decode(text, type=Tree))
    assert tree.left is not None
    assert tree.left.left is not None
    assert tree.kind is tree.left.kind is tree.left.left.kind


def test_plain_documents_are_left_alone() -> None:
    assert Interner().interner_for(dict) is None


texts = st.text(max_size=40)
metadata = st.builds(
    ObjectMeta,
    name=texts,
    namespace=st.sampled_from(["", "a", "b"]),
    labels=st.dictionaries(texts, st.sampled_from(["", "x", "y"]), max_size=4),
    annotations=st.dictionaries(texts, texts, max_size=4),
    ownerReferences=st.lists(st.builds(OwnerReference, name=texts, kind=texts), max_size=2).map(tuple),
    finalizers=st.lists(texts, max_size=2).map(tuple),
    creationTimestamp=st.none() | st.datetimes(),
)
jobs = st.builds(Job, metadata=metadata)


@given(st.lists(jobs, max_size=20))
def test_nothing_ever_turns_into_something_else(given_jobs: list[Job]) -> None:
    intern = Interner().interner_for(Job)
    assert intern is not None
    encoded = [msgspec.json.encode(job) for job in given_jobs]
    decoded = [intern(msgspec.json.decode(text, type=Job)) for text in encoded]
    assert [msgspec.json.encode(job) for job in decoded] == encoded


def test_conditions_that_differ_in_one_field_stay_apart() -> None:
    intern = Interner().interner_for(Job)
    assert intern is not None
    text = b'{"status":{"conditions":[{"type":"A","status":"True"},{"type":"A","status":"False"}]}}'
    job = intern(msgspec.json.decode(text, type=Job))
    assert job.status.conditions == (Condition(type="A", status="True"), Condition(type="A", status="False"))


def test_containers_that_run_are_shared_though_those_that_ended_have_a_time() -> None:
    interner = Interner()
    plan = interner.interner_for(Pod)
    assert plan is not None

    def read(state: dict[str, Any]) -> Pod:
        document = {"status": {"containerStatuses": [{"name": "a", "state": state}]}}
        return plan(msgspec.json.decode(json.dumps(document), type=Pod))

    times = [f"2026-01-01T00:00:0{second}Z" for second in (1, 2)]
    one, other = (read({"running": {"startedAt": at}}) for at in times)
    assert one.status.containerStatuses is other.status.containerStatuses
    one, other = (read({"terminated": {"exitCode": 1, "finishedAt": at}}) for at in times)
    assert one.status != other.status


def test_volumes_without_a_template_of_a_claim_are_shared() -> None:
    plain = b'{"metadata":{"name":"%d"},"spec":{"volumes":[{"name":"config","configMap":{"name":"a"}}]}}'
    own = (
        b'{"metadata":{"name":"%d"},"spec":{"volumes":[{"name":"scratch","ephemeral":'
        b'{"volumeClaimTemplate":{"metadata":{"labels":{"a":"b"}},"spec":{}}}}]}}'
    )
    one, two = read([plain % 1, plain % 2], Interner())
    assert one.spec.volumes is two.spec.volumes
    one, two = read([own % 1, own % 2], Interner())
    assert one.spec.volumes == two.spec.volumes
